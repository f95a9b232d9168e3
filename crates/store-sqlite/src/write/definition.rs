//! Creating, dropping and renaming collections and indexes.
//!
//! Each of these runs in a transaction: the catalog's tables, the tables of documents and keys, and
//! the snapshot that workers see change together or not at all.

use super::index_build;
use super::state::Writer;
use crate::catalog::multikey::Multikey;
use crate::catalog::view_names;
use crate::catalog::{Collection, Index, index_spec};
use crate::failure::{Attempt, Failure};
use document::DocBuf;
use error::{Code, Error, Result};
use std::sync::Arc;
use store::catalog::random_uuid;
use store::index_rules;
use store::index_selection;
use store::{CreateIndexesOutcome, IndexKind, IndexSelection, IndexSpec, Namespace, Progress};

impl Writer {
    /// Runs a change to the catalog in a transaction, after applying all deferred entries.
    pub fn change_catalog<T>(&mut self, change: impl FnOnce(&mut Self) -> Attempt<T>) -> Attempt<T> {
        self.apply_all_deferred_early()?;
        self.transaction(change)
    }

    /// Returns the collection, and creates it if it does not exist.
    pub(super) fn ensure_collection(&mut self, namespace: &Namespace) -> Attempt<Arc<Collection>> {
        match self.catalog.get(namespace) {
            Some(collection) => Ok(collection.clone()),
            None => self.make_collection(namespace, DocBuf::new()),
        }
    }

    /// Fails with 48 if the collection exists.
    pub fn create_collection(&mut self, namespace: &Namespace, options: DocBuf) -> Attempt<()> {
        if self.catalog.get(namespace).is_some() {
            let message = format!("Collection {namespace} already exists.");
            return Err(Error::new(Code::NAMESPACE_EXISTS, message).into());
        }
        self.make_collection(namespace, options)?;
        Ok(())
    }

    /// Fails with 166 if the name is a view's.
    pub(super) fn refuse_view(&self, namespace: &Namespace) -> Attempt<()> {
        match view_names::is_view(&self.connection, &self.catalog, namespace)? {
            true => Err(store::views::not_a_collection(namespace).into()),
            false => Ok(()),
        }
    }

    fn make_collection(&mut self, namespace: &Namespace, options: DocBuf) -> Attempt<Arc<Collection>> {
        self.refuse_view(namespace)?;
        self.check_case(&namespace.database)?;
        let uuid = random_uuid();
        self.connection
            .prepare_cached("INSERT INTO collections(database, name, uuid, options) VALUES(?1, ?2, ?3, ?4)")?
            .execute((&*namespace.database, &*namespace.collection, &uuid, options.as_bytes()))?;
        let id = self.connection.last_insert_rowid();
        self.connection
            .prepare_cached("INSERT INTO counters(collection, documents, data_bytes) VALUES(?1, 0, 0)")?
            .execute([id])?;
        let collection = Collection::new(id, namespace.clone(), uuid, options)?;
        self.connection.execute_batch(&collection.sql.create())?;
        self.log_create(&collection);
        Ok(self.put(collection))
    }

    /// Fails with 13297 if another database's name differs only in case.
    fn check_case(&self, database: &str) -> Result<()> {
        let Some(other) = self.catalog.database_in_other_case(database) else { return Ok(()) };
        let message =
            format!("db already exists with different case already have: [{other}] trying to create [{database}]");
        Err(Error::new(Code::DATABASE_DIFFER_CASE, message))
    }

    pub(super) fn put(&mut self, collection: Collection) -> Arc<Collection> {
        let collection = Arc::new(collection);
        self.report_unspecified_change(&collection.namespace);
        Arc::make_mut(&mut self.catalog).put(collection.clone());
        collection
    }

    /// Replaces a collection's options. Fails with 26 if it does not exist.
    pub fn modify_collection(&mut self, namespace: &Namespace, options: DocBuf) -> Attempt<()> {
        let collection = self.existing(namespace)?;
        self.connection
            .prepare_cached("UPDATE collections SET options = ?2 WHERE id = ?1")?
            .execute((collection.id, options.as_bytes()))?;
        let changed = Collection::clone(&collection).with_options(options)?;
        self.log_options(&collection, &changed);
        self.put(changed);
        Ok(())
    }

    /// Fails with 26 if the collection does not exist.
    fn existing(&self, namespace: &Namespace) -> Result<Arc<Collection>> {
        let missing = || Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns not found {namespace}"));
        self.catalog.get(namespace).cloned().ok_or_else(missing)
    }

