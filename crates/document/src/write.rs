//! Building documents at the end of a byte buffer, such as a reply, without a tree in between.

use crate::raw::{Element, find_zero};
use crate::value::{Kind, Value};

/// Writes one document at the end of a buffer. Dropping the writer closes the document.
///
/// A nested writer borrows its parent, so documents are closed in the right order by construction.
pub struct DocWriter<'b> {
    pub(crate) buffer: &'b mut Vec<u8>,
    pub(crate) start: usize,
}

impl<'b> DocWriter<'b> {
    pub fn begin(buffer: &'b mut Vec<u8>) -> Self {
        let start = buffer.len();
        buffer.extend_from_slice(&[0; 4]);
        DocWriter { buffer, start }
    }

    /// Returns how many bytes the buffer holds without growing.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Appends an element. A key with a zero byte would break the document, so it is cut there.
    #[inline]
    pub fn append<'v>(&mut self, key: &str, value: impl Into<Value<'v>>) {
        let value = value.into();
        self.header(value.kind(), key.as_bytes());
        value.write_raw(self.buffer);
    }

    /// Appends an element of another document.
    #[inline]
    pub fn append_element(&mut self, element: Element<'_>) {
        self.append_raw(element.kind, element.key_bytes(), element.raw_value());
    }

    /// Appends an element with its value's bytes.
    #[inline]
    pub fn append_raw(&mut self, kind: Kind, key: &[u8], raw: &[u8]) {
        self.header(kind, key);
        self.buffer.extend_from_slice(raw);
    }

    /// Begins a nested document.
    pub fn document(&mut self, key: &str) -> DocWriter<'_> {
        self.header(Kind::Document, key.as_bytes());
        DocWriter::begin(self.buffer)
    }

    /// Begins a nested array.
    pub fn array(&mut self, key: &str) -> ArrayWriter<'_> {
        self.header(Kind::Array, key.as_bytes());
        ArrayWriter::begin(self.buffer)
    }

    /// Appends an element whose value `write` appends to the buffer, byte for byte.
    pub fn append_with(&mut self, kind: Kind, key: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.header(kind, key.as_bytes());
        write(self.buffer);
    }

    /// Returns the bytes written so far, without the closing zero.
    pub fn size(&self) -> usize {
        self.buffer.len() - self.start
    }

    fn header(&mut self, kind: Kind, key: &[u8]) {
        let key = find_zero(key).map_or(key, |end| &key[..end]);
        self.buffer.push(kind as u8);
        self.buffer.extend_from_slice(key);
        self.buffer.push(0);
    }
}

impl Drop for DocWriter<'_> {
    fn drop(&mut self) {
        self.buffer.push(0);
        let length = (self.buffer.len() - self.start) as i32;
        self.buffer[self.start..self.start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Writes one array at the end of a buffer, with keys numbered automatically. Dropping the writer
/// closes the array.
pub struct ArrayWriter<'b> {
    document: DocWriter<'b>,
    index: u32,
}

impl<'b> ArrayWriter<'b> {
    pub fn begin(buffer: &'b mut Vec<u8>) -> Self {
        ArrayWriter { document: DocWriter::begin(buffer), index: 0 }
    }

    pub fn push<'v>(&mut self, value: impl Into<Value<'v>>) {
        let value = value.into();
        self.header(value.kind());
        value.write_raw(self.document.buffer);
    }

    /// Returns the last bytes written so far; all of them if there are fewer.
    pub fn end(&self, bytes: usize) -> &[u8] {
        let buffer = &self.document.buffer;
        buffer.get(buffer.len().saturating_sub(bytes)..).unwrap_or_default()
    }

    /// Appends a value by its bytes.
    pub fn push_raw(&mut self, kind: Kind, raw: &[u8]) {
        self.header(kind);
        self.document.buffer.extend_from_slice(raw);
    }

    /// Appends a value whose bytes `write` appends to the buffer. If `write` fails or returns
    /// false, the array is unchanged.
    pub fn try_push<E>(&mut self, kind: Kind, write: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>) -> Result<bool, E> {
        let (before, index) = (self.document.buffer.len(), self.index);
        self.header(kind);
        let outcome = write(self.document.buffer);
        if !matches!(outcome, Ok(true)) {
            self.document.buffer.truncate(before);
            self.index = index;
        }
        outcome
    }

    /// Begins a nested document.
    pub fn document(&mut self) -> DocWriter<'_> {
        self.header(Kind::Document);
        DocWriter::begin(self.document.buffer)
    }

    /// Begins a nested array.
    pub fn array(&mut self) -> ArrayWriter<'_> {
        self.header(Kind::Array);
        ArrayWriter::begin(self.document.buffer)
    }

    /// Returns how many values the array has so far.
    pub fn len(&self) -> usize {
        self.index as usize
    }

    pub fn is_empty(&self) -> bool {
        self.index == 0
    }

    /// Returns the bytes written so far, without the closing zero.
    pub fn size(&self) -> usize {
        self.document.size()
    }

    fn header(&mut self, kind: Kind) {
        self.document.buffer.push(kind as u8);
        let mut digits = itoa::Buffer::new();
        self.document.buffer.extend_from_slice(digits.format(self.index).as_bytes());
        self.document.buffer.push(0);
        self.index += 1;
    }
}

/// Builds a [`crate::DocBuf`] from literal keys and expressions that are `Into<Value>`:
/// `doc! { "ok": 1.0, "n": count }`. Nested documents are `&doc! { … }`, arrays `&array! [ … ]`.
#[macro_export]
macro_rules! doc {
    ($($key:literal : $value:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut document = $crate::DocBuf::new();
        $(document.append($key, $value);)*
        document
    }};
}

/// Builds an array as a [`crate::ValueBuf`]: `array![1, "two"]`.
#[macro_export]
macro_rules! array {
    ($($value:expr),* $(,)?) => {{
        let mut bytes = Vec::new();
        {
            #[allow(unused_mut, unused_variables)]
            let mut writer = $crate::ArrayWriter::begin(&mut bytes);
            $(writer.push($value);)*
        }
        $crate::ValueBuf::from($crate::Value::Array($crate::Doc::from_bytes(&bytes).unwrap_or($crate::Doc::EMPTY)))
    }};
}
