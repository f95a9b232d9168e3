//! Values of elements.

use crate::decimal::Decimal128;
use crate::names;
use crate::object_id::ObjectId;
use crate::raw::{Doc, DocBuf, find_zero, read_length};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;

/// The BSON types, with their byte on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    Double = 0x01,
    String = 0x02,
    Document = 0x03,
    Array = 0x04,
    Binary = 0x05,
    Undefined = 0x06,
    ObjectId = 0x07,
    Boolean = 0x08,
    DateTime = 0x09,
    Null = 0x0A,
    Regex = 0x0B,
    DbPointer = 0x0C,
    Code = 0x0D,
    Symbol = 0x0E,
    CodeWithScope = 0x0F,
    Int32 = 0x10,
    Timestamp = 0x11,
    Int64 = 0x12,
    Decimal128 = 0x13,
    MaxKey = 0x7F,
    MinKey = 0xFF,
}

/// The types by their byte.
static KINDS: [Option<Kind>; 256] = {
    let mut kinds = [None; 256];
    let mut at = 0;
    while at < Kind::ALL.len() {
        kinds[Kind::ALL[at] as u8 as usize] = Some(Kind::ALL[at]);
        at += 1;
    }
    kinds
};

impl Kind {
    /// Every type, in the order of the bytes.
    pub const ALL: [Kind; 21] = [
        Kind::Double,
        Kind::String,
        Kind::Document,
        Kind::Array,
        Kind::Binary,
        Kind::Undefined,
        Kind::ObjectId,
        Kind::Boolean,
        Kind::DateTime,
        Kind::Null,
        Kind::Regex,
        Kind::DbPointer,
        Kind::Code,
        Kind::Symbol,
        Kind::CodeWithScope,
        Kind::Int32,
        Kind::Timestamp,
        Kind::Int64,
        Kind::Decimal128,
        Kind::MaxKey,
        Kind::MinKey,
    ];

    #[inline]
    pub fn from_byte(byte: u8) -> Option<Kind> {
        KINDS[usize::from(byte)]
    }

    /// Returns the alias of `$type`; also the name used in error messages. Source:
    /// <https://www.mongodb.com/docs/manual/reference/bson-types/>
    pub fn alias(self) -> &'static str {
        match self {
            Kind::Double => "double",
            Kind::String => "string",
            Kind::Document => "object",
            Kind::Array => "array",
            Kind::Binary => "binData",
            Kind::Undefined => "undefined",
            Kind::ObjectId => "objectId",
            Kind::Boolean => "bool",
            Kind::DateTime => "date",
            Kind::Null => "null",
            Kind::Regex => "regex",
            Kind::DbPointer => "dbPointer",
            Kind::Code => "javascript",
            Kind::Symbol => "symbol",
            Kind::CodeWithScope => "javascriptWithScope",
            Kind::Int32 => "int",
            Kind::Timestamp => "timestamp",
            Kind::Int64 => "long",
            Kind::Decimal128 => "decimal",
            Kind::MaxKey => "maxKey",
            Kind::MinKey => "minKey",
        }
    }

    pub fn is_number(self) -> bool {
        matches!(self, Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128)
    }

    /// Returns how many bytes the value at the front of `bytes` takes; may exceed `bytes`, which
    /// the caller checks.
    #[inline]
    pub(crate) fn value_length(self, bytes: &[u8]) -> Option<usize> {
        Some(match self {
            Kind::Undefined | Kind::Null | Kind::MaxKey | Kind::MinKey => 0,
            Kind::Boolean => 1,
            Kind::Int32 => 4,
            Kind::Double | Kind::DateTime | Kind::Timestamp | Kind::Int64 => 8,
            Kind::ObjectId => 12,
            Kind::Decimal128 => 16,
            Kind::String | Kind::Code | Kind::Symbol => read_length(bytes)?.checked_add(4)?,
            Kind::Document | Kind::Array | Kind::CodeWithScope => read_length(bytes)?,
            Kind::Binary => read_length(bytes)?.checked_add(5)?,
            Kind::DbPointer => read_length(bytes)?.checked_add(4 + 12)?,
            Kind::Regex => {
                let pattern = find_zero(bytes)?;
                pattern + 1 + find_zero(&bytes[pattern + 1..])? + 1
            }
        })
    }
}

