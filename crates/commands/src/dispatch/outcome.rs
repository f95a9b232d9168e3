//! Counting commands and reporting their errors.

use crate::document_cache;
use crate::reply;
use crate::table::spec::Spec;
use document::Element;
use error::Error;
use server::document_cache::CachedReply;
use server::operation::OperationKind;
use server::{ClientSession, Worker};

/// The largest batch whose documents are counted when it is sent from the cache.
pub(super) const COUNTED_BYTES_MAX: usize = 16 << 10;

/// Counts the execution of a command.
pub(super) fn count(worker: &Worker, command: usize) {
    if let Some((executed, _)) = worker.statistics().commands.get(command) {
        executed.add(1);
    }
}

/// Counts what a command does whose reply came from the cache.
pub(super) fn count_cached(worker: &Worker, spec: &Spec, cached: &CachedReply) {
    let statistics = worker.statistics();
    if spec.kind != OperationKind::Query {
        statistics.operations_command.add(1);
        return;
    }
    statistics.operations_query.add(1);
    // A larger batch counts as one document: walking it would cost more than sending it.
    let documents = document_cache::batch(cached).and_then(|batch| batch.value().as_array());
    let small = documents.filter(|documents| documents.size() < COUNTED_BYTES_MAX);
    statistics.documents_returned.add(small.map_or(1, |documents| documents.elements().count()) as u64);
}

/// Replaces the bytes from `start` on with an error's reply.
pub(super) fn report(worker: &Worker, command: Option<usize>, error: &Error, start: usize, reply: &mut Vec<u8>) {
    if let Some((_, failed)) = command.and_then(|index| worker.statistics().commands.get(index)) {
        failed.add(1);
    }
    worker.statistics().asserts_user.add(1);
    reply.truncate(start);
    reply::write_error(error, reply);
}

/// Logs a panic, and returns the error to report.
pub(super) fn panicked(worker: &Worker, session: &ClientSession, first: Option<Element<'_>>) -> Error {
    worker.statistics().asserts_regular.add(1);
    let name = first.map_or("", |first| first.key());
    tracing::error!(command = name, connection = session.connection_id, "the command ended in a panic");
    Error::internal("internal error; the server's log has the details")
}
