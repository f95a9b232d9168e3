//! Collations: the order of strings by the rules of a language instead of their bytes.
//!
//! [`Collation::parse`] reads the `collation` document of a command. The result is an order over
//! values that differs from [`crate::compare`] only for strings, also within documents and arrays.
//! Names of fields always compare by their bytes. Bytes that are not UTF-8 count as U+FFFD.
//!
//! The rules are those of the Unicode Collation Algorithm with the tailorings of CLDR, as the ICU
//! project maintains them. A MongoDB server has those of ICU 57. Quotation marks are distinguished
//! as in ICU 57 (`quotes`); newer characters may sort elsewhere there, and the tailorings of some
//! locales have changed since.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/collation/>; where it is silent, the
//! behaviour of a 6.0 server.

mod locales;
mod parse;
mod quotes;
#[cfg(test)]
mod tests;

use crate::compare::{compare_any, hash_nested};
use crate::key::encode_nested;
use crate::{DocBuf, Value, compare, equal};
use icu_collator::CollatorBorrowed;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::Hasher;
use std::sync::Arc;

/// How strings compare: by their bytes ([`Collation::SIMPLE`]) or by a collator. Cheap to clone.
#[derive(Clone, Default)]
pub struct Collation(Option<Arc<Collator>>);

/// The rules of one collation that is not simple.
pub(crate) struct Collator {
    rules: CollatorBorrowed<'static>,
    /// Whether punctuation counts, and so do the differences among quotation marks.
    distinguishes_quotes: bool,
    /// Whether an option of its locale is missing in the specification. As in a server, `th` is
    /// shown as non-ignorable although it is shifted, unless the option is given, as in a
    /// collection's default.
    differs_from_specification: bool,
    /// The specification with all options.
    specification: DocBuf,
}

impl Collation {
    /// The order by bytes.
    pub const SIMPLE: Collation = Collation(None);

    pub fn is_simple(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the collation as a document with all its options, as `listCollections` shows it;
    /// `None` for the simple one.
    pub fn specification(&self) -> Option<&DocBuf> {
        self.0.as_deref().map(|collator| &collator.specification)
    }

    #[inline]
    pub fn compare(&self, a: Value<'_>, b: Value<'_>) -> Ordering {
        match self.0.as_deref() {
            None => compare(a, b),
            collator => compare_any(a, b, 0, collator),
        }
    }

    #[inline]
    pub fn equal(&self, a: Value<'_>, b: Value<'_>) -> bool {
        match self.0.as_deref() {
            None => equal(a, b),
            collator => compare_any(a, b, 0, collator) == Ordering::Equal,
        }
    }

    /// Feeds a value into a hasher so that values that are equal in this collation have equal
    /// hashes.
    pub fn hash<H: Hasher>(&self, value: Value<'_>, state: &mut H) {
        hash_nested(value, state, 0, self.0.as_deref());
    }

    /// Appends the value's key as [`crate::key`] does, with sort keys in place of strings.
    pub fn encode_key(&self, value: Value<'_>, out: &mut Vec<u8>) {
        match self.0.as_deref() {
            None => crate::key::encode(value, out),
            collator => encode_nested(value, out, 0, collator),
        }
    }

    /// Returns the sort key of a string, as a string; `None` for a value that compares by its own
    /// bytes.
    pub fn key_of_string(&self, value: Value<'_>) -> Option<String> {
        Some(String::from_utf8_lossy(&self.sort_key(value)?).into_owned())
    }

    /// Returns the bytes of a string's sort key; `None` for a value that compares by its own bytes.
    pub fn sort_key(&self, value: Value<'_>) -> Option<Vec<u8>> {
        let (collator, text) = (self.0.as_deref()?, value.to_text_lossy()?);
        Some(collator.sort_key(&text))
    }

    /// Returns whether values of this type compare by the collation: strings, and types that may
    /// contain them.
    pub fn concerns(&self, kind: crate::Kind) -> bool {
        use crate::Kind;
        self.0.is_some()
            && matches!(kind, Kind::String | Kind::Symbol | Kind::Document | Kind::Array | Kind::CodeWithScope)
    }
}

impl PartialEq for Collation {
    fn eq(&self, other: &Self) -> bool {
        let differs = |collation: &Self| collation.0.as_deref().is_some_and(|it| it.differs_from_specification);
        self.specification() == other.specification() && differs(self) == differs(other)
    }
}

impl Eq for Collation {}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.specification() {
            None => f.write_str("simple"),
            Some(specification) => specification.fmt(f),
        }
    }
}

impl Collator {
    pub(crate) fn compare(&self, a: &str, b: &str) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        steps::steps(a.len().min(b.len()));
        self.rules.compare(&self.tailored(a), &self.tailored(b))
    }

    /// Returns bytes that compare as the strings do. They may contain zeros.
    pub(crate) fn sort_key(&self, text: &str) -> Vec<u8> {
        // A character takes longer than a step.
        steps::steps(text.len());
        let mut key = Vec::with_capacity(text.len() + 8);
        let Ok(()) = self.rules.write_sort_key_to(&self.tailored(text), &mut key);
        key
    }

    fn tailored<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.distinguishes_quotes { quotes::apart(text) } else { Cow::Borrowed(text) }
    }
}
