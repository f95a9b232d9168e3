//! Constant folding: parts of an expression with the same value for every document are computed
//! once.
//!
//! MongoDB parses everything first and computes constants afterwards, operator by operator. This
//! determines which error a client sees, and whether it sees one at all if there is no document. So
//! the order here is MongoDB's.

use super::scope::Scope;
use super::tree::{Expr, Foldable, Operator, SpecialForm};
use document::{Collation, Doc, Value};
use error::{Code, Error, Result};
use steps::Counted;

impl Expr {
    /// Folds the expression. Fails like its constant parts; it then remains as usable as before.
    pub(super) fn optimize(&mut self, collation: &Collation) -> Result<()> {
        steps::step();
        match self {
            Expr::Missing | Expr::Literal(_) | Expr::Root(_) | Expr::Variable(..) | Expr::Metadata(_) => return Ok(()),
            // It was optimized before.
            Expr::InSecondEngine(..) => return Ok(()),
            Expr::Document(fields) => fields.iter_mut().try_for_each(|(_, value)| value.optimize(collation))?,
            Expr::Array(elements) => all(elements, collation)?,
            Expr::Call(operator, arguments) => match operator.foldable {
                Foldable::None => return Ok(()),
                Foldable::Arguments => return call(operator, arguments, collation),
                Foldable::Full => call(operator, arguments, collation)?,
            },
            Expr::Form(form) => {
                // The replacement has already been optimized.
                if let Some(simpler) = form.optimize(collation)? {
                    *self = simpler;
                }
                return Ok(());
            }
        }
        let constant = match self {
            Expr::Document(fields) => fields.iter().all(|(_, value)| value.is_constant()),
            Expr::Array(parts) | Expr::Call(_, parts) => parts.iter().all(Expr::is_constant),
            _ => false,
        };
        if constant {
            *self = self.compute(collation)?;
        }
        Ok(())
    }

    /// Evaluates an expression that depends on no document, and returns the value as an expression.
    fn compute(&self, collation: &Collation) -> Result<Expr> {
        let value = self.evaluate(&Scope { root: Doc::EMPTY.into(), frame: None, collation })?;
        Ok(value.into_owned().map_or(Expr::Missing, Expr::Literal))
    }

    /// Returns whether a constant is true; `None` if it is no constant.
    fn constant_truth(&self) -> Option<bool> {
        self.as_constant().map(|value| value.is_some_and(Value::is_truthy))
    }
}

fn all(expressions: &mut [Expr], collation: &Collation) -> Result<()> {
    expressions.iter_mut().try_for_each(|expression| expression.optimize(collation))
}

fn call(operator: &mut &'static Operator, arguments: &mut Vec<Expr>, collation: &Collation) -> Result<()> {
    for index in 0..arguments.len() {
        arguments[index].optimize(collation)?;
        if let Some(check) = operator.check_constants {
            check(operator.name, arguments, index + 1)?;
        }
    }
    if let Some(special) = operator.specialize.and_then(|specialize| specialize(arguments)) {
        *operator = special;
    }
    if operator.is_associative() && !(operator.takes_one_array && arguments.len() == 1) {
        flatten(operator, arguments);
        if operator.is_commutative(collation) {
            // The constants come last: which null or error is met first depends on it.
            arguments.sort_by_key(Expr::is_constant);
        }
        join_constants(operator, arguments, collation)?;
    }
    Ok(())
}

/// Replaces nested calls of the same operator by their arguments.
fn flatten(operator: &'static Operator, arguments: &mut Vec<Expr>) {
    let is_same = |argument: &Expr| {
        matches!(argument, Expr::Call(inner, parts) if inner.name == operator.name
            && !(operator.takes_one_array && parts.len() == 1))
    };
    if !arguments.iter().counted().any(is_same) {
        return;
    }
    // The next one is the last of these.
    let mut rest: Vec<Expr> = arguments.drain(..).rev().collect();
    while let Some(argument) = rest.pop() {
        steps::step();
        match argument {
            same if is_same(&same) => {
                if let Expr::Call(_, parts) = same {
                    rest.extend(parts.into_iter().rev());
                }
            }
            other => arguments.push(other),
        }
    }
}

/// Replaces each run of constant arguments by one constant. If all are constant, the call itself is
/// computed.
fn join_constants(operator: &'static Operator, arguments: &mut Vec<Expr>, collation: &Collation) -> Result<()> {
    if arguments.iter().counted().all(Expr::is_constant) {
        return Ok(());
    }
    let mut joined = Vec::with_capacity(arguments.len());
    let mut constants = Vec::new();
    for argument in arguments.drain(..) {
        steps::step();
        if argument.is_constant() {
            constants.push(argument);
            continue;
        }
        joined.extend(join(operator, std::mem::take(&mut constants), collation)?);
        joined.push(argument);
    }
    joined.extend(join(operator, constants, collation)?);
    *arguments = joined;
    Ok(())
}

