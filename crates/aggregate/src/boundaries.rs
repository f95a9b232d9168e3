//! The boundaries of a `$bucket`.

use document::{Collation, Value, ValueBuf};
use error::{Code, Error, Result};

/// The boundaries between which values fall, and the bucket of all others.
#[derive(Debug)]
pub(crate) struct Boundaries {
    /// In ascending order; at least two.
    pub values: Vec<ValueBuf>,
    pub default: Option<ValueBuf>,
    pub collation: Collation,
}

impl Boundaries {
    /// Returns the key of the bucket of `value`: its lower boundary, or the default.
    pub fn bucket(&self, value: Value<'_>) -> Result<Value<'_>> {
        let above = self.values.partition_point(|boundary| self.collation.compare(boundary.as_value(), value).is_le());
        if above > 0 && above < self.values.len() {
            return Ok(self.values[above - 1].as_value());
        }
        self.default.as_ref().map(ValueBuf::as_value).ok_or_else(|| {
            let message = "$switch could not find a matching branch for an input, and no default was specified.";
            Error::new(Code(40066), message)
        })
    }
}
