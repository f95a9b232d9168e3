//! Which answers a change may matter to, by collection, for several parts of the cache together: a write asks here once, however
//! many parts there are.
//!
//! Of the locks, a part's is taken before its directory's: who has found answers here lets go before asking the part that has them, which
//! may have others in their places by then, and looks at what is there.

use crate::changed_fields::Changed;
use crate::dependencies::{Aspect, Dependencies, DocumentSet, covers};
use crate::invalidation_index::{Filed, Place};
use crate::invalidation_keys;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::{Change, Namespace};

/// Parts that one directory serves: with more of them writes have more to do, with fewer those who store answers wait for each other more.
pub const PARTS: usize = 8;

/// An answer's place, in the lower bits; its part among those of the directory, in the upper ones.
const SLOT_BITS: u32 = u32::BITS - PARTS.ilog2();

/// An answer as the directory of its part knows it.
pub fn number(part: usize, slot: u32) -> u32 {
    (part % PARTS) as u32 * (1 << SLOT_BITS) + slot
}

/// The part among those of the directory.
pub fn part(number: u32) -> usize {
    (number >> SLOT_BITS) as usize
}

pub fn slot(number: u32) -> u32 {
    number & ((1 << SLOT_BITS) - 1)
}

/// Answers that a part can number.
pub const SLOTS_MAX: usize = 1 << SLOT_BITS;

#[derive(Default)]
pub struct Directory {
    collections: RwLock<Collections>,
}

type Collections = hashbrown::HashMap<Namespace, Filed, ahash::RandomState>;

impl Directory {
    /// Files an answer by what it depends on. `listed_max`: how many may be found in vain, see [`Filed::choose`].
    pub fn file(&self, answer: u32, scope: &Dependencies, listed_max: usize) -> Place {
        let (ways, is_certain, predicate) = match &scope.documents {
            DocumentSet::Matching { predicate, aspect } => {
                (invalidation_keys::of(predicate), matches!(aspect, Aspect::Documents), Some(&**predicate))
            }
            DocumentSet::All => (Vec::new(), false, None),
        };
        let mut collections = self.write();
        let filed = collections.entry_ref(&scope.namespace).or_default();
        let place = match predicate {
            Some(_) => filed.choose(ways, is_certain, listed_max),
            None => Place::Everything,
        };
        filed.add(answer, &place, predicate);
        for other in &scope.others {
            collections.entry_ref(other).or_default().add(answer, &Place::Everything, None);
        }
        place
    }

    pub fn remove(&self, answer: u32, scope: &Dependencies, place: &Place) {
        let mut collections = self.write();
        let mut remove = |namespace: &Namespace, place: &Place| {
            if let Some(filed) = collections.get_mut(namespace) {
                filed.remove(answer, place);
                if filed.is_empty() {
                    collections.remove(namespace);
                }
            }
        };
        remove(&scope.namespace, place);
        scope.others.iter().for_each(|other| remove(other, &Place::Everything));
    }

    /// The answers that a change may matter to, each once, those of a part together.
    pub fn find(&self, namespace: &Namespace, change: &Change, changed: &Changed<'_>, found: &mut Vec<u32>) {
        found.clear();
        let collections = self.read();
        if namespace.collection.is_empty() {
            let named = collections.iter().filter(|(collection, _)| covers(namespace, collection));
            named.for_each(|(_, filed)| filed.all(found));
        } else if let Some(filed) = collections.get(namespace) {
            match change {
                Change::Document { before, after } => {
                    let [before, after] = [before, after].map(|image| image.as_ref().map(document::DocBuf::as_doc));
                    filed.of_images(before, after, changed, found);
                }
                Change::Id(id) => filed.of_id(id.as_value(), found),
                Change::Unspecified => filed.all(found),
            }
        }
        drop(collections);
        // Found by its document as it was, and again as it is.
        found.sort_unstable();
        found.dedup();
    }

    /// Of the answers of a collection that every change is held against, if there are more than so many, the one that has been there longest;
    /// it goes to the end.
    pub fn turn(&self, namespace: &Namespace, listed_max: usize) -> Option<u32> {
        let mut collections = self.write();
        let listed = collections.get_mut(namespace)?.listed();
        if listed.len() > listed_max { listed.turn() } else { None }
    }

    /// Whether there are answers that were made from this collection.
    pub fn knows(&self, namespace: &Namespace) -> bool {
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
    fn numbers_tell_part_and_slot() {
        for (part, slot) in [(0, 0), (7, 12), (9, SLOTS_MAX as u32 - 1)] {
            let number = number(part, slot);
            assert_eq!((super::part(number), super::slot(number)), (part % PARTS, slot));
        }
    }
}
