//! The result of evaluating an expression.

use document::{ArrayWriter, DocWriter, Kind, Value, ValueBuf};
use std::sync::{Arc, OnceLock};
use steps::Counted;

/// A value that borrows from the document or the expression, a computed value, or a missing one.
#[derive(Clone, Debug)]
pub enum Evaluated<'a> {
    Missing,
    Value(Value<'a>),
    Owned(ValueBuf),
    /// An argument whose evaluation failed. It fails the call once the operator reads it, and not
    /// before: MongoDB evaluates arguments as they are needed. So the operator's error about the
    /// first argument precedes a failure of the second.
    Failed(Failed),
}

/// The index of an argument whose evaluation failed.
#[derive(Clone, Debug)]
pub struct Failed {
    pub(super) index: usize,
    /// The first failed argument of the call that was read.
    pub(super) first_seen: Arc<OnceLock<usize>>,
}

impl<'a> Evaluated<'a> {
    pub const NULL: Evaluated<'static> = Evaluated::Value(Value::Null);

    pub fn string(text: &str) -> Evaluated<'static> {
        Evaluated::Owned(ValueBuf::from(Value::String(text)))
    }

    /// Returns a string of any bytes: a part of a text need not be UTF-8.
    pub fn string_of_bytes(text: &[u8]) -> Evaluated<'static> {
        Evaluated::Owned(ValueBuf::from_string_bytes(text))
    }

    /// Returns an array whose elements `write` pushes.
    pub fn array(write: impl FnOnce(&mut ArrayWriter<'_>)) -> Evaluated<'static> {
        let mut bytes = Vec::new();
        write(&mut ArrayWriter::begin(&mut bytes));
        Evaluated::Owned(ValueBuf::from_raw(Kind::Array, bytes))
    }

    /// Like [`Evaluated::array`], for a `write` that may fail.
    pub fn try_array<E>(write: impl FnOnce(&mut ArrayWriter<'_>) -> Result<(), E>) -> Result<Evaluated<'static>, E> {
        let mut bytes = Vec::new();
        write(&mut ArrayWriter::begin(&mut bytes))?;
        Ok(Evaluated::Owned(ValueBuf::from_raw(Kind::Array, bytes)))
    }

    /// Returns a document whose fields `write` appends.
    pub fn document(write: impl FnOnce(&mut DocWriter<'_>)) -> Evaluated<'static> {
        let mut bytes = Vec::new();
        write(&mut DocWriter::begin(&mut bytes));
        Evaluated::Owned(ValueBuf::from_raw(Kind::Document, bytes))
    }

    /// Like [`Evaluated::document`], for a `write` that may fail.
    pub fn try_document<E>(write: impl FnOnce(&mut DocWriter<'_>) -> Result<(), E>) -> Result<Evaluated<'static>, E> {
        let mut bytes = Vec::new();
        write(&mut DocWriter::begin(&mut bytes))?;
        Ok(Evaluated::Owned(ValueBuf::from_raw(Kind::Document, bytes)))
    }

    /// Returns the value, `None` if it is missing.
    pub fn value(&self) -> Option<Value<'_>> {
        match self {
            Evaluated::Missing => None,
            Evaluated::Value(value) => Some(*value),
            Evaluated::Owned(value) => Some(value.as_value()),
            Evaluated::Failed(failed) => {
                failed.first_seen.get_or_init(|| failed.index);
                None
            }
        }
    }

    /// Returns the number of bytes of text or of elements that an operator may have to read.
    pub(super) fn size(&self) -> usize {
        match self {
            Evaluated::Owned(value) => value.raw_value().len(),
            Evaluated::Value(Value::String(text) | Value::Symbol(text) | Value::Code(text)) => text.len(),
            Evaluated::Value(Value::Document(inner) | Value::Array(inner)) => inner.size(),
            Evaluated::Value(Value::Binary { bytes, .. }) => bytes.len(),
            Evaluated::Value(Value::IllFormed { raw, .. }) => raw.len(),
            _ => 0,
        }
    }

    /// Reads each argument: the first one whose evaluation failed fails the call.
    pub fn mark_all_read(arguments: &[Evaluated<'_>]) {
        arguments.iter().counted().for_each(Evaluated::mark_read);
    }

    /// Like [`Evaluated::value`], for a value that the call does not need yet.
    pub fn mark_read(&self) {
        let _ = self.value();
    }

    /// Returns the value, null if it is missing.
    pub fn value_or_null(&self) -> Value<'_> {
        self.value().unwrap_or(Value::Null)
    }

    pub fn is_missing(&self) -> bool {
        self.value().is_none()
    }

    /// Returns whether the value is missing, null or undefined, for which most operators return
    /// null.
    pub fn is_nullish(&self) -> bool {
        matches!(self.value(), None | Some(Value::Null | Value::Undefined))
    }

    pub fn is_truthy(&self) -> bool {
        self.value().is_some_and(Value::is_truthy)
    }

    /// Returns the type's name in error messages.
    pub fn type_name(&self) -> &'static str {
        self.value().map_or("missing", |value| value.kind().alias())
    }

    /// Returns a part of the value, such as an array's element: borrowed if the whole is.
    pub fn part(&self, take: impl for<'x> FnOnce(Value<'x>) -> Option<Value<'x>>) -> Evaluated<'a> {
        match self {
            Evaluated::Missing => Evaluated::Missing,
            Evaluated::Failed(_) => self.clone(),
            Evaluated::Value(value) => take(*value).map_or(Evaluated::Missing, Evaluated::Value),
            Evaluated::Owned(value) => {
                take(value.as_value()).map_or(Evaluated::Missing, |part| Evaluated::from_temporary(part))
            }
        }
    }

    /// Takes the value and leaves a missing one in its place.
    pub fn take(&mut self) -> Evaluated<'a> {
        std::mem::replace(self, Evaluated::Missing)
    }

    /// Returns the same value, borrowing nothing.
    pub fn detached<'b>(self) -> Evaluated<'b> {
        match self {
            Evaluated::Missing => Evaluated::Missing,
            Evaluated::Failed(failed) => Evaluated::Failed(failed),
            Evaluated::Owned(value) => Evaluated::Owned(value),
            Evaluated::Value(value) => Evaluated::from_temporary(value),
        }
    }

    /// Returns an owned value, `None` if it is missing.
    pub fn into_owned(self) -> Option<ValueBuf> {
        match self {
            Evaluated::Missing | Evaluated::Failed(_) => self.value().map(ValueBuf::from),
            Evaluated::Owned(value) => Some(value),
            Evaluated::Value(value) => Some(ValueBuf::from(value)),
        }
    }

    /// Appends the value to a document, unless it is missing.
    pub fn append_to(&self, writer: &mut DocWriter<'_>, key: &str) {
        match self {
            Evaluated::Missing | Evaluated::Failed(_) => self.mark_read(),
            Evaluated::Value(value) => writer.append(key, *value),
            Evaluated::Owned(value) => writer.append_raw(value.kind(), key.as_bytes(), value.raw_value()),
        }
    }

    /// Appends the value to an array, null if it is missing.
    pub fn push_to(&self, writer: &mut ArrayWriter<'_>) {
        match self {
            Evaluated::Missing | Evaluated::Failed(_) => writer.push(self.value_or_null()),
            Evaluated::Value(value) => writer.push(*value),
            Evaluated::Owned(value) => writer.push_raw(value.kind(), value.raw_value()),
        }
    }

    /// Copies a temporary value. Scalars need no buffer.
    fn from_temporary<'b>(value: Value<'_>) -> Evaluated<'b> {
        Evaluated::Value(match value {
            Value::Double(number) => Value::Double(number),
            Value::Undefined => Value::Undefined,
            Value::ObjectId(id) => Value::ObjectId(id),
            Value::Boolean(flag) => Value::Boolean(flag),
            Value::DateTime(milliseconds) => Value::DateTime(milliseconds),
            Value::Null => Value::Null,
            Value::Int32(number) => Value::Int32(number),
            Value::Timestamp { time, increment } => Value::Timestamp { time, increment },
            Value::Int64(number) => Value::Int64(number),
            Value::Decimal128(number) => Value::Decimal128(number),
            Value::MaxKey => Value::MaxKey,
            Value::MinKey => Value::MinKey,
            value => return Evaluated::Owned(ValueBuf::from(value)),
        })
    }
}

impl<'a, T: Into<Value<'a>>> From<T> for Evaluated<'a> {
    fn from(value: T) -> Self {
        Evaluated::Value(value.into())
    }
}
