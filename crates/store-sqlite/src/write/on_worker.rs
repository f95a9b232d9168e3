//! Statements that would hold the writer for too long, carried out on the worker that received
//! them.
//!
//! Documents are found by a scan in the state of any read, evaluated, and sent to the writer as
//! changes on the condition that they are unchanged. A document that another session has changed
//! meanwhile is read and evaluated again. So several such statements do not wait for one another,
//! and each can be divided, killed and timed like any read.

mod inside;
mod search;

use super::batch::{MatchedRow, UpdateTarget, updated_document};
use super::changes::{Applied, Change, Changed, ConditionalChanges, Record};
use super::entries::IndexEntries;
use super::progress::{BatchProgress, PartialStatement, RemainingBatch, is_over};
use super::retry;
use crate::catalog::Collection;
use crate::failure::{self, Failure, SlowPart};
use crate::read::scan;
use crate::transaction::ending::Ending;
use crate::worker::SqliteStore;
use document::{Doc, DocBuf, Value};
use error::{Code, Error, Result};
use rusqlite::OptionalExtension;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{
    AccessStats, BatchOutcome, DeleteStatement, Namespace, Progress, ReturnImage, StatementOutcome, Statements,
    UpdateStatement, WriteBatch,
};
use update::UpdateOutcome as Update;

/// Documents are evaluated for this long before other sessions of the worker have their turn.
const SLICE: Duration = Duration::from_millis(1);

/// The limits of one message to the writer: documents, their bytes, and the time to collect them.
const CHANGES_MAX: usize = 64;
const CHANGES_BYTES_MAX: usize = 256 << 10;
const CHANGES_TIME_MAX: Duration = Duration::from_millis(20);

/// After a statement faster than this, the writer is asked to carry out the next one.
const BRIEF: Duration = Duration::from_millis(5);

/// The reason why a statement has no outcome.
enum StatementEnd {
    /// The statement is refused.
    Statement(Error),
    /// The batch as a whole fails: it must stop, or the writer is out of order.
    Batch(Error),
    /// Another attempt of the same retryable write is ahead.
    Recorded(BatchOutcome),
}

impl From<Error> for StatementEnd {
    fn from(error: Error) -> Self {
        StatementEnd::Statement(error)
    }
}

type Step<T> = std::result::Result<T, StatementEnd>;

/// The result of evaluating a statement on a document: its counts, and the change if there is one.
type Evaluated = (StatementOutcome, Option<Change>);

/// The outcome of a statement's only change.
enum ChangeOutcome {
    Done,
    /// The document, or the collection, has changed: evaluate again.
    Again,
    Refused(Error),
}

impl SqliteStore {
    /// Carries out a batch: on the writer, except for slow statements.
    pub async fn carry_out(&self, batch: WriteBatch) -> Result<BatchOutcome> {
        if self.inside.is_some() {
            return Box::pin(self.carry_out_inside(batch)).await;
        }
        let mut settled = self.writer.write(RemainingBatch::all_of(batch)).await?;
        loop {
            match settled {
                BatchProgress::Done(outcome) => return Ok(outcome),
                // Boxed, so that the future of ordinary writes stays small.
                BatchProgress::OnWorker(rest) => settled = Box::pin(self.carry_out_on_worker(rest)).await?,
            }
        }
    }

    /// Carries out the next statement of a batch, and those behind it that are slow as well.
    async fn carry_out_on_worker(&self, rest: RemainingBatch) -> Result<BatchProgress> {
        let RemainingBatch { batch, mut done, mut begun, mut long } = rest;
        while !is_over(&batch, &done) {
            let began = Instant::now();
            let statement = Statement { store: self, batch: &batch, done: &done, progress: &batch.progress };
            let mut access = AccessStats::default();
            let outcome = match statement.carry_out(begun.take(), &mut access).await {
                Ok(outcome) => Ok(outcome),
                Err(StatementEnd::Statement(error)) => Err(error),
                Err(StatementEnd::Batch(error)) => return Err(error),
                Err(StatementEnd::Recorded(outcome)) => {
                    done = outcome;
                    continue;
                }
            };
            if !matches!(batch.statements, Statements::Insert(_)) {
                done.access.push(access);
            }
            done.statements.push(outcome);
            if began.elapsed() < BRIEF {
                long = SlowPart::Search;
            }
            if long == SlowPart::Search && !is_over(&batch, &done) {
                return self.writer.write(RemainingBatch { batch, done, begun: None, long }).await;
            }
        }
        if batch.journal {
            self.sync_commits(&batch.namespace).await?;
        }
        Ok(BatchProgress::Done(done))
    }

