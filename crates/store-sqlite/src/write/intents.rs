//! The intents of transactions: the documents and unique keys that they have changed and not
//! committed.
//!
//! A transaction claims a document when it first changes it. The first wins: a claim of a document
//! that another transaction holds, or that has been changed since the snapshot, fails at once. A
//! write outside of transactions waits until the transaction is over; it is left to the worker that
//! sent it ([`super::on_worker`]), so the writer does not wait. Claims go through the writer's
//! queue, as all changes of documents do, so none can come between the check and the intent.

use super::entries::{IndexEntries, difference};
use super::queue::Scope;
use super::state::Writer;
use crate::catalog::{Collection, Index};
use crate::failure::{Attempt, Failure, SlowPart};
use crate::transaction::ending::Ending;
use ahash::{AHashMap, AHashSet};
use document::{Doc, DocBuf};
use index_keys::keys::{self, Key};
use rusqlite::OptionalExtension;
use std::sync::Arc;
use store::Namespace;
use store::transaction::{aborted, write_conflict};

/// The intents of all transactions.
#[derive(Default)]
pub struct Intents {
    /// By collection and key of the `_id`.
    documents: AHashMap<(i64, Key), Arc<Ending>>,
    /// By unique index and key.
    keys: AHashMap<(i64, Key), Arc<Ending>>,
    owners: Vec<Arc<Ending>>,
}

/// The claims of a statement of a transaction, in one collection.
pub struct Claims {
    namespace: Namespace,
    collection: i64,
    pub documents: Vec<ClaimedDocument>,
    keys: Vec<ClaimedKey>,
    /// By index: the bits of [`IndexEntries::arrays`].
    arrays: Vec<(i64, u64)>,
}

pub struct ClaimedDocument {
    /// The key of its `_id`.
    pub id: Key,
    /// Its number and content in the snapshot; `None` if it was not there.
    pub before: Option<(i64, DocBuf)>,
}

/// A new key of a unique index.
pub struct ClaimedKey {
    index: i64,
    key: Key,
    /// The document's number.
    seq: i64,
}

impl Claims {
    pub fn of(collection: &Collection) -> Claims {
        Claims {
            namespace: collection.namespace.clone(),
            collection: collection.id,
            documents: Vec::new(),
            keys: Vec::new(),
            arrays: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.keys.is_empty() && self.arrays.is_empty()
    }

    /// Adds the unique keys that a document gains.
    pub fn add_keys(&mut self, collection: &Collection, seq: i64, old: Option<&IndexEntries>, new: &IndexEntries) {
        let gained = old.map(|old| difference(new, old));
        let gained = gained.as_ref().unwrap_or(&new.keys);
        for (index, keys) in collection.indexes.iter().zip(gained).filter(|(index, _)| is_unique(index)) {
            self.keys.extend(keys.iter().map(|key| ClaimedKey { index: index.id, key: key.clone(), seq }));
        }
        let arrays = new.arrays.iter().filter_map(|(at, parts)| Some((collection.indexes.get(*at)?.id, *parts)));
        self.arrays.extend(arrays);
    }
}

fn is_unique(index: &Index) -> bool {
    index.spec.unique || index.prepare_unique
}

impl Intents {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Removes the intents of transactions that are over.
    fn purge(&mut self) {
        if self.owners.iter().any(|owner| owner.is_over()) {
            self.retain(|owner| !owner.is_over());
        }
    }

    /// Removes the intents of a transaction.
    pub fn remove(&mut self, owner: &Arc<Ending>) {
        self.retain(|other| !Arc::ptr_eq(other, owner));
    }

    fn retain(&mut self, keep: impl Fn(&Arc<Ending>) -> bool) {
        self.owners.retain(|owner| keep(owner));
        if self.owners.is_empty() {
            self.documents.clear();
            self.keys.clear();
        } else {
            self.documents.retain(|_, owner| keep(owner));
            self.keys.retain(|_, owner| keep(owner));
        }
    }

    fn holder_of_document(&self, collection: i64, id: &[u8]) -> Option<&Arc<Ending>> {
        self.documents.get(&(collection, Key::from_slice(id))).filter(|owner| !owner.is_over())
    }

    fn holder_of_key(&self, index: i64, key: &Key) -> Option<&Arc<Ending>> {
        self.keys.get(&(index, key.clone())).filter(|owner| !owner.is_over())
    }

