//! A worker's half of the store while it executes a statement of a transaction.

use super::log::LogEntry;
use super::overlay::{self, Overlay};
use super::{Pinned, Snapshot, SqliteTransaction};
use crate::catalog::{Catalog, Collection, Index, index_spec, multikey::Multikey};
use crate::failure::Attempt;
use crate::read::id_lookup::ReadConnection;
use crate::transaction::log::{CreatedCollection, FIRST_OWN_NUMBER, Log};
use crate::worker::SqliteStore;
use crate::write::changes::{Applied, Change, Changed, ConditionalChanges};
use crate::write::documents::{duplicate, duplicate_id};
use crate::write::entries::IndexEntries;
use crate::write::intents::{ClaimedDocument, Claims};
use document::{Doc, DocBuf};
use error::{Code, Error, Result};
use index_keys::keys::{self, Key};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use store::catalog::random_uuid;
use store::{CreateIndexesOutcome, IndexKind, IndexSpec, Namespace, index_rules};

/// The transaction that a store reads and writes within, for one statement. Dropping it puts the
/// transaction's state back.
pub struct Inside {
    pub transaction: Arc<dyn store::Transaction>,
    /// `None` only while it is dropped.
    reading: Option<Rc<ReadConnection>>,
    pinned: Option<Pinned>,
    pub catalog: RefCell<Arc<Catalog>>,
    log: RefCell<Log>,
    /// Collections that this statement has shadowed.
    shadowed: RefCell<Vec<Arc<Collection>>>,
}

impl Inside {
    /// Takes the state of a transaction. Fails with 251 if it is over.
    pub fn begin(transaction: &Arc<dyn store::Transaction>) -> Result<Inside> {
        let Snapshot { mut connection, catalog, log } = of(&**transaction)?.take()?;
        let reading = connection.take().map(|connection| Rc::new(ReadConnection::on(connection)));
        Ok(Inside {
            transaction: transaction.clone(),
            reading,
            pinned: Some(connection),
            catalog: RefCell::new(catalog),
            log: RefCell::new(log),
            shadowed: RefCell::default(),
        })
    }

    /// Returns the connection that is pinned to the snapshot.
    pub fn reading(&self) -> Result<Rc<ReadConnection>> {
        self.reading.clone().ok_or_else(|| Error::internal("a transaction without a connection"))
    }

    /// Fails with 251 if the transaction is over.
    fn check(&self) -> Result<()> {
        match of(&*self.transaction)?.ending.is_over() {
            true => Err(store::transaction::aborted()),
            false => Ok(()),
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let (Some(reading), Some(mut pinned)) = (self.reading.take(), self.pinned.take()) else { return };
        let Ok(transaction) = of(&*self.transaction) else { return };
        match Rc::try_unwrap(reading) {
            Ok(reading) => {
                pinned.put_back(reading.into_owner());
                pinned.shadows.add(self.shadowed.take());
                let (catalog, log) = (self.catalog.borrow().clone(), self.log.take());
                transaction.put_back(Snapshot { connection: pinned, catalog, log });
            }
            // A read is suspended for ever, which no caller does; its snapshot cannot be used.
            Err(_) => self.transaction.abort(),
        }
    }
}

/// Returns this store's transaction behind a handle.
pub fn of(transaction: &dyn store::Transaction) -> Result<&SqliteTransaction> {
    let transaction = transaction.as_any().downcast_ref();
    transaction.ok_or_else(|| Error::internal("a transaction of another store"))
}

impl SqliteStore {
    /// Applies changes to the documents: those of the transaction, or else the writer's.
    pub async fn apply(&self, changes: ConditionalChanges) -> Result<Applied> {
        match &self.inside {
            None => self.writer.apply(changes).await,
            Some(inside) => self.apply_inside(inside, changes).await,
        }
    }