    /// Waits until all commits so far are on disk.
    async fn sync_commits(&self, namespace: &Namespace) -> Result<()> {
        let nothing = ConditionalChanges {
            namespace: namespace.clone(),
            collection: None,
            changes: Vec::new(),
            record: None,
            journal: true,
        };
        self.writer.apply(nothing).await.map(drop)
    }

    /// Reads a document by its number.
    async fn document(&self, collection: &Collection, seq: i64) -> Result<Option<DocBuf>> {
        if self.shared.are_reads_paused() {
            self.wait_for_wal_reset().await;
        }
        let reading = self.read_connection()?;
        let read = || {
            let mut statement = reading.connection().prepare_cached(&collection.sql.by_seq)?;
            statement.query_row([seq], |row| row.get::<_, Vec<u8>>(0)).optional()
        };
        match read() {
            Ok(None) => Ok(None),
            Ok(Some(bytes)) => DocBuf::from_vec(bytes).map(Some).ok_or_else(|| scan::damaged(collection, seq)),
            // The collection was just dropped.
            Err(error) if failure::is_missing_table(&error) => Ok(None),
            Err(error) => Err(Failure::from(error).into()),
        }
    }
}

/// A statement of a batch.
struct Statement<'b> {
    store: &'b SqliteStore,
    batch: &'b WriteBatch,
    /// The outcomes of the statements before.
    done: &'b BatchOutcome,
    progress: &'b Progress,
}

