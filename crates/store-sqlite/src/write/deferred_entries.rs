//! The deferred index entries of a collection.

mod list;

use crate::catalog::{Collection, Index};
use list::List;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The limit of deferred keys, in bytes with their overhead: applying them takes some ten
/// milliseconds.
pub const BYTES_MAX: usize = 1 << 20;

/// The deferred entries of a collection.
pub struct DeferredEntries {
    pub collection: Arc<Collection>,
    /// One list per index of the collection, in its order.
    pub lists: Vec<List>,
    /// The first document with deferred entries; and as of the last commit.
    pub first: i64,
    first_committed: i64,
    /// The first document whose entries the running transaction has deferred.
    pub uncommitted: Option<i64>,
    /// The table `late` has a row for the collection.
    pub noted: bool,
}

impl DeferredEntries {
    pub fn new(collection: &Arc<Collection>) -> DeferredEntries {
        DeferredEntries {
            collection: collection.clone(),
            lists: collection.indexes.iter().map(|_| List::default()).collect(),
            first: i64::MAX,
            first_committed: i64::MAX,
            uncommitted: None,
            noted: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.lists.iter().all(List::is_empty)
    }

    pub fn size(&self) -> usize {
        self.lists.iter().map(List::size).sum()
    }

    pub fn commit(&mut self) {
        self.lists.iter_mut().for_each(List::commit);
        self.first_committed = self.first;
        self.uncommitted = None;
        self.publish();
    }

    pub fn roll_back(&mut self) {
        let uncommitted = self.uncommitted.take().unwrap_or(i64::MAX);
        self.lists.iter_mut().for_each(|list| list.roll_back(uncommitted));
        self.first = self.first_committed;
        self.noted = !self.is_empty();
        self.publish();
    }

    /// Publishes to readers whether entries are deferred.
    pub fn publish(&self) {
        for (index, list) in self.collection.indexes.iter().zip(&self.lists) {
            index.deferred.store(!list.is_empty(), Ordering::Release);
            if list.is_empty() {
                index.incomplete.store(false, Ordering::Release);
            }
        }
    }
}

/// Returns whether the index's entries may be deferred.
pub fn may_defer(index: &Index) -> bool {
    !index.spec.unique && !index.prepare_unique && !index.building
}
