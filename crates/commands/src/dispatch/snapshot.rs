//! Executing reads of a snapshot outside of a transaction (`readConcern: {level: "snapshot"}`).
//!
//! The read runs on a worker whose store reads the snapshot, as a statement of a transaction does,
//! so that its handler does not know. [`server::snapshots`] keeps the snapshot for later reads.

use super::transaction::{Within, WorkerSlot};
use super::{handle, identity};
use crate::arguments::namespace_to_read;
use crate::call::{Call, Disposition};
use crate::envelope::SnapshotTime;
use document::{Doc, Value};
use error::{Code, Error, Result};
use server::clock;
use server::cluster_clock::ClusterTime;
use server::snapshots::{KeptSnapshot, too_old};
use std::sync::Arc;
use store::identity::under;
use store::{FeedPosition, Identity, Namespace, Rules};

/// The commands that may read a snapshot outside of a transaction.
const READS: &[&str] = &["find", "aggregate", "distinct"];

/// The snapshot that a command reads.
pub(super) enum SnapshotRead {
    Demanded(SnapshotTime),
    /// That of the cursor which a `getMore` continues.
    OfCursor(i64, Arc<KeptSnapshot>),
}

/// Returns the snapshot that a command reads, if it reads one.
pub(super) fn read_by(call: &Call<'_>) -> Option<SnapshotRead> {
    if READS.contains(&call.spec.name) {
        return call.envelope.snapshot_time().map(SnapshotRead::Demanded);
    }
    let server = &call.worker.server;
    if call.spec.name != "getMore" || !server.snapshots.are_used() {
        return None;
    }
    let Value::Int64(id) = call.first().value() else { return None };
    Some(SnapshotRead::OfCursor(id, server.cursors.owner(id)?.snapshot?))
}

/// Executes a read of a snapshot. `slot`: where its worker is stored.
pub(super) async fn run<'a>(
    call: &mut Call<'a>,
    slot: &'a WorkerSlot,
    read: SnapshotRead,
    body: Doc<'a>,
    reply: &mut Vec<u8>,
) -> Result<Disposition> {
    let worker = call.worker;
    let snapshots = &worker.server.snapshots;
    // Other servers do not have the snapshot.
    call.reads_elsewhere = None;
    let mut collection = None;
    let (snapshot, cursor) = match read {
        SnapshotRead::OfCursor(id, snapshot) => (snapshot, Some(id)),
        SnapshotRead::Demanded(time) => {
            let namespace = call.first().value().as_str().map(|_| namespace_to_read(call.database(), call.first()));
            if let Some(namespace) = namespace.transpose()? {
                collection = checked_collection(call, &namespace).await?.map(|uuid| (namespace, uuid));
            }
            let operation = call.operation;
            (operation.run_interruptible(find_or_take(call, time)).await?, None)
        }
    };
    let turn = snapshot.turn.clone();
    let turn = call.operation.run_interruptible(async { Ok(turn.lock_owned().await) }).await?;
    let executed = match worker.store.in_transaction(&snapshot.handle) {
        Ok(store) if !snapshot.is_released() => {
            call.worker = &slot.get_or_init(|| Within::new(worker.with_store(store), turn)).worker;
            call.snapshot = Some(snapshot.clone());
            match check_is_same(call, collection, snapshot.time).await {
                Ok(()) => handle(call, body, reply).await,
                Err(error) => Err(error),
            }
        }
        Ok(_) => Err(too_old(snapshot.time)),
        Err(error) => Err(error),
    };
    executed.map_err(|error| {
        // The store has lost the snapshot.
        if matches!(error.code(), Code::NO_SUCH_TRANSACTION | Code::HOST_UNREACHABLE) {
            snapshots.remove(&snapshot);
        }
        if !snapshot.is_released() {
            let is_changed = matches!(error.code(), Code::WRITE_CONFLICT | Code::QUERY_PLAN_KILLED);
            return if is_changed { catalog_changed(snapshot.time) } else { error };
        }
        if let Some(id) = cursor {
            worker.server.cursors.kill(id);
        }
        match error.code() {
            Code::HOST_UNREACHABLE => error,
            _ => too_old(snapshot.time),
        }
    })
}

