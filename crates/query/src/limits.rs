//! Limits of values and documents within a command; those of replies are smaller.

use document::Value;
use error::{Code, Error, Result};
use steps::Counted;

const BETWEEN_STAGES_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Fails with 10334 if a document is too large even between stages.
pub fn check_size_between_stages(bytes: usize) -> Result<()> {
    if bytes <= BETWEEN_STAGES_BYTES_MAX {
        return Ok(());
    }
    let max = document::DOCUMENT_BYTES_MAX_INTERNAL;
    let message = format!("BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and {max}(16MB)");
    Err(Error::new(Code::BSON_OBJECT_TOO_LARGE, message))
}

/// Maximal size of a value in an expression, as in MongoDB. Without a bound a few doublings in a
/// `$reduce` would exhaust all memory.
const VALUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Fails with 13548 past [`VALUE_BYTES_MAX`].
pub(crate) fn check_value_size(bytes: usize) -> Result<()> {
    if bytes <= VALUE_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(Code(13548), format!("BufBuilder attempted to grow() to {bytes} bytes, past the 64MB limit.")))
}

/// A text of this size is too long.
const TEXT_BYTES: usize = 16 << 20;

/// Fails with 16493 for a text in a value that is longer than a document may contain.
pub(crate) fn check_texts(value: Value<'_>) -> Result<()> {
    match value {
        Value::String(text) if text.len() >= TEXT_BYTES => {
            Err(Error::new(Code(16493), "Tried to create string longer than 16MB"))
        }
        Value::Document(inner) | Value::Array(inner) if inner.size() > TEXT_BYTES => {
            inner.values().counted().try_for_each(check_texts)
        }
        _ => Ok(()),
    }
}
