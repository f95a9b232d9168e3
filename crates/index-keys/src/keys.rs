//! From documents to index keys: byte strings whose memcmp order is the index's order.
//!
//! The index's kind decides which keys a document has, a module each: [`ordered`], [`hashed`],
//! [`plane`], [`sphere`], [`text`], [`wildcard`]. A compound key is the concatenation of the keys
//! of its fields, with the bytes of descending fields inverted.

mod encoding;
pub mod hashed;
mod ordered;
pub mod plane;
pub mod sphere;
pub mod text;
pub mod wildcard;

pub use encoding::{KEY_END, Key, encode, encode_directed, encode_field, end_of_prefix, id_key};

use crate::IndexShape;
use document::{Doc, DocBuf, Kind, Value};
use error::Result;
use store::IndexKind;

/// The bits of all components of an index's paths.
pub const PARTS: u64 = SYMBOL - 1;
/// A bit besides those of components that meet an array: one of the keys is a symbol's, which
/// equals the key of a string.
pub const SYMBOL: u64 = 1 << crate::shape::PARTS_MAX;
/// The bit for a number that is no 32-bit integer, but may have the key of one.
pub const OTHER_NUMBER: u64 = 2 << crate::shape::PARTS_MAX;

/// Returns a document's keys in an index, in ascending order, each once; none if a sparse or
/// partial index leaves it out. Fails if the index's kind does not support the document.
pub fn index_keys(document: Doc<'_>, index: &IndexShape) -> Result<Vec<Key>> {
    index_keys_with_features(document, index, &mut 0)
}

/// As [`index_keys`]. Sets bits in `arrays` for components of the index's paths that meet an array,
/// numbered as by [`IndexField::part_before`], and for [`SYMBOL`] and [`OTHER_NUMBER`].
pub fn index_keys_with_features(document: Doc<'_>, index: &IndexShape, arrays: &mut u64) -> Result<Vec<Key>> {
    if let Some(partial) = &index.partial
        && !partial.matches(document)?
    {
        return Ok(Vec::new());
    }
    let mut keys: Vec<Key> = Vec::with_capacity(1);
    for_each_key(document, index, arrays, &mut |key, _| keys.push(Key::from_slice(key)))?;
    if keys.len() > 1 {
        if !index.kind.is_ordered() {
            *arrays |= index.fields.iter().fold(0, |parts, field| parts | field.all_parts());
        }
        keys.sort_unstable_by(|a, b| {
            steps::step();
            a.cmp(b)
        });
        keys.dedup_by(|a, b| {
            steps::step();
            a == b
        });
    }
    Ok(keys)
}

/// Returns the values of one of a document's keys, under the names of the index's fields: the
/// `keyValue` of an error.
pub fn key_values(document: Doc<'_>, index: &IndexShape, wanted: &[u8]) -> DocBuf {
    let mut found = DocBuf::new();
    // The document's keys have been computed before, so this cannot fail.
    let _ = for_each_key(document, index, &mut 0, &mut |key, values| {
        if key == wanted && found.as_doc().is_empty() {
            index.fields.iter().zip(values).for_each(|(field, value)| found.append(&field.path, *value));
        }
    });
    found
}

/// Calls `give` with each of a document's keys, in no order, and its values. Fails if the index's
/// kind does not support the document.
pub fn visit_keys(document: Doc<'_>, index: &IndexShape, give: &mut dyn FnMut(&[u8], &[Value<'_>])) -> Result<()> {
    for_each_key(document, index, &mut 0, give)
}