    /// Drops a collection. Returns how many indexes it had.
    pub fn drop_collection(&mut self, namespace: &Namespace) -> Attempt<Option<usize>> {
        let Some(collection) = self.catalog.get(namespace).cloned() else { return Ok(None) };
        self.refuse_log(namespace)?;
        self.log_drop(&collection);
        self.remove_collection(collection).map(Some)
    }

    /// Drops a collection without logging it. Returns how many indexes it had.
    fn remove_collection(&mut self, collection: Arc<Collection>) -> Attempt<usize> {
        let namespace = &collection.namespace;
        self.report_unspecified_change(namespace);
        Arc::make_mut(&mut self.catalog).remove(namespace);
        for sql in [
            "DELETE FROM collections WHERE id = ?1",
            "DELETE FROM counters WHERE collection = ?1",
            "DELETE FROM indexes WHERE collection = ?1",
        ] {
            self.connection.prepare_cached(sql)?.execute([collection.id])?;
        }
        let rows = self.documents_of(&collection);
        for index in &collection.indexes {
            self.drop_table(&index.sql.table, rows)?;
        }
        self.drop_table(&collection.sql.table, rows)?;
        // Earlier changes of the transaction to its counters no longer matter.
        self.deltas.remove(&collection.id);
        self.next_seq.remove(&collection.id);
        let indexes = collection.indexes.len() + 1;
        self.effects.dropped.push(collection);
        Ok(indexes)
    }

    pub(super) fn documents_of(&self, collection: &Collection) -> u64 {
        let pending = self.deltas.get(&collection.id).map_or(0, |delta| delta.documents);
        collection.documents().saturating_add_signed(pending)
    }

    /// Drops a database. Returns whether it existed.
    pub fn drop_database(&mut self, database: &str) -> Attempt<bool> {
        let collections = self.catalog.of_database(database);
        for collection in &collections {
            self.drop_collection(&collection.namespace)?;
        }
        if !collections.is_empty() {
            self.log_drop_database(database);
        }
        Ok(!collections.is_empty())
    }

    /// Renames a collection. Fails with 20 (to itself), 26 (no source) or 48 (the target exists and
    /// must not be dropped).
    pub fn rename_collection(&mut self, from: &Namespace, to: &Namespace, drop_target: bool) -> Attempt<()> {
        let refuse = |code, message: String| Err(Failure::Refused(Error::new(code, message)));
        let Some(collection) = self.catalog.get(from).cloned() else {
            return refuse(Code::NAMESPACE_NOT_FOUND, format!("Source collection {from} does not exist"));
        };
        if from == to {
            return refuse(Code::ILLEGAL_OPERATION, "Can't rename a collection to itself".into());
        }
        self.refuse_log(from)?;
        self.refuse_log(to)?;
        let target = self.catalog.get(to).cloned();
        self.log_rename(&collection, to, target.as_deref());
        if let Some(target) = target {
            if !drop_target {
                return refuse(Code::NAMESPACE_EXISTS, "target namespace exists".into());
            }
            self.remove_collection(target)?;
        }
        self.check_case(&to.database)?;
        self.connection.prepare_cached("UPDATE collections SET database = ?2, name = ?3 WHERE id = ?1")?.execute((
            collection.id,
            &*to.database,
            &*to.collection,
        ))?;
        self.report_unspecified_change(from);
        Arc::make_mut(&mut self.catalog).remove(from);
        self.put(Collection { namespace: to.clone(), ..Collection::clone(&collection) });
        Ok(())
    }

    /// Creates indexes: all of them or, after an error or a request to stop, none.
    pub fn create_indexes(
        &mut self,
        namespace: &Namespace,
        specs: Vec<IndexSpec>,
        progress: Arc<Progress>,
    ) -> Attempt<CreateIndexesOutcome> {
        // Another collection's build may be waiting for this one.
        let outer = std::mem::replace(&mut self.progress, progress);
        let outcome = self.make_indexes(namespace, specs);
        self.progress = outer;
        outcome
    }

