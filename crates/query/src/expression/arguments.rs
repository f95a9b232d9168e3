//! Named arguments.

use super::tree::{Expr, ParseExpr};
use document::{Doc, Value, ValueBuf};
use error::{Error, Result};

/// Returns the values of `names`, in their order; for an unknown name, the error that `refuse`
/// builds.
pub(super) fn named<'v, const N: usize>(
    operand: Doc<'v>,
    names: [&str; N],
    refuse: impl Fn(&str) -> Error,
) -> Result<[Option<Value<'v>>; N]> {
    let mut values = [None; N];
    for (name, value) in operand.iter() {
        let index = names.iter().position(|known| *known == name).ok_or_else(|| refuse(name))?;
        values[index] = Some(value);
    }
    Ok(values)
}

/// Parses an optional argument into its value and whether it was given.
pub(super) fn optional(parser: &mut dyn ParseExpr, value: Option<Value<'_>>) -> Result<[Expr; 2]> {
    let given = Expr::Literal(ValueBuf::from(Value::Boolean(value.is_some())));
    Ok([value.map_or(Ok(Expr::Missing), |value| parser.parse(value))?, given])
}