/// A decoded value that borrows from its document.
///
/// `==` is identity of representation (`1` and `1.0` differ); MongoDB's equality is in `compare`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Double(f64),
    String(&'a str),
    Document(Doc<'a>),
    Array(Doc<'a>),
    Binary {
        subtype: u8,
        bytes: &'a [u8],
    },
    Undefined,
    ObjectId(ObjectId),
    Boolean(bool),
    /// Milliseconds since 1970-01-01 UTC.
    DateTime(i64),
    Null,
    Regex {
        pattern: &'a str,
        options: &'a str,
    },
    DbPointer {
        namespace: &'a str,
        id: ObjectId,
    },
    Code(&'a str),
    Symbol(&'a str),
    CodeWithScope {
        code: &'a str,
        scope: Doc<'a>,
    },
    Int32(i32),
    Timestamp {
        time: u32,
        increment: u32,
    },
    Int64(i64),
    Decimal128(Decimal128),
    MaxKey,
    MinKey,
    /// A value of a type with text, whose text is not UTF-8: its type and its bytes behind the key.
    /// Strings, symbols, code and regular expressions are stored with any bytes. Code that needs
    /// text treats such a value as one of another type; see [`Value::texts`] for its bytes.
    IllFormed {
        kind: Kind,
        raw: &'a [u8],
    },
}

impl<'a> Value<'a> {
    /// Decodes a value's bytes. Malformed bytes (a damaged file) are read as `Undefined`.
    #[inline]
    pub fn from_raw(kind: Kind, raw: &'a [u8]) -> Value<'a> {
        Self::decode(kind, raw).unwrap_or_else(|| Self::ill_formed(kind, raw))
    }

    /// Decodes a value that is not one with text in UTF-8.
    #[cold]
    fn ill_formed(kind: Kind, raw: &'a [u8]) -> Value<'a> {
        match Texts::read(kind, raw) {
            Some(_) => Value::IllFormed { kind, raw },
            None => Value::Undefined,
        }
    }

    #[inline]
    fn decode(kind: Kind, raw: &'a [u8]) -> Option<Value<'a>> {
        Some(match kind {
            Kind::Double => Value::Double(f64::from_le_bytes(*raw.first_chunk()?)),
            Kind::String => Value::String(string(raw)?),
            Kind::Document => Value::Document(Doc::from_bytes(raw)?),
            Kind::Array => Value::Array(Doc::from_bytes(raw)?),
            Kind::Binary => Value::Binary { subtype: *raw.get(4)?, bytes: raw.get(5..)? },
            Kind::Undefined => Value::Undefined,
            Kind::ObjectId => Value::ObjectId(ObjectId(*raw.first_chunk()?)),
            Kind::Boolean => Value::Boolean(*raw.first()? != 0),
            Kind::DateTime => Value::DateTime(i64::from_le_bytes(*raw.first_chunk()?)),
            Kind::Null => Value::Null,
            Kind::Regex => {
                let pattern = find_zero(raw)?;
                let options = raw.get(pattern + 1..raw.len().checked_sub(1)?)?;
                Value::Regex { pattern: text(raw.get(..pattern)?)?, options: text(options)? }
            }
            Kind::DbPointer => {
                let (namespace, id) = raw.split_last_chunk()?;
                Value::DbPointer { namespace: string(namespace)?, id: ObjectId(*id) }
            }
            Kind::Code => Value::Code(string(raw)?),
            Kind::Symbol => Value::Symbol(string(raw)?),
            Kind::CodeWithScope => {
                let body = raw.get(4..)?;
                let code_length = read_length(body)?.checked_add(4)?;
                Value::CodeWithScope {
                    code: string(body.get(..code_length)?)?,
                    scope: Doc::from_bytes(body.get(code_length..)?)?,
                }
            }
            Kind::Int32 => Value::Int32(i32::from_le_bytes(*raw.first_chunk()?)),
            Kind::Timestamp => {
                let both = u64::from_le_bytes(*raw.first_chunk()?);
                Value::Timestamp { time: (both >> 32) as u32, increment: both as u32 }
            }
            Kind::Int64 => Value::Int64(i64::from_le_bytes(*raw.first_chunk()?)),
            Kind::Decimal128 => Value::Decimal128(Decimal128(*raw.first_chunk()?)),
            Kind::MaxKey => Value::MaxKey,
            Kind::MinKey => Value::MinKey,
        })
    }

    pub fn kind(self) -> Kind {
        match self {
            Value::Double(_) => Kind::Double,
            Value::String(_) => Kind::String,
            Value::Document(_) => Kind::Document,
            Value::Array(_) => Kind::Array,
            Value::Binary { .. } => Kind::Binary,
            Value::Undefined => Kind::Undefined,
            Value::ObjectId(_) => Kind::ObjectId,
            Value::Boolean(_) => Kind::Boolean,
            Value::DateTime(_) => Kind::DateTime,
            Value::Null => Kind::Null,
            Value::Regex { .. } => Kind::Regex,
            Value::DbPointer { .. } => Kind::DbPointer,
            Value::Code(_) => Kind::Code,
            Value::Symbol(_) => Kind::Symbol,
            Value::CodeWithScope { .. } => Kind::CodeWithScope,
            Value::Int32(_) => Kind::Int32,
            Value::Timestamp { .. } => Kind::Timestamp,
            Value::Int64(_) => Kind::Int64,
            Value::Decimal128(_) => Kind::Decimal128,
            Value::MaxKey => Kind::MaxKey,
            Value::MinKey => Kind::MinKey,
            Value::IllFormed { kind, .. } => kind,
        }
    }

    /// Appends the value's bytes as they follow a key.
    #[inline]
    pub fn write_raw(self, out: &mut Vec<u8>) {
        self.write_raw_to(out);
    }

    #[inline]
    fn write_raw_to(self, out: &mut impl Bytes) {
        match self {
            Value::Double(number) => out.append(&number.to_le_bytes()),
            Value::String(text) | Value::Code(text) | Value::Symbol(text) => write_string(text, out),
            Value::Document(document) | Value::Array(document) => out.append(document.as_bytes()),
            Value::Binary { subtype, bytes } => {
                out.append(&(bytes.len() as i32).to_le_bytes());
                out.append(&[subtype]);
                out.append(bytes);
            }
            Value::ObjectId(id) => out.append(&id.0),
            Value::Boolean(flag) => out.append(&[flag as u8]),
            Value::DateTime(milliseconds) => out.append(&milliseconds.to_le_bytes()),
            Value::Undefined | Value::Null | Value::MaxKey | Value::MinKey => {}
            Value::Regex { pattern, options } => {
                for part in [pattern, options] {
                    out.append(part.as_bytes());
                    out.append(&[0]);
                }
            }
            Value::DbPointer { namespace, id } => {
                write_string(namespace, out);
                out.append(&id.0);
            }
            Value::CodeWithScope { code, scope } => {
                let total = 4 + 4 + code.len() + 1 + scope.size();
                out.append(&(total as i32).to_le_bytes());
                write_string(code, out);
                out.append(scope.as_bytes());
            }
            Value::Int32(number) => out.append(&number.to_le_bytes()),
            Value::Timestamp { time, increment } => {
                out.append(&increment.to_le_bytes());
                out.append(&time.to_le_bytes());
            }
            Value::Int64(number) => out.append(&number.to_le_bytes()),
            Value::Decimal128(number) => out.append(&number.0),
            Value::IllFormed { raw, .. } => out.append(raw),
        }
    }

    /// Returns whether MongoDB takes the value as true: everything except `false`, zero, null and
    /// undefined.
    pub fn is_truthy(self) -> bool {
        match self {
            Value::Boolean(flag) => flag,
            Value::Int32(number) => number != 0,
            Value::Int64(number) => number != 0,
            Value::Double(number) => number != 0.0,
            Value::Decimal128(number) => !number.is_zero(),
            Value::Null | Value::Undefined => false,
            _ => true,
        }
    }

    /// Converts a number to an int64: doubles are truncated, decimals rounded half to even, values
    /// out of range clamped; NaN is zero.
    pub fn to_i64(self) -> Option<i64> {
        match self {
            Value::Int32(number) => Some(number.into()),
            Value::Int64(number) => Some(number),
            // `as` saturates, and converts NaN to zero.
            Value::Double(number) => Some(number as i64),
            Value::Decimal128(number) => {
                Some(number.to_i64_exact().unwrap_or_else(|| number.to_f64().round_ties_even() as i64))
            }
            _ => None,
        }
    }

    /// Returns the bytes of a string's text, UTF-8 or not.
    #[inline]
    pub fn string_bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::String(text) => Some(text.as_bytes()),
            Value::IllFormed { kind: Kind::String, raw } => string_bytes(raw),
            _ => None,
        }
    }

    /// Returns a string as a field's name, or a path of names; see [`crate::names`].
    pub fn as_name(self) -> Option<Cow<'a, str>> {
        self.string_bytes().map(names::escape)
    }

    /// Returns a string's text with U+FFFD in place of bytes that are not UTF-8, for messages.
    pub fn to_text_lossy(self) -> Option<Cow<'a, str>> {
        self.string_bytes().map(String::from_utf8_lossy)
    }

    /// Returns the parts of a value of a type with text, as bytes; `None` for values of other
    /// types.
    pub fn texts(self) -> Option<Texts<'a>> {
        Some(match self {
            Value::String(text) | Value::Symbol(text) | Value::Code(text) => Texts::of(text.as_bytes()),
            Value::Regex { pattern, options } => Texts { options: options.as_bytes(), ..Texts::of(pattern.as_bytes()) },
            Value::DbPointer { namespace, id } => Texts { id, ..Texts::of(namespace.as_bytes()) },
            Value::CodeWithScope { code, scope } => Texts { scope, ..Texts::of(code.as_bytes()) },
            Value::IllFormed { kind, raw } => Texts::read(kind, raw)?,
            _ => return None,
        })
    }

    /// Returns the value if its text is UTF-8.
    pub fn well_formed(self) -> Option<Value<'a>> {
        (!matches!(self, Value::IllFormed { .. })).then_some(self)
    }

    pub fn as_str(self) -> Option<&'a str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_document(self) -> Option<Doc<'a>> {
        match self {
            Value::Document(document) => Some(document),
            _ => None,
        }
    }

    pub fn as_array(self) -> Option<Doc<'a>> {
        match self {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }

    pub fn to_owned(self) -> ValueBuf {
        ValueBuf::from(self)
    }
}

/// An owned value: its type and its bytes. Scalars are stored inline.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ValueBuf {
    kind: Kind,
    raw: SmallVec<[u8; 24]>,
}

