//! Which of several equal values is given: `1`, `1.0` or a decimal.
//!
//! Where values are read from an index's keys, it is the one whose key comes first, and of one key the one of the document that does.

use super::{DistinctValues, elements};
use document::Doc;
use error::Result;
use index_keys::IndexShape;
use index_keys::keys::{self, Key};
use store::IndexSpec;

pub(super) struct FirstKeys {
    index: IndexShape,
    /// The place of the values among the index's fields.
    at: usize,
    /// Of each value the first key that has turned up.
    keys: Vec<Option<Key>>,
}

impl FirstKeys {
    /// `None` where the path is none of the index's.
    pub fn of(index: &IndexSpec, path: &str, values: usize) -> Result<Option<FirstKeys>> {
        let index = IndexShape::new(index.clone())?;
        let at = index.fields.iter().position(|field| field.path == path);
        Ok(at.map(|at| FirstKeys { index, at, keys: vec![None; values] }))
    }

    /// Puts what the document's keys have in the place of equal values of later keys. Takes all documents in natural order.
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
        // SQL may have written what MongoDB refuses beside such an index (arrays side by side): that has no keys.
        visited.unwrap_or_default();
    }
}