impl Statement<'_> {
    async fn carry_out(&self, begun: Option<PartialStatement>, access: &mut AccessStats) -> Step<StatementOutcome> {
        let at = self.done.statements.len();
        let missing = || StatementEnd::Batch(Error::internal("a batch has fewer statements than it said"));
        match &self.batch.statements {
            Statements::Insert(documents) => {
                let document = documents.get(at).and_then(|bytes| Doc::from_bytes(bytes)).ok_or_else(missing)?;
                self.insert(document).await
            }
            Statements::Update(statements) => {
                let statement = statements.get(at).ok_or_else(missing)?;
                match statement.multi {
                    true => self.update_all(statement, begun, access).await,
                    false => self.update_one(statement, access).await,
                }
            }
            Statements::Delete(statements) => {
                let statement = statements.get(at).ok_or_else(missing)?;
                match statement.one {
                    true => self.delete_one(statement, access).await,
                    false => self.delete_all(statement, begun, access).await,
                }
            }
        }
    }

    fn check(&self) -> Step<()> {
        self.progress.check().map_err(StatementEnd::Batch)
    }

    /// Waits until a transaction is over that has changed a document.
    async fn wait_for(&self, transaction: &Ending) -> Step<()> {
        transaction.wait_unless(|| self.check()).await
    }

    fn collection(&self) -> Option<Arc<Collection>> {
        self.store.find(&self.batch.namespace)
    }

    async fn insert(&self, document: Doc<'_>) -> Step<StatementOutcome> {
        let outcome = StatementOutcome { matched: 1, ..StatementOutcome::default() };
        loop {
            match self.send_insert(document, &outcome).await? {
                ChangeOutcome::Done => return Ok(outcome),
                ChangeOutcome::Again => {}
                ChangeOutcome::Refused(error) => return Err(error.into()),
            }
        }
    }

    async fn send_insert(&self, document: Doc<'_>, outcome: &StatementOutcome) -> Step<ChangeOutcome> {
        self.check()?;
        let collection = self.collection();
        let mut entries = IndexEntries::none();
        if let Some(collection) = &collection {
            if let Some(validator) = collection.validator().filter(|_| !self.batch.bypass_validation) {
                validator.check_insert(document)?;
            }
            entries = IndexEntries::of(collection, document)?;
        }
        self.send(collection, Change::Insert { document: document.to_owned(), entries }, outcome).await
    }

    async fn update_one(&self, statement: &UpdateStatement, access: &mut AccessStats) -> Step<StatementOutcome> {
        let target = UpdateTarget::of_update(statement);
        let (mut candidate, mut met_duplicate) = (None, false);
        loop {
            self.check()?;
            let found = match self.find_one(target, candidate.take(), access).await? {
                Some(found) => found,
                None if !statement.upsert => return Ok(StatementOutcome::default()),
                None => match self.upsert(statement).await? {
                    (ChangeOutcome::Done, outcome) => return Ok(outcome),
                    (ChangeOutcome::Again, _) => continue,
                    // Another session has inserted a document since the search.
                    (ChangeOutcome::Refused(error), _) if error.code() == Code::DUPLICATE_KEY && !met_duplicate => {
                        met_duplicate = true;
                        continue;
                    }
                    (ChangeOutcome::Refused(error), _) => return Err(error.into()),
                },
            };
            let (collection, found) = found;
            let seq = found.seq;
            let (outcome, change) = self.updated(&collection, found, statement)?;
            let Some(change) = change else { return Ok(outcome) };
            match self.send(Some(collection), change, &outcome).await? {
                ChangeOutcome::Done => return Ok(outcome),
                ChangeOutcome::Again => candidate = Some(seq),
                ChangeOutcome::Refused(error) => return Err(error.into()),
            }
        }
    }

    async fn upsert(&self, statement: &UpdateStatement) -> Step<(ChangeOutcome, StatementOutcome)> {
        let mut bytes = Vec::new();
        statement.update.upsert(&statement.predicate, statement.new_id, &mut bytes)?;
        let document = updated_document(&bytes)?;
        let outcome = StatementOutcome {
            upserted: document.get("_id").map(Value::to_owned),
            image: (statement.image == ReturnImage::After).then(|| document.to_owned()),
            ..StatementOutcome::default()
        };
        let sent = self.send_insert(document, &outcome).await?;
        Ok((sent, outcome))
    }

    /// Evaluates an update on a document.
    fn updated(&self, collection: &Collection, found: MatchedRow, statement: &UpdateStatement) -> Result<Evaluated> {
        let mut new = Vec::new();
        let old = found.document.as_doc();
        let is_changed = statement.update.apply(old, &found.details, &mut new)? == Update::Changed;
        let mut outcome = StatementOutcome {
            matched: 1,
            modified: u64::from(is_changed),
            text_score: found.details.text_score,
            ..StatementOutcome::default()
        };
        if !is_changed {
            outcome.image = (statement.image != ReturnImage::None).then_some(found.document);
            return Ok((outcome, None));
        }
        let document = updated_document(&new)?;
        if let Some(validator) = collection.validator().filter(|_| !self.batch.bypass_validation) {
            validator.check_update(old, document)?;
        }
        let (old_entries, new_entries) = (IndexEntries::of(collection, old)?, IndexEntries::of(collection, document)?);
        outcome.image = match statement.image {
            ReturnImage::None => None,
            ReturnImage::Before => Some(old.to_owned()),
            ReturnImage::After => Some(document.to_owned()),
        };
        let is_logging = self.store.shared.oplog.is_some();
        let difference = is_logging.then(|| statement.update.difference(old, document)).flatten();
        let new = document.to_owned();
        let (seq, old) = (found.seq, found.document);
        Ok((outcome, Some(Change::Replace { seq, old, old_entries, new, new_entries, difference })))
    }

    async fn update_all(
        &self,
        statement: &UpdateStatement,
        begun: Option<PartialStatement>,
        access: &mut AccessStats,
    ) -> Step<StatementOutcome> {
        let target = UpdateTarget::of_update(statement);
        let change = |collection: &Collection, found: MatchedRow| self.updated(collection, found, statement);
        let mut outcome = self.change_all(target, begun, access, &change).await?;
        if outcome.matched > 0 || !statement.upsert {
            return Ok(outcome);
        }
        loop {
            match self.upsert(statement).await? {
                (ChangeOutcome::Done, upserted) => {
                    outcome.upserted = upserted.upserted;
                    return Ok(outcome);
                }
                (ChangeOutcome::Again, _) => {}
                (ChangeOutcome::Refused(error), _) => return Err(error.into()),
            }
        }
    }

    async fn delete_one(&self, statement: &DeleteStatement, access: &mut AccessStats) -> Step<StatementOutcome> {
        let target = UpdateTarget::of_delete(statement);
        let mut candidate = None;
        loop {
            self.check()?;
            let Some((collection, found)) = self.find_one(target, candidate.take(), access).await? else {
                return Ok(StatementOutcome::default());
            };
            let seq = found.seq;
            let (mut outcome, change) = deleted(&collection, found)?;
            if statement.image == ReturnImage::Before
                && let Some(Change::Delete { old, .. }) = &change
            {
                outcome.image = Some(old.clone());
            }
            let Some(change) = change else { return Ok(outcome) };
            match self.send(Some(collection), change, &outcome).await? {
                ChangeOutcome::Done => return Ok(outcome),
                ChangeOutcome::Again => candidate = Some(seq),
                ChangeOutcome::Refused(error) => return Err(error.into()),
            }
        }
    }

    async fn delete_all(
        &self,
        statement: &DeleteStatement,
        begun: Option<PartialStatement>,
        access: &mut AccessStats,
    ) -> Step<StatementOutcome> {
        let target = UpdateTarget::of_delete(statement);
        match statement.deletes_everything() {
            true => self.delete_everything(target, begun, access).await,
            false => self.change_all(target, begun, access, &deleted).await,
        }
    }

    /// Deletes documents in any state.
    async fn delete_everything(
        &self,
        target: UpdateTarget<'_>,
        begun: Option<PartialStatement>,
        access: &mut AccessStats,
    ) -> Step<StatementOutcome> {
        let (collection, PartialStatement { mut outcome, left, .. }) = self.begin(target, begun, access).await?;
        let Some(collection) = collection else { return Ok(outcome) };
        let mut conflicts = Vec::new();
        for some in left.chunks(CHANGES_MAX) {
            self.check()?;
            let mut changes = Changes::new(&collection);
            some.iter().for_each(|seq| changes.add(*seq, Change::DeleteAny { seq: *seq }, 0));
            self.flush(&mut changes, &mut outcome, &mut conflicts).await?;
        }
        outcome.modified = 0;
        Ok(outcome)
    }

    /// Changes all matching documents by `change`.
    async fn change_all(
        &self,
        target: UpdateTarget<'_>,
        begun: Option<PartialStatement>,
        access: &mut AccessStats,
        change: &dyn Fn(&Collection, MatchedRow) -> Result<Evaluated>,
    ) -> Step<StatementOutcome> {
        let (collection, PartialStatement { mut outcome, mut left, .. }) = self.begin(target, begun, access).await?;
        let Some(mut collection) = collection else { return Ok(outcome) };
        let mut slice = Instant::now();
        while !left.is_empty() {
            let mut conflicts = Vec::new();
            let mut changes = Changes::new(&collection);
            for seq in std::mem::take(&mut left) {
                if slice.elapsed() >= SLICE {
                    tokio::task::yield_now().await;
                    self.check()?;
                    slice = Instant::now();
                }
                let found = self.reread(&collection, seq, target).await;
                let evaluated = found.and_then(|found| match found {
                    Some(found) => Ok(Some((found.document.as_bytes().len(), change(&collection, found)?))),
                    None => Ok(None),
                });
                match evaluated {
                    Ok(Some((bytes, (_, Some(change))))) => changes.add(seq, change, bytes),
                    Ok(Some((_, (_, None)))) => outcome.matched += 1,
                    Ok(None) => continue,
                    Err(StatementEnd::Statement(error)) => {
                        // Documents before the failed one are changed, as in every batch.
                        self.flush(&mut changes, &mut outcome, &mut conflicts).await?;
                        return Err(error.into());
                    }
                    Err(ended) => return Err(ended),
                }
                if changes.are_enough() {
                    self.flush(&mut changes, &mut outcome, &mut conflicts).await?;
                    slice = Instant::now();
                }
            }
            self.flush(&mut changes, &mut outcome, &mut conflicts).await?;
            left = conflicts;
            match self.collection() {
                Some(now) if now.id == collection.id => collection = now,
                _ => break,
            }
        }
        Ok(outcome)
    }

    /// Returns the documents that a statement must change, and its progress. Without a collection,
    /// nothing is left to do.
    async fn begin(
        &self,
        target: UpdateTarget<'_>,
        begun: Option<PartialStatement>,
        access: &mut AccessStats,
    ) -> Step<(Option<Arc<Collection>>, PartialStatement)> {
        if let Some(begun) = begun {
            // If it was dropped, or another collection has its name, nothing is left to do.
            let collection = self.collection().filter(|collection| collection.id == begun.collection);
            return Ok((collection, begun));
        }
        let mut begun = PartialStatement { collection: 0, outcome: StatementOutcome::default(), left: Vec::new() };
        let Some((collection, search)) = self.search(target, false, access).await? else { return Ok((None, begun)) };
        begun.left = search.all;
        // Concurrent changes can move a document along an index, so that the scan finds it twice.
        begun.left.sort_unstable();
        begun.left.dedup();
        Ok((Some(collection), begun))
    }

    /// Sends the collected changes, and counts their outcomes.
    async fn flush(&self, changes: &mut Changes, outcome: &mut StatementOutcome, conflicts: &mut Vec<i64>) -> Step<()> {
        let (mut sent, mut numbers) = changes.take();
        while !sent.is_empty() {
            let conditional = ConditionalChanges {
                namespace: self.batch.namespace.clone(),
                collection: Some(changes.collection.clone()),
                changes: sent,
                record: None,
                journal: false,
            };
            let (changed, mut left) = match self.store.apply(conditional).await.map_err(StatementEnd::Batch)? {
                Applied::Outcomes(changed, changes, _) => (changed, changes),
                Applied::Blocked(transaction, changes) => {
                    self.wait_for(&transaction).await?;
                    sent = changes;
                    continue;
                }
                Applied::Outdated | Applied::Recorded(_) => {
                    conflicts.extend(numbers);
                    return Ok(());
                }
            };
            left.drain(..changed.len().min(left.len()));
            sent = left;
            let behind = numbers.split_off(changed.len().min(numbers.len()));
            for (changed, seq) in changed.into_iter().zip(std::mem::replace(&mut numbers, behind)) {
                match changed {
                    Changed::Done => {
                        outcome.matched += 1;
                        outcome.modified += u64::from(matches!(self.batch.statements, Statements::Update(_)));
                    }
                    Changed::Conflict => conflicts.push(seq),
                    Changed::Refused(error) => return Err(error.into()),
                }
            }
            self.check()?;
        }
        Ok(())
    }

    /// Sends the change of a statement about one document, with the record of a retryable write.
    async fn send(
        &self,
        collection: Option<Arc<Collection>>,
        change: Change,
        outcome: &StatementOutcome,
    ) -> Step<ChangeOutcome> {
        let record = self.batch.retry.as_ref().map(|key| Record {
            key: key.clone(),
            statement: self.done.statements.len(),
            outcomes: retry::encode([&self.done.statements, &[Ok(outcome.clone())]]),
        });
        let namespace = self.batch.namespace.clone();
        let conditional = ConditionalChanges { namespace, collection, changes: vec![change], record, journal: false };
        match self.store.apply(conditional).await.map_err(StatementEnd::Batch)? {
            Applied::Outdated => Ok(ChangeOutcome::Again),
            Applied::Blocked(transaction, _) => {
                self.wait_for(&transaction).await?;
                Ok(ChangeOutcome::Again)
            }
            Applied::Recorded(outcome) => Err(StatementEnd::Recorded(outcome)),
            Applied::Outcomes(changed, _, record) => {
                drop(record);
                Ok(match changed.into_iter().next() {
                    Some(Changed::Done) => ChangeOutcome::Done,
                    Some(Changed::Refused(error)) => ChangeOutcome::Refused(error),
                    Some(Changed::Conflict) | None => ChangeOutcome::Again,
                })
            }
        }
    }
}

