//! Inserts: many documents as one command, and one by one only if that is refused.

use super::interruption::lasting;
use super::retry_record::BatchRecord;
use super::transaction::{back_off, commit, queue_begin_on, roll_back};
use super::{parallel_insert, refusal};
use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::index::element_table;
use crate::index::side_index::{claims, claims_table};
use crate::store::MariaDbStore;
use crate::write::batch_options::{ATTEMPTS_MAX, BatchOptions, concerns_statement};
use crate::write::insert_batch::{Batch, COMMAND_BYTES, encode_document, inserted};
use crate::write::recorded_write::{WriteOutcome, write};
use ahash::AHashMap;
use bytes::Bytes;
use document::Doc;
use error::{Code, Error};
use mariadb_client::{Connection, Failure, Result, server_error};
use mariadb_wire::Param;
use std::ops::Range;
use store::{ChangeObserver, Changes, Namespace, StatementOutcome};

/// Documents inserted one by one before their answers are read.
const SINGLES: usize = 64;

/// The greatest ratio of a document's JSON to its BSON (`{"$undefined":true}`, of two bytes, grows
/// most).
const GROWTH_MAX: u64 = 16;

pub(super) async fn insert(
    store: &MariaDbStore,
    namespace: &Namespace,
    documents: &[Bytes],
    options: BatchOptions,
    record: &mut BatchRecord,
) -> Result<()> {
    for attempt in 0..ATTEMPTS_MAX {
        let table = match store.table_or_create(namespace).await {
            Err(Failure::Other(error)) if store::write::refuses_each_insert(&error) => {
                let refused = if options.ordered { 1 } else { documents.len() };
                record.add(vec![Err(error); refused]);
                return Ok(());
            }
            outcome => outcome?,
        };
        let mut lease = store.lease_documents(namespace).await?;
        let refused = refused(&table, documents, options)?;
        let all = documents.iter().filter_map(|document| Doc::from_bytes(document));
        element_table::prepare(store, &mut lease, &table, all).await?;
        let packet_bytes_max = store.packet_bytes_max;
        let ordered = options.ordered;
        let batch = Batch { namespace, table: &table, documents, refused: &refused, ordered, packet_bytes_max };
        let note = |changes: &mut Changes, observer: &dyn ChangeObserver| {
            if table.cap().is_some() || !observer.wants_images(namespace) {
                return changes.add_unspecified(namespace);
            }
            let all = documents.iter().filter_map(|document| Doc::from_bytes(document));
            all.for_each(|document| changes.add_document(namespace, None, Some(document)));
        };
        let inserting = batch.insert(&mut lease, store, record);
        let outcome = store.observe_write(note, inserting).await;
        match outcome {
            Err(failure) if failure.is_missing_table() => store.catalog.invalidate(namespace),
            Err(failure) if failure.is_contention() => back_off(attempt).await,
            outcome => return outcome,
        }
    }
    Err(Error::new(Code::WRITE_CONFLICT, format!("{namespace} is being written by too many others")).into())
}

/// Returns the errors of documents that the collection's validator or indexes refuse.
fn refused(table: &Table, documents: &[Bytes], options: BatchOptions) -> Result<AHashMap<usize, Error>> {
    let mut refused = AHashMap::new();
    if let Some(validator) = table.validator().filter(|_| !options.bypass_validation) {
        for (index, document) in documents.iter().enumerate() {
            if let Err(error) = validator.check_insert(Doc::from_bytes(document).unwrap_or(Doc::EMPTY)) {
                refused.insert(index, error);
            }
        }
    }
    for (index, document) in documents.iter().enumerate() {
        if let Err(error) = table.check_indexed(Doc::from_bytes(document).unwrap_or(Doc::EMPTY)) {
            refused.entry(index).or_insert(error);
        }
    }
    Ok(refused)
}

