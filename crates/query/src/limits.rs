//! The limit of documents between two steps of a command; replies have a smaller one.

use error::{Code, Error, Result};

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
