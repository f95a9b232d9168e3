//! Documents as borrowed or owned bytes.
//!
//! Source: <https://bsonspec.org/spec.html>

use crate::value::{Kind, Value};
use crate::write::DocWriter;
use std::fmt;

/// The five bytes of `{}`.
pub(crate) const EMPTY: &[u8] = &[5, 0, 0, 0, 0];

/// A BSON document (or array: the same bytes, with `"0"`, `"1"` … as keys), borrowed.
///
/// The slice is exactly the document: its length prefix, its elements and the closing zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Doc<'a>(&'a [u8]);

impl<'a> Doc<'a> {
    pub const EMPTY: Doc<'static> = Doc(EMPTY);

    /// Returns the document at the front of `bytes`, by its length prefix; `None` if the prefix
    /// does not fit. The content is not checked: bytes from outside must pass
    /// [`crate::validate::check`] first.
    pub fn from_prefix(bytes: &'a [u8]) -> Option<Self> {
        let length = read_length(bytes)?;
        (length >= EMPTY.len() && length <= bytes.len()).then(|| Doc(&bytes[..length]))
    }

    /// Returns the document that is exactly `bytes`; `None` if the length prefix differs.
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        Self::from_prefix(bytes).filter(|document| document.0.len() == bytes.len())
    }

    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the size in bytes.
    pub fn size(self) -> usize {
        self.0.len()
    }

    pub fn is_empty(self) -> bool {
        self.0.len() <= EMPTY.len()
    }

    /// Iterates over the elements in their order, with undecoded values.
    pub fn elements(self) -> Elements<'a> {
        Elements { rest: &self.0[4.min(self.0.len())..self.0.len().saturating_sub(1)] }
    }

    /// Iterates over keys and values in their order.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.elements().map(|element| (element.key(), element.value()))
    }

    /// Iterates over the values in their order: an array's content.
    pub fn values(self) -> impl Iterator<Item = Value<'a>> {
        self.elements().map(|element| element.value())
    }

    /// Returns the first element with this key.
    #[inline]
    pub fn element(self, key: &str) -> Option<Element<'a>> {
        self.elements().find_key(key.as_bytes())
    }

    /// Returns the value of the first element with this key.
    pub fn get(self, key: &str) -> Option<Value<'a>> {
        self.element(key).map(Element::value)
    }

    /// Looks up several keys in one pass: `found` receives the first element of each name, at the
    /// name's position.
    #[inline]
    pub fn gather(self, names: &[Name], found: &mut [Option<Element<'a>>]) {
        if let ([name], Some(first)) = (names, found.first_mut()) {
            *first = self.element(&name.text);
            return;
        }
        let mut left = names.len();
        let mut elements = self.elements();
        while left > 0 {
            let Some(element) = elements.next() else { return };
            let tag = tag_of(element.key);
            for (name, found) in names.iter().zip(&mut *found) {
                if name.tag == tag && found.is_none() && name.matches(element.key) {
                    *found = Some(element);
                    left -= 1;
                }
            }
        }
    }

    /// Builds a document in `out` of the fields that are complete in a document's first `bytes`.
    pub fn from_truncated<'o>(bytes: &[u8], out: &'o mut Vec<u8>) -> Doc<'o> {
        out.clear();
        let fields = bytes.get(4..).unwrap_or_default();
        let mut elements = Elements { rest: fields };
        let mut whole = 0;
        while elements.next().is_some() {
            whole = fields.len() - elements.rest.len();
        }
        out.extend_from_slice(&(whole as i32 + EMPTY.len() as i32).to_le_bytes());
        out.extend_from_slice(&fields[..whole]);
        out.push(0);
        Doc(out)
    }

    /// Returns the first element: in a command, its name.
    pub fn first(self) -> Option<Element<'a>> {
        self.elements().next()
    }

    pub fn to_owned(self) -> DocBuf {
        DocBuf(self.0.to_vec())
    }
}

impl Default for Doc<'_> {
    fn default() -> Self {
        Doc::EMPTY
    }
}

impl fmt::Debug for Doc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A key to search, prepared for comparisons with many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    text: Box<str>,
    tag: u64,
}

impl Name {
    pub fn new(text: &str) -> Name {
        Name { text: text.into(), tag: tag_of(text.as_bytes()) }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether a key with the same tag is this name.
    #[inline]
    fn matches(&self, key: &[u8]) -> bool {
        key.len() < TAG_BYTES || self.text.as_bytes() == key
    }
}

const TAG_BYTES: usize = 8;

/// Returns the first bytes of a key, which alone identify a shorter key, as keys have no zeros in
/// them.
#[inline]
fn tag_of(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<TAG_BYTES>() {
        return u64::from_le_bytes(*first);
    }
    key.iter().rev().fold(0, |tag, byte| tag << 8 | u64::from(*byte))
}

/// A BSON document that owns its bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DocBuf(pub(crate) Vec<u8>);

impl DocBuf {
    pub fn new() -> Self {
        DocBuf(EMPTY.to_vec())
    }

    /// Converts bytes that are one whole document; `None` if the length prefix differs.
    pub fn from_vec(bytes: Vec<u8>) -> Option<Self> {
        Doc::from_bytes(&bytes)?;
        Some(DocBuf(bytes))
    }