impl ValueBuf {
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Builds a value of the bytes that would follow a key; the content is not checked.
    pub fn from_raw(kind: Kind, raw: Vec<u8>) -> Self {
        ValueBuf { kind, raw: SmallVec::from_vec(raw) }
    }

    /// Builds a string of any bytes, UTF-8 or not.
    pub fn from_string_bytes(text: &[u8]) -> Self {
        let mut raw = SmallVec::new();
        write_bytes(text, &mut raw);
        ValueBuf { kind: Kind::String, raw }
    }

    pub fn as_value(&self) -> Value<'_> {
        Value::from_raw(self.kind, &self.raw)
    }

    /// Returns the value's bytes as they would follow a key.
    pub fn raw_value(&self) -> &[u8] {
        &self.raw
    }
}

impl From<Value<'_>> for ValueBuf {
    fn from(value: Value<'_>) -> Self {
        let mut raw = SmallVec::new();
        value.write_raw_to(&mut raw);
        ValueBuf { kind: value.kind(), raw }
    }
}

impl fmt::Debug for ValueBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_value().fmt(f)
    }
}

macro_rules! value_from {
    ($($source:ty => |$name:ident| $value:expr;)*) => {
        $(impl<'a> From<$source> for Value<'a> {
            fn from($name: $source) -> Self { $value }
        })*
    };
}