    fn make_indexes(&mut self, namespace: &Namespace, specs: Vec<IndexSpec>) -> Attempt<CreateIndexesOutcome> {
        let created_collection = self.catalog.get(namespace).is_none();
        let existing =
            self.catalog.get(namespace).map_or_else(|| vec![crate::catalog::id_index()], |it| it.index_specs());
        for spec in &specs {
            index_rules::check_key(spec)?;
            IndexKind::of(spec)?;
        }
        let holds_documents = self.catalog.get(namespace).is_some_and(|collection| collection.documents() > 0);
        let wanted = index_rules::new_indexes(specs, &existing)
            .map_err(|error| if holds_documents { index_rules::requested_twice(error) } else { error })?;
        self.refuse_log(namespace)?;
        let indexes_before = existing.len();
        let indexes_after = indexes_before + wanted.len();
        self.ensure_collection(namespace)?;
        let before = self.ensure_collection(namespace)?;
        // While a large index is built, other sessions run.
        let large = index_build::is_large(&before) && !self.queue.is_nested();
        let mut built = Vec::new();
        for spec in wanted {
            let collection = self.ensure_collection(namespace)?;
            if let Err(failure) = self.build_index(&collection, spec, large, &mut built) {
                if large {
                    self.abandon(&before, &built)?;
                }
                return Err(match failure {
                    Failure::Refused(error) => {
                        Failure::Refused(index_rules::build_failed(&collection.namespace, collection.uuid, error))
                    }
                    failure => failure,
                });
            }
        }
        self.log_index_builds(&before, &built, holds_documents);
        Ok(CreateIndexesOutcome { indexes_before, indexes_after, created_collection })
    }

    fn build_index(
        &mut self,
        collection: &Arc<Collection>,
        spec: IndexSpec,
        large: bool,
        built: &mut Vec<Arc<Index>>,
    ) -> Attempt<()> {
        // Allocates an id; the row follows in the last transaction.
        let insert = "INSERT INTO indexes(id, collection, spec, multikey) VALUES(?1, ?2, ?3, ?4)";
        self.connection.prepare_cached(insert)?.execute((None::<i64>, collection.id, spec.spec.as_bytes(), 0))?;
        let id = self.connection.last_insert_rowid();
        self.connection.prepare_cached("DELETE FROM indexes WHERE id = ?1")?.execute([id])?;
        let index = Index::new(id, collection.id, index_spec(spec.spec), Multikey::none())?;
        let index = Arc::new(Index { building: true, ..index });
        built.push(index.clone());
        self.connection.execute_batch(&index.sql.create(index.spec.unique))?;
        match large {
            true => self.fill_large_index(collection, &index)?,
            false => self.index_documents(collection, &index)?,
        }
        let (spec, multikey) = (index.spec.spec.as_bytes(), index.multikey.to_stored());
        self.connection.prepare_cached(insert)?.execute((id, collection.id, spec, multikey))?;
        let mut done = Index::new(id, collection.id, index.spec.clone(), Multikey::none())?;
        done.multikey = index.multikey.clone();
        let mut changed = Collection::clone(collection);
        changed.indexes.push(Arc::new(done));
        self.put(changed);
        Ok(())
    }

    /// Replaces an index's specification; its entries stay. Fails with 26 or 27.
    pub fn modify_index(&mut self, namespace: &Namespace, spec: IndexSpec) -> Attempt<()> {
        let collection = self.existing(namespace)?;
        let mut changed = Collection::clone(&collection);
        let Some(index) = changed.indexes.iter_mut().find(|index| index.spec.name == spec.name) else {
            let message = format!("cannot find index {} for ns {namespace}", spec.name);
            return Err(Error::new(Code::INDEX_NOT_FOUND, message).into());
        };
        self.connection
            .prepare_cached("UPDATE indexes SET spec = ?2 WHERE id = ?1")?
            .execute((index.id, spec.spec.as_bytes()))?;
        let mut other = Index::new(index.id, collection.id, index_spec(spec.spec), Multikey::none())?;
        (other.multikey, other.deferred) = (index.multikey.clone(), index.deferred.clone());
        other.incomplete = index.incomplete.clone();
        let other = Arc::new(other);
        let before = std::mem::replace(index, other.clone());
        self.log_index_options(&collection, &before, &other);
        self.put(changed);
        Ok(())
    }

    /// Drops indexes. Returns how many there were. Fails with 26, 27, 72 (for `_id_`) or 181 (a key
    /// that several have).
    pub fn drop_indexes(&mut self, namespace: &Namespace, which: &IndexSelection) -> Attempt<usize> {
        let collection = self.existing(namespace)?;
        let specs: Vec<&IndexSpec> = collection.indexes.iter().map(|index| &index.spec).collect();
        let selected = index_selection::select(&specs, which)?;
        let chosen: Vec<Arc<Index>> =
            selected.into_iter().filter_map(|position| collection.indexes.get(position).cloned()).collect();
        let rows = self.documents_of(&collection);
        let mut changed = Collection::clone(&collection);
        for index in &chosen {
            self.connection.prepare_cached("DELETE FROM indexes WHERE id = ?1")?.execute([index.id])?;
            self.drop_table(&index.sql.table, rows)?;
            self.log_drop_index(&collection, index);
        }
        changed.indexes.retain(|index| !chosen.iter().any(|other| other.id == index.id));
        self.put(changed);
        Ok(collection.indexes.len() + 1)
    }
}
