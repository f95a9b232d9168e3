//! Requests that are executed without a future.
//!
//! Most requests have nothing to wait for. A future that holds a whole command is large and is
//! moved several times, so these requests avoid it: handlers that never wait, `find` by `_id`, and
//! replies from the document cache.

use super::outcome::{COUNTED_BYTES_MAX, count, count_cached, panicked, report};
use super::reply_times::ReplyTimes;
use super::{index_of, prepare, usage};
use crate::call::Call;
use crate::command::crud::find;
use crate::document_cache;
use crate::envelope::{self, collection_by_uuid};
use crate::table::COMMANDS;
use crate::table::spec::Handler;
use document::{Doc, DocWriter};
use error::Result;
use mongo_wire::Request;
use mongo_wire::request::RequestKind;
use server::document_cache::{CachedReply, DocumentCache, ReplyBody};
use server::operation::OperationContext;
use server::{ClientSession, Worker};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use store::PlanSummary;

/// The outcome of [`run_immediately`].
pub enum ImmediateOutcome {
    /// The request may have to wait: nothing has happened, and [`run`](super::run) must execute it.
    MayWait,
    /// The reply's body is written.
    Written,
    /// The reply's body, to be sent from where it is stored, and the reply's own end, if it has
    /// one. The own beginning of the body, if it has one, is written.
    Cached { body: ReplyBody, end: Vec<u8> },
}

/// The smallest cached reply that is sent from where it is stored; copying a smaller one is
/// cheaper.
const SENT_UNCOPIED_BYTES: usize = COUNTED_BYTES_MAX;

/// The most work that is done here, where it cannot be suspended: a few milliseconds.
const STEPS_MAX: u64 = 50_000;

/// Executes a request that has nothing to wait for, as [`run`](super::run) does but without a
/// future.
pub fn run_immediately(
    worker: &Worker,
    session: &ClientSession,
    request: &Request,
    reply: &mut Vec<u8>,
) -> ImmediateOutcome {
    let start = reply.len();
    let outcome = run_without_times(worker, session, request, reply);
    let Some(times) = ReplyTimes::now(&worker.server) else { return outcome };
    match outcome {
        ImmediateOutcome::Written => times.append(reply, start),
        ImmediateOutcome::Cached { body, end } => {
            let (length, body, end) = times.around(&body, end);
            reply.extend_from_slice(&length);
            return ImmediateOutcome::Cached { body, end };
        }
        ImmediateOutcome::MayWait => {}
    }
    outcome
}

