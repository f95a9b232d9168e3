//! Prepares new documents for the store: the checks of size, depth and `_id`, the `_id` in front,
//! and timestamps.

use crate::call::Call;
use bytes::Bytes;
use document::validate;
use document::{Doc, DocBuf, Kind};
use error::{Code, Error, Result};

/// Prepares a document of the request. It is not copied if nothing has to change.
pub fn prepare(call: &Call<'_>, document: Doc<'_>) -> Result<Bytes> {
    Ok(completed(call, document)?
        .map_or_else(|| call.request.share(document), |rebuilt| Bytes::from(rebuilt.into_vec())))
}

/// Prepares a document that the server itself has made.
pub fn prepare_own(call: &Call<'_>, document: &DocBuf) -> Result<Bytes> {
    let rebuilt = completed(call, document.as_doc())?;
    Ok(rebuilt.map_or_else(|| Bytes::copy_from_slice(document.as_bytes()), |rebuilt| Bytes::from(rebuilt.into_vec())))
}

/// Checks a document, and returns it with a valid `_id` in front and without empty timestamps;
/// `None` if it already is like that. Fails with 2 for a document that is too large or has several
/// ids, and 15 for one that nests too deep.
fn completed(call: &Call<'_>, document: Doc<'_>) -> Result<Option<DocBuf>> {
    check_extent(document)?;
    let mut id = None;
    let mut id_first = false;
    let mut empty_timestamp = false;
    for (index, element) in document.elements().enumerate() {
        if element.key_bytes() == b"_id" {
            if id.is_some() {
                return Err(Error::bad_value("can't have multiple _id fields in one document"));
            }
            update::check_id(element.value())?;
            id = Some(element);
            id_first = index == 0;
        } else if element.kind == Kind::Timestamp {
            empty_timestamp |= element.raw_value() == [0; 8];
        }
    }
    if id_first && !empty_timestamp {
        return Ok(None);
    }
    Ok(Some(DocBuf::build(|writer| {
        match id {
            Some(id) => writer.append_element(id),
            None => writer.append("_id", call.worker.new_object_id(call.now_ms)),
        }
        for element in document.elements().filter(|element| element.key_bytes() != b"_id") {
            if element.kind == Kind::Timestamp && element.raw_value() == [0; 8] {
                writer.append(element.key(), call.worker.new_timestamp(call.now_ms));
            } else {
                writer.append_element(element);
            }
        }
    })))
}

/// Checks the size and the depth of a document to insert. Fails with 2 or 15.
pub fn check_extent(document: Doc<'_>) -> Result<()> {
    let (size, bytes_max) = (document.size(), document::DOCUMENT_BYTES_MAX);
    if size > bytes_max {
        let message = format!("object to insert too large. size in bytes: {size}, max size: {bytes_max}");
        return Err(Error::bad_value(message));
    }
    let levels = document::DEPTH_STORED_MAX;
    if validate::is_deeper_than(document, levels) {
        let message = format!("cannot insert document because it exceeds {levels} levels of nesting");
        return Err(Error::new(Code::OVERFLOW, message));
    }
    Ok(())
}
