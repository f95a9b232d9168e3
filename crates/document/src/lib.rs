//! BSON as bytes: reading without copying, writing in place, comparing, ordering, and its JSON spelling.
//!
//! What comes in is a BSON document from a client, a file or a server; [`validate::check`] reads it once, at
//! the door. From then on a [`Doc`] is a borrowed slice that is read without error paths: a reader that meets bytes
//! it cannot make sense of (a damaged file) ends the iteration, it never panics.
//!
//! In reading order: [`raw`] (documents, elements), [`value`] (what an element holds), [`decimal`], [`write`](mod@write) (building
//! documents in a buffer), [`validate`], [`compare`](mod@compare) (MongoDB's order over all values), [`collation`] (strings as people order
//! them), [`key`] (that order as byte
//! strings), [`path`] (dotted paths and arrays), [`json`], [`names`] (field names that are
//! not UTF-8).
//!
//! Nothing here does I/O, reads a clock or allocates per document read.

pub mod collation;
pub mod compare;
pub mod decimal;
pub mod json;
pub mod key;
pub mod names;
mod number;
pub mod object_id;
pub mod path;
pub mod raw;
#[cfg(test)]
mod testing;
pub mod validate;
pub mod value;
pub mod write;

pub use collation::Collation;
pub use compare::{compare, equal};
pub use decimal::Decimal128;
pub use object_id::ObjectId;
pub use path::Path;
pub use raw::{Doc, DocBuf, Element, Name};
pub use value::{Kind, Texts, Value, ValueBuf};
pub use write::{ArrayWriter, DocWriter};

/// The largest document a client may store, in bytes (`maxBsonObjectSize`).
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The largest document the server itself may produce: MongoDB leaves 16 KiB of head room for its own fields.
pub const DOCUMENT_BYTES_MAX_INTERNAL: usize = DOCUMENT_BYTES_MAX + 16 * 1024;

/// Levels of nesting that anything sent may have, such as a command with what it carries.
pub const DEPTH_MAX: usize = 201;

/// Levels of nesting that a stored document may have; see [`validate::is_deeper_than`].
pub const DEPTH_STORED_MAX: usize = 180;
