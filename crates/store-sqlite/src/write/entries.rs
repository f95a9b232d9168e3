//! The index entries of documents.

use crate::catalog::Collection;
use crate::failure::Attempt;
use document::Doc;
use error::Result;
use index_keys::keys::{self, Key};
use std::borrow::Cow;

/// A document's keys, index by index in the collection's order.
#[derive(Clone, Debug)]
pub struct IndexEntries {
    pub keys: Vec<Vec<Key>>,
    /// By index: the components of its paths that met an array, and bits for values that have the
    /// keys of other types.
    pub arrays: Vec<(usize, u64)>,
}

/// A document with its entries, as needed to remove it.
pub struct OldDocument<'d> {
    pub document: Doc<'d>,
    pub entries: Cow<'d, IndexEntries>,
}

impl<'d> OldDocument<'d> {
    pub fn of(collection: &Collection, document: Doc<'d>) -> Attempt<OldDocument<'d>> {
        Ok(OldDocument { document, entries: Cow::Owned(IndexEntries::of(collection, document)?) })
    }
}

impl IndexEntries {
    /// Returns the entries of a document in a collection without indexes.
    pub fn none() -> IndexEntries {
        IndexEntries { keys: Vec::new(), arrays: Vec::new() }
    }

    pub fn of(collection: &Collection, document: Doc<'_>) -> Result<IndexEntries> {
        let mut entries = IndexEntries { keys: Vec::with_capacity(collection.indexes.len()), arrays: Vec::new() };
        for (at, index) in collection.indexes.iter().enumerate() {
            let mut arrays = 0;
            entries.keys.push(keys::index_keys_with_features(document, index, &mut arrays)?);
            if !index.multikey.has(arrays) {
                entries.arrays.push((at, arrays));
            }
        }
        Ok(entries)
    }
}

/// Returns the keys of `left` that are not in `right`; both are in order.
pub fn difference(left: &IndexEntries, right: &IndexEntries) -> Vec<Vec<Key>> {
    let one = |(left, right): (&Vec<Key>, &Vec<Key>)| -> Vec<Key> {
        left.iter().filter(|key| right.binary_search(key).is_err()).cloned().collect()
    };
    left.keys.iter().zip(&right.keys).map(one).collect()
}
