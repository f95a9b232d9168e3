//! Variables. Parsing resolves names to positions; evaluation stores the values in frames on the
//! stack.

use crate::metadata::Item;
use document::{Collation, Value};

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
