//! The table of operators that evaluate all their arguments and compute a value from them.

use super::evaluated::Failed;
use super::parse::Parser;
use super::scope::Scope;
use super::{
    Evaluated, Expr, accumulate, arithmetic, array, comparison, convert, date, object, ranked, regular, set, string,
};
use document::{Collation, Value};
use error::{Code, Error, Result};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// An operator.
pub(crate) struct Function {
    pub name: &'static str,
    pub arity: Arity,
    /// False if the value varies between calls with the same arguments.
    pub pure: bool,
    pub evaluate: Evaluate,
}

/// Computes the value of an operator, whose own name is passed for messages.
#[derive(Clone, Copy)]
pub(crate) enum Evaluate {
    Plain(for<'a> fn(&'static str, &mut [Evaluated<'a>]) -> Result<Evaluated<'a>>),
    /// For operators that compare values: strings by the collation.
    Comparing(for<'a> fn(&'static str, &mut [Evaluated<'a>], &Collation) -> Result<Evaluated<'a>>),
}

/// The number of arguments of an operator, or a parser for named ones.
#[derive(Clone, Copy)]
pub(crate) enum Arity {
    Exactly(usize),
    Between(usize, usize),
    Any,
    /// Returns the arguments in the order that `evaluate` expects, [`Expr::Missing`] for omitted
    /// ones.
    Named(fn(&mut Parser<'_>, &str, Value<'_>) -> Result<Vec<Expr>>),
}

/// The part of a call that is computed before there is a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folding {
    /// The whole call, if all arguments are constants.
    Full,
    /// Constant parts of its arguments.
    Arguments,
    /// Nothing, as on the server; constants that fail do so once there is a document.
    None,
}

impl Function {
    pub fn apply<'a>(&self, arguments: &mut [Evaluated<'a>], collation: &Collation) -> Result<Evaluated<'a>> {
        match self.evaluate {
            Evaluate::Plain(evaluate) => evaluate(self.name, arguments),
            Evaluate::Comparing(evaluate) => evaluate(self.name, arguments, collation),
        }
    }

    /// Returns the part that is computed in advance if arguments are constants.
    pub fn folding(&self) -> Folding {
        match self.name {
            "$getField" | "$setField" | "$unsetField" | "$firstN" | "$lastN" | "$minN" | "$maxN" => Folding::None,
            "$zip" | "$sortArray" | "$setEquals" | "$regexMatch" | "$regexFind" | "$regexFindAll" | "$replaceOne"
            | "$replaceAll" => Folding::Arguments,
            _ if self.pure => Folding::Full,
            _ => Folding::None,
        }
    }

    /// Returns whether nested calls are equal to one call with all arguments.
    pub fn is_associative(&self) -> bool {
        self.is_commutative(&Collation::SIMPLE) || matches!(self.name, "$concat" | "$concatArrays")
    }

    /// Returns whether a single array argument may contain all arguments.
    pub fn takes_one_array(&self) -> bool {
        matches!(self.name, "$sum" | "$min" | "$max")
    }

    /// Returns whether the order of the arguments does not matter. Of texts that a collation takes
    /// for equal, sets retain the first.
    pub fn is_commutative(&self, collation: &Collation) -> bool {
        match self.name {
            "$add" | "$multiply" | "$sum" | "$min" | "$max" => true,
            "$setUnion" | "$setIntersection" => collation.is_simple(),
            _ => false,
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

pub(super) fn find(name: &str) -> Option<&'static Function> {
    static FUNCTIONS: OnceLock<HashMap<&str, &Function, ahash::RandomState>> = OnceLock::new();
    let all = || TABLES.iter().chain(date::TABLES).flat_map(|table| table.iter());
    FUNCTIONS.get_or_init(|| all().map(|function| (function.name, function)).collect()).get(name).copied()
}

pub(super) fn call<'s>(function: &'static Function, arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Evaluated<'s>> {
    call_with(arguments, scope, |values| function.apply(values, scope.collation))
}

/// Computes a value from the arguments' values with `apply`.
pub(super) fn call_with<'s>(
    arguments: &'s [Expr],
    scope: &Scope<'s>,
    apply: impl FnOnce(&mut [Evaluated<'s>]) -> Result<Evaluated<'s>>,
) -> Result<Evaluated<'s>> {
    let mut values: SmallVec<[Evaluated<'s>; 3]> = SmallVec::new();
    let mut failures = Failures::default();
    for (place, argument) in arguments.iter().enumerate() {
        let value = argument.evaluate(scope).unwrap_or_else(|error| failures.keep(place, error));
        steps::bytes(value.size());
        values.push(value);
    }
    let value = failures.answer(apply(&mut values))?;
    if let Evaluated::Owned(value) = &value {
        steps::bytes(value.raw_value().len());
        check_size(value.raw_value().len())?;
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
    fn keep<'a>(&mut self, place: usize, error: Error) -> Evaluated<'a> {
        self.errors.push((place, error));
        Evaluated::Failed(Failed { place, first_seen: self.first_seen.get_or_insert_default().clone() })
    }

    /// Returns the result of an operator that would have stopped at the first failure it read.
    fn answer<'a>(self, answer: Result<Evaluated<'a>>) -> Result<Evaluated<'a>> {
        let Some(first_seen) = self.first_seen else { return answer };
        if let Ok(Evaluated::Failed(failed)) = &answer {
            first_seen.get_or_init(|| failed.place);
        }
        match self.errors.into_iter().find(|(place, _)| first_seen.get() == Some(place)) {
            Some((_, error)) => Err(error),
            None => answer,
        }
    }
}

