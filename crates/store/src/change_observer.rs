//! Changes of documents, reported to the caches that hold replies made from them.
//!
//! A store reports a write before any reader can see its effect ([`ChangeObserver::begin_write`]),
//! and finishes it once every reader sees it. Between the two, a read may see the old document or
//! the new one. A reply computed in that time, or before it, must not be cached if the change
//! affects it.

use crate::Namespace;
use document::{Doc, DocBuf, Value, ValueBuf};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Limits of the images that one write reports; beyond them it reports the collection as changed.
const DOCUMENTS_MAX: usize = 64;
const BYTES_MAX: usize = 1 << 20;

/// Observer of document changes, implemented by the caches. Called on the thread that performs the
/// write.
pub trait ChangeObserver: Send + Sync {
    /// Returns whether the observer needs the images of this collection's documents before and
    /// after a change. Without, the store may report [`Change::Unspecified`].
    fn wants_images(&self, namespace: &Namespace) -> bool;

    /// Takes note of changes before any reader can see them. Dropping the returned write finishes
    /// it: from then on every read sees the changes, or they have been undone.
    fn begin_write(&self, changes: Changes) -> Box<dyn InFlightWrite>;

    /// Called when the store's log shows that the definition of a table has changed, before the
    /// change itself is reported. The namespace may cover a database or everything, as in
    /// [`Changes::add_unspecified`].
    fn definition_changed(&self, namespace: &Namespace) {
        let _ = namespace;
    }

    /// Called when following the store's log `log` starts. Readers see everything before
    /// `position`.
    fn log_started(&self, log: &str, position: &[LogPosition]) {
        let _ = (log, position);
    }

    /// Called when the log has been read up to `position`: its changes are reported, and readers
    /// see them.
    fn log_advanced(&self, position: &[LogPosition]) {
        let _ = position;
    }
}

/// A transaction's position in a log: a number that rises within its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    pub domain: u32,
    pub sequence: u64,
}

/// The source of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeOrigin {
    /// The writer, before the changes can be seen.
    #[default]
    Writer,
    /// The store's log, after the changes could be seen; with the transaction, if it has a number.
    Log(Option<LogPosition>),
}

/// A write that has been reported and not yet finished. Dropping it finishes it.
pub trait InFlightWrite: Send {
    /// Ends the report when the write's outcome is unknown because the store's server has not
    /// answered. The changes may still become visible later.
    fn outcome_unknown(self: Box<Self>);
}

/// Several observers, called one after the other.
pub struct ChangeObservers(pub Vec<Arc<dyn ChangeObserver>>);

impl ChangeObserver for ChangeObservers {
    fn wants_images(&self, namespace: &Namespace) -> bool {
        self.0.iter().any(|observer| observer.wants_images(namespace))
    }

    fn begin_write(&self, changes: Changes) -> Box<dyn InFlightWrite> {
        Box::new(InFlightWrites(self.0.iter().map(|observer| observer.begin_write(changes.clone())).collect()))
    }

    fn definition_changed(&self, namespace: &Namespace) {
        self.0.iter().for_each(|observer| observer.definition_changed(namespace));
    }

    fn log_started(&self, log: &str, position: &[LogPosition]) {
        self.0.iter().for_each(|observer| observer.log_started(log, position));
    }

    fn log_advanced(&self, position: &[LogPosition]) {
        self.0.iter().for_each(|observer| observer.log_advanced(position));
    }
}

struct InFlightWrites(Vec<Box<dyn InFlightWrite>>);

impl InFlightWrite for InFlightWrites {
    fn outcome_unknown(self: Box<Self>) {
        self.0.into_iter().for_each(InFlightWrite::outcome_unknown);
    }
}

/// Changes that become visible together.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    list: Vec<(Namespace, Change)>,
    bytes: usize,
    visible_since: Option<Instant>,
    origin: ChangeOrigin,
}

/// A change of documents of a collection.
#[derive(Clone, Debug)]
pub enum Change {
    /// A change of one document; `None` where it does not exist (before an insert, after a delete).
    Document { before: Option<DocBuf>, after: Option<DocBuf> },
    /// A change of the document with this `_id`, with unknown content before and after.
    Id(ValueBuf),
    /// Any change of documents, options or indexes.
    Unspecified,
}

impl Changes {
    /// Adds a change of one document with its images.
    pub fn add_document(&mut self, namespace: &Namespace, before: Option<Doc<'_>>, after: Option<Doc<'_>>) {
        let bytes = before.map_or(0, Doc::size) + after.map_or(0, Doc::size);
        if self.list.len() >= DOCUMENTS_MAX || self.bytes + bytes > BYTES_MAX {
            return self.add_unspecified(namespace);
        }
        self.bytes += bytes;
        let change = Change::Document { before: before.map(Doc::to_owned), after: after.map(Doc::to_owned) };
        self.push(namespace, change);
    }

