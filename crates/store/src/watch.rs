//! Changes, told to whoever keeps answers that were made from documents.
//!
//! A store announces a change before anybody can see it, and settles the announcement when everybody can. Between the two, a read
//! may see the old document or the new one; what is read then and what was read before is not to be kept, where the change matters to it.

use crate::Namespace;
use document::{Doc, DocBuf, Value, ValueBuf};
use std::fmt;
use std::time::Instant;

/// Documents of one announcement are told one by one up to these limits; beyond, just that the collection changes.
const DOCUMENTS_MAX: usize = 64;
const BYTES_MAX: usize = 1 << 20;

/// Who is told of changes. Called by any thread that writes.
pub trait Watch: Send + Sync {
    /// Whether it matters what a collection's documents were and become. If not, that something changes is all that need be told.
    fn wants_images(&self, namespace: &Namespace) -> bool;

    /// Takes note of changes before they can be seen. Dropping what is returned settles them: from then on every read sees them, or
    /// they have been undone.
    fn announce(&self, changes: Changes) -> Box<dyn Announced>;

    /// The definition of a table, of all of a database's or of any has changed, by the store's log:
    /// a namespace is read as in [`Changes::anything`]. Called before the change is announced.
    fn redefined(&self, namespace: &Namespace) {
        let _ = namespace;
    }

    /// The store's log is read from here on, with everything before it in what readers see. `log` tells it from others.
    fn log_begins(&self, log: &str, position: &[LogPlace]) {
        let _ = (log, position);
    }

    /// The log has been read up to here, its changes announced, and readers see them.
    fn log_read(&self, position: &[LogPlace]) {
        let _ = position;
    }
}

/// A transaction in a log: its number, which goes up within a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPlace {
    pub domain: u32,
    pub sequence: u64,
}

/// Who told of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Teller {
    /// Who makes them, before they can be seen.
    #[default]
    Writer,
    /// The store's log, after the fact: the transaction, if it has a number.
    Log(Option<LogPlace>),
}

/// Changes that are about to be seen.
pub trait Announced: Send {
    /// Nobody knows what has become of the changes: the store's server has not answered. They may be seen later.
    fn lose(self: Box<Self>);
}

/// Several who are told, one after the other.
pub struct All(pub Vec<std::sync::Arc<dyn Watch>>);

impl Watch for All {
    fn wants_images(&self, namespace: &Namespace) -> bool {
        self.0.iter().any(|watch| watch.wants_images(namespace))
    }

    fn announce(&self, changes: Changes) -> Box<dyn Announced> {
        Box::new(AllAnnounced(self.0.iter().map(|watch| watch.announce(changes.clone())).collect()))
    }

    fn redefined(&self, namespace: &Namespace) {
        self.0.iter().for_each(|watch| watch.redefined(namespace));
    }

    fn log_begins(&self, log: &str, position: &[LogPlace]) {
        self.0.iter().for_each(|watch| watch.log_begins(log, position));
    }

    fn log_read(&self, position: &[LogPlace]) {
        self.0.iter().for_each(|watch| watch.log_read(position));
    }
}

struct AllAnnounced(Vec<Box<dyn Announced>>);

impl Announced for AllAnnounced {
    fn lose(self: Box<Self>) {
        self.0.into_iter().for_each(Announced::lose);
    }
}

/// Changes that become visible together.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    list: Vec<(Namespace, Change)>,
    bytes: usize,
    seen_since: Option<Instant>,
    teller: Teller,
}

/// What happens to documents of a collection.
#[derive(Clone, Debug)]
pub enum Change {
    /// One document; `None` where it is not there (before an insert, after a delete).
    Document { before: Option<DocBuf>, after: Option<DocBuf> },
    /// The document with this `_id`, whatever it was and becomes.
    Id(ValueBuf),
    /// Documents, options, indexes: anything.
    Anything,
}

impl Changes {
    /// Notes a change of a document.
    pub fn document(&mut self, namespace: &Namespace, before: Option<Doc<'_>>, after: Option<Doc<'_>>) {
        let bytes = before.map_or(0, Doc::size) + after.map_or(0, Doc::size);
        if self.list.len() >= DOCUMENTS_MAX || self.bytes + bytes > BYTES_MAX {
            return self.anything(namespace);
        }
        self.bytes += bytes;
        let change = Change::Document { before: before.map(Doc::to_owned), after: after.map(Doc::to_owned) };
        self.push(namespace, change);
    }

