//! Changes of users and roles, counted when they are visible.

use crate::user_store;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::change_observer::LogPosition;
use store::{ChangeObserver, Changes, InFlightWrite, Namespace};

/// The number of changes of users and roles so far. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct UserChanges(Arc<AtomicU64>);

impl UserChanges {
    #[inline]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Observer that counts the changes of users and roles that this process makes, and passes all
/// changes on to another observer.
pub struct UserChangeObserver {
    pub changes: UserChanges,
    pub next: Option<Arc<dyn ChangeObserver>>,
}

impl ChangeObserver for UserChangeObserver {
    fn wants_images(&self, namespace: &Namespace) -> bool {
        self.next.as_ref().is_some_and(|next| next.wants_images(namespace))
    }

    fn begin_write(&self, changes: Changes) -> Box<dyn InFlightWrite> {
        let counted = changes.iter().any(|(namespace, _)| user_store::concerns(namespace));
        let counted = counted.then(|| CountedWrite(self.changes.clone()));
        let next = self.next.as_ref().map(|next| next.begin_write(changes));
        match (next, counted) {
            (Some(next), None) => next,
            (next, counted) => Box::new(ObservedWrite { next, _counted: counted }),
        }
    }

    fn definition_changed(&self, namespace: &Namespace) {
        self.next.iter().for_each(|next| next.definition_changed(namespace));
    }

    fn log_started(&self, log: &str, position: &[LogPosition]) {
        self.next.iter().for_each(|next| next.log_started(log, position));
    }

    fn log_advanced(&self, position: &[LogPosition]) {
        self.next.iter().for_each(|next| next.log_advanced(position));
    }
}

/// A write in flight. Its parts end in their order: the count rises last, when each reader sees the
/// change.
struct ObservedWrite {
    next: Option<Box<dyn InFlightWrite>>,
    _counted: Option<CountedWrite>,
}

impl InFlightWrite for ObservedWrite {
    fn outcome_unknown(mut self: Box<Self>) {
        if let Some(next) = self.next.take() {
            next.outcome_unknown();
        }
    }
}

/// Counts a change when it is dropped.
struct CountedWrite(UserChanges);

impl Drop for CountedWrite {
    fn drop(&mut self) {
        self.0.add();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes_of(database: &str, collection: &str) -> Changes {
        let mut changes = Changes::default();
        changes.add_unspecified(&Namespace::new(database, collection));
        changes
    }

    #[test]
    fn changes_count_once_they_are_visible() {
        let changes = UserChanges::default();
        let observer = UserChangeObserver { changes: changes.clone(), next: None };
        for (database, collection) in [("admin", "system.users"), ("admin", "system.roles"), ("admin", ""), ("", "")] {
            let before = changes.count();
            let write = observer.begin_write(changes_of(database, collection));
            assert_eq!(changes.count(), before);
            drop(write);
            assert_eq!(changes.count(), before + 1, "{database}.{collection}");
        }
        let before = changes.count();
        drop(observer.begin_write(changes_of("shop", "system.users")));
        drop(observer.begin_write(changes_of("admin", "cars")));
        assert_eq!(changes.count(), before);
        observer.begin_write(changes_of("admin", "system.users")).outcome_unknown();
        assert_eq!(changes.count(), before + 1);
    }
}
