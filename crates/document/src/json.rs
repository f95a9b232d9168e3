//! BSON as JSON text and back, without losing anything in either direction.
//!
//! This is the encoding of documents in MariaDB, which SQL reads and writes too. It is relaxed
//! Extended JSON v2
//! (<https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md>),
//! with these rules on top:
//!
//! - **The notation of a number shows its type.** `5` is an int32, or an int64 where it does not
//!   fit an int32; `5e0` is an int64 that would fit an int32; a number with a point is a double
//!   (`5.0`, `5.25e10`, `-0.0`). NaN, infinities and Decimal128 are wrapped
//!   (`{"$numberDouble":"NaN"}`, `{"$numberDecimal":"1.50"}`).
//! - **A field name that begins with `$` is written with one more `$`**, so that it cannot be taken
//!   for a wrapper.
//! - **A value without an encoding of its own is wrapped as raw BSON**: `{"$bson":"<base64 of the
//!   value's bytes>","$type":"03"}`, the type being BSON's type byte in hexadecimal. That is for
//!   documents and arrays below [`LEVELS_MAX`] levels (MariaDB's JSON functions accept 32), for
//!   arrays whose keys are not `0`, `1`, `2` …, and for NaN and Decimal128 with unusual bits.
//! - Dates from 1970 to 9999 are ISO 8601 in UTC (`{"$date":"2020-02-29T12:00:00.5Z"}`,
//!   milliseconds only where there are any), others are `{"$date":{"$numberLong":"-1"}}`.
//!
//! Field order and duplicate names survive. [`bson_to_json`] followed by [`json_to_bson`] gives the
//! same bytes for every document that [`crate::validate::check`] accepts.
//!
//! [`json_to_bson`] also reads the JSON of other writers: white space, `\u` escapes, canonical
//! wrappers, keys of a wrapper in any order, `{"$date":1580000000000}`,
//! `{"$binary":"…","$type":"00"}`, `{"$regex":"…","$options":"i"}`, `{"$uuid":"…"}`, exponents
//! without a point (`1E5`, a double). An integer that fits no int64 becomes a double. A wrapper
//! that is not well-formed is a document like any other, under the names it has.
//!
//! Both directions write straight into the buffer they are given; nothing is allocated per
//! document.

mod date;
mod first;
mod read;
mod scan;
mod wrapper;
mod write;

use std::fmt;

pub use first::json_first_fields_to_bson;
pub use read::{json_fields_to_bson, json_to_bson};
pub use write::{bson_to_json, id_text, name_to_json, value_to_json};

/// Levels of documents and arrays that are written as JSON; the document itself is the first. A
/// wrapper adds up to three.
pub const LEVELS_MAX: usize = 24;

/// The reason why text is not a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    pub reason: Reason,
    /// Position in the text, in bytes.
    pub position: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The text as a whole is not an object.
    NotAnObject,
    /// Something that JSON does not allow here, or the end of the text.
    Syntax,
    /// A field name or a regular expression with a zero character, which BSON does not allow.
    ZeroCharacter,
    /// The text is not UTF-8.
    Utf8,
    /// More than [`crate::DEPTH_MAX`] levels.
    Depth,
    /// More bytes than a length in BSON can express.
    Size,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            Reason::NotAnObject => "not a JSON object",
            Reason::Syntax => "not valid JSON",
            Reason::ZeroCharacter => "a zero character in a field name",
            Reason::Utf8 => "not valid UTF-8",
            Reason::Depth => "nested too deep",
            Reason::Size => "too large for a document",
        };
        write!(f, "{reason}, at byte {}", self.position)
    }
}

impl std::error::Error for JsonError {}

#[cfg(test)]
mod tests;
