//! Documents and their index entries, kept consistent.
//!
//! Each function changes one document with all its entries, or refuses and changes nothing: entries
//! added before a conflict are removed again, which costs nothing without a conflict.

use super::deferred_entries::may_defer;
use super::entries::{IndexEntries, OldDocument, difference};
use super::state::Writer;
use crate::catalog::{Collection, Index};
use crate::failure::{Attempt, is_duplicate};
use crate::read::scan;
use document::{Collation as Spelling, Doc, DocBuf, Value};
use error::Error;
use index_keys::keys::{self, Key};
use rusqlite::OptionalExtension;
use std::sync::Arc;
use store::{Cap, Operation};

impl Writer {
    /// Stores a new document with its entries; `later` defers those that may be deferred. Fails
    /// with 11000 if one of its keys exists.
    pub(super) fn insert_document(
        &mut self,
        collection: &Arc<Collection>,
        document: Doc<'_>,
        later: bool,
    ) -> Attempt<()> {
        let entries = IndexEntries::of(collection, document)?;
        steps::unbroken(|| self.insert_with_entries(collection, document, &entries, later))
    }

    /// As [`Writer::insert_document`], with entries computed before.
    pub(super) fn insert_with_entries(
        &mut self,
        collection: &Arc<Collection>,
        document: Doc<'_>,
        entries: &IndexEntries,
        later: bool,
    ) -> Attempt<()> {
        self.check_intents(collection, document, Some(entries))?;
        keys::id_key(document, &collection.collation, &mut self.key);
        let seq = self.next_seq_of(collection)?;
        let insert = self.connection.prepare_cached(&collection.sql.insert)?.execute((
            seq,
            self.key.as_slice(),
            document.as_bytes(),
        ));
        if let Err(error) = insert {
            return Err(if is_duplicate(&error) { duplicate_id(collection, document).into() } else { error.into() });
        }
        self.store_multikey(collection, entries)?;
        let at_once = |index: &Index| !later || !may_defer(index);
        if let Some((index, key)) = self.add_entries(collection, seq, &entries.keys, at_once)? {
            self.connection.prepare_cached(&collection.sql.delete)?.execute([seq])?;
            return Err(duplicate(collection, index, document, key).into());
        }
        if later {
            self.defer(collection, seq, entries)?;
        }
        self.add_to_counters(collection, 1, document.size() as i64);
        self.report_change(collection, None, Some(document));
        self.log_change(collection, Operation::Insert { document }, None);
        match collection.cap() {
            Some(cap) => self.trim(collection, cap),
            None => Ok(()),
        }
    }

    /// Deletes the oldest documents of a capped collection that exceeds its cap; the newest stays,
    /// whatever its size.
    fn trim(&mut self, collection: &Arc<Collection>, cap: Cap) -> Attempt<()> {
        loop {
            let pending = self.deltas.get(&collection.id).map_or((0, 0), |delta| (delta.documents, delta.data_bytes));
            let documents = collection.documents().saturating_add_signed(pending.0);
            let bytes = collection.data_bytes().saturating_add_signed(pending.1);
            if documents <= 1 || !cap.is_exceeded(documents, bytes) {
                return Ok(());
            }
            let (seq, old) = {
                let mut statement = self.connection.prepare_cached(&collection.sql.oldest)?;
                let mut rows = statement.query([])?;
                let Some(row) = rows.next()? else { return Ok(()) };
                let (seq, document) = scan::stored(row, collection)?;
                (seq, document.to_owned())
            };
            self.delete_document(collection, seq, &OldDocument::of(collection, old.as_doc())?)?;
        }
    }

    /// Replaces a document by another with the same `_id`. `difference`: the form in which the
    /// change is logged, if not the whole document. Fails with 11000 if one of its keys exists.
    pub(super) fn replace_document(
        &mut self,
        collection: &Arc<Collection>,
        seq: i64,
        old: &OldDocument<'_>,
        new: Doc<'_>,
        difference: Option<&DocBuf>,
    ) -> Attempt<()> {
        let new_entries = IndexEntries::of(collection, new)?;
        steps::unbroken(|| self.replace_with_entries(collection, seq, old, (new, difference), &new_entries))
    }

