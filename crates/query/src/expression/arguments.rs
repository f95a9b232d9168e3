//! Arguments that have names.

use document::{Doc, Value};
use error::{Error, Result};

/// The values behind `names`, in their order; an unknown name becomes the error that `refuse` makes of it.
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