    /// Adds a change of the document with this `_id`.
    pub fn add_id(&mut self, namespace: &Namespace, id: Value<'_>) {
        self.push(namespace, Change::Id(id.to_owned()));
    }

    /// Adds a change about which nothing more is known. A namespace without a collection covers the
    /// whole database, one without a database covers everything.
    pub fn add_unspecified(&mut self, namespace: &Namespace) {
        if !self.covers(namespace) {
            // It includes every other change of the namespace.
            self.list.retain(|(other, _)| other != namespace);
            self.list.push((namespace.clone(), Change::Unspecified));
        }
    }

    /// Returns whether an unspecified change of this namespace was added, so that there is nothing
    /// to add.
    pub fn covers(&self, namespace: &Namespace) -> bool {
        self.list.iter().any(|(other, change)| other == namespace && matches!(change, Change::Unspecified))
    }

    fn push(&mut self, namespace: &Namespace, change: Change) {
        if !self.covers(namespace) {
            self.list.push((namespace.clone(), change));
        }
    }

    /// Declares that every read that began after `moment` sees the changes; for changes reported
    /// from a log.
    pub fn set_visible_since(&mut self, moment: Instant) {
        self.visible_since = Some(moment);
    }

    /// Returns whether a read that began at `moment` is known to have seen the changes.
    pub fn are_visible_to(&self, moment: Instant) -> bool {
        self.visible_since.is_some_and(|since| moment > since)
    }

    /// Declares that the changes were read from the store's log.
    pub fn set_read_from_log(&mut self, position: Option<LogPosition>) {
        self.origin = ChangeOrigin::Log(position);
    }

    pub fn origin(&self) -> ChangeOrigin {
        self.origin
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the bytes of all images.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Namespace, &Change)> {
        self.list.iter().map(|(namespace, change)| (namespace, change))
    }

    /// Returns the same changes with documents reduced to their `_id`.
    pub fn without_images(&self) -> Changes {
        let mut changes = Changes { visible_since: self.visible_since, origin: self.origin, ..Changes::default() };
        for (namespace, change) in self.iter() {
            match change {
                Change::Document { before, after } => {
                    let id = before.as_ref().or(after.as_ref()).and_then(|document| document.as_doc().get("_id"));
                    match id {
                        Some(id) => changes.add_id(namespace, id),
                        None => changes.add_unspecified(namespace),
                    }
                }
                Change::Id(id) => changes.add_id(namespace, id.as_value()),
                Change::Unspecified => changes.add_unspecified(namespace),
            }
        }
        changes
    }
}

/// The slot of a store for its observer; empty at first.
#[derive(Default)]
pub struct ObserverSlot(OnceLock<Arc<dyn ChangeObserver>>);

impl ObserverSlot {
    /// Sets the observer. Only the first call has an effect.
    pub fn set(&self, observer: Arc<dyn ChangeObserver>) {
        let _ = self.0.set(observer);
    }

    pub fn get(&self) -> Option<&dyn ChangeObserver> {
        self.0.get().map(|observer| &**observer)
    }

    /// Reports the changes that `describe` adds, if there is an observer. Dropping the returned
    /// write finishes it.
    pub fn begin_write(
        &self,
        describe: impl FnOnce(&mut Changes, &dyn ChangeObserver),
    ) -> Option<Box<dyn InFlightWrite>> {
        let observer = self.get()?;
        let mut changes = Changes::default();
        describe(&mut changes, observer);
        (!changes.is_empty()).then(|| observer.begin_write(changes))
    }

    /// Performs a write and reports its changes, which `describe` adds. The report holds whether
    /// the write succeeds or fails. If the error `is_lost`, or the future is dropped before its
    /// end, the outcome is unknown.
    pub async fn observe_write<T, E>(
        &self,
        describe: impl FnOnce(&mut Changes, &dyn ChangeObserver),
        is_lost: impl FnOnce(&E) -> bool,
        write: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut in_flight = UnknownUnlessTaken(self.begin_write(describe));
        let outcome = write.await;
        if !outcome.as_ref().is_err_and(is_lost) {
            // Dropping the write finishes it.
            drop(in_flight.0.take());
        }
        outcome
    }

    /// Reports an unspecified change of a collection.
    pub fn begin_unspecified_write(&self, namespace: &Namespace) -> Option<Box<dyn InFlightWrite>> {
        self.begin_write(|changes, _| changes.add_unspecified(namespace))
    }
}

/// A write whose outcome is unknown unless it is taken out before the drop.
struct UnknownUnlessTaken(Option<Box<dyn InFlightWrite>>);

impl Drop for UnknownUnlessTaken {
    fn drop(&mut self) {
        if let Some(write) = self.0.take() {
            write.outcome_unknown();
        }
    }
}

impl fmt::Debug for ObserverSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.get().is_some() { "ObserverSlot(set)" } else { "ObserverSlot(empty)" })
    }
}