impl Batch<'_> {
    async fn insert(&self, connection: &mut Connection, store: &MariaDbStore, record: &mut BatchRecord) -> Result<()> {
        let fits = |document: &Bytes| (document.len() as u64) < self.packet_bytes_max / GROWTH_MAX;
        let all_at_once = record.len() == 0 && self.refused.is_empty() && self.documents.iter().all(fits);
        if all_at_once
            && store.counts_by_one
            && store.inside.is_none()
            && self.table.row_key == RowKey::Sequence
            && !self.table.is_sharded
            && self.table.cap().is_none()
            && !claims_table::are_needed(self.table)
            && parallel_insert::is_worthwhile(self.documents)
            && let Some(mut second) = store.pool.lease_if_quiet(connection.wanted_role()).await
            && parallel_insert::insert(self, connection, &mut second, record).await?
        {
            return Ok(());
        }
        if all_at_once && record.len() == 0 {
            match self.insert_all(connection, record).await {
                Ok(WriteOutcome::Done(_)) => return Ok(()),
                Ok(_) => {
                    record.adopt(connection).await?;
                }
                Err(failure)
                    if failure.is_lost()
                        || failure.is_contention()
                        || failure.is_missing_table()
                        || failure.is_access_denied()
                        || failure.is_not_writable()
                        || failure.lacks_data_server() =>
                {
                    return Err(failure);
                }
                // One of them is refused; insert one by one to find out which.
                Err(_) => {}
            }
        }
        // Statements finished by an earlier attempt are skipped.
        if record.len() == self.documents.len() || self.ordered && record.last_failed() {
            return Ok(());
        }
        self.insert_each(connection, record).await
    }

    /// Inserts all documents or none.
    async fn insert_all(&self, connection: &mut Connection, record: &mut BatchRecord) -> Result<WriteOutcome> {
        let inserted = vec![Ok(inserted()); self.documents.len()];
        if let Some(cap) = self.table.cap() {
            return write(connection, self.table, record, inserted, false, true, async |connection| {
                self.table.queue_cap_lock(connection);
                let commands = self.send(connection, self.documents, COMMAND_BYTES).await?;
                self.table.queue_trim(connection, cap);
                Ok(commands + 2)
            })
            .await;
        }
        let bytes: usize = self.documents.iter().map(Bytes::len).sum();
        let alone = bytes <= COMMAND_BYTES;
        write(connection, self.table, record, inserted, alone, false, async |connection| {
            if let [document] = self.documents {
                let mut text = Vec::with_capacity(document.len() + document.len() / 4);
                encode_document(document, &mut text);
                connection.queue_execute(&self.table.statements.insert, &[Param::Text(&text)]);
                return Ok(1);
            }
            let command_bytes = if alone { usize::MAX } else { COMMAND_BYTES };
            self.send(connection, self.documents, command_bytes).await
        })
        .await
    }

    /// Inserts documents one by one in one transaction, to find the outcome of each.
    async fn insert_each(&self, connection: &mut Connection, record: &mut BatchRecord) -> Result<()> {
        let settled = !claims_table::are_needed(self.table) || claims::refresh_pending(connection, self.table).await?;
        queue_begin_on(connection, self.table);
        connection.finish().await?;
        if self.table.cap().is_some() {
            self.table.queue_cap_lock(connection);
            connection.finish().await?;
        }
        match self.each_in_transaction(connection, record, settled).await {
            Ok(outcomes) => {
                let recording = record.queue_record(connection, &outcomes);
                if recording {
                    let answer = connection.finish().await.map(|ok| ok.affected_rows);
                    if !record.is_recorded(answer)? {
                        roll_back(connection).await?;
                        record.adopt(connection).await?;
                        return Ok(());
                    }
                }
                record.interruption.during(lasting(connection), commit(connection)).await?;
                record.committed(outcomes);
                Ok(())
            }
            Err(failure) => {
                if !failure.is_lost() {
                    roll_back(connection).await?;
                }
                Err(failure)
            }
        }
    }

    async fn each_in_transaction(
        &self,
        connection: &mut Connection,
        record: &BatchRecord,
        settled: bool,
    ) -> Result<Vec<error::Result<StatementOutcome>>> {
        let mut outcomes = Vec::new();
        let mut next = record.len();
        let claims = claims_table::are_needed(self.table);
        while next < self.documents.len() {
            // Trimming a capped collection may free keys for the next document; claims are made one
            // by one. Spider, which stores sharded collections, has no savepoints.
            let (cap, sharded) = (self.table.cap(), self.table.is_sharded);
            let until = (next + if cap.is_some() || claims || sharded { 1 } else { SINGLES }).min(self.documents.len());
            if !sharded {
                connection.queue_query("SAVEPOINT selkie");
                connection.finish().await?;
            }
            let mut outcomes_of_some = self.singles(connection, next..until).await?;
            if claims && let [outcome @ Ok(_)] = outcomes_of_some.as_mut_slice() {
                *outcome = self.claim(connection, next, settled).await?;
            }
            let refused = outcomes_of_some.iter().position(Result::is_err);
            match refused {
                Some(_) if self.ordered && sharded => {
                    outcomes.extend(outcomes_of_some);
                    return Ok(outcomes);
                }
                Some(position) if self.ordered => {
                    // Documents after the refused one must not be inserted.
                    connection.queue_query("ROLLBACK TO SAVEPOINT selkie");
                    connection.finish().await?;
                    let commands = self.send(connection, &self.documents[next..next + position], COMMAND_BYTES).await?;
                    for _ in 0..commands {
                        connection.finish().await?;
                    }
                    outcomes.extend(outcomes_of_some.into_iter().take(position + 1));
                    return Ok(outcomes);
                }
                _ => outcomes.extend(outcomes_of_some),
            }
            if let Some(cap) = cap {
                self.table.queue_trim(connection, cap);
                connection.finish().await?;
            }
            next = until;
        }
        Ok(outcomes)
    }

    /// Claims the keys of a document that was just inserted; if one is taken, removes the document.
    async fn claim(
        &self,
        connection: &mut Connection,
        position: usize,
        settled: bool,
    ) -> Result<error::Result<StatementOutcome>> {
        match claims::claim(connection, self.table).await {
            Ok(()) => Ok(Ok(inserted())),
            Err(failure) if failure.sql_code() == Some(server_error::DUPLICATE_ENTRY) => {
                connection.queue_query("ROLLBACK TO SAVEPOINT selkie");
                connection.finish().await?;
                let failure = claims::check_duplicate(connection, self.table, settled, failure).await;
                if failure.is_contention() {
                    return Err(failure);
                }
                let document = self.documents.get(position).and_then(|bytes| Doc::from_bytes(bytes));
                Ok(Err(refusal::of(failure, self.namespace, self.table, document.unwrap_or(Doc::EMPTY))))
            }
            Err(failure) => Err(failure),
        }
    }

    async fn singles(
        &self,
        connection: &mut Connection,
        range: Range<usize>,
    ) -> Result<Vec<error::Result<StatementOutcome>>> {
        let (mut text, mut sent) = (Vec::new(), Vec::with_capacity(range.len()));
        for (index, document) in self.documents.iter().enumerate().take(range.end).skip(range.start) {
            text.clear();
            encode_document(document, &mut text);
            let fits = (text.len() as u64) < self.packet_bytes_max;
            sent.push(fits && !self.refused.contains_key(&index));
            if sent.last() == Some(&true) {
                connection.queue_execute(&self.table.statements.insert, &[Param::Text(&text)]);
                connection.flush().await?;
            }
        }
        let mut outcomes_of_some = Vec::with_capacity(range.len());
        let mut failed = None;
        for (index, sent) in range.zip(sent) {
            if let Some(error) = self.refused.get(&index) {
                outcomes_of_some.push(Err(error.clone()));
                continue;
            }
            if !sent {
                outcomes_of_some.push(Err(refusal::too_large()));
                continue;
            }
            match connection.finish().await {
                Ok(_) => outcomes_of_some.push(Ok(inserted())),
                Err(failure) if failure.is_contention() || failure.is_missing_table() => failed = Some(failure),
                Err(failure) if concerns_statement(&failure) => {
                    let document =
                        self.documents.get(index).and_then(|bytes| Doc::from_bytes(bytes)).unwrap_or(Doc::EMPTY);
                    outcomes_of_some.push(Err(refusal::of(failure, self.namespace, self.table, document)));
                }
                Err(failure) => return Err(failure),
            }
        }
        failed.map_or(Ok(outcomes_of_some), Err)
    }
}