    /// Builds a document by writing its elements.
    pub fn build(write: impl FnOnce(&mut DocWriter<'_>)) -> Self {
        let mut bytes = Vec::with_capacity(64);
        write(&mut DocWriter::begin(&mut bytes));
        DocBuf(bytes)
    }

    pub fn as_doc(&self) -> Doc<'_> {
        Doc(&self.0)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }

    /// Appends an element.
    pub fn append<'v>(&mut self, key: &str, value: impl Into<Value<'v>>) {
        self.0.pop();
        let mut writer = DocWriter { buffer: &mut self.0, start: 0 };
        writer.append(key, value);
    }
}

impl Default for DocBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DocBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_doc().fmt(f)
    }
}

/// One element: type, key, and the bytes of its value.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    pub kind: Kind,
    key: &'a [u8],
    raw: &'a [u8],
}

impl<'a> Element<'a> {
    pub fn key_bytes(self) -> &'a [u8] {
        self.key
    }

    /// Returns the key as text, with U+FFFD in place of bytes that are not UTF-8, which
    /// [`crate::validate::check`] refuses.
    pub fn key(self) -> &'a str {
        text(self.key)
    }

    /// Returns the value's bytes as in the document.
    pub fn raw_value(self) -> &'a [u8] {
        self.raw
    }

    pub fn value(self) -> Value<'a> {
        Value::from_raw(self.kind, self.raw)
    }

    /// Returns a string's text, unchecked.
    #[inline]
    pub fn text_bytes(self) -> Option<&'a [u8]> {
        // A length, the text, a zero.
        let text = self.raw.get(4..).and_then(|raw| raw.split_last()).map(|(_, text)| text);
        text.filter(|_| self.kind == Kind::String)
    }
}

impl fmt::Debug for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {:?}", self.key(), self.value())
    }
}

/// Iterator over a document's elements. Ends at the first malformed element.
#[derive(Clone)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        let (&tag, after_tag) = self.rest.split_first()?;
        let kind = Kind::from_byte(tag)?;
        let key_length = find_zero(after_tag)?;
        let (key, after_key) = after_tag.split_at_checked(key_length)?;
        let raw = self.take_value(kind, after_key.get(1..)?)?;
        Some(Element { kind, key, raw })
    }
}

impl<'a> Elements<'a> {
    /// Returns the next element with this key, if there is one. Different keys are detected in
    /// place.
    #[inline]
    fn find_key(&mut self, wanted: &[u8]) -> Option<Element<'a>> {
        loop {
            let (&tag, after_tag) = self.rest.split_first()?;
            let kind = Kind::from_byte(tag)?;
            // The first byte decides for most keys without a call.
            let first = wanted.first().unwrap_or(&0);
            if after_tag.first() == Some(first)
                && after_tag.starts_with(wanted)
                && after_tag.get(wanted.len()) == Some(&0)
            {
                let raw = self.take_value(kind, after_tag.get(wanted.len() + 1..)?)?;
                return Some(Element { kind, key: after_tag.get(..wanted.len())?, raw });
            }
            let key_length = find_zero(after_tag)?;
            self.take_value(kind, after_tag.get(key_length + 1..)?)?;
        }
    }

    /// Takes the value off the front of `bytes` and continues behind it. A value that does not fit
    /// ends the iteration.
    #[inline]
    fn take_value(&mut self, kind: Kind, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let split = kind.value_length(bytes).and_then(|length| bytes.split_at_checked(length));
        let (raw, rest) = split.unwrap_or((&[], &[]));
        self.rest = rest;
        split.is_some().then_some(raw)
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Returns the position of the first zero byte. Keys are short, so eight bytes at a time are faster
/// than a vectorised search.
#[inline]
pub(crate) fn find_zero(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        // The high bit of the lowest zero byte; higher bits do not matter.
        let zeros = word.wrapping_sub(ONES) & !word & HIGHS;
        if zeros != 0 {
            return Some(at + zeros.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    Some(at + bytes.get(at..)?.iter().position(|&byte| byte == 0)?)
}

/// Reads the little-endian length prefix, in bytes.
#[inline]
pub(crate) fn read_length(bytes: &[u8]) -> Option<usize> {
    let prefix = bytes.first_chunk::<4>()?;
    usize::try_from(i32::from_le_bytes(*prefix)).ok()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or("\u{FFFD}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc;

    #[test]
    fn a_truncated_document_has_its_complete_fields() {
        let whole = doc! { "a": 1, "text": "some text", "o": &doc! { "x": 1.5 }, "n": Value::Null, "long": 5_i64 };
        let bytes = whole.as_bytes();
        let mut out = Vec::new();
        for count in 0..=bytes.len() {
            let beginning = Doc::from_truncated(&bytes[..count], &mut out);
            assert_eq!(Doc::from_bytes(beginning.as_bytes()), Some(beginning));
            let fields = beginning.elements().count();
            assert!(
                beginning
                    .elements()
                    .zip(whole.as_doc().elements())
                    .all(|(a, b)| (a.kind, a.key, a.raw) == (b.kind, b.key, b.raw))
            );
            // Another element would not have fitted.
            let taken: usize =
                whole.as_doc().elements().take(fields + 1).map(|it| it.key.len() + it.raw.len() + 2).sum();
            assert!(fields == 5 || 4 + taken > count, "{count}: {beginning:?}");
        }
        assert_eq!(Doc::from_truncated(bytes, &mut out), whole.as_doc());
    }
}
