//! Inserting: many documents as one command, and one by one only where that is refused.

use super::ledger::Ledger;
use super::transact::{Wrote, back_off, roll_back, write};
use super::{ATTEMPTS_MAX, Options, concerns_statement, refusal};
use crate::connection::Connection;
use crate::failure::{Failure, Result};
use crate::spelling;
use crate::store::MariaDbStore;
use crate::table::Table;
use ahash::AHashMap;
use bytes::Bytes;
use document::Doc;
use error::{Code, Error};
use mariadb_wire::Param;
use std::ops::Range;
use store::{Namespace, StatementOutcome};

/// Bytes of JSON that one command carries.
const COMMAND_BYTES: usize = 2 << 20;

/// Documents inserted one by one between two looks at the answers.
const SINGLES: usize = 64;

/// The documents of a batch as JSON, one behind the other.
struct Texts {
    bytes: Vec<u8>,
    /// Where each document's text is; an error where it cannot be sent.
    ranges: Vec<Range<usize>>,
}

impl Texts {
    fn of(documents: &[Bytes]) -> Texts {
        let size: usize = documents.iter().map(Bytes::len).sum();
        let mut texts =
            Texts { bytes: Vec::with_capacity(size + size / 4), ranges: Vec::with_capacity(documents.len()) };
        for document in documents {
            let start = texts.bytes.len();
            spelling::write(Doc::from_bytes(document).unwrap_or(Doc::EMPTY), &mut texts.bytes);
            texts.ranges.push(start..texts.bytes.len());
        }
        texts
    }

    fn get(&self, index: usize) -> &[u8] {
        self.ranges.get(index).and_then(|range| self.bytes.get(range.clone())).unwrap_or_default()
    }

    /// Cuts into commands of bounded size.
    fn commands(&self) -> Vec<Range<usize>> {
        let (mut commands, mut from, mut bytes) = (Vec::new(), 0, 0);
        for (index, range) in self.ranges.iter().enumerate() {
            if index > from && bytes + range.len() > COMMAND_BYTES {
                commands.push(from..index);
                (from, bytes) = (index, 0);
            }
            bytes += range.len();
        }
        commands.push(from..self.ranges.len());
        commands
    }
}

pub(super) async fn insert(
    store: &MariaDbStore,
    namespace: &Namespace,
    documents: &[Bytes],
    options: Options,
    ledger: &mut Ledger,
) -> Result<()> {
    let texts = Texts::of(documents);
    let mut lease = store.pool.lease().await?;
    for attempt in 0..ATTEMPTS_MAX {
        let (table, _) = match store.catalog.table_or_create(&mut lease, namespace).await {
            // A view: each document is refused.
            Err(Failure::Other(error)) if error.code() == Code::COMMAND_NOT_SUPPORTED_ON_VIEW => {
                let refused = if options.ordered { 1 } else { documents.len() };
                ledger.settle(vec![Err(error); refused]);
                return Ok(());
            }
            outcome => outcome?,
        };
        let refused = refused(&table, documents, options)?;
        let ordered = options.ordered;
        let outcome = Batch { namespace, table: &table, documents, texts: &texts, refused: &refused, ordered }
            .insert(&mut lease, store, ledger)
            .await;
        match outcome {
            Err(failure) if failure.is_missing_table() => store.catalog.forget(namespace),
            Err(failure) if failure.is_contention() => back_off(attempt).await,
            outcome => return outcome,
        }
    }
    Err(Error::new(Code::WRITE_CONFLICT, format!("{namespace} is being written by too many others")).into())
}

/// What the collection's validator says to the documents.
fn refused(table: &Table, documents: &[Bytes], options: Options) -> Result<AHashMap<usize, Error>> {
    let mut refused = AHashMap::new();
    if let Some(validator) = table.validator().filter(|_| !options.bypass_validation) {
        for (index, document) in documents.iter().enumerate() {
            if let Err(error) = validator.check_insert(Doc::from_bytes(document).unwrap_or(Doc::EMPTY)) {
                refused.insert(index, error);
            }
        }
    }
    Ok(refused)
}

struct Batch<'b> {
    namespace: &'b Namespace,
    table: &'b Table,
    documents: &'b [Bytes],
    texts: &'b Texts,
    /// Documents that the validator refuses, by their place.
    refused: &'b AHashMap<usize, Error>,
    ordered: bool,
}