/// Evaluates a run of constant arguments.
fn join(operator: &'static Operator, mut constants: Vec<Expr>, collation: &Collation) -> Result<Option<Expr>> {
    match constants.len() {
        0 | 1 => Ok(constants.pop()),
        _ => Expr::Call(operator, constants).compute(collation).map(Some),
    }
}

impl SpecialForm {
    /// Returns the form's replacement, if any.
    fn optimize(&mut self, collation: &Collation) -> Result<Option<Expr>> {
        match self {
            SpecialForm::And(parts) => connective(parts, collation, SpecialForm::And, true),
            SpecialForm::Or(parts) => connective(parts, collation, SpecialForm::Or, false),
            SpecialForm::IfNull(candidates) => if_null(candidates, collation),
            SpecialForm::Condition { test, then, otherwise } => {
                for part in [&mut *test, &mut *then, &mut *otherwise] {
                    part.optimize(collation)?;
                }
                let taken = test.constant_truth().map(|truth| if truth { then } else { otherwise });
                Ok(taken.map(|taken| std::mem::replace(taken, Expr::Missing)))
            }
            SpecialForm::Switch { branches, default } => switch(branches, default, collation),
            SpecialForm::Let { values, body } => {
                all(values, collation)?;
                body.optimize(collation)?;
                Ok(None)
            }
            SpecialForm::Map { input, body } => {
                input.optimize(collation)?;
                body.optimize(collation)?;
                Ok(None)
            }
            SpecialForm::Filter { input, condition, limit } => {
                input.optimize(collation)?;
                condition.optimize(collation)?;
                limit.iter_mut().try_for_each(|limit| limit.optimize(collation))?;
                Ok(None)
            }
            SpecialForm::Reduce { input, initial, body } => {
                for part in [input, initial, body] {
                    part.optimize(collation)?;
                }
                Ok(None)
            }
        }
    }
}

/// Optimizes `$and` (with `neutral` true) and `$or`: a deciding constant ends it, neutral ones are
/// removed.
fn connective(
    parts: &mut Vec<Expr>,
    collation: &Collation,
    form: fn(Vec<Expr>) -> SpecialForm,
    neutral: bool,
) -> Result<Option<Expr>> {
    all(parts, collation)?;
    if parts.iter().all(Expr::is_constant) {
        return Expr::Form(Box::new(form(std::mem::take(parts)))).compute(collation).map(Some);
    }
    if parts.iter().any(|part| part.constant_truth() == Some(!neutral)) {
        return Ok(Some(Expr::Literal(Value::Boolean(!neutral).to_owned())));
    }
    parts.retain(|part| !part.is_constant());
    Ok(None)
}

/// Removes constant nulls; parts after a non-null constant are never evaluated.
fn if_null(candidates: &mut Vec<Expr>, collation: &Collation) -> Result<Option<Expr>> {
    all(candidates, collation)?;
    let last = candidates.len().saturating_sub(1);
    let mut index = 0;
    candidates.retain(|candidate| {
        index += 1;
        index > last || candidate.as_constant().is_none_or(|value| !is_null(value))
    });
    if let Some(end) =
        candidates.iter().position(|candidate| candidate.as_constant().is_some_and(|value| !is_null(value)))
    {
        candidates.truncate(end + 1);
    }
    match candidates.as_slice() {
        [only] => Ok(Some(only.clone())),
        _ => Ok(None),
    }
}

fn is_null(value: Option<Value<'_>>) -> bool {
    matches!(value, None | Some(Value::Null | Value::Undefined))
}

/// Removes branches that are never taken; a branch that is always taken becomes the default.
fn switch(branches: &mut Vec<(Expr, Expr)>, default: &mut Option<Expr>, collation: &Collation) -> Result<Option<Expr>> {
    default.iter_mut().try_for_each(|default| default.optimize(collation))?;
    let mut kept = Vec::with_capacity(branches.len());
    for (mut case, mut then) in std::mem::take(branches) {
        case.optimize(collation)?;
        match case.constant_truth() {
            Some(false) => continue,
            Some(true) => {
                then.optimize(collation)?;
                *default = Some(then);
                break;
            }
            None => {
                then.optimize(collation)?;
                kept.push((case, then));
            }
        }
    }
    *branches = kept;
    match (branches.is_empty(), &*default) {
        (true, Some(default)) => Ok(Some(default.clone())),
        (true, None) => {
            let message = "Cannot execute a switch statement where all the cases evaluate to false without a default";
            Err(Error::new(Code(40069), message))
        }
        _ => Ok(None),
    }
}
