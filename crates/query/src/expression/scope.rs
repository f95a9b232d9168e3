//! Variables. Parsing resolves names to positions; evaluation stores the values in frames on the
//! stack.

use crate::metadata::Item;
use document::{Collation, Value};
use error::{Error, Result};

/// A frame, counted from the innermost, and the index of one of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub frame: usize,
    pub index: usize,
}

/// The values bound by one `$let`, `$map` …; `None` is a missing value.
pub(crate) struct Frame<'s> {
    pub values: &'s [Option<Value<'s>>],
    pub outer: Option<&'s Frame<'s>>,
}

/// The root and the variables that an expression can refer to.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'s> {
    pub root: Item<'s>,
    pub frame: Option<&'s Frame<'s>>,
    pub collation: &'s Collation,
}

impl<'s> Scope<'s> {
    pub fn value(&self, variable: Variable) -> Option<Value<'s>> {
        let mut frame = self.frame?;
        for _ in 0..variable.frame {
            frame = frame.outer?;
        }
        frame.values.get(variable.index).copied().flatten()
    }
}

/// Checks a variable's name in a reference: built-in ones begin with a capital.
pub(super) fn check_reference(name: &str) -> Result<()> {
    check_letters(name, |first| first.is_ascii_alphabetic() || !first.is_ascii())
}

/// Checks a variable's name in a binding. `CURRENT` is the only built-in variable that can be
/// bound.
pub fn check_binding(name: &str) -> Result<()> {
    if name == "CURRENT" {
        return Ok(());
    }
    check_letters(name, |first| first.is_ascii_lowercase() || !first.is_ascii())
}

fn check_letters(name: &str, may_start: fn(char) -> bool) -> Result<()> {
    let Some(first) = name.chars().next() else {
        return Err(Error::failed_to_parse("empty variable names are not allowed"));
    };
    if !may_start(first) {
        return Err(Error::failed_to_parse(format!(
            "'{name}' starts with an invalid character for a user variable name"
        )));
    }
    match name.chars().find(|letter| letter.is_ascii() && !letter.is_ascii_alphanumeric() && *letter != '_') {
        None => Ok(()),
        Some(letter) => Err(Error::failed_to_parse(format!(
            "'{name}' contains an invalid character for a variable name: '{letter}'"
        ))),
    }
}