value_from! {
    f64 => |number| Value::Double(number);
    &'a str => |text| Value::String(text);
    &'a String => |text| Value::String(text);
    bool => |flag| Value::Boolean(flag);
    i32 => |number| Value::Int32(number);
    i64 => |number| Value::Int64(number);
    ObjectId => |id| Value::ObjectId(id);
    Doc<'a> => |document| Value::Document(document);
    &'a DocBuf => |document| Value::Document(document.as_doc());
    &'a ValueBuf => |value| value.as_value();
}

/// The parts of a value with text. Parts that the type does not have are empty.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// The text, the pattern, the namespace or the code.
    pub text: &'a [u8],
    pub options: &'a [u8],
    pub id: ObjectId,
    pub scope: Doc<'a>,
}

impl<'a> Texts<'a> {
    fn of(text: &'a [u8]) -> Texts<'a> {
        Texts { text, options: &[], id: ObjectId::default(), scope: Doc::EMPTY }
    }

    fn read(kind: Kind, raw: &'a [u8]) -> Option<Texts<'a>> {
        Some(match kind {
            Kind::String | Kind::Symbol | Kind::Code => Texts::of(string_bytes(raw)?),
            Kind::Regex => {
                let pattern = find_zero(raw)?;
                let options = raw.get(pattern + 1..raw.len().checked_sub(1)?)?;
                Texts { options, ..Texts::of(raw.get(..pattern)?) }
            }
            Kind::DbPointer => {
                let (namespace, id) = raw.split_last_chunk()?;
                Texts { id: ObjectId(*id), ..Texts::of(string_bytes(namespace)?) }
            }
            Kind::CodeWithScope => {
                let body = raw.get(4..)?;
                let code_length = read_length(body)?.checked_add(4)?;
                let scope = Doc::from_bytes(body.get(code_length..)?)?;
                Texts { scope, ..Texts::of(string_bytes(body.get(..code_length)?)?) }
            }
            _ => return None,
        })
    }
}

/// Returns the bytes between a string's length and its closing zero.
#[inline]
fn string_bytes(raw: &[u8]) -> Option<&[u8]> {
    raw.get(4..raw.len().checked_sub(1)?)
}

#[inline]
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

#[inline]
fn string(raw: &[u8]) -> Option<&str> {
    text(string_bytes(raw)?)
}

fn write_string(text: &str, out: &mut impl Bytes) {
    write_bytes(text.as_bytes(), out);
}

fn write_bytes(text: &[u8], out: &mut impl Bytes) {
    out.append(&(text.len() as i32 + 1).to_le_bytes());
    out.append(text);
    out.append(&[0]);
}

/// A buffer for a value's bytes.
trait Bytes {
    fn append(&mut self, bytes: &[u8]);
}

impl Bytes for Vec<u8> {
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl<const N: usize> Bytes for SmallVec<[u8; N]> {
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
