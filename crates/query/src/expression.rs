//! Aggregation expressions: `{$add: ["$a", 1]}`, parsed once and evaluated per document.
//!
//! Input is an expression as a client sends it; the result is a value that borrows from the
//! document if possible. Constant parts are computed before the first document. An expression that
//! cannot succeed fails then, as in MongoDB ([`crate::context::Folding`] determines when).
//!
//! In reading order: [`Evaluated`] (the result of evaluation), `parse` (from BSON to a tree),
//! `optimize` (constants), `scope` (variables), `path` (`$a.b`), `control` and `iterate` (forms
//! that evaluate their parts as needed), `functions` (the table of all others) and the files named
//! after the values they work on.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/aggregation/>; where it is
//! silent, the behavior of a 6.0 server.

mod accumulate;
mod arguments;
mod arithmetic;
mod array;
mod comparison;
mod control;
mod convert;
pub mod date;
mod evaluated;
mod functions;
mod implied;
mod iterate;
mod object;
mod optimize;
mod parse;
mod path;
mod ranked;
mod regular;
mod rename;
mod scope;
pub mod second_engine;
mod set;
mod shape;
mod string;

#[cfg(test)]
mod tests;

use crate::Context;
use crate::metadata::{Item, Meta};
use document::{Collation, DocWriter, Value, ValueBuf};
use error::{Error, Result};

pub use evaluated::Evaluated;
pub use functions::no_javascript;
pub use parse::check_binding as check_variable_name;
pub use path::check_field_path;
pub use path::check_name;
pub use ranked::checked_count;
use scope::{Frame, Scope};
pub(crate) use string::letters::count as count_letters;

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expression {
    root: Expr,
    collation: Collation,
    /// Whether MongoDB's second engine supports everything in the expression, even parts that have
    /// been folded.
    known: bool,
    implied: implied::Implied,
}

/// The tree of an expression, with constants folded.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    /// `$$REMOVE`, and omitted arguments.
    Missing,
    Literal(ValueBuf),
    /// `$a.b`; `$$ROOT` if the path is empty.
    Root(path::FieldPath),
    /// `$$name.a.b`
    Variable(scope::Variable, path::FieldPath),
    /// `{$meta: "textScore"}`
    Metadata(Meta),
    Document(Vec<(Box<str>, Expr)>),
    Array(Vec<Expr>),
    Call(&'static functions::Function, Vec<Expr>),
    Form(Box<Form>),
    /// A call or a form, with the rule by which MongoDB's second engine differs.
    InSecondEngine(Box<Expr>, &'static second_engine::Rule),
}

/// Expressions that do not simply evaluate all their arguments.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Condition { test: Expr, then: Expr, otherwise: Expr },
    IfNull(Vec<Expr>),
    Switch { branches: Vec<(Expr, Expr)>, default: Option<Expr> },
    Let { values: Vec<Expr>, body: Expr },
    Map { input: Expr, body: Expr },
    Filter { input: Expr, condition: Expr, limit: Option<Expr> },
    Reduce { input: Expr, initial: Expr, body: Expr },
}

/// Operators that accept any arguments.
const COMPARING: &[&str] =
    &["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp", "$not", "$isArray", "$isNumber", "$type"];

impl Expression {
    /// Parses an expression in a position that may contain any value: a document without operators
    /// is an object expression.
    pub fn parse(value: Value<'_>, context: &Context) -> Result<Expression> {
        Self::parse_with(value, context, &[])
    }

    /// Like [`Expression::parse`], with variables of these names whose values are passed to each
    /// evaluation ([`Expression::evaluate_with`]).
    pub fn parse_with(value: Value<'_>, context: &Context, variables: &[&str]) -> Result<Expression> {
        let (expression, failure) = Self::parse_apart(value, context, variables)?;
        context.folding.settle(failure)?;
        Ok(expression)
    }

    /// Like [`Expression::parse`]. Returns the failure of a constant part as an error beside the
    /// expression, for callers that have more to check first.
    pub fn parse_folding(value: Value<'_>, context: &Context) -> Result<(Expression, Option<Error>)> {
        Self::parse_apart(value, context, &[])
    }

