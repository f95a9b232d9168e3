//! BSON as bytes: reading without copying, writing in place, comparing, ordering, and its JSON
//! encoding.
//!
//! BSON documents come from a client, a file or a server. [`validate::check`] checks them once, on
//! arrival. From then on a [`Doc`] is a borrowed slice that is read without error paths: a reader
//! that meets malformed bytes (a damaged file) ends the iteration, and never panics.
//!
//! In reading order: [`raw`] (documents, elements), [`value`] (values of elements), [`decimal`],
//! [`write`](mod@write) (building documents in a buffer), [`validate`], [`compare`](mod@compare)
//! (MongoDB's order over all values), [`collation`] (the order of strings by language), [`key`]
//! (that order as byte strings), [`path`] (dotted paths and arrays), [`json`], [`names`] (field
//! names that are not UTF-8).
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

/// The largest document the server itself may produce: MongoDB allows 16 KiB more for its own
/// fields.
pub const DOCUMENT_BYTES_MAX_INTERNAL: usize = DOCUMENT_BYTES_MAX + 16 * 1024;

/// The limit of nesting for everything that is sent, such as a command with its contents.
pub const DEPTH_MAX: usize = 201;

/// The limit of nesting for stored documents; see [`validate::is_deeper_than`].
pub const DEPTH_STORED_MAX: usize = 180;