/// As [`visit_keys`]. Sets bits in `arrays` for components of the index's paths that meet an array.
fn for_each_key(
    document: Doc<'_>,
    index: &IndexShape,
    arrays: &mut u64,
    give: &mut dyn FnMut(&[u8], &[Value<'_>]),
) -> Result<()> {
    match &index.kind {
        IndexKind::Wildcard(options) => wildcard::for_each_key(document, index, options, give),
        IndexKind::Text(_) => text::for_each_key(document, index, give),
        IndexKind::Hashed => hashed::for_each_key(document, index, give),
        IndexKind::Sphere(options) => sphere::for_each_key(document, index, options, give),
        IndexKind::Plane(options) => plane::for_each_key(document, index, options, give),
        IndexKind::Ordered => {
            let (mut buffer, mut others) = (Vec::with_capacity(40), 0);
            let visited = ordered::for_each_key(document, &index.fields, index.spec.sparse, arrays, &mut |values| {
                buffer.clear();
                for (value, field) in values.iter().zip(&index.fields) {
                    encode_field(*value, field, &mut buffer);
                    others |= match value.kind() {
                        Kind::Symbol => SYMBOL,
                        Kind::Double | Kind::Int64 | Kind::Decimal128 => OTHER_NUMBER,
                        _ => 0,
                    };
                }
                give(&buffer, values);
            });
            *arrays |= others;
            visited
        }
    }
}

/// Returns whether values of this type compare only with their own type, so that an index decides
/// comparisons exactly.
pub fn is_plain(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Double
            | Kind::Int32
            | Kind::Int64
            | Kind::Decimal128
            | Kind::String
            | Kind::ObjectId
            | Kind::Boolean
            | Kind::DateTime
            | Kind::Timestamp
            | Kind::Binary
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::index_spec;
    use document::{array, doc};
    use error::Code;

    fn index(key: DocBuf, sparse: bool) -> IndexShape {
        let spec = doc! { "v": 2, "key": &key, "name": "i", "sparse": sparse };
        IndexShape::new(index_spec(spec)).unwrap()
    }

    fn keys(values: &[&[Value<'_>]]) -> Vec<Vec<u8>> {
        let encode_all = |values: &&[Value<'_>]| {
            let mut key = Vec::new();
            values.iter().for_each(|value| encode(*value, &mut key));
            key
        };
        let mut keys: Vec<_> = values.iter().map(encode_all).collect();
        keys.sort();
        keys
    }

    #[track_caller]
    fn check(key: DocBuf, document: DocBuf, expected: &[&[Value<'_>]]) {
        let found = index_keys(document.as_doc(), &index(key, false)).unwrap();
        let found: Vec<Vec<u8>> = found.into_iter().map(|key| key.to_vec()).collect();
        assert_eq!(found, keys(expected), "{document:?}");
    }

    #[test]
    fn arrays_are_expanded() {
        let one = Value::Int32(1);
        let two = Value::Int32(2);
        check(doc! { "a": 1 }, doc! { "a": 1 }, &[&[one]]);
        check(doc! { "a": 1 }, doc! { "b": 1 }, &[&[Value::Null]]);
        check(doc! { "a": 1 }, doc! { "a": &array![1, 2, 1] }, &[&[one], &[two]]);
        check(doc! { "a": 1 }, doc! { "a": &array![] }, &[&[Value::Undefined]]);
        check(doc! { "a.b": 1 }, doc! { "a": &array![1, &doc! { "b": 2 }] }, &[&[Value::Null], &[two]]);
        check(doc! { "a.b": 1 }, doc! { "a": &array![] }, &[&[Value::Null]]);
        check(doc! { "a.b": 1 }, doc! { "a": &doc! { "b": &array![1, 2] } }, &[&[one], &[two]]);
        check(doc! { "a.0": 1 }, doc! { "a": &array![1, 2] }, &[&[one]]);
        let nested = array![&array![1, 2]];
        let inner = array![1, 2];
        check(doc! { "a": 1 }, doc! { "a": &nested }, &[&[inner.as_value()]]);
        let pairs = array![&doc! { "b": 1, "c": 2 }, &doc! { "b": 2 }];
        check(doc! { "a.b": 1, "a.c": 1 }, doc! { "a": &pairs }, &[&[one, two], &[two, Value::Null]]);
        check(doc! { "x": 1, "a": 1 }, doc! { "a": &array![1, 2], "x": 1 }, &[&[one, one], &[one, two]]);
    }

    #[test]
    fn two_arrays_cannot_be_indexed_together() {
        let document = doc! { "a": &array![1, 2], "b": &array![3] };
        let error = index_keys(document.as_doc(), &index(doc! { "a": 1, "b": 1 }, false)).unwrap_err();
        assert_eq!(error.code(), Code::CANNOT_INDEX_PARALLEL_ARRAYS);
        assert_eq!(error.message(), "cannot index parallel arrays [b] [a]");
    }

    #[test]
    fn a_number_must_not_mean_two_things() {
        let index = index(doc! { "a.0": 1 }, false);
        let ambiguous = doc! { "a": &array![&doc! { "0": 7 }] };
        assert_eq!(index_keys(ambiguous.as_doc(), &index).unwrap_err().code(), Code(16746));
        assert_eq!(index_keys(doc! { "a": &array![&doc! { "1": 7 }] }.as_doc(), &index).unwrap().len(), 1);
    }

    #[test]
    fn a_sparse_index_leaves_out_documents_without_its_fields() {
        let sparse = index(doc! { "a": 1, "b": 1 }, true);
        assert_eq!(index_keys(doc! { "c": 1 }.as_doc(), &sparse).unwrap(), Vec::<Key>::new());
        assert_eq!(index_keys(doc! { "b": 1 }.as_doc(), &sparse).unwrap().len(), 1);
        assert_eq!(index_keys(doc! { "a": Value::Null }.as_doc(), &sparse).unwrap().len(), 1);
    }

    #[test]
    fn descending_fields_sort_the_other_way() {
        let descending = index(doc! { "a": -1 }, false);
        let key = |number: i32| index_keys(doc! { "a": number }.as_doc(), &descending).unwrap().remove(0);
        assert!(key(2) < key(1));
    }

    /// Checks the values of a document's keys in an index, in the keys' order.
    #[track_caller]
    fn check_values(key: DocBuf, document: DocBuf, expected: &[&str]) {
        let index = index(key, false);
        let mut found = Vec::new();
        for_each_key(document.as_doc(), &index, &mut 0, &mut |_, values| {
            found.push(
                values.iter().map(|value| values::text::value(*value).to_string()).collect::<Vec<_>>().join(" | "),
            );
        })
        .unwrap();
        assert_eq!(found, expected, "{document:?}");
    }

    #[test]
    fn a_wildcard_has_every_field_without_inner_fields() {
        let nested = doc! { "_id": 7, "a": &doc! { "b": &array![1, &doc! { "c": "x" }] }, "d": &array![], "e": &doc! {}, "f": Value::Null };
        check_values(doc! { "$**": 1 }, nested.clone(), &["1", "\"x\"", "undefined", "{}", "null"]);
        check_values(doc! { "a.b.$**": 1 }, nested.clone(), &["1", "\"x\""]);
        check_values(doc! { "_id.$**": 1 }, nested, &["7"]);
        check_values(doc! { "$**": 1 }, doc! { "a": &array![&array![1, 2], 3] }, &["[ 1, 2 ]", "3"]);
    }

    #[test]
    fn geometries_have_the_keys_of_mongodb() {
        let point = array![1, 2];
        check_values(doc! { "a": "2dsphere" }, doc! { "a": &point }, &["[ 1, 2 ]"]);
        check_values(doc! { "a": "2dsphere" }, doc! { "b": &point }, &[]);
        check_values(
            doc! { "a": "2dsphere", "b": 1 },
            doc! { "a": &point, "b": &array![5, 6] },
            &["[ 1, 2 ] | 5", "[ 1, 2 ] | 6"],
        );
        check_values(doc! { "b": 1, "a": "2dsphere" }, doc! { "a": &point }, &["null | [ 1, 2 ]"]);
        check_values(doc! { "a": "2d" }, doc! { "a": &array![&point, &array![3, 4]] }, &["[ 1, 2 ]", "[ 3, 4 ]"]);
        check_values(doc! { "a": "2d", "b": 1 }, doc! { "a": &point, "b": &array![5, 6] }, &["[ 1, 2 ] | [ 5, 6 ]"]);
        check_values(doc! { "a": "2d" }, doc! { "a": "somewhere" }, &[]);
    }

    #[test]
    fn invalid_geometries_are_refused() {
        let refused = |kind: &str, document: DocBuf| {
            let index = index(doc! { "a": kind }, false);
            index_keys(document.as_doc(), &index).map_err(|error| error.code().0).unwrap_err()
        };
        assert_eq!(refused("2dsphere", doc! { "a": "somewhere" }), 16755);
        assert_eq!(refused("2dsphere", doc! { "a": &array![200, 0] }), 16755);
        assert_eq!(refused("2d", doc! { "a": &array![200, 0] }), 13027);
        assert_eq!(refused("2d", doc! { "a": &array![1] }), 13068);
        assert_eq!(refused("2d", doc! { "a": &array!["x", "y"] }), 16804);
        assert_eq!(refused("2d", doc! { "a": &array![1, "y"] }), 13026);
        assert_eq!(refused("hashed", doc! { "a": &array![1] }), 16766);
    }

    #[test]
    fn a_prefix_ends_behind_everything_that_begins_with_it() {
        assert_eq!(end_of_prefix(vec![1, 2]), vec![1, 3]);
        assert_eq!(end_of_prefix(vec![1, 0xFF, 0xFF]), vec![2]);
        assert_eq!(end_of_prefix(vec![0xFF]), KEY_END);
    }

    #[test]
    fn the_values_of_a_key_are_found_again() {
        let index = index(doc! { "a.b": 1, "c": -1 }, false);
        let document = doc! { "a": &array![&doc! { "b": 1 }, &doc! { "b": "x" }], "c": 5 };
        let keys = index_keys(document.as_doc(), &index).unwrap();
        let values = key_values(document.as_doc(), &index, &keys[1]);
        assert_eq!(values, doc! { "a.b": "x", "c": 5 });
    }
}
