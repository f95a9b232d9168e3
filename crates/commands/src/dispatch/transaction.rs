//! Executing the statements of a transaction.
//!
//! A statement takes its session's turn, and runs on a worker whose store reads and writes within
//! the transaction, so that its handler does not know. A statement that fails aborts the
//! transaction, except if it was refused before it was executed.

use super::{handle, identity, report_concern, snapshot};
use crate::call::{Call, Disposition};
use crate::command::sessions::transactions;
use crate::envelope::{self, SnapshotTime};
use document::{Doc, DocWriter};
use error::{Code, Error, Result};
use server::logical_session::LogicalSessionId;
use server::session_state::{StatementRole, Step};
use server::snapshots::too_old;
use server::{Server, Worker};
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use store::identity::under;
use store::transaction::{self, TRANSIENT, TransactionKey};
use store::{DocumentStore, RetryKey, Transaction};
use tokio::sync::OwnedMutexGuard;

/// A place for the worker of a transaction's statement. Dropping it ends the statement.
pub(super) type WorkerSlot = OnceCell<Box<Within>>;

/// The worker of a statement, whose store reads and writes within the transaction.
pub(super) struct Within {
    /// Dropped before the turn, so that the next statement finds the transaction unused.
    pub(super) worker: Worker,
    _turn: OwnedMutexGuard<()>,
}

impl Within {
    pub(super) fn new(worker: Worker, turn: OwnedMutexGuard<()>) -> Box<Within> {
        Box::new(Within { worker, _turn: turn })
    }
}

/// Executes a statement of a transaction, or its end. `slot`: where its worker is stored.
pub(super) async fn run<'a>(
    call: &mut Call<'a>,
    slot: &'a WorkerSlot,
    body: Doc<'a>,
    reply: &mut Vec<u8>,
) -> Result<Disposition> {
    let worker = call.worker;
    let (Some(id), Some(number)) = (call.envelope.session, call.envelope.txn_number) else {
        return Err(Error::internal("a transaction without a session"));
    };
    let role = transactions::role(call.spec, &call.envelope);
    let turn = turn(call, id, (role == StatementRole::Commit).then_some(number)).await?;
    let turn = call.operation.run_interruptible(async { Ok(turn.lock_owned().await) }).await?;
    let registry = &worker.server.transactions;
    // Killing a session's operation aborts its transaction too, which may be noticed first.
    let operation = call.operation;
    let ended = |error| operation.kill_reason().unwrap_or_else(|| transient(error));
    let step = registry.statement(&id, number, role, call.steady_ms)?;
    let mut attempt = Attempt { server: &worker.server, id, number, succeeded: false };
    match (role, step) {
        (_, Step::WasCommitted) => {
            attempt.succeeded = true;
            write_ok(call, reply);
            return Ok(Disposition::Reply);
        }
        (StatementRole::Abort, _) => {
            drop(attempt);
            write_ok(call, reply);
            return Ok(Disposition::Reply);
        }
        (StatementRole::Commit, _) => {
            let handle = registry.handle(&id, number)?;
            let retry = RetryKey { session: id.retry_id(), txn_number: number };
            let key = TransactionKey { retry, session: id.uuid, user: id.user };
            let journal = call.envelope.durability.journal;
            // From here on the task decides how the transaction ends.
            attempt.succeeded = true;
            let committing =
                commit(worker.server.clone(), worker.store.clone(), handle, (id, number, key), journal, turn);
            let committed = tokio::task::spawn_local(committing).await;
            committed.map_err(|_| Error::internal("the commit has failed"))?.map_err(transient)?;
            write_ok(call, reply);
            return Ok(Disposition::Reply);
        }
        (_, Step::Begin) => {
            let identity = identity(call).unwrap_or_default();
            let time = call.envelope.read_concern.and_then(SnapshotTime::of);
            let handle = under(identity, begin(call, time)).await.map_err(ended)?;
            registry.attach(&id, number, handle).map_err(ended)?;
        }
        (_, Step::Continue) => {}
    }
    let start = reply.len();
    let transaction = registry.handle(&id, number).map_err(ended)?;
    let store = worker.store.in_transaction(&transaction).map_err(ended)?;
    call.worker = &slot.get_or_init(|| Within::new(worker.with_store(store), turn)).worker;
    let executed = match transactions::check_operation(call) {
        Ok(()) => handle(call, body, reply).await,
        Err(error) => Err(error),
    };
    let disposition = executed.map_err(ended)?;
    registry.pause(&id, number).map_err(ended)?;
    let written = reply.get(start..).and_then(Doc::from_bytes);
    attempt.succeeded = written.is_some_and(|reply| reply.get("writeErrors").is_none());
    Ok(disposition)
}

