//! Named arguments.

use document::{Doc, Value};
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