    fn parse_apart(value: Value<'_>, context: &Context, variables: &[&str]) -> Result<(Expression, Option<Error>)> {
        let mut root = parse::Parser::new(context, variables).parse(value)?;
        let (known, lone) = (second_engine::is_known(&root), root.lone_conditions());
        let failure = if context.folding.is_wanted() { root.optimize(&context.collation).err() } else { None };
        // Folding converts a remaining operand of `$and` and `$or` to a boolean, for which the
        // engine has no operator.
        let known = known && root.lone_conditions() <= lone;
        Ok((Expression { root, collation: context.collation.clone(), known, implied: Default::default() }, failure))
    }

    fn of(root: Expr) -> Expression {
        Expression { root, collation: Collation::SIMPLE, known: true, implied: Default::default() }
    }

    /// Returns whether an operator of this name (`$add`) exists.
    pub fn is_operator(name: &str) -> bool {
        parse::is_operator(name)
    }

    /// Returns the expression of a field path such as `a.b`, written without the `$`.
    pub fn field(path: &str) -> Result<Expression> {
        Ok(Expression::of(Expr::Root(path::FieldPath::parse(path)?)))
    }

    /// Returns the expression of a constant.
    pub fn literal(value: Value<'_>) -> Expression {
        Expression::of(Expr::Literal(ValueBuf::from(value)))
    }

    /// Evaluates with `root` as `$$ROOT` and `$$CURRENT`.
    pub fn evaluate<'s>(&'s self, root: impl Into<Item<'s>>) -> Result<Evaluated<'s>> {
        self.root.evaluate(&Scope { root: root.into(), frame: None, collation: &self.collation })
    }

    /// Evaluates with the values of the variables named when parsing, in that order; `None` is a
    /// missing value.
    pub fn evaluate_with<'s>(
        &'s self,
        root: impl Into<Item<'s>>,
        variables: &'s [Option<Value<'s>>],
    ) -> Result<Evaluated<'s>> {
        let frame = Frame { values: variables, outer: None };
        let evaluated =
            self.root.evaluate(&Scope { root: root.into(), frame: Some(&frame), collation: &self.collation })?;
        Ok(evaluated.detached())
    }

    /// Evaluates and appends the value, unless it is missing.
    pub fn evaluate_into<'s>(&'s self, root: impl Into<Item<'s>>, writer: &mut DocWriter<'_>, key: &str) -> Result<()> {
        self.evaluate(root)?.append_to(writer, key);
        Ok(())
    }

    /// Returns the value, if it does not depend on the document.
    pub fn as_literal(&self) -> Option<Value<'_>> {
        match &self.root {
            Expr::Literal(value) => Some(value.as_value()),
            _ => None,
        }
    }

    /// Returns whether the value is independent of the document.
    pub fn is_constant(&self) -> bool {
        self.root.is_constant()
    }

    /// Returns whether evaluation succeeds for every document: the expression only compares and
    /// decides.
    pub fn never_fails(&self) -> bool {
        self.root.never_fails()
    }

    /// Returns the dotted path, if the expression is a plain field of the document.
    pub fn as_field(&self) -> Option<String> {
        match &self.root {
            Expr::Root(path) if !path.is_empty() => Some(path.to_string()),
            _ => None,
        }
    }

    /// Returns the dotted paths that the expression reads; `None` if it reads the whole document or
    /// varies between evaluations.
    pub fn paths(&self) -> Option<Vec<String>> {
        let (mut paths, mut known) = (Vec::new(), true);
        self.root.each(&mut |part| match part {
            Expr::Root(path) if path.is_empty() => known = false,
            Expr::Root(path) => paths.push(path.to_string()),
            Expr::Metadata(_) => known = false,
            Expr::Call(function, _) if matches!(function.name, "$rand" | "$function") => known = false,
            _ => {}
        });
        known.then_some(paths)
    }

    /// Returns whether it is evaluated for each document, even with constant arguments.
    pub fn is_never_folded(&self) -> bool {
        matches!(&self.root, Expr::Call(function, _) if function.folding() == functions::Folding::None)
    }

    /// Returns whether its value depends on the document.
    pub fn reads_document(&self) -> bool {
        let mut reads = false;
        self.root.each(&mut |part| reads |= matches!(part, Expr::Root(_) | Expr::Metadata(_)));
        reads
    }

    /// Returns whether it is `$$ROOT`, the whole document.
    pub fn is_root(&self) -> bool {
        matches!(&self.root, Expr::Root(path) if path.is_empty())
    }
}