/// Begins a transaction of the store. Fails with 239 if it must read the state of a time
/// (`atClusterTime`) that is not the present one.
async fn begin(call: &Call<'_>, time: Option<SnapshotTime>) -> Result<Arc<dyn Transaction>> {
    let store = &call.worker.store;
    let Some(SnapshotTime::At(time)) = time else { return store.begin_transaction().await };
    let position = snapshot::position_of(time);
    if let Some(feed) = store.change_feed() {
        feed.advance(position);
    }
    let handle = store.begin_transaction().await?;
    match handle.snapshot_times() {
        Some(times) if times.contain(position) => Ok(handle),
        _ => Err(too_old(time).with_labels(&[TRANSIENT])),
    }
}

/// Commits a transaction, and records the outcome. This is a task of its own: if the client leaves,
/// or the operation is killed, the outcome is recorded nevertheless.
async fn commit(
    server: Arc<Server>,
    store: Rc<dyn DocumentStore>,
    handle: Arc<dyn Transaction>,
    (id, number, key): (LogicalSessionId, i64, TransactionKey),
    journal: bool,
    _turn: OwnedMutexGuard<()>,
) -> Result<()> {
    let mut attempt = Attempt { server: &server, id, number, succeeded: false };
    let outcome = store.commit_transaction(&handle, key, journal).await;
    if outcome.as_ref().is_err_and(transaction::may_be_committed) {
        server.transactions.doubt(&id, number);
        server.kill_transaction_cursors(&id, number);
    }
    outcome?;
    attempt.succeeded = true;
    server.transactions.commit(&id, number);
    server.kill_transaction_cursors(&id, number);
    Ok(())
}

/// Returns the lock for the turns of a session's statements. Reads the session's record if it is
/// the first statement since the process began, or if it commits a transaction (`commits`) that is
/// unknown here.
async fn turn(call: &Call<'_>, id: LogicalSessionId, commits: Option<i64>) -> Result<Arc<tokio::sync::Mutex<()>>> {
    let registry = &call.worker.server.transactions;
    if let Some(turn) = registry.turn(&id, commits) {
        return Ok(turn);
    }
    let recorded = call.worker.store.recorded_write(id.retry_id(), commits).await?;
    Ok(registry.add(id, recorded, call.steady_ms))
}

/// Aborts the transaction when it is dropped, unless its statement has succeeded.
struct Attempt<'s> {
    server: &'s Server,
    id: LogicalSessionId,
    number: i64,
    succeeded: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.succeeded {
            self.server.abort_transaction(&self.id, self.number);
        }
    }
}

fn write_ok(call: &Call<'_>, reply: &mut Vec<u8>) {
    let mut writer = DocWriter::begin(reply);
    report_concern(call, envelope::body(call.request).0, &mut writer);
    writer.append("ok", 1.0);
}

/// Adds the label of errors after which the client may repeat the transaction.
fn transient(error: Error) -> Error {
    let is_transient = matches!(
        error.code(),
        Code::WRITE_CONFLICT
            | Code::LOCK_TIMEOUT
            | Code::NO_SUCH_TRANSACTION
            | Code::QUERY_PLAN_KILLED
            | Code::SNAPSHOT_UNAVAILABLE
    );
    if is_transient { error.with_labels(&[TRANSIENT]) } else { error }
}