/// Refuses collections of which MongoDB reads no snapshots. Returns the UUID of one that exists.
async fn checked_collection(call: &Call<'_>, namespace: &Namespace) -> Result<Option<[u8; 16]>> {
    if (&*namespace.database, &*namespace.collection) == ("config", "transactions") {
        let message = "Snapshot reads and causal consistent majority reads on config.transactions are not supported";
        return Err(Error::new(Code(5_557_800), message));
    }
    let Some(info) = call.worker.store.collection(namespace).await? else { return Ok(None) };
    if Rules::of(info.options.as_doc())?.is_some_and(|rules| rules.cap.is_some()) {
        let message = "Reading from capped collections with readConcern snapshot is not supported";
        return Err(Error::new(Code::SNAPSHOT_UNAVAILABLE, message));
    }
    Ok(Some(info.uuid))
}

/// Fails with 246 if a collection has been created since the snapshot.
async fn check_is_same(call: &Call<'_>, now: Option<(Namespace, [u8; 16])>, time: ClusterTime) -> Result<()> {
    let Some((namespace, uuid)) = now else { return Ok(()) };
    match call.worker.store.collection(&namespace).await? {
        Some(info) if info.uuid == uuid => Ok(()),
        _ => Err(catalog_changed(time)),
    }
}

fn catalog_changed(time: ClusterTime) -> Error {
    let message = format!(
        "Unable to read from a snapshot due to pending collection catalog changes; please retry the operation. Snapshot \
         timestamp is {time}."
    );
    Error::new(Code::SNAPSHOT_UNAVAILABLE, message)
}

/// Returns the kept snapshot of a time, or takes one of now. Fails with 239 if none is kept, and
/// the present state is not that of the time.
async fn find_or_take(call: &Call<'_>, time: SnapshotTime) -> Result<Arc<KeptSnapshot>> {
    let identity = identity(call).unwrap_or_default();
    let snapshots = &call.worker.server.snapshots;
    let SnapshotTime::At(time) = time else { return take(call, identity, None).await };
    if let Some(snapshot) = snapshots.at(time, &identity, call.steady_ms) {
        return Ok(snapshot);
    }
    let position = position_of(time);
    match call.worker.store.change_feed() {
        Some(feed) if feed.is_own_log() && feed.latest() <= position => {}
        _ => return Err(too_old(time)),
    }
    take(call, identity, Some(time)).await
}

/// Takes a snapshot of now, and keeps it. `time`: a time of which it must be the state.
async fn take(call: &Call<'_>, identity: Identity, time: Option<ClusterTime>) -> Result<Arc<KeptSnapshot>> {
    let worker = call.worker;
    let (clock, store) = (&worker.server.cluster_clock, &worker.store);
    if let Some(feed) = store.change_feed() {
        // Later writes have later times than the snapshot, which has that of no earlier reply.
        feed.advance(position_of(time.unwrap_or_default().max(clock.committed())));
    }
    let handle = under(identity.clone(), store.take_snapshot()).await.map_err(without_transaction)?;
    let reached = match (handle.snapshot_times(), time) {
        (Some(times), Some(time)) if times.contain(position_of(time)) => time,
        (_, Some(time)) => return Err(too_old(time)),
        (Some(times), None) => ClusterTime::new(times.last.time, times.last.increment),
        (None, None) => clock.tick(clock::now_seconds()),
    };
    clock.note_commit(reached);
    Ok(worker.server.snapshots.add(reached, handle, identity, store.snapshot_limits(), call.steady_ms))
}

/// The error for a snapshot that cannot be taken: it is no error of a transaction.
fn without_transaction(error: Error) -> Error {
    let message = match error.code() {
        Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION => "Snapshots are not supported by this server",
        Code::LOCK_TIMEOUT => "Unable to take a snapshot: too many transactions are open",
        _ => return error,
    };
    Error::new(Code::SNAPSHOT_UNAVAILABLE, message)
}

/// Returns a time as a position in the change feed.
pub(super) fn position_of(time: ClusterTime) -> FeedPosition {
    FeedPosition { time: time.seconds(), increment: time.increment() }
}
