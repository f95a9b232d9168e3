//! Evaluation of a tree for one document.

use super::evaluated::{Evaluated, Failed};
use super::scope::Scope;
use super::second_engine::Rule;
use super::tree::{Expr, Operator, SpecialForm};
use super::{control, iterate};
use crate::check_size_between_stages;
use crate::limits::check_value_size;
use document::Value;
use error::{Error, Result};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

impl Expr {
    pub fn evaluate<'s>(&'s self, scope: &Scope<'s>) -> Result<Evaluated<'s>> {
        steps::step();
        Ok(match self {
            Expr::Missing => Evaluated::Missing,
            Expr::Literal(value) => Evaluated::Value(value.as_value()),
            Expr::Root(path) => path.evaluate(Some(Value::Document(scope.root.document))),
            Expr::Variable(variable, path) => path.evaluate(scope.value(*variable)),
            Expr::Metadata(meta) => scope.root.metadata.get(*meta).map_or(Evaluated::Missing, Evaluated::Value),
            Expr::Document(fields) => document(fields, scope)?,
            Expr::Array(elements) => array(elements, scope)?,
            Expr::Call(operator, arguments) => call(operator, arguments, scope)?,
            Expr::Form(form) => form.evaluate(scope)?,
            Expr::InSecondEngine(plain, rule) => in_second_engine(plain, rule, scope)?,
        })
    }
}

impl SpecialForm {
    fn evaluate<'s>(&'s self, scope: &Scope<'s>) -> Result<Evaluated<'s>> {
        match self {
            SpecialForm::And(all) => control::and(all, scope),
            SpecialForm::Or(any) => control::or(any, scope),
            SpecialForm::Condition { test, then, otherwise } => control::condition(test, then, otherwise, scope),
            SpecialForm::IfNull(candidates) => control::if_null(candidates, scope),
            SpecialForm::Switch { branches, default } => control::switch(branches, default.as_ref(), scope),
            SpecialForm::Let { values, body } => iterate::bind(values, body, scope),
            SpecialForm::Map { input, body } => iterate::map(input, body, scope),
            SpecialForm::Filter { input, condition, limit } => iterate::filter(input, condition, limit.as_ref(), scope),
            SpecialForm::Reduce { input, initial, body } => iterate::reduce(input, initial, body, scope),
        }
    }
}

fn call<'s>(operator: &'static Operator, arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Evaluated<'s>> {
    call_with(arguments, scope, |values| operator.apply(values, scope.collation))
}

/// Computes a value from the arguments' values with `apply`.
fn call_with<'s>(
    arguments: &'s [Expr],
    scope: &Scope<'s>,
    apply: impl FnOnce(&mut [Evaluated<'s>]) -> Result<Evaluated<'s>>,
) -> Result<Evaluated<'s>> {
    let mut values: SmallVec<[Evaluated<'s>; 3]> = SmallVec::new();
    let mut failures = Failures::default();
    for (index, argument) in arguments.iter().enumerate() {
        let value = argument.evaluate(scope).unwrap_or_else(|error| failures.record(index, error));
        steps::bytes(value.size());
        values.push(value);
    }
    let value = failures.resolve(apply(&mut values))?;
    if let Evaluated::Owned(value) = &value {
        steps::bytes(value.raw_value().len());
        check_value_size(value.raw_value().len())?;
    }
    Ok(value)
}

/// The failures of the arguments of a call.
#[derive(Default)]
struct Failures {
    /// The index of the first one that was read; nothing is allocated without a failure.
    first_seen: Option<Arc<OnceLock<usize>>>,
    errors: Vec<(usize, Error)>,
}

impl Failures {
    /// Records the failure and returns its placeholder argument.
    fn record<'a>(&mut self, index: usize, error: Error) -> Evaluated<'a> {
        self.errors.push((index, error));
        Evaluated::Failed(Failed { index, first_seen: self.first_seen.get_or_insert_default().clone() })
    }

    /// Returns the result of an operator that would have stopped at the first failure it read.
    fn resolve<'a>(self, answer: Result<Evaluated<'a>>) -> Result<Evaluated<'a>> {
        let Some(first_seen) = self.first_seen else { return answer };
        if let Ok(Evaluated::Failed(failed)) = &answer {
            first_seen.get_or_init(|| failed.index);
        }
        match self.errors.into_iter().find(|(index, _)| first_seen.get() == Some(index)) {
            Some((_, error)) => Err(error),
            None => answer,
        }
    }
}

/// Evaluates an object expression; missing fields are omitted.
fn document<'s>(fields: &'s [(Box<str>, Expr)], scope: &Scope<'s>) -> Result<Evaluated<'s>> {
    Evaluated::try_document(|writer| {
        for (name, expression) in fields {
            expression.evaluate(scope)?.append_to(writer, name);
            check_size_between_stages(writer.size())?;
        }
        Ok(())
    })
}

/// Evaluates an array expression; missing elements become null.
fn array<'s>(elements: &'s [Expr], scope: &Scope<'s>) -> Result<Evaluated<'s>> {
    Evaluated::try_array(|writer| {
        for element in elements {
            element.evaluate(scope)?.push_to(writer);
            check_size_between_stages(writer.size())?;
        }
        Ok(())
    })
}

/// Evaluates a call or a special form by the rule of the second engine.
fn in_second_engine<'s>(plain: &'s Expr, rule: &'static Rule, scope: &Scope<'s>) -> Result<Evaluated<'s>> {
    match plain {
        Expr::Call(operator, arguments) => {
            call_with(arguments, scope, |values| match rule.check_arguments(operator.name, values)? {
                Some(value) => Ok(value),
                None => operator.apply(values, scope.collation),
            })
            .map_err(|error| rule.error(operator.name, error))
        }
        Expr::Form(form) => check_limit(form, scope)
            .and_then(|()| form.evaluate(scope))
            .map_err(|error| rule.error(form.operator_name(), error)),
        plain => plain.evaluate(scope),
    }
}

/// Checks the limit of a `$filter` before its input, as the second engine does.
fn check_limit<'s>(form: &'s SpecialForm, scope: &Scope<'s>) -> Result<()> {
    match form {
        SpecialForm::Filter { limit: Some(limit), .. } => iterate::filter_limit(&limit.evaluate(scope)?).map(drop),
        _ => Ok(()),
    }
}
