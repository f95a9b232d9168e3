//! A collection in memory, indexed by the values of the field that a `$lookup` joins on.

use super::lookup::Lookup;
use document::path::{End, Path};
use document::{Collation, Doc, DocBuf, Value};
use hashbrown::HashMap;
use std::ops::ControlFlow;
use steps::Counted;

/// Documents by the values of a field, with array elements indexed separately. The candidates for a
/// value include all documents that match, and perhaps others.
#[derive(Debug)]
pub struct JoinTable {
    documents: Vec<DocBuf>,
    positions: HashMap<Vec<u8>, Vec<u32>, ahash::RandomState>,
}

impl JoinTable {
    pub fn build(lookup: &Lookup, documents: Vec<DocBuf>) -> JoinTable {
        let mut positions: HashMap<Vec<u8>, Vec<u32>, ahash::RandomState> = HashMap::default();
        if let Some(path) = lookup.foreign_path() {
            for (number, document) in documents.iter().enumerate() {
                steps::step();
                visit_keys(path, document.as_doc(), lookup.collation(), &mut |key| {
                    let numbers = positions.entry_ref(key).or_default();
                    if numbers.last() != Some(&(number as u32)) {
                        numbers.push(number as u32);
                    }
                });
            }
        }
        JoinTable { documents, positions }
    }

    /// Returns the documents that may match `document`, in their order.
    pub fn candidates(&self, lookup: &Lookup, document: Doc<'_>) -> impl Iterator<Item = Doc<'_>> {
        let mut numbers: Vec<u32> = Vec::new();
        let mut key = Vec::new();
        for value in lookup.local_values(document) {
            steps::step();
            key.clear();
            lookup.collation().encode_key(value, &mut key);
            numbers.extend(self.positions.get(&key).into_iter().flatten());
        }
        steps::steps(numbers.len());
        numbers.sort_unstable_by(|a, b| {
            steps::step();
            a.cmp(b)
        });
        numbers.dedup();
        numbers.into_iter().filter_map(|number| self.documents.get(number as usize)).map(DocBuf::as_doc)
    }
}

/// Visits the keys of all values of the field that an equality may match.
fn visit_keys(path: &Path, document: Doc<'_>, collation: &Collation, visit: &mut impl FnMut(&Vec<u8>)) {
    let mut key = Vec::new();
    let mut take = |value: Value<'_>| {
        key.clear();
        // Null matches undefined and missing values.
        let value = if matches!(value, Value::Undefined) { Value::Null } else { value };
        collation.encode_key(value, &mut key);
        visit(&key);
    };
    let mut any = false;
    let flow = path.visit(document, End::Whole, &mut |reached| {
        any = true;
        match reached.value {
            Some(Value::Array(array)) => {
                take(Value::Array(array));
                array.values().counted().for_each(&mut take);
            }
            value => take(value.unwrap_or(Value::Null)),
        }
        ControlFlow::Continue(())
    });
    debug_assert!(flow.is_continue());
    if !any {
        take(Value::Null);
    }
}
