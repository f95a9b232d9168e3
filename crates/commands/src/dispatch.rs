//! From a request to its reply: look the command up, check what all commands share, execute it,
//! record the outcome.

mod error_labels;
mod fail_point;
pub mod immediate;
mod outcome;
mod prepare;
mod reply_times;
mod snapshot;
mod transaction;
mod usage;

use crate::audit::Recording;
use crate::authorization::check::may_use_uuid;
use crate::call::{Call, Disposition};
use crate::default_concerns;
use crate::document_cache::{self, Lookup};
use crate::envelope::{self, collection_by_uuid, collection_uuid, internal_fields};
use crate::login;
use crate::read::text_indexes;
use crate::replica_set;
use crate::table::COMMANDS;
use crate::table::spec::{Access, Handler, Spec};
use crate::time_series;
use bytes::Bytes;
use document::{Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use fail_point::InjectedError;
use futures_util::FutureExt;
use futures_util::future::Either;
use mongo_wire::Request;
use outcome::{count, count_cached, panicked, report};
use reply_times::ReplyTimes;
use server::operation::OperationContext;
use server::profiling::{self, CompletedOperation};
use server::{ClientSession, Worker};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::{Duration, Instant};
use steps::Interruptible;
use store::Identity;
use transaction::WorkerSlot;

/// Executes one request and appends the reply's body, one BSON document, to `reply`. Never fails:
/// errors are replies.
pub fn run(
    worker: &Worker,
    session: &ClientSession,
    request: &Request,
    reply: &mut Vec<u8>,
) -> impl Future<Output = Disposition> {
    run_request(worker, session, request, false, reply)
}

/// Executes a request that is part of another one, for which the user was authorized.
pub(crate) fn run_trusted(
    worker: &Worker,
    session: &ClientSession,
    request: &Request,
    reply: &mut Vec<u8>,
) -> impl Future<Output = Disposition> {
    run_request(worker, session, request, true, reply)
}

/// Runs a command as if the client had sent it, without checking privileges again; fails with its
/// error.
pub(crate) async fn run_part(call: &Call<'_>, command: &DocBuf) -> Result<()> {
    let request = call.request.with_body(command.clone());
    let mut reply = Vec::new();
    Box::pin(run_trusted(call.worker, call.session, &request, &mut reply)).await;
    let reply = Doc::from_bytes(&reply).ok_or_else(|| Error::internal("a command's reply is no document"))?;
    let errors = reply.get("writeErrors").and_then(Value::as_array);
    let error = match errors.and_then(|errors| errors.values().next()) {
        Some(error) => error.as_document(),
        None => Some(reply).filter(|reply| reply.get("ok").and_then(Value::to_i64) != Some(1)),
    };
    error.map_or(Ok(()), |error| {
        let code = error.get("code").and_then(Value::to_i64).and_then(|code| i32::try_from(code).ok());
        let message = error.get("errmsg").and_then(Value::as_str).unwrap_or_default();
        Err(Error::new(code.map_or(crate::reply::NO_CODE, Code), message))
    })
}

async fn run_request(
    worker: &Worker,
    session: &ClientSession,
    request: &Request,
    is_trusted: bool,
    reply: &mut Vec<u8>,
) -> Disposition {
    let start = reply.len();
    let began = Instant::now();
    let operation = OperationContext::default();
    let (body, first) = envelope::body(request);
    let index = first.and_then(|first| index_of(worker, first));
    profiling::flush_before_read(worker, first).await;
    let spec = index.and_then(|index| COMMANDS.get(index));
    let mut recording = None;
    if let Some(spec) = spec.filter(|_| worker.server.audit.is_on()) {
        // Boxed because an audit log is rare, and would enlarge the future of every command.
        match Box::pin(Recording::begin(worker, session, request, (spec, is_trusted))).await {
            Ok(begun) => recording = Some(begun),
            Err(error) => {
                report(worker, index, &error, start, reply);
                return Disposition::Reply;
            }
        }
    }
    let outcome = {
        // Pinned here, because it is large, and passing it on would move it.
        let work = pin!(execute(worker, session, request, (index, is_trusted), &operation, reply));
        let work = pin!(Interruptible::new(work, || operation.check_interrupt()));
        let tracked =
            worker.shared.operations.track(&operation, &session.identity, || shown(spec, request, body), work);
        AssertUnwindSafe(tracked).catch_unwind().await
    };
    let outcome = outcome.unwrap_or_else(|_| Err(panicked(worker, session, first)));
    let disposition = outcome.unwrap_or_else(|error| {
        report(worker, index, &error, start, reply);
        Disposition::Reply
    });
    if let Some(recording) = recording {
        let reply = reply.get(start..).and_then(Doc::from_bytes).unwrap_or(Doc::EMPTY);
        Box::pin(recording.finish(reply)).await;
    }
    if let Some(spec) = spec {
        let reply = reply.get(start..).unwrap_or_default();
        record(worker, session, request, spec, &operation, reply, began.elapsed());
    }
    if !is_trusted {
        append_times(worker, spec, body, reply, start);
    }
    disposition
}

/// Gives a time to the command if it has written, and adds the times to its reply.
fn append_times(worker: &Worker, spec: Option<&Spec>, body: Doc<'_>, reply: &mut Vec<u8>, start: usize) {
    if spec.is_some_and(|spec| spec.writes(body)) {
        replica_set::note_write(worker);
    }
    if let Some(times) = ReplyTimes::now(&worker.server) {
        times.append(reply, start);
    }
}

/// Returns a command as other connections may see it.
fn shown(spec: Option<&Spec>, request: &Request, body: Doc<'_>) -> Bytes {
    match spec.and_then(|spec| COMMANDS.redacted(spec, body)) {
        Some(redacted) => redacted.into_vec().into(),
        None => request.share(body),
    }
}

/// Counts a completed command, and passes it to the profiler if its time asks for that.
fn record(
    worker: &Worker,
    session: &ClientSession,
    request: &Request,
    spec: &Spec,
    operation: &OperationContext,
    reply: &[u8],
    elapsed: Duration,
) {
    let body = envelope::body(request).0;
    worker.shared.usage.record(&usage::of(spec, body), elapsed, &operation.stats.plans());
    let may_record = worker.server.profiling.may_record(elapsed);
    if may_record && spec.profiled && spec.access != Access::Nothing {
        let identity = &session.identity;
        let redacted = COMMANDS.redacted(spec, body);
        let completed = CompletedOperation {
            identity,
            request,
            body: redacted.as_ref().map_or(body, DocBuf::as_doc),
            kind: spec.kind,
            context: operation,
            reply,
            elapsed,
        };
        profiling::record(worker, &completed);
    }
}

/// Returns the index of the command that an element names, if this server has it.
fn index_of(worker: &Worker, first: Element<'_>) -> Option<usize> {
    let index = COMMANDS.index_of(first.key_bytes())?;
    COMMANDS.get(index)?.existence.includes(worker).then_some(index)
}

async fn execute(
    worker: &Worker,
    session: &ClientSession,
    request: &Request,
    (index, is_trusted): (Option<usize>, bool),
    operation: &OperationContext,
    reply: &mut Vec<u8>,
) -> Result<Disposition> {
    let (body, first) = envelope::body(request);
    let Some(first) = first else {
        return Err(Error::new(Code::COMMAND_NOT_FOUND, "no such command: ''"));
    };
    let table = &*COMMANDS;
    let Some((spec, index)) = index.and_then(|index| Some((table.get(index)?, index))) else {
        worker.statistics().operations_command.add(1);
        envelope::check_database_of(body)?;
        return Err(Error::new(Code::COMMAND_NOT_FOUND, format!("no such command: '{}'", first.key())));
    };
    count(worker, index);
    if !session.is_login_current(&worker.server.access_control) {
        Box::pin(session.refresh_login(worker)).await?;
    }
    // The catalog is asked only for users that may: for others `prepare` fails.
    let may_resolve = login::check(worker, session, spec).is_ok() && may_use_uuid(worker, session);
    let resolved = match may_resolve && collection_by_uuid::is_given(spec, first) {
        true => Some(Box::pin(collection_by_uuid::resolve(worker, body, first)).await?),
        false => None,
    };
    let first = resolved.as_ref().and_then(collection_by_uuid::Resolved::first).unwrap_or(first);
    let within = WorkerSlot::new();
    let mut call = Call::new(worker, session, request, (table, spec), first, operation);
    call.reply_capacity = reply.capacity();
    call.is_trusted = is_trusted;
    call.unresolved = resolved.as_ref().and_then(|resolved| resolved.failure.clone());
    if worker.server.fail_command.is_on()
        && let Some(disposition) = Box::pin(fail_point::apply(&mut call, body)).await?
    {
        return Ok(disposition);
    }
    if spec.takes_write_concern {
        // Boxed because it is rare, and would enlarge the future of every command.
        if worker.server.default_concerns.are_due(call.steady_ms) {
            Box::pin(default_concerns::refresh(worker, call.steady_ms)).await?;
        }
    }
    prepare::begin(&mut call, body)?;
    if let Some(error) = call.unresolved.take() {
        call.parse_own()?;
        return Err(error);
    }
    if call.envelope.asks_for_help {
        let mut writer = DocWriter::begin(reply);
        prepare::write_help(spec, &mut writer);
        writer.append("ok", 1.0);
        return Ok(Disposition::Reply);
    }
    internal_fields::take(&mut call)?;
    internal_fields::refuse_exchange(&call)?;
    if let Some(expected) = collection_uuid::take(&mut call)? {
        call.parse_own()?;
        spec.check_operands.map_or(Ok(()), |check| check(&call))?;
        // Boxed because it is rare, and would enlarge the future of every command.
        Box::pin(collection_uuid::compare(&mut call, expected)).await?;
    }
    let write_lock = &worker.server.write_lock;
    if write_lock.is_locked() && spec.writes(body) {
        Box::pin(write_lock.wait(operation)).await?;
    }
    call.text_indexes = text_indexes::mentioned(&call).await?;
    if call.envelope.in_transaction {
        // Boxed because it would enlarge the future of every command.
        return Box::pin(transaction::run(&mut call, &within, body, reply)).await;
    }
    if let Some(read) = snapshot::read_by(&call) {
        // Boxed because it would enlarge the future of every command.
        return Box::pin(snapshot::run(&mut call, &within, read, body, reply)).await;
    }
    if let (Some(id), Some(number)) = (call.envelope.session, call.envelope.txn_number)
        && worker.server.transactions.are_used()
    {
        worker.server.transactions.retryable_write(&id, number)?;
    }
    if let Some(cache) = worker.server.document_cache.as_ref().filter(|_| spec.cacheable && resolved.is_none()) {
        match Box::pin(document_cache::look_up(cache, &call)).await? {
            Lookup::Hit(cached) => {
                count_cached(worker, spec, &cached);
                reply.extend_from_slice(&cached.body);
                return Ok(Disposition::Reply);
            }
            Lookup::FirstBatch(cached) => call.first_batch = Some(cached),
            Lookup::Compute(pending) => call.dependencies.begin(Some(pending)),
            Lookup::Bypass => {}
        }
    }
    handle(&mut call, body, reply).await
}

/// Returns the identity under which the store executes the command, if it distinguishes them.
fn identity(call: &Call<'_>) -> Option<Identity> {
    let account = || call.session.with_login(|login, _| login.map(|login| login.account.clone()));
    call.worker.store.keeps_accounts().then(|| account().map_or(Identity::Nobody, Identity::User))
}

/// Runs the command's handler and completes its reply.
async fn handle(call: &mut Call<'_>, body: Doc<'_>, reply: &mut Vec<u8>) -> Result<Disposition> {
    let start = reply.len();
    let outcome = {
        let mut writer = DocWriter::begin(reply);
        let outcome = match &call.spec.handler {
            Handler::Immediate(handler) => handler(call, &mut writer).map(|()| Disposition::Reply),
            Handler::Waiting(handler) | Handler::WithFastPath(_, handler) => {
                let (operation, stops_itself) = (call.operation, call.spec.stops_at_safe_points(body));
                let (identity, preference) = (identity(call), call.reads_elsewhere.clone());
                let work = handler(call, &mut writer);
                let work = match preference {
                    None => Either::Left(work),
                    // Boxed because it is rare, and would enlarge the future of every command.
                    preference => Either::Right(Box::pin(store::read_preference::under(preference, work))),
                };
                if let Some(identity) = identity {
                    let work = store::identity::under(identity, work);
                    // Boxed because it is rare, and would enlarge the future of every command.
                    Box::pin(async { if stops_itself { work.await } else { operation.run_interruptible(work).await } })
                        .await
                } else if stops_itself {
                    work.await
                } else {
                    operation.run_interruptible(work).await
                }
            }
        };
        if outcome.is_ok() {
            report_concern(call, body, &mut writer);
        }
        match outcome {
            Ok(_) if call.by_view => writer.append("ok", 1),
            Ok(_) => writer.append("ok", 1.0),
            Err(_) => {}
        }
        outcome
    };
    match outcome {
        Ok(disposition) => {
            if let Some(pending) = call.dependencies.take() {
                pending.finish(reply.get(start..).unwrap_or_default(), call.steady_ms);
            }
            Ok(disposition)
        }
        Err(error) if error.code() == Code::COMMAND_NOT_SUPPORTED_ON_VIEW => {
            // Boxed because it is rare, and would enlarge the future of every command.
            Err(Box::pin(time_series::name_in_error(call, error)).await)
        }
        Err(error) if error.labels().is_empty() => {
            let labels = error_labels::of(call.spec, &call.envelope, error.code());
            Err(error.with_labels(labels))
        }
        Err(error) => Err(error),
    }
}

/// Appends the error of the write concern to the reply of a write that was executed: that of a fail
/// point, or else of a concern that cannot be satisfied.
fn report_concern(call: &Call<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) {
    if let Some(injected) = InjectedError::of(call, body) {
        injected.write(call, reply);
    } else if let Some(error) = prepare::unsatisfied(call) {
        envelope::write_unsatisfied(error, reply);
    }
}

/// Kills the operations of a connection whose client has disconnected, if their only effect is the
/// reply: reads, and `hello` that waits for a change. Writes continue, as in MongoDB.
pub fn stop_reads_of(worker: &Worker, connection_id: u64) {
    worker.shared.operations.for_each(|operation| {
        let is_own = operation.identity.connection_id == connection_id;
        if is_own && COMMANDS.leaves_nothing(operation.command()) {
            operation.kill_for_disconnect();
        }
    });
}

/// Returns whether a request must wait for memory. Nearly free while memory is not short.
#[inline]
pub fn must_wait_for_memory(request: &Request) -> bool {
    server::memory_pressure::is_high() && may_be_shed(request)
}

/// Returns whether an overloaded server may refuse the request: it reads or writes documents, and
/// neither frees what the client holds nor observes the server.
pub fn may_be_shed(request: &Request) -> bool {
    is_memory_intensive(envelope::body(request).1)
}

#[cold]
fn is_memory_intensive(first: Option<Element<'_>>) -> bool {
    first.and_then(|first| COMMANDS.named(first.key_bytes())).is_some_and(|spec| spec.memory_intensive)
}