impl Batch<'_> {
    async fn insert(&self, connection: &mut Connection, store: &MariaDbStore, ledger: &mut Ledger) -> Result<()> {
        // What an earlier attempt has settled is over; the rest is inserted.
        let first = ledger.len();
        let fits =
            (first..self.documents.len()).all(|index| (self.texts.get(index).len() as u64) < store.packet_bytes_max);
        if fits && first == 0 && self.refused.is_empty() {
            match self.insert_all(connection, ledger).await {
                Ok(Wrote::Done(_)) => return Ok(()),
                Ok(_) => {
                    ledger.adopt(connection).await?;
                }
                Err(failure) if failure.is_lost() || failure.is_contention() || failure.is_missing_table() => {
                    return Err(failure);
                }
                // One of them is refused: find out which.
                Err(_) => {}
            }
        }
        if ledger.len() == self.documents.len() || self.ordered && ledger.last_failed() {
            return Ok(());
        }
        self.insert_each(connection, store, ledger).await
    }

    /// All documents or none.
    async fn insert_all(&self, connection: &mut Connection, ledger: &mut Ledger) -> Result<Wrote> {
        let inserted = vec![Ok(inserted()); self.documents.len()];
        if let [_] = self.documents {
            let sql = &self.table.statements.insert;
            return write(connection, ledger, inserted, 1, false, |connection| {
                connection.queue_execute(sql, &[Param::Text(self.texts.get(0))]);
            })
            .await;
        }
        let commands = self.texts.commands();
        write(connection, ledger, inserted, commands.len(), false, |connection| {
            for command in &commands {
                self.queue_bulk(connection, command.clone());
            }
        })
        .await
    }

    fn queue_bulk(&self, connection: &mut Connection, documents: Range<usize>) {
        connection.queue_bulk(&self.table.statements.insert, documents.map(|index| self.texts.get(index)));
    }

    /// One by one, in one transaction, so that each document's fate is known.
    async fn insert_each(&self, connection: &mut Connection, store: &MariaDbStore, ledger: &mut Ledger) -> Result<()> {
        connection.queue_query("BEGIN");
        connection.finish().await?;
        match self.each_in_transaction(connection, store, ledger).await {
            Ok(outcomes) => {
                let recording = ledger.queue_record(connection, &outcomes);
                if recording {
                    let answer = connection.finish().await.map(|ok| ok.affected_rows);
                    if !ledger.is_recorded(answer)? {
                        roll_back(connection).await?;
                        ledger.adopt(connection).await?;
                        return Ok(());
                    }
                }
                connection.queue_query("COMMIT");
                connection.finish().await?;
                ledger.committed(outcomes);
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
        store: &MariaDbStore,
        ledger: &Ledger,
    ) -> Result<Vec<error::Result<StatementOutcome>>> {
        let mut outcomes = Vec::new();
        let mut next = ledger.len();
        while next < self.documents.len() {
            let until = (next + SINGLES).min(self.documents.len());
            connection.queue_query("SAVEPOINT selkie");
            connection.finish().await?;
            let fates = self.singles(connection, store, next..until).await?;
            let refused = fates.iter().position(Result::is_err);
            match refused {
                Some(position) if self.ordered => {
                    // What came behind the refused document must not be there.
                    connection.queue_query("ROLLBACK TO SAVEPOINT selkie");
                    connection.finish().await?;
                    if position > 0 {
                        self.queue_bulk(connection, next..next + position);
                        connection.finish().await?;
                    }
                    outcomes.extend(fates.into_iter().take(position + 1));
                    return Ok(outcomes);
                }
                _ => outcomes.extend(fates),
            }
            next = until;
        }
        Ok(outcomes)
    }

    async fn singles(
        &self,
        connection: &mut Connection,
        store: &MariaDbStore,
        range: Range<usize>,
    ) -> Result<Vec<error::Result<StatementOutcome>>> {
        let fits = |index: usize| (self.texts.get(index).len() as u64) < store.packet_bytes_max;
        let sent = |index: usize| fits(index) && !self.refused.contains_key(&index);
        for index in range.clone().filter(|&index| sent(index)) {
            connection.queue_execute(&self.table.statements.insert, &[Param::Text(self.texts.get(index))]);
        }
        let mut fates = Vec::with_capacity(range.len());
        let mut failed = None;
        for index in range {
            if let Some(error) = self.refused.get(&index) {
                fates.push(Err(error.clone()));
                continue;
            }
            if !fits(index) {
                fates.push(Err(refusal::too_large()));
                continue;
            }
            match connection.finish().await {
                Ok(_) => fates.push(Ok(inserted())),
                Err(failure) if failure.is_contention() || failure.is_missing_table() => failed = Some(failure),
                Err(failure) if concerns_statement(&failure) => {
                    let document =
                        self.documents.get(index).and_then(|bytes| Doc::from_bytes(bytes)).unwrap_or(Doc::EMPTY);
                    fates.push(Err(refusal::of(failure, self.namespace, self.table, document)));
                }
                Err(failure) => return Err(failure),
            }
        }
        failed.map_or(Ok(fates), Err)
    }
}

fn inserted() -> StatementOutcome {
    StatementOutcome { matched: 1, ..StatementOutcome::default() }
}