/// Returns the deletion of a document.
fn deleted(collection: &Collection, found: MatchedRow) -> Result<Evaluated> {
    let entries = IndexEntries::of(collection, found.document.as_doc())?;
    let outcome = StatementOutcome { matched: 1, ..StatementOutcome::default() };
    Ok((outcome, Some(Change::Delete { seq: found.seq, old: found.document, entries })))
}

/// Changes collected for one message to the writer.
struct Changes {
    collection: Arc<Collection>,
    changes: Vec<Change>,
    numbers: Vec<i64>,
    bytes: usize,
    began: Instant,
}

impl Changes {
    fn new(collection: &Arc<Collection>) -> Changes {
        Changes {
            collection: collection.clone(),
            changes: Vec::new(),
            numbers: Vec::new(),
            bytes: 0,
            began: Instant::now(),
        }
    }

    fn add(&mut self, seq: i64, change: Change, bytes: usize) {
        self.changes.push(change);
        self.numbers.push(seq);
        self.bytes += bytes;
    }

    fn are_enough(&self) -> bool {
        self.changes.len() >= CHANGES_MAX
            || self.bytes >= CHANGES_BYTES_MAX
            || !self.changes.is_empty() && self.began.elapsed() >= CHANGES_TIME_MAX
    }

    fn take(&mut self) -> (Vec<Change>, Vec<i64>) {
        self.bytes = 0;
        self.began = Instant::now();
        (std::mem::take(&mut self.changes), std::mem::take(&mut self.numbers))
    }
}