/// Maximal size of a value in an expression, as in MongoDB. Without a bound a few doublings in a
/// `$reduce` would exhaust all memory.
const VALUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Fails with 13548 past [`VALUE_BYTES_MAX`].
pub(super) fn check_size(bytes: usize) -> Result<()> {
    if bytes <= VALUE_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(Code(13548), format!("BufBuilder attempted to grow() to {bytes} bytes, past the 64MB limit.")))
}

/// Returns a row of the table.
pub(super) const fn function(
    name: &'static str,
    arity: Arity,
    evaluate: for<'a> fn(&'static str, &mut [Evaluated<'a>]) -> Result<Evaluated<'a>>,
) -> Function {
    Function { name, arity, pure: true, evaluate: Evaluate::Plain(evaluate) }
}

/// Returns a row of the table, for an operator that compares values.
pub(super) const fn comparing(
    name: &'static str,
    arity: Arity,
    evaluate: for<'a> fn(&'static str, &mut [Evaluated<'a>], &Collation) -> Result<Evaluated<'a>>,
) -> Function {
    Function { name, arity, pure: true, evaluate: Evaluate::Comparing(evaluate) }
}

static TABLES: &[&[Function]] = &[
    arithmetic::FUNCTIONS,
    comparison::FUNCTIONS,
    string::FUNCTIONS,
    array::FUNCTIONS,
    object::FUNCTIONS,
    accumulate::FUNCTIONS,
    set::FUNCTIONS,
    convert::FUNCTIONS,
    regular::FUNCTIONS,
    ranked::FUNCTIONS,
    RANDOM,
];

static RANDOM: &[Function] = &[
    Function {
        name: "$rand",
        arity: Arity::Named(parse_random),
        pure: false,

        evaluate: Evaluate::Plain(|_, _| Ok(rand::random::<f64>().into())),
    },
    Function {
        name: "$function",
        arity: Arity::Named(parse_script),
        pure: false,

        evaluate: Evaluate::Plain(|_, _| Err(no_javascript())),
    },
];

/// `$$NOW` and `$$CLUSTER_TIME` in commands for which MongoDB does not define them.
pub(super) static NO_CLOCK: [Function; 2] = [
    Function {
        name: "$$NOW",
        arity: Arity::Any,
        pure: false,
        evaluate: Evaluate::Plain(|name, _| Err(no_clock(name))),
    },
    Function {
        name: "$$CLUSTER_TIME",
        arity: Arity::Any,
        pure: false,
        evaluate: Evaluate::Plain(|name, _| Err(no_clock(name))),
    },
];

fn no_clock(name: &str) -> Error {
    Error::new(Code(51144), format!("Builtin variable '{name}' is not available"))
}

/// Returns the error for JavaScript, the same as on a server that has it switched off.
pub fn no_javascript() -> Error {
    Error::new(Code(31264), "Cannot run server-side javascript without the javascript engine enabled")
}

fn parse_script(_: &mut Parser<'_>, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        let found = operand.kind().alias();
        return Err(Error::new(Code(31260), format!("{name} requires an object as an argument, found: {found}")));
    };
    let given =
        |field: &str, code: i32, message: &str| operand.get(field).ok_or_else(|| Error::new(Code(code), message));
    let body = given("body", 31261, "The body function must be specified.")?;
    given("args", 31263, "The args field must be specified.")?;
    let language = given("lang", 31418, "The lang field must be specified.")?;
    if !matches!(body, Value::String(_) | Value::Code(_)) {
        return Err(Error::new(Code(31262), "The body function must evaluate to type string or code"));
    }
    if language.as_str() != Some("js") {
        return Err(Error::new(Code(31419), "Currently the only supported language specifier is 'js'."));
    }
    Ok(Vec::new())
}

fn parse_random(_: &mut Parser<'_>, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    match operand {
        Value::Document(empty) | Value::Array(empty) if empty.is_empty() => Ok(Vec::new()),
        Value::Document(_) | Value::Array(_) => {
            Err(Error::new(Code(3040501), format!("{name} does not currently accept arguments")))
        }
        _ => Err(Error::new(Code(10065), format!("invalid parameter: expected an object ({name})"))),
    }
}