    /// Notes a change of the document with this `_id`.
    pub fn id(&mut self, namespace: &Namespace, id: Value<'_>) {
        self.push(namespace, Change::Id(id.to_owned()));
    }

    /// Notes a change of which nothing more is known. A namespace without a collection stands for all of a database, one without a
    /// database for everything there is.
    pub fn anything(&mut self, namespace: &Namespace) {
        if !self.covers(namespace) {
            // It says all that the others say.
            self.list.retain(|(other, _)| other != namespace);
            self.list.push((namespace.clone(), Change::Anything));
        }
    }

    /// Whether it is noted that anything may happen to a collection, so that there is nothing to add.
    pub fn covers(&self, namespace: &Namespace) -> bool {
        self.list.iter().any(|(other, change)| other == namespace && matches!(change, Change::Anything))
    }

    fn push(&mut self, namespace: &Namespace, change: Change) {
        if !self.covers(namespace) {
            self.list.push((namespace.clone(), change));
        }
    }

    /// Says that every read sees the changes that began after `moment`; for changes that are told after the fact.
    pub fn set_seen_since(&mut self, moment: Instant) {
        self.seen_since = Some(moment);
    }

    /// Whether a read that began at `moment` is known to have seen the changes.
    pub fn are_seen_by(&self, moment: Instant) -> bool {
        self.seen_since.is_some_and(|since| moment > since)
    }

    /// Says that the store's log tells of the changes.
    pub fn set_told_by_log(&mut self, place: Option<LogPlace>) {
        self.teller = Teller::Log(place);
    }

    pub fn teller(&self) -> Teller {
        self.teller
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many bytes the images have.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Namespace, &Change)> {
        self.list.iter().map(|(namespace, change)| (namespace, change))
    }

    /// The same changes without images: documents by their `_id`.
    pub fn without_images(&self) -> Changes {
        let mut changes = Changes { seen_since: self.seen_since, teller: self.teller, ..Changes::default() };
        for (namespace, change) in self.iter() {
            match change {
                Change::Document { before, after } => {
                    let id = before.as_ref().or(after.as_ref()).and_then(|document| document.as_doc().get("_id"));
                    match id {
                        Some(id) => changes.id(namespace, id),
                        None => changes.anything(namespace),
                    }
                }
                Change::Id(id) => changes.id(namespace, id.as_value()),
                Change::Anything => changes.anything(namespace),
            }
        }
        changes
    }
}

/// A place for who is told of changes: nobody at first.
#[derive(Default)]
pub struct Watcher(std::sync::OnceLock<std::sync::Arc<dyn Watch>>);

impl Watcher {
    /// From now on `watch` is told. The first one stays.
    pub fn set(&self, watch: std::sync::Arc<dyn Watch>) {
        let _ = self.0.set(watch);
    }

    pub fn get(&self) -> Option<&dyn Watch> {
        self.0.get().map(|watch| &**watch)
    }

    /// Announces changes that `note` notes, if anybody is told. The announcement is settled when it is dropped.
    pub fn announce(&self, note: impl FnOnce(&mut Changes, &dyn Watch)) -> Option<Box<dyn Announced>> {
        let watch = self.get()?;
        let mut changes = Changes::default();
        note(&mut changes, watch);
        (!changes.is_empty()).then(|| watch.announce(changes))
    }

    /// Does what changes documents, announced. What `note` notes holds whether it succeeds or
    /// fails; when it is `lost`, or the future is dropped in the middle, nobody knows.
    pub async fn around<T, E>(
        &self,
        note: impl FnOnce(&mut Changes, &dyn Watch),
        lost: impl FnOnce(&E) -> bool,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut unfinished = Unfinished(self.announce(note));
        let outcome = work.await;
        if !outcome.as_ref().is_err_and(lost) {
            // The announcement is settled.
            drop(unfinished.0.take());
        }
        outcome
    }

    /// Announces that a collection changes, in whatever way.
    pub fn announce_anything(&self, namespace: &Namespace) -> Option<Box<dyn Announced>> {
        self.announce(|changes, _| changes.anything(namespace))
    }
}

/// Changes whose outcome is unknown unless they are taken out.
struct Unfinished(Option<Box<dyn Announced>>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(announced) = self.0.take() {
            announced.lose();
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.get().is_some() { "Watcher(somebody)" } else { "Watcher(nobody)" })
    }
}
