//! The key directory: the entries that a change may affect, by collection, for several shards
//! together. A write looks here once, however many shards there are.
//!
//! Lock order: a shard's lock is taken before its directory's. A write that found entries here
//! releases the directory before it locks their shard. By then the shard may have other entries in
//! those slots, so the write checks each again.

use crate::changed_fields::ChangedFields;
use crate::dependencies::{Aspect, Dependencies, DocumentSet, covers};
use crate::invalidation_index::{InvalidationIndex, Placement};
use crate::invalidation_keys;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::{Change, Namespace};

/// Shards per directory. With more directories writes have more to do; with fewer, threads that
/// store entries wait for each other more.
pub const SHARDS: usize = 8;

/// An entry's number has its slot in the lower bits, and in the upper ones its shard among those of
/// the directory.
const SLOT_BITS: u32 = u32::BITS - SHARDS.ilog2();

/// Returns the number by which a directory knows an entry.
pub fn entry_number(shard: usize, slot: u32) -> u32 {
    (shard % SHARDS) as u32 * (1 << SLOT_BITS) + slot
}

/// Returns an entry's shard among those of the directory.
pub fn shard_of(entry: u32) -> usize {
    (entry >> SLOT_BITS) as usize
}

pub fn slot_of(entry: u32) -> u32 {
    entry & ((1 << SLOT_BITS) - 1)
}

/// The most entries of a shard.
pub const SLOTS_MAX: usize = 1 << SLOT_BITS;

#[derive(Default)]
pub struct KeyDirectory {
    collections: RwLock<Collections>,
}

type Collections = hashbrown::HashMap<Namespace, InvalidationIndex, ahash::RandomState>;

impl KeyDirectory {
    /// Adds an entry by what it depends on. `unindexed_max`: see
    /// [`InvalidationIndex::choose_placement`].
    pub fn add(&self, entry: u32, dependencies: &Dependencies, unindexed_max: usize) -> Placement {
        let (candidates, is_certain, predicate) = match &dependencies.documents {
            DocumentSet::Matching { predicate, aspect } => {
                let is_certain = matches!(aspect, Aspect::Documents);
                (invalidation_keys::candidates(predicate), is_certain, Some(&**predicate))
            }
            DocumentSet::All => (Vec::new(), false, None),
        };
        let mut collections = self.write();
        let index = collections.entry_ref(&dependencies.namespace).or_default();
        let placement = match predicate {
            Some(_) => index.choose_placement(candidates, is_certain, unindexed_max),
            None => Placement::AnyChange,
        };
        index.add(entry, &placement, predicate);
        for other in &dependencies.others {
            collections.entry_ref(other).or_default().add(entry, &Placement::AnyChange, None);
        }
        placement
    }

    pub fn remove(&self, entry: u32, dependencies: &Dependencies, placement: &Placement) {
        let mut collections = self.write();
        let mut remove = |namespace: &Namespace, placement: &Placement| {
            if let Some(index) = collections.get_mut(namespace) {
                index.remove(entry, placement);
                if index.is_empty() {
                    collections.remove(namespace);
                }
            }
        };
        remove(&dependencies.namespace, placement);
        dependencies.others.iter().for_each(|other| remove(other, &Placement::AnyChange));
    }

    /// Finds the entries that a change may affect, each once, grouped by shard.
    pub fn find(&self, namespace: &Namespace, change: &Change, changed: &ChangedFields<'_>, found: &mut Vec<u32>) {
        found.clear();
        let collections = self.read();
        if namespace.collection.is_empty() {
            let covered = collections.iter().filter(|(collection, _)| covers(namespace, collection));
            covered.for_each(|(_, index)| index.all(found));
        } else if let Some(index) = collections.get(namespace) {
            match change {
                Change::Document { before, after } => {
                    let [before, after] = [before, after].map(|image| image.as_ref().map(document::DocBuf::as_doc));
                    index.find_by_images(before, after, changed, found);
                }
                Change::Id(id) => index.find_by_id(id.as_value(), found),
                Change::Unspecified => index.all(found),
            }
        }
        drop(collections);
        // An entry may be found by the document before the change and again after it.
        found.sort_unstable();
        found.dedup();
    }

    /// Returns the oldest unindexed entry of a collection if there are more than `unindexed_max`,
    /// and moves it to the end.
    pub fn rotate_unindexed(&self, namespace: &Namespace, unindexed_max: usize) -> Option<u32> {
        let mut collections = self.write();
        let unindexed = collections.get_mut(namespace)?.unindexed();
        if unindexed.len() > unindexed_max { unindexed.rotate() } else { None }
    }

    /// Returns whether there are entries that depend on this collection.
    pub fn has_entries(&self, namespace: &Namespace) -> bool {
        self.read().contains_key(namespace)
    }

    fn read(&self) -> RwLockReadGuard<'_, Collections> {
        self.collections.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Collections> {
        self.collections.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_contain_shard_and_slot() {
        for (shard, slot) in [(0, 0), (7, 12), (9, SLOTS_MAX as u32 - 1)] {
            let entry = entry_number(shard, slot);
            assert_eq!((shard_of(entry), slot_of(entry)), (shard % SHARDS, slot));
        }
    }
}