/// Applies an operator such as `$add` to values.
pub fn apply(operator: &str, values: &[Value<'_>]) -> Result<ValueBuf> {
    let Some(function) = functions::find(operator) else { return Ok(Value::Null.to_owned()) };
    let mut arguments: Vec<Evaluated<'_>> = values.iter().map(|value| Evaluated::Value(*value)).collect();
    let result = function.apply(&mut arguments, &Collation::SIMPLE)?;
    Ok(result.into_owned().unwrap_or_else(|| Value::Null.to_owned()))
}

impl Expr {
    pub(crate) fn evaluate<'s>(&'s self, scope: &Scope<'s>) -> Result<Evaluated<'s>> {
        steps::step();
        Ok(match self {
            Expr::Missing => Evaluated::Missing,
            Expr::Literal(value) => Evaluated::Value(value.as_value()),
            Expr::Root(path) => path.evaluate(Some(Value::Document(scope.root.document))),
            Expr::Variable(variable, path) => path.evaluate(scope.value(*variable)),
            Expr::Metadata(meta) => scope.root.metadata.get(*meta).map_or(Evaluated::Missing, Evaluated::Value),
            Expr::Document(fields) => object::build(fields, scope)?,
            Expr::Array(elements) => array::build(elements, scope)?,
            Expr::Call(function, arguments) => functions::call(function, arguments, scope)?,
            Expr::Form(form) => form.evaluate(scope)?,
            Expr::InSecondEngine(plain, rule) => rule.evaluate(plain, scope)?,
        })
    }

    /// Returns the value of a constant, which may be missing; `None` if it depends on the document.
    pub(crate) fn as_constant(&self) -> Option<Option<Value<'_>>> {
        match self {
            Expr::Literal(value) => Some(Some(value.as_value())),
            Expr::Missing => Some(None),
            _ => None,
        }
    }

    /// Passes the expression and all its parts to `look`.
    fn each(&self, look: &mut dyn FnMut(&Expr)) {
        steps::step();
        look(self);
        match self {
            Expr::Missing | Expr::Literal(_) | Expr::Root(_) | Expr::Variable(..) | Expr::Metadata(_) => {}
            Expr::Document(fields) => fields.iter().for_each(|(_, value)| value.each(look)),
            Expr::Array(all) | Expr::Call(_, all) => all.iter().for_each(|part| part.each(look)),
            Expr::Form(form) => form.each(look),
            Expr::InSecondEngine(plain, _) => plain.each(look),
        }
    }

    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Expr::Literal(_) | Expr::Missing)
    }
}

impl Form {
    fn each(&self, look: &mut dyn FnMut(&Expr)) {
        match self {
            Form::And(all) | Form::Or(all) | Form::IfNull(all) => all.iter().for_each(|part| part.each(look)),
            Form::Condition { test, then, otherwise } => {
                [test, then, otherwise].into_iter().for_each(|part| part.each(look));
            }
            Form::Switch { branches, default } => {
                branches.iter().flat_map(|(case, then)| [case, then]).chain(default).for_each(|part| part.each(look));
            }
            Form::Let { values, body } => values.iter().chain([body]).for_each(|part| part.each(look)),
            Form::Map { input, body } => [input, body].into_iter().for_each(|part| part.each(look)),
            Form::Filter { input, condition, limit } => {
                [input, condition].into_iter().chain(limit).for_each(|part| part.each(look));
            }
            Form::Reduce { input, initial, body } => {
                [input, initial, body].into_iter().for_each(|part| part.each(look));
            }
        }
    }

    fn evaluate<'s>(&'s self, scope: &Scope<'s>) -> Result<Evaluated<'s>> {
        match self {
            Form::And(all) => control::and(all, scope),
            Form::Or(any) => control::or(any, scope),
            Form::Condition { test, then, otherwise } => control::condition(test, then, otherwise, scope),
            Form::IfNull(candidates) => control::if_null(candidates, scope),
            Form::Switch { branches, default } => control::switch(branches, default.as_ref(), scope),
            Form::Let { values, body } => iterate::bind(values, body, scope),
            Form::Map { input, body } => iterate::map(input, body, scope),
            Form::Filter { input, condition, limit } => iterate::filter(input, condition, limit.as_ref(), scope),
            Form::Reduce { input, initial, body } => iterate::reduce(input, initial, body, scope),
        }
    }
}