    fn add(&mut self, owner: &Arc<Ending>, claims: Claims) {
        if !self.owners.iter().any(|other| Arc::ptr_eq(other, owner)) {
            self.owners.push(owner.clone());
        }
        let Claims { collection, documents, keys, .. } = claims;
        self.documents.extend(documents.into_iter().map(|document| ((collection, document.id), owner.clone())));
        self.keys.extend(keys.into_iter().map(|claimed| ((claimed.index, claimed.key), owner.clone())));
    }
}

impl Writer {
    /// Claims the documents and keys that a statement of a transaction changes. Fails with 112 if
    /// another writer was first, and with 251 if the transaction is over.
    pub fn claim(&mut self, owner: &Arc<Ending>, claims: Claims) -> Attempt<()> {
        if owner.is_over() {
            return Err(aborted().into());
        }
        self.intents.purge();
        let current = self.catalog.get(&claims.namespace).filter(|collection| collection.id == claims.collection);
        let Some(collection) = current.cloned() else { return Err(write_conflict().into()) };
        for document in &claims.documents {
            self.check_document(owner, &collection, document)?;
        }
        for claimed in &claims.keys {
            self.check_key(owner, &collection, claimed)?;
        }
        let arrays: Vec<_> = claims
            .arrays
            .iter()
            .filter_map(|(id, parts)| Some((collection.indexes.iter().find(|index| index.id == *id)?.clone(), *parts)))
            .filter(|(index, parts)| !index.multikey.has(*parts))
            .collect();
        if !arrays.is_empty() {
            // The plans of the transaction's own statements depend on it.
            self.transaction(|writer| arrays.iter().try_for_each(|(index, parts)| writer.set_multikey(index, *parts)))?;
        }
        self.intents.add(owner, claims);
        Ok(())
    }

    fn check_document(&self, owner: &Arc<Ending>, collection: &Collection, document: &ClaimedDocument) -> Attempt<()> {
        let holder = self.intents.holder_of_document(collection.id, &document.id);
        let is_free = holder.is_none_or(|holder| Arc::ptr_eq(holder, owner));
        let is_current = is_free
            && match &document.before {
                Some((seq, before)) => self.is_still(collection, *seq, before.as_doc())?,
                None => !self.connection.prepare_cached(&collection.sql.by_id)?.exists([document.id.as_slice()])?,
            };
        if is_current { Ok(()) } else { Err(write_conflict().into()) }
    }

    /// Checks that no other document has the key, except for one that the transaction itself has
    /// changed.
    fn check_key(&self, owner: &Arc<Ending>, collection: &Collection, claimed: &ClaimedKey) -> Attempt<()> {
        let holder = self.intents.holder_of_key(claimed.index, &claimed.key);
        if holder.is_some_and(|holder| !Arc::ptr_eq(holder, owner)) {
            return Err(write_conflict().into());
        }
        let Some(index) = collection.indexes.iter().find(|index| index.id == claimed.index) else { return Ok(()) };
        let sql = format!("SELECT seq FROM {} WHERE key = ?1 AND seq <> ?2", index.sql.table);
        let mut statement = self.connection.prepare_cached(&sql)?;
        let taken: Option<i64> =
            statement.query_row((claimed.key.as_slice(), claimed.seq), |row| row.get(0)).optional()?;
        let Some(other) = taken.map(|seq| self.read(collection, seq)).transpose()?.flatten() else { return Ok(()) };
        let mut id = Vec::new();
        keys::id_key(other.as_doc(), &collection.collation, &mut id);
        match self.intents.holder_of_document(collection.id, &id) {
            Some(holder) if Arc::ptr_eq(holder, owner) => Ok(()),
            _ => Err(write_conflict().into()),
        }
    }

    /// Returns the transaction that a change of a document must wait for. `entries`: its new ones.
    pub(super) fn holder(
        &mut self,
        collection: &Collection,
        document: Doc<'_>,
        entries: Option<&IndexEntries>,
    ) -> Option<Arc<Ending>> {
        self.intents.purge();
        if self.intents.is_empty() {
            return None;
        }
        keys::id_key(document, &collection.collation, &mut self.key);
        if let Some(holder) = self.intents.holder_of_document(collection.id, &self.key) {
            return Some(holder.clone());
        }
        let unique = entries.map(|entries| collection.indexes.iter().zip(&entries.keys));
        let mut keys = unique.into_iter().flatten().filter(|(index, _)| is_unique(index));
        keys.find_map(|(index, keys)| keys.iter().find_map(|key| self.intents.holder_of_key(index.id, key))).cloned()
    }

    /// Fails if a change of a document must wait for a transaction: the worker waits, and sends the
    /// change again.
    #[inline]
    pub(super) fn check_intents(
        &mut self,
        collection: &Collection,
        document: Doc<'_>,
        entries: Option<&IndexEntries>,
    ) -> Attempt<()> {
        if self.intents.is_empty() || self.holder(collection, document, entries).is_none() {
            return Ok(());
        }
        Err(Failure::TooSlow(SlowPart::Transaction))
    }

    /// Returns a transaction that has changed documents of these collections.
    pub fn holder_in(&mut self, scope: &Scope) -> Option<Arc<Ending>> {
        self.intents.purge();
        let of_scope = self.catalog.collections().filter(|collection| scope.contains(&collection.namespace));
        let ids: AHashSet<i64> = of_scope.map(|collection| collection.id).collect();
        let mut documents = self.intents.documents.iter();
        documents.find(|((collection, _), _)| ids.contains(collection)).map(|(_, owner)| owner.clone())
    }

    /// Returns whether a transaction has changed documents of the collection.
    pub(super) fn has_intents(&mut self, collection: i64) -> bool {
        self.intents.purge();
        self.intents.documents.keys().any(|(id, _)| *id == collection)
    }
}