    /// Applies changes to the transaction. They become visible to its own statements, and then are
    /// claimed: if that fails, the transaction must be aborted.
    async fn apply_inside(&self, inside: &Inside, changes: ConditionalChanges) -> Result<Applied> {
        let ConditionalChanges { namespace, changes, record, .. } = changes;
        inside.check()?;
        if changes.is_empty() {
            return Ok(Applied::Outcomes(Vec::new(), Vec::new(), record));
        }
        let collection = match self.find(&namespace) {
            Some(collection) => collection,
            None => match self.create_inside(inside, &namespace, DocBuf::new()) {
                Err(error) if error.code() == Code::COMMAND_NOT_SUPPORTED_ON_VIEW => {
                    return Ok(Applied::Outcomes(vec![Changed::Refused(error)], changes, record));
                }
                created => created?,
            },
        };
        if collection.cap().is_some() {
            let deletes = matches!(changes.first(), Some(Change::Delete { .. } | Change::DeleteAny { .. }));
            let refused = Changed::Refused(store::transaction::capped(&namespace, deletes));
            return Ok(Applied::Outcomes(vec![refused], changes, record));
        }
        let collection = self.shadow(inside, collection)?;
        let mut claims = Claims::of(&collection);
        let mut changed = Vec::with_capacity(changes.len());
        for change in &changes {
            match self.change_inside(inside, &collection, change, &mut claims)? {
                Ok(()) => changed.push(Changed::Done),
                Err(error) => {
                    changed.push(Changed::Refused(error));
                    break;
                }
            }
        }
        if !claims.is_empty() && inside.log.borrow_mut().created(&namespace).is_none() {
            let ending = of(&*inside.transaction)?.ending.clone();
            self.writer.run(move |writer| writer.claim(&ending, claims)).await?;
        }
        Ok(Applied::Outcomes(changed, changes, record))
    }

    /// Shadows a collection's tables, if that has not been done. Returns the collection with
    /// statements that read them well.
    fn shadow(&self, inside: &Inside, collection: Arc<Collection>) -> Result<Arc<Collection>> {
        let mut log = inside.log.borrow_mut();
        if log.created(&collection.namespace).is_some() || !log.shadowed.insert(collection.id) {
            return Ok(collection);
        }
        let reading = inside.reading()?;
        Overlay::new(reading.connection(), &collection, false).shadow()?;
        let shadowed = Arc::new(overlay::shadowed(&collection)?);
        Arc::make_mut(&mut inside.catalog.borrow_mut()).put(shadowed.clone());
        inside.shadowed.borrow_mut().push(collection);
        Ok(shadowed)
    }

    /// Changes a document of the transaction, or refuses and changes nothing.
    fn change_inside(
        &self,
        inside: &Inside,
        collection: &Arc<Collection>,
        change: &Change,
        claims: &mut Claims,
    ) -> Result<Result<()>> {
        let reading = inside.reading()?;
        let is_created = inside.log.borrow_mut().created(&collection.namespace).is_some();
        let overlay = Overlay::new(reading.connection(), collection, is_created);
        let difference = match change {
            Change::Replace { difference, .. } => difference.clone(),
            _ => None,
        };
        let (seq, old, new) = match change {
            Change::Insert { document, .. } => (inside.log.borrow_mut().new_number(), None, Some(document)),
            Change::Replace { seq, old, new, .. } => (*seq, Some(old.clone()), Some(new)),
            Change::Delete { seq, old, .. } => (*seq, Some(old.clone()), None),
            Change::DeleteAny { seq } => match stored(&reading, collection, *seq)? {
                Some(old) => (*seq, Some(old), None),
                None => return Ok(Ok(())),
            },
        };
        let entries = |document: Doc<'_>| IndexEntries::of(collection, document);
        let old_entries = old.as_ref().map(|old| entries(old.as_doc())).transpose()?;
        let new_entries = match new.map(|new| entries(new.as_doc())).transpose() {
            Ok(entries) => entries,
            Err(error) => return Ok(Err(error)),
        };
        let mut id = Vec::new();
        let some = new.or(old.as_ref()).map_or(Doc::EMPTY, DocBuf::as_doc);
        keys::id_key(some, &collection.collation, &mut id);
        if let (Some(new), Some(new_entries)) = (new, &new_entries) {
            if old.is_none() && overlay.has_id(&id)? {
                return Ok(Err(duplicate_id(collection, new.as_doc())));
            }
            if let Some((index, key)) = overlay.duplicate(seq, new_entries)? {
                return Ok(Err(duplicate(collection, index, new.as_doc(), key)));
            }
        }
        let id = Key::from_slice(&id);
        let mut log = inside.log.borrow_mut();
        if log.claimed.insert((collection.id, id.clone())) {
            let before = old.clone().filter(|_| seq < FIRST_OWN_NUMBER).map(|old| (seq, old));
            claims.documents.push(ClaimedDocument { id, before });
        }
        if let Some(entries) = &new_entries {
            claims.add_keys(collection, seq, old_entries.as_ref(), entries);
            if is_created {
                note_arrays(collection, entries);
            }
        }
        match (new, &new_entries) {
            (Some(new), Some(new_entries)) => overlay.put(seq, new.as_doc(), old_entries.as_ref(), new_entries)?,
            _ => overlay.remove(seq, old_entries.as_ref())?,
        }
        log.add(LogEntry {
            namespace: collection.namespace.clone(),
            collection: collection.id,
            seq,
            old,
            new: new.cloned(),
            difference,
        })?;
        Ok(Ok(()))
    }

