//! The table of operators that evaluate all their arguments and compute a value from them.

use super::parse::Parser;
use super::scope::Scope;
use super::{Evaluated, Expr, accumulate, arithmetic, array, comparison, object, string};
use document::Value;
use error::Result;
use smallvec::SmallVec;
use std::fmt;

/// An operator.
pub(crate) struct Function {
    pub name: &'static str,
    pub arity: Arity,
    /// False where the same arguments give another value each time.
    pub pure: bool,
    /// Computes the value; gets its own name for messages.
    pub evaluate: for<'a> fn(&'static str, &mut [Evaluated<'a>]) -> Result<Evaluated<'a>>,
}

/// How many arguments an operator takes, or how to read them where they have names.
#[derive(Clone, Copy)]
pub(crate) enum Arity {
    Exactly(usize),
    Between(usize, usize),
    Any,
    /// Gives the arguments in the order that `evaluate` expects, [`Expr::Missing`] for those not given.
    Named(fn(&mut Parser<'_>, &str, Value<'_>) -> Result<Vec<Expr>>),
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

pub(super) fn find(name: &str) -> Option<&'static Function> {
    TABLES.iter().flat_map(|table| table.iter()).find(|function| function.name == name)
}

pub(super) fn call<'s>(function: &'static Function, arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Evaluated<'s>> {
    let mut values: SmallVec<[Evaluated<'s>; 3]> = SmallVec::new();
    for argument in arguments {
        values.push(argument.evaluate(scope)?);
    }
    (function.evaluate)(function.name, &mut values)
}

/// One line of the table.
pub(super) const fn function(
    name: &'static str,
    arity: Arity,
    evaluate: for<'a> fn(&'static str, &mut [Evaluated<'a>]) -> Result<Evaluated<'a>>,
) -> Function {
    Function { name, arity, pure: true, evaluate }
}

static TABLES: &[&[Function]] = &[
    arithmetic::FUNCTIONS,
    comparison::FUNCTIONS,
    string::FUNCTIONS,
    array::FUNCTIONS,
    object::FUNCTIONS,
    accumulate::FUNCTIONS,
];
