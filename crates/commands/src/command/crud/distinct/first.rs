//! Selects one of several equal values: `1`, `1.0` or a decimal.
//!
//! If values are read from an index, MongoDB returns the value with the first key, and for equal
//! keys that of the first document.

use super::{DistinctValues, elements};
use document::Doc;
use error::Result;
use index_keys::IndexShape;
use index_keys::keys::{self, Key};
use store::IndexSpec;

pub(super) struct FirstKeys {
    index: IndexShape,
    /// The position of the path among the index's fields.
    at: usize,
    /// The first key of each value so far.
    keys: Vec<Option<Key>>,
}

impl FirstKeys {
    /// Returns `None` if the index does not contain the path.
    pub fn of(index: &IndexSpec, path: &str, values: usize) -> Result<Option<FirstKeys>> {
        let index = IndexShape::new(index.clone())?;
        let at = index.fields.iter().position(|field| field.path == path);
        Ok(at.map(|at| FirstKeys { index, at, keys: vec![None; values] }))
    }

    /// Replaces equal values by those of earlier keys. Must be called with all documents in natural
    /// order.
    pub fn take(&mut self, document: Doc<'_>, values: &mut DistinctValues) {
        let FirstKeys { index, at, keys: first } = self;
        let visited = keys::visit_keys(document, index, &mut |key, of_key| {
            for value in of_key.get(*at).into_iter().flat_map(|value| elements(*value)) {
                let place = values.find(value);
                let Some((place, known)) = place.and_then(|place| Some((place, first.get_mut(place)?))) else {
                    continue;
                };
                if known.as_ref().is_none_or(|known| key < known.as_slice()) {
                    *known = Some(Key::from_slice(key));
                    values.values[place] = value.to_owned();
                }
            }
        });
        // SQL may have written documents that MongoDB refuses with such an index (parallel arrays):
        // they have no keys.
        visited.unwrap_or_default();
    }
}
