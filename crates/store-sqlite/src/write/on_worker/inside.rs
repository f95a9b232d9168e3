//! Batches within a transaction.

use super::{CHANGES_MAX, Statement, StatementEnd};
use crate::catalog::Catalog;
use crate::connection::{self, Role};
use crate::failure::Failure;
use crate::transaction::log::Log;
use crate::transaction::{IdleConnection, Pinned, Shadows, Snapshot, SqliteTransaction, ending::Ending, statement};
use crate::worker::SqliteStore;
use crate::write::changes::{Applied, Change, Changed, ConditionalChanges};
use crate::write::entries::IndexEntries;
use bytes::Bytes;
use document::Doc;
use error::{Code, Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::transaction::{TRANSIENT, TransactionKey};
use store::{AccessStats, BatchOutcome, SnapshotTimes, StatementOutcome, Statements, Transaction, WriteBatch};

/// The limit of open transactions: each has a connection with a cache and two open files.
const OPEN_MAX: u64 = 1000;

impl SqliteStore {
    /// Begins a transaction. Fails with 24 if too many are open.
    pub async fn begin(&self) -> Result<Arc<dyn Transaction>> {
        if self.shared.pinned_snapshots.load(Ordering::Acquire) >= OPEN_MAX {
            let message = format!("Unable to begin a transaction: {OPEN_MAX} are open");
            return Err(Error::new(Code::LOCK_TIMEOUT, message).with_labels(&[TRANSIENT]));
        }
        if let Some((connection, mut shadows)) = self.shared.idle_transactions.take() {
            let (connection, catalog, times) = self.writer.run(|writer| writer.pin_snapshot(connection)).await?;
            if let Some(catalog) = shadows.catalog(&catalog) {
                return Ok(self.pinned((connection, shadows), catalog, times));
            }
        }
        let options = &self.shared.options;
        let connection = connection::open(&self.shared.path, Role::Transaction, options).map_err(Failure::from)?;
        let (connection, catalog, times) = self.writer.run(|writer| writer.pin_snapshot(connection)).await?;
        Ok(self.pinned((connection, Shadows::default()), catalog, times))
    }

    fn pinned(
        &self,
        connection: IdleConnection,
        catalog: Arc<Catalog>,
        times: Option<SnapshotTimes>,
    ) -> Arc<dyn Transaction> {
        let log = Log::shadowing(connection.1.kept_ids());
        let snapshot = Snapshot { connection: Pinned::new(connection, self.shared.clone()), catalog, log };
        Arc::new(SqliteTransaction::new(snapshot, Ending::new(), times))
    }

    /// Commits a transaction. One that has written nothing leaves no record.
    pub async fn commit(&self, transaction: &Arc<dyn Transaction>, key: TransactionKey, journal: bool) -> Result<()> {
        let transaction = statement::of(&**transaction)?;
        let Snapshot { connection, log, .. } = transaction.take()?;
        // The snapshot is of no use any more, and keeps the log.
        drop(connection);
        let written = log.entries.iter().map(|entry| &entry.namespace);
        let Some(namespace) = written.chain(log.created.iter().map(|created| &created.namespace)).next().cloned()
        else {
            transaction.abort();
            return Ok(());
        };
        let ending = transaction.ending.clone();
        self.writer.run(move |writer| writer.commit_transaction(&ending, log, &key)).await?;
        if journal {
            self.sync_commits(&namespace).await?;
        }
        Ok(())
    }

    /// Carries out a batch within the transaction. The first statement that fails ends it, since
    /// the transaction is aborted then.
    pub(super) async fn carry_out_inside(&self, mut batch: WriteBatch) -> Result<BatchOutcome> {
        batch.ordered = true;
        let mut done = BatchOutcome::default();
        while !super::is_over(&batch, &done) {
            batch.progress.check()?;
            if let Statements::Insert(documents) = &batch.statements {
                let next = documents.iter().skip(done.statements.len()).take(CHANGES_MAX);
                let outcomes = self.insert_inside(&batch, next).await?;
                done.statements.extend(outcomes);
                continue;
            }
            let mut access = AccessStats::default();
            let statement = Statement { store: self, batch: &batch, done: &done, progress: &batch.progress };
            let outcome = match statement.carry_out(None, &mut access).await {
                Ok(outcome) => Ok(outcome),
                Err(StatementEnd::Statement(error)) => Err(error),
                Err(StatementEnd::Batch(error)) => return Err(error),
                Err(StatementEnd::Recorded(_)) => {
                    return Err(Error::internal("a retryable write within a transaction"));
                }
            };
            done.access.push(access);
            done.statements.push(outcome);
        }
        Ok(done)
    }

    /// Inserts documents. Returns their outcomes, up to the first that is refused.
    async fn insert_inside<'d>(
        &self,
        batch: &WriteBatch,
        documents: impl Iterator<Item = &'d Bytes>,
    ) -> Result<Vec<Result<StatementOutcome>>> {
        let collection = self.find(&batch.namespace);
        let validator = collection.as_ref().and_then(|it| it.validator()).filter(|_| !batch.bypass_validation);
        let (mut changes, mut refused) = (Vec::new(), None);
        for bytes in documents {
            let document =
                Doc::from_bytes(bytes).ok_or_else(|| Error::internal("an inserted document is no document"))?;
            if let Some(Err(error)) = validator.map(|validator| validator.check_insert(document)) {
                refused = Some(error);
                break;
            }
            changes.push(Change::Insert { document: document.to_owned(), entries: IndexEntries::none() });
        }
        let namespace = batch.namespace.clone();
        let conditional = ConditionalChanges { namespace, collection, changes, record: None, journal: false };
        let Applied::Outcomes(changed, ..) = self.apply(conditional).await? else {
            return Err(Error::internal("a transaction waits for another one"));
        };
        let outcome = |changed| match changed {
            Changed::Done => Ok(StatementOutcome { matched: 1, ..StatementOutcome::default() }),
            Changed::Refused(error) => Err(error),
            Changed::Conflict => Err(store::transaction::write_conflict()),
        };
        let outcomes = changed.into_iter().map(outcome);
        Ok(match refused {
            // A refused change comes before the refused document.
            Some(error) => {
                let mut outcomes: Vec<_> = outcomes.collect();
                if outcomes.iter().all(Result::is_ok) {
                    outcomes.push(Err(error));
                }
                outcomes
            }
            None => outcomes.collect(),
        })
    }
}
