//! Rules by which MongoDB's second engine evaluates operators in another way.
//!
//! MongoDB 6.0 runs a `$group` at the front of a pipeline in an engine of its own, if that supports
//! everything in it. It has other error codes, and some operators check the types of their
//! arguments in another order: null precedes errors of the other arguments.
//!
//! Operators compute the same values, so a rule is wrapped around a call: the checks before it, and
//! the other codes of its errors.

pub(super) mod support;

use super::evaluated::Evaluated;
use error::{Code, Error, Result};

/// How the engine treats an operator.
#[derive(Debug)]
pub(crate) enum SecondEngine {
    /// An expression with this operator is evaluated by the first engine.
    Unsupported,
    Same,
    Differs(Rule),
}

/// How the engine differs for one operator.
#[derive(Debug)]
pub(crate) struct Rule {
    check_arguments: Option<CheckArguments>,
    errors: &'static [ReplacedError],
}

/// Checks or changes the arguments; a returned value replaces the call's. The operator's name is
/// passed for messages.
type CheckArguments = for<'a> fn(&str, &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>>;

/// A code, and the code and the message that replace it. `~` in a message is the operator's name.
pub(super) type ReplacedError = (i32, i32, &'static str);

/// Returns the entry of an operator with other errors.
pub(super) const fn differs(errors: &'static [ReplacedError]) -> SecondEngine {
    SecondEngine::Differs(Rule { check_arguments: None, errors })
}

/// Returns the entry of an operator with other checks and errors.
pub(super) const fn checked(check: CheckArguments, errors: &'static [ReplacedError]) -> SecondEngine {
    SecondEngine::Differs(Rule { check_arguments: Some(check), errors })
}

impl SecondEngine {
    pub fn is_supported(&self) -> bool {
        !matches!(self, SecondEngine::Unsupported)
    }

    pub fn rule(&self) -> Option<&Rule> {
        match self {
            SecondEngine::Differs(rule) => Some(rule),
            _ => None,
        }
    }
}

impl Rule {
    pub fn check_arguments<'a>(&self, name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
        self.check_arguments.map_or(Ok(None), |check| check(name, arguments))
    }

    /// Returns the error that the engine reports instead.
    pub fn error(&self, name: &str, error: Error) -> Error {
        replaced(name, self.errors, error)
    }
}

fn replaced(name: &str, errors: &[ReplacedError], error: Error) -> Error {
    // If one code covers errors of several arguments, the quoted name of the argument distinguishes
    // them.
    let quoted = |text: &str| text.split('\'').nth(1).filter(|name| !name.is_empty()).map(|name| format!("'{name}'"));
    let is_meant = |text: &str| quoted(text).is_none_or(|quoted| error.message().contains(&quoted));
    let same_code = || errors.iter().filter(|(classic, ..)| Code(*classic) == error.code());
    match same_code().find(|(.., text)| is_meant(text)).or_else(|| same_code().next()) {
        Some((_, code, text)) => Error::new(Code(*code), text.replace('~', name)),
        None => error,
    }
}

/// Returns the error of `$mergeObjects` as an accumulator.
pub fn merge_objects_error(error: Error) -> Error {
    replaced("$mergeObjects", &[(40400, 5911200, "~ only supports objects")], error)
}

/// Returns the error of the `$switch` that `$bucket` is translated into.
pub fn switch_error(error: Error) -> Error {
    replaced("$switch", NO_BRANCH, error)
}

pub(super) const NO_BRANCH: &[ReplacedError] =
    &[(40066, 4934200, "~ could not find a matching branch for an input, and no default was specified.")];

/// Returns null if any argument is null, whatever the others are.
pub(super) fn null_first<'a>(_: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    Evaluated::mark_all_read(arguments);
    Ok(arguments.iter().any(Evaluated::is_nullish).then_some(Evaluated::NULL))
}