    /// Creates a collection within the transaction. Fails with 48 if it exists.
    pub fn create_inside(&self, inside: &Inside, namespace: &Namespace, options: DocBuf) -> Result<Arc<Collection>> {
        inside.check()?;
        let reading = inside.reading()?;
        let catalog = inside.catalog.borrow().clone();
        if catalog.get(namespace).is_some() {
            let message = format!("Collection {namespace} already exists.");
            return Err(Error::new(Code::NAMESPACE_EXISTS, message));
        }
        if crate::catalog::view_names::is_view(reading.connection(), &catalog, namespace)? {
            return Err(store::views::not_a_collection(namespace));
        }
        let mut log = inside.log.borrow_mut();
        let collection = Collection::new(log.new_id(), namespace.clone(), random_uuid(), options.clone())?;
        Overlay::new(reading.connection(), &collection, true).create()?;
        let behind = log.entries.len();
        log.created.push(CreatedCollection { namespace: namespace.clone(), options, indexes: Vec::new(), behind });
        let collection = Arc::new(collection);
        Arc::make_mut(&mut inside.catalog.borrow_mut()).put(collection.clone());
        Ok(collection)
    }

    /// Creates indexes on a collection that the transaction has created, or creates. Fails with 263
    /// for another collection that lacks one of them.
    pub fn create_indexes_inside(
        &self,
        inside: &Inside,
        namespace: &Namespace,
        specs: Vec<IndexSpec>,
    ) -> Result<CreateIndexesOutcome> {
        let found = self.find(namespace);
        let existing = found.as_ref().map_or_else(|| vec![crate::catalog::id_index()], |found| found.index_specs());
        for spec in &specs {
            index_rules::check_key(spec)?;
            IndexKind::of(spec)?;
        }
        let wanted = index_rules::new_indexes(specs, &existing)?;
        let outcome = CreateIndexesOutcome {
            indexes_before: existing.len(),
            indexes_after: existing.len() + wanted.len(),
            created_collection: found.is_none(),
        };
        let refuse = |what: &str| {
            let message =
                format!("Cannot create new indexes on {what} collection {namespace} in a multi-document transaction.");
            Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message))
        };
        let collection = match found {
            None => self.create_inside(inside, namespace, DocBuf::new())?,
            Some(found) if wanted.is_empty() => found,
            Some(found) => found,
        };
        let mut log = inside.log.borrow_mut();
        let has_documents = log.entries.iter().any(|entry| entry.collection == collection.id);
        let indexes: Vec<(i64, IndexSpec)> = wanted.into_iter().map(|spec| (log.new_id(), spec)).collect();
        if indexes.is_empty() {
            return Ok(outcome);
        }
        let Some(created) = log.created(namespace) else { return refuse("existing") };
        if has_documents {
            return refuse("non-empty");
        }
        let reading = inside.reading()?;
        let mut changed = Collection::clone(&collection);
        for (id, spec) in indexes {
            created.indexes.push(spec.clone());
            let index = Index::new(id, collection.id, index_spec(spec.spec), Multikey::none())?;
            Overlay::new(reading.connection(), &collection, true).create_index(&index)?;
            changed.indexes.push(Arc::new(index));
        }
        Arc::make_mut(&mut inside.catalog.borrow_mut()).put(Arc::new(changed));
        Ok(outcome)
    }
}

/// Marks the indexes of a collection that the transaction has created. The writer marks others.
fn note_arrays(collection: &Collection, entries: &IndexEntries) {
    for (at, parts) in &entries.arrays {
        if let Some(index) = collection.indexes.get(*at) {
            index.multikey.note(*parts);
        }
    }
}

/// Reads a document of the transaction by its number.
fn stored(reading: &ReadConnection, collection: &Collection, seq: i64) -> Attempt<Option<DocBuf>> {
    let mut statement = reading.connection().prepare_cached(&collection.sql.by_seq)?;
    let mut rows = statement.query([seq])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(DocBuf::from_vec(row.get(0)?))
}
