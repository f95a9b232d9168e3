//! A range of an index, as given by `min` and `max` of a `find`.

use super::{Sort, SortPart, keys};
use document::path::Path;
use document::{Collation, Doc, DocBuf, Value};
use error::Result;
use std::sync::Arc;

/// The keys from `low` (inclusive) to `high` (exclusive), in the bytes of [`Sort::key`].
#[derive(Debug)]
pub(crate) struct KeyBounds {
    low: Vec<u8>,
    high: Vec<u8>,
}

impl KeyBounds {
    pub fn contains(&self, key: &[u8]) -> bool {
        (self.low.as_slice()..self.high.as_slice()).contains(&key)
    }
}

/// Documents that have a key in a range of an index, in the order of those keys.
#[derive(Clone, Debug)]
pub struct KeyRange {
    order: Sort,
    bounds: Arc<KeyBounds>,
    min: Option<DocBuf>,
    max: Option<DocBuf>,
}

/// An end of a range: a value, and whether it is included.
pub type RangeEnd<'v> = Option<(Value<'v>, bool)>;

impl KeyRange {
    /// Builds a range in `order`, that of the index ([`Sort::of_index`]). `min` and `max` have the
    /// fields of `order`. Without them the range begins with the first possible key and ends before
    /// the last one, so that MaxKey is excluded.
    pub fn new(order: Sort, min: Option<Doc<'_>>, max: Option<Doc<'_>>) -> KeyRange {
        let key = |values: &mut dyn Iterator<Item = Value<'_>>| {
            let mut key = Vec::new();
            for (part, value) in order.parts.iter().zip(values) {
                keys::encode(Some(value), part.ascending, &order.collation, &mut key);
            }
            key
        };
        let outermost = |last: bool| {
            let value = move |part: &SortPart| if part.ascending == last { Value::MaxKey } else { Value::MinKey };
            key(&mut order.parts.iter().map(value))
        };
        let low = min.map_or_else(|| outermost(false), |min| key(&mut min.values()));
        let high = max.map_or_else(|| outermost(true), |max| key(&mut max.values()));
        let within = Arc::new(KeyBounds { low, high });
        let order = Sort { key_bounds: Some(within.clone()), ..order };
        KeyRange { order, bounds: within, min: min.map(Doc::to_owned), max: max.map(Doc::to_owned) }
    }

    /// Returns whether `max` is not after `min`, so that the range is empty.
    pub fn is_empty(&self) -> bool {
        self.bounds.low >= self.bounds.high
    }

    /// Returns the order of the keys; a document is sorted by its first key in the range.
    pub fn order(&self) -> &Sort {
        &self.order
    }

    /// Returns the first key inside the range.
    pub fn low(&self) -> &[u8] {
        &self.bounds.low
    }

    /// Returns the first key after the range.
    pub fn high(&self) -> &[u8] {
        &self.bounds.high
    }

    /// Returns the bounds of a field of the keys, the lower one first, if all fields before it are
    /// equal at both ends of the range.
    pub fn field_bounds(&self, field: usize) -> (RangeEnd<'_>, RangeEnd<'_>) {
        let (Some(part), is_last) = (self.order.parts.get(field), field + 1 == self.order.parts.len()) else {
            return (None, None);
        };
        // After a value of `max` the fields to come may have lower ones.
        let first = self.min.as_ref().and_then(|min| min.as_doc().values().nth(field)).map(|value| (value, true));
        let last = self.max.as_ref().and_then(|max| max.as_doc().values().nth(field)).map(|value| (value, !is_last));
        if part.ascending { (first, last) } else { (last, first) }
    }

    pub fn contains(&self, document: Doc<'_>) -> Result<bool> {
        let mut key = Vec::new();
        self.order.key(document, &mut key)?;
        Ok(!key.is_empty())
    }
}

impl Sort {
    /// Returns the order of an index's keys, or the reverse one; `None` for an index without an
    /// order.
    pub fn of_index(pattern: Doc<'_>, collation: Collation, forward: bool) -> Option<Sort> {
        let part = |(name, direction): (&str, Value<'_>)| {
            let ascending = values::integer::as_i64_truncated(direction)? >= 0;
            Some(SortPart { path: Path::new(name), ascending: ascending == forward, meta: None })
        };
        Some(Sort { parts: pattern.iter().map(part).collect::<Option<_>>()?, collation, ..Sort::default() })
    }

    /// Returns the document's first key in this order, with the names of its fields.
    pub fn index_key(&self, document: Doc<'_>) -> Result<DocBuf> {
        let values = keys::values(self, document.into())?;
        Ok(DocBuf::build(|writer| {
            for (part, value) in self.parts.iter().zip(&values) {
                writer.append(part.path.as_str(), value);
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shorthand::document;

    fn range(pattern: &str, min: Option<&str>, max: Option<&str>) -> KeyRange {
        let order = Sort::of_index(document(pattern).as_doc(), Collation::SIMPLE, true).unwrap();
        let (min, max) = (min.map(document), max.map(document));
        KeyRange::new(order, min.as_ref().map(DocBuf::as_doc), max.as_ref().map(DocBuf::as_doc))
    }

    #[test]
    fn one_key_in_the_range_is_enough() {
        for (pattern, min, max, inside, expected) in [
            ("{a: 1}", Some("{a: 2}"), None, "{a: 2}", true),
            ("{a: 1}", Some("{a: 2}"), None, "{a: 1}", false),
            ("{a: 1}", None, Some("{a: 2}"), "{a: 2}", false),
            ("{a: 1}", None, Some("{a: 2}"), "{}", true),
            ("{a: -1}", Some("{a: 2}"), None, "{a: 1}", true),
            ("{a: 1}", Some("{a: 2}"), Some("{a: 4}"), "{a: [1, 5]}", false),
            ("{a: 1}", Some("{a: 2}"), Some("{a: 4}"), "{a: [1, 3]}", true),
            ("{a: 1, b: -1}", Some("{a: 1, b: 4}"), None, "{a: 1, b: 5}", false),
            ("{a: 1, b: -1}", Some("{a: 1, b: 4}"), None, "{a: 1, b: 3}", true),
        ] {
            let contains = range(pattern, min, max).contains(document(inside).as_doc());
            assert_eq!(contains, Ok(expected), "{inside} in {pattern} from {min:?} to {max:?}");
        }
        assert!(range("{a: 1}", Some("{a: 2}"), Some("{a: 2}")).is_empty());
        assert!(range("{a: -1}", Some("{a: 2}"), Some("{a: 3}")).is_empty());
    }

    #[test]
    fn fields_have_bounds() {
        let range = range("{a: 1, b: -1}", Some("{a: 1, b: 4}"), Some("{a: 2, b: 3}"));
        let (one, two, three, four) = (Value::Int32(1), Value::Int32(2), Value::Int32(3), Value::Int32(4));
        assert_eq!(range.field_bounds(0), (Some((one, true)), Some((two, true))));
        assert_eq!(range.field_bounds(1), (Some((three, false)), Some((four, true))));
        assert_eq!(range.field_bounds(2), (None, None));
    }

    #[test]
    fn keys_have_the_names_of_the_pattern() {
        let order = Sort::of_index(document("{b: 1, 'a.c': -1}").as_doc(), Collation::SIMPLE, true).unwrap();
        let key = order.index_key(document("{a: [{c: 1}, {c: 2}], x: 1}").as_doc()).unwrap();
        assert_eq!(key, document("{b: null, 'a.c': 2}"));
    }
}
