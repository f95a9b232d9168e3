//! A set of values, found by their hash.

use document::{Collation, Value, ValueBuf};
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher};

/// Up to this number of values, comparing with each is faster than hashing.
const COMPARED_MAX: usize = 4;

/// A set of values in the order of insertion.
#[derive(Clone, Debug, Default)]
pub struct ValueSet {
    values: Vec<ValueBuf>,
    table: HashTable<u32>,
    hasher: ahash::RandomState,
    collation: Collation,
    memory_bytes: usize,
}

impl ValueSet {
    pub fn new(collation: Collation) -> ValueSet {
        ValueSet { collation, ..ValueSet::default() }
    }

    pub fn of<'v>(values: impl IntoIterator<Item = Value<'v>>, collation: &Collation) -> ValueSet {
        let mut unique = ValueSet::new(collation.clone());
        for value in values {
            unique.insert(value);
        }
        unique
    }

    /// Inserts a value; returns the bytes by which the set grew.
    pub fn insert(&mut self, value: Value<'_>) -> isize {
        steps::step();
        let collation = &self.collation;
        let hash = hash_of(&self.hasher, value, collation);
        let values = &self.values;
        let at = |index: u32| values.get(index as usize).map_or(Value::Null, ValueBuf::as_value);
        if self.table.find(hash, |&index| collation.equal(at(index), value)).is_some() {
            return 0;
        }
        let (index, hasher) = (values.len() as u32, &self.hasher);
        self.table.insert_unique(hash, index, |&index| hash_of(hasher, at(index), collation));
        let owned = value.to_owned();
        let bytes = owned.raw_value().len() + size_of::<ValueBuf>();
        self.values.push(owned);
        self.memory_bytes += bytes;
        bytes as isize
    }

    /// Returns the index of the value equal to this one.
    pub fn position(&self, value: Value<'_>) -> Option<usize> {
        steps::step();
        if self.values.len() <= COMPARED_MAX {
            return self.values.iter().position(|known| self.collation.equal(known.as_value(), value));
        }
        let hash = hash_of(&self.hasher, value, &self.collation);
        let equal = |&index: &u32| {
            self.values.get(index as usize).is_some_and(|known| self.collation.equal(known.as_value(), value))
        };
        self.table.find(hash, equal).map(|&index| index as usize)
    }

    pub fn contains(&self, value: Value<'_>) -> bool {
        self.position(value).is_some()
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    pub fn values(&self) -> std::slice::Iter<'_, ValueBuf> {
        self.values.iter()
    }
}

pub fn hash_of(hasher: &ahash::RandomState, value: Value<'_>, collation: &Collation) -> u64 {
    let mut state = hasher.build_hasher();
    collation.hash(value, &mut state);
    state.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::DocBuf;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_those_of_a_search(numbers in prop::collection::vec(-6i32..6, 0..24), sought in -6i32..6) {
            let document = DocBuf::build(|writer| {
                for (index, number) in numbers.iter().enumerate() {
                    match index % 3 {
                        0 => writer.append("n", *number),
                        1 => writer.append("n", f64::from(*number)),
                        _ => writer.append("n", i64::from(*number)),
                    }
                }
            });
            let given: Vec<Value<'_>> = document.as_doc().values().collect();
            let unique = ValueSet::of(given.iter().copied(), &Collation::SIMPLE);
            let mut slow: Vec<Value<'_>> = Vec::new();
            for value in &given {
                if !slow.iter().any(|known| Collation::SIMPLE.equal(*known, *value)) {
                    slow.push(*value);
                }
            }
            prop_assert_eq!(unique.len(), slow.len());
            for (found, wanted) in unique.values().zip(&slow) {
                prop_assert_eq!(found.as_value(), *wanted);
            }
            let value = Value::Int64(sought.into());
            let position = slow.iter().position(|known| Collation::SIMPLE.equal(*known, value));
            prop_assert_eq!(unique.position(value), position);
        }
    }
}