    /// As [`Writer::replace_document`], with entries computed before.
    pub(super) fn replace_with_entries(
        &mut self,
        collection: &Arc<Collection>,
        seq: i64,
        old: &OldDocument<'_>,
        (new, logged): (Doc<'_>, Option<&DocBuf>),
        new_entries: &IndexEntries,
    ) -> Attempt<()> {
        self.check_intents(collection, new, Some(new_entries))?;
        self.apply_deferred_before_change(collection.id, seq)?;
        self.note_touched(collection, seq);
        self.store_multikey(collection, new_entries)?;
        let gone = difference(&old.entries, new_entries);
        let come = difference(new_entries, &old.entries);
        if let Some((index, key)) = self.add_entries(collection, seq, &come, |_| true)? {
            return Err(duplicate(collection, index, new, key).into());
        }
        self.remove_entries(collection, seq, &gone)?;
        self.connection.prepare_cached(&collection.sql.update)?.execute((seq, new.as_bytes()))?;
        self.add_to_counters(collection, 0, new.size() as i64 - old.document.size() as i64);
        self.report_change(collection, Some(old.document), Some(new));
        let id = new.get("_id").unwrap_or(Value::Null);
        let operation = match logged {
            Some(difference) => Operation::Update { id, difference: difference.as_doc() },
            None => Operation::Replace { id, document: new },
        };
        self.log_change(collection, operation, Some(old.document));
        Ok(())
    }

    pub(super) fn delete_document(
        &mut self,
        collection: &Arc<Collection>,
        seq: i64,
        old: &OldDocument<'_>,
    ) -> Attempt<()> {
        steps::unbroken(|| self.delete_with_entries(collection, seq, old))
    }

    fn delete_with_entries(&mut self, collection: &Arc<Collection>, seq: i64, old: &OldDocument<'_>) -> Attempt<()> {
        self.check_intents(collection, old.document, None)?;
        self.apply_deferred_before_change(collection.id, seq)?;
        self.note_touched(collection, seq);
        self.remove_entries(collection, seq, &old.entries.keys)?;
        self.connection.prepare_cached(&collection.sql.delete)?.execute([seq])?;
        self.add_to_counters(collection, -1, -(old.document.size() as i64));
        self.report_change(collection, Some(old.document), None);
        let id = old.document.get("_id").unwrap_or(Value::Null);
        self.log_change(collection, Operation::Delete { id }, Some(old.document));
        Ok(())
    }

    /// Adds entries to the selected indexes. If a unique index has one of the keys already, removes
    /// the added entries and returns that key.
    fn add_entries<'e>(
        &mut self,
        collection: &'e Collection,
        seq: i64,
        entries: &'e [Vec<Key>],
        to: impl Fn(&Index) -> bool,
    ) -> Attempt<Option<(&'e Index, &'e Key)>> {
        for (at, (index, keys)) in
            collection.indexes.iter().zip(entries).enumerate().filter(|(_, (index, _))| to(index))
        {
            for (position, key) in keys.iter().enumerate() {
                if !self.add_key(index, key, seq)? {
                    self.remove_keys(index, seq, &keys[..position])?;
                    for (index, keys) in collection.indexes.iter().zip(entries).take(at).filter(|(index, _)| to(index))
                    {
                        self.remove_keys(index, seq, keys)?;
                    }
                    return Ok(Some((index, key)));
                }
            }
        }
        Ok(None)
    }

    /// Adds an entry. Returns false if the key exists and must be unique.
    fn add_key(&self, index: &Index, key: &Key, seq: i64) -> Attempt<bool> {
        if index.prepare_unique && self.connection.prepare_cached(&index.sql.is_taken)?.exists((key.as_slice(), seq))? {
            return Ok(false);
        }
        match self.connection.prepare_cached(&index.sql.insert)?.execute((key.as_slice(), seq)) {
            Ok(_) => Ok(true),
            Err(error) if is_duplicate(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn remove_entries(&mut self, collection: &Collection, seq: i64, entries: &[Vec<Key>]) -> Attempt<()> {
        for (index, keys) in collection.indexes.iter().zip(entries) {
            self.remove_keys(index, seq, keys)?;
        }
        Ok(())
    }

    fn remove_keys(&mut self, index: &Index, seq: i64, keys: &[Key]) -> Attempt<()> {
        for key in keys {
            self.connection.prepare_cached(&index.sql.delete)?.execute((key.as_slice(), seq))?;
        }
        Ok(())
    }

    fn store_multikey(&mut self, collection: &Collection, entries: &IndexEntries) -> Attempt<()> {
        for (at, parts) in &entries.arrays {
            if let Some(index) = collection.indexes.get(*at) {
                self.set_multikey(index, *parts)?;
            }
        }
        Ok(())
    }

    /// Marks the index before the entries become visible.
    pub(super) fn set_multikey(&mut self, index: &Arc<Index>, parts: u64) -> Attempt<()> {
        if index.multikey.has(parts) {
            return Ok(());
        }
        let before = index.multikey.note(parts);
        self.effects.multikey.push((index.clone(), before));
        let stored = (index.multikey.to_stored(), index.id);
        self.connection.prepare_cached("UPDATE indexes SET multikey = ?1 WHERE id = ?2")?.execute(stored)?;
        Ok(())
    }

    fn next_seq_of(&mut self, collection: &Collection) -> Attempt<i64> {
        if let Some(next) = self.next_seq.get_mut(&collection.id) {
            *next += 1;
            return Ok(*next);
        }
        let sql = format!("SELECT seq FROM {} ORDER BY seq DESC LIMIT 1", collection.sql.table);
        let last: Option<i64> = self.connection.prepare_cached(&sql)?.query_row([], |row| row.get(0)).optional()?;
        let next = last.unwrap_or(0) + 1;
        self.next_seq.insert(collection.id, next);
        Ok(next)
    }
}

/// Returns error 11000 for a document whose `_id` exists.
pub fn duplicate_id(collection: &Collection, document: Doc<'_>) -> Error {
    let mut value = DocBuf::new();
    value.append("_id", document.get("_id").unwrap_or(Value::Null));
    let pattern = document::doc! { "_id": 1 };
    store::duplicate::duplicate_key(
        &collection.namespace,
        "_id_",
        pattern.as_doc(),
        value.as_doc(),
        &collection.collation,
    )
}

/// Returns error 11000 for a document whose key in a unique index exists.
pub fn duplicate(collection: &Collection, index: &Index, document: Doc<'_>, key: &[u8]) -> Error {
    let values = keys::key_values(document, index, key);
    let (name, pattern) = (&index.spec.name, index.spec.key.as_doc());
    let collation = index.fields.first().map_or(&Spelling::SIMPLE, |field| &field.collation);
    store::duplicate::duplicate_key(&collection.namespace, name, pattern, values.as_doc(), collation)
}