fn run_without_times(
    worker: &Worker,
    session: &ClientSession,
    request: &Request,
    reply: &mut Vec<u8>,
) -> ImmediateOutcome {
    let (body, first) = envelope::body(request);
    let table = &*COMMANDS;
    let command = first.and_then(|first| {
        let index = index_of(worker, first)?;
        Some((first, index, table.get(index)?))
    });
    let Some((first, index, spec)) = command else { return ImmediateOutcome::MayWait };
    if worker.server.fail_command.is_on() {
        return ImmediateOutcome::MayWait;
    }
    if !session.is_login_current(&worker.server.access_control) {
        return ImmediateOutcome::MayWait;
    }
    if matches!(request.kind, RequestKind::Query { .. }) || collection_by_uuid::is_given(spec, first) {
        return ImmediateOutcome::MayWait;
    }
    // Cached replies and documents found by their `_id` are recorded only on demand.
    let audit = &worker.server.audit;
    if audit.is_on() && (matches!(spec.handler, Handler::Immediate(_)) || audit.records_authorization_success()) {
        return ImmediateOutcome::MayWait;
    }
    let start = reply.len();
    let profiled = worker.server.profiling.records_fast_operations();
    // Fast operations are recorded only by `run`.
    let cache = worker.server.document_cache.as_ref().filter(|_| spec.cacheable && !profiled);
    let operation = OperationContext::default();
    let new_call = || Call::new(worker, session, request, (table, spec), first, &operation);
    if let Some(cache) = cache {
        let began = Instant::now();
        let mut call = new_call();
        if let Some((cached, shared, end)) = cached_reply(cache, &mut call, body) {
            count(worker, index);
            count_cached(worker, spec, &cached);
            worker.shared.usage.record(&usage::of(spec, body), began.elapsed(), &[]);
            if shared.len() >= SENT_UNCOPIED_BYTES && !cached.has_escaped_names {
                return ImmediateOutcome::Cached { body: shared, end };
            }
            reply.extend_from_slice(&shared);
            reply.extend_from_slice(&end);
            return ImmediateOutcome::Written;
        }
    }
    let mut answer = |handler: &dyn Fn(&mut Call<'_>, &mut DocWriter<'_>) -> Result<bool>| {
        let mut call = new_call();
        prepare::begin(&mut call, body)?;
        let reads_snapshot = call.envelope.snapshot_time().is_some();
        if call.envelope.in_transaction || reads_snapshot || call.reads_elsewhere.is_some() {
            return Ok(false);
        }
        if let Some(cache) = cache {
            call.dependencies.begin(document_cache::begin_entry(cache, &call));
        }
        let mut writer = DocWriter::begin(reply);
        let answered = match call.envelope.asks_for_help {
            true => {
                prepare::write_help(spec, &mut writer);
                true
            }
            false => handler(&mut call, &mut writer)?,
        };
        if let Some(error) = prepare::unsatisfied(&call) {
            envelope::write_unsatisfied(error, &mut writer);
        }
        writer.append("ok", 1.0);
        drop(writer);
        if let Some(pending) = call.dependencies.take().filter(|_| answered) {
            pending.finish(reply.get(start..).unwrap_or_default(), call.steady_ms);
        }
        Ok(answered)
    };
    match &spec.handler {
        Handler::WithFastPath(..) if profiled => ImmediateOutcome::MayWait,
        Handler::WithFastPath(fast_path, _) if (fast_path.is_likely)(request) => {
            let began = Instant::now();
            let attempt = || answer(&|call, writer| (fast_path.handler)(call, writer));
            let answered = catch_unwind(AssertUnwindSafe(|| steps::bounded(STEPS_MAX, attempt)));
            if matches!(answered, Ok(Ok(Ok(true)))) {
                count(worker, index);
                let plans = [(PlanSummary::Name("IDHACK"), 1)];
                worker.shared.usage.record(&usage::of(spec, body), began.elapsed(), &plans);
                return ImmediateOutcome::Written;
            }
            // `run` finds the same error, and reports it.
            reply.truncate(start);
            ImmediateOutcome::MayWait
        }
        // A write may have to wait for `fsyncUnlock`.
        Handler::Immediate(_) if worker.server.write_lock.is_locked() => ImmediateOutcome::MayWait,
        Handler::Immediate(handler) => {
            let answered =
                catch_unwind(AssertUnwindSafe(|| answer(&|call, writer| handler(call, writer).map(|()| true))));
            let answered = answered.unwrap_or_else(|_| Err(panicked(worker, session, Some(first))));
            if matches!(answered, Ok(false)) {
                // It is part of a transaction, and must have its session's turn.
                reply.truncate(start);
                return ImmediateOutcome::MayWait;
            }
            count(worker, index);
            if let Err(error) = answered {
                report(worker, Some(index), &error, start, reply);
            }
            ImmediateOutcome::Written
        }
        Handler::WithFastPath(..) | Handler::Waiting(_) => ImmediateOutcome::MayWait,
    }
}

/// Returns the cached reply to a command, with its parts to send. Errors in the command are left to
/// [`run`](super::run).
fn cached_reply<'a>(
    cache: &DocumentCache,
    call: &mut Call<'a>,
    body: Doc<'a>,
) -> Option<(std::sync::Arc<CachedReply>, ReplyBody, Vec<u8>)> {
    let is_valid = prepare::begin(call, body).is_ok() && !call.envelope.asks_for_help;
    let cached = is_valid.then(|| document_cache::get(cache, call)).flatten()?;
    let (shared, end) = parts(call, &cached)?;
    Some((cached, shared, end))
}

/// Splits a cached reply into its shared body, and the end that is not shared because it names a
/// cursor of its own. Returns `None` if the cursor cannot be opened without waiting.
fn parts(call: &Call<'_>, cached: &CachedReply) -> Option<(ReplyBody, Vec<u8>)> {
    if cached.continuation.is_none() {
        return Some((cached.body.clone(), Vec::new()));
    }
    let id_at = cached.cursor_id_offset()?;
    let id = find::continue_immediately(call, cached).ok()?;
    let behind = cached.body.get(id_at + size_of_val(&id)..)?;
    Some((cached.body.slice(..id_at), [&id.to_le_bytes()[..], behind].concat()))
}
