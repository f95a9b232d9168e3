//! `currentOp` and `killOp`: list the operations under way, and end them.

use crate::arguments;
use crate::arguments::options;
use crate::call::Call;
use crate::reply::append_session;
use auth::UserName;
use document::{Doc, DocBuf, DocWriter, Value};
use error::{Error, Result};
use query::Predicate;
use server::ClientIdentity;
use server::operation::{Operation, OperationKind, namespace_of, next_operation_id};
use std::time::Duration;

pub fn current_op(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    // Fields that are no options are a filter on the operations.
    let filter = options::without(call.request.body(), |key| {
        key.starts_with('$')
            || matches!(
                key,
                "currentOp" | "lsid" | "comment" | "maxTimeMS" | "txnNumber" | "apiVersion" | "readConcern"
            )
    });
    let predicate = Predicate::parse(filter.as_doc(), &call.context())?;
    let of_all = !options::is_set(call.request.body(), "$ownOps");
    let mut in_progress = reply.array("inprog");
    for operation in operations(call, of_all) {
        if predicate.matches(operation.as_doc())? {
            in_progress.push(&operation);
        }
    }
    drop(in_progress);
    if call.worker.server.write_lock.is_locked() {
        reply.append("fsyncLock", true);
        reply.append("info", "use db.fsyncUnlock() to terminate the fsync write/snapshot lock");
    }
    Ok(())
}

/// Checks the options of `$currentOp`. Fails with 9 or 14.
pub fn check_stage(spec: Value<'_>) -> Result<()> {
    let Value::Document(options) = spec else {
        let found = spec.kind().alias();
        return Err(Error::type_mismatch(format!(
            "$currentOp options must be specified in an object, but found: {found}"
        )));
    };
    for (name, value) in options.iter() {
        let known =
            ["allUsers", "idleConnections", "idleCursors", "idleSessions", "localOps", "truncateOps", "backtrace"];
        if !known.contains(&name) {
            return Err(Error::failed_to_parse(format!("Unrecognized option '{name}' in $currentOp stage.")));
        }
        if !matches!(value, Value::Boolean(_)) {
            let found = value.kind().alias();
            let message =
                format!("The '{name}' parameter of the $currentOp stage must be a boolean value, but found: {found}");
            // The codes are MongoDB's.
            let is_mismatch = matches!(name, "allUsers" | "localOps");
            return Err(if is_mismatch { Error::type_mismatch(message) } else { Error::failed_to_parse(message) });
        }
    }
    Ok(())
}

/// Returns the operations under way, this one first. `of_all`: also those of other users.
pub fn operations(call: &Call<'_>, of_all: bool) -> Vec<DocBuf> {
    let own = own_user(call, of_all);
    let asking = describe(
        call,
        next_operation_id(),
        &call.session.identity,
        call.request.body(),
        Duration::ZERO,
        State::default(),
    );
    let workers = call.worker.server.workers();
    let others = workers.iter().flat_map(|worker| worker.operations.list());
    let others = others.filter(|operation| own.as_ref().is_none_or(|own| operation.identity.user() == *own));
    let others = others.map(|operation| {
        let Operation { id, identity, started, .. } = &*operation;
        let state = State { killed: operation.is_killed(), waits: operation.waits_for_lock() };
        let mut described = describe(call, *id, identity, operation.command(), started.elapsed(), state);
        if let Some((done, total)) = operation.progress.get().and_then(|progress| progress.get()) {
            let what = "Index Build: scanning collection";
            described.append("msg", format!("{what} {what}: {done}/{total} {}%", done * 100 / total).as_str());
            described.append("progress", &document::doc! { "done": done as i64, "total": total as i64 });
        }
        described
    });
    std::iter::once(asking).chain(others).collect()
}

/// Returns the user whose operations are listed; `None` for those of all users.
fn own_user(call: &Call<'_>, of_all: bool) -> Option<Option<UserName>> {
    let lists_own = call.worker.server.access_control.is_enabled() && !of_all;
    lists_own.then(|| call.session.login().map(|login| login.name.clone()))
}

/// Returns the cursors that are not checked out. `of_all`: also those of other users.
pub fn idle_cursors(call: &Call<'_>, of_all: bool) -> impl Iterator<Item = DocBuf> {
    let own = own_user(call, of_all);
    let idle = call.worker.server.cursors.idle().into_iter();
    idle.filter(move |idle| own.as_ref().is_none_or(|own| idle.owner.user == *own)).map(|idle| {
        DocBuf::build(|writer| {
            writer.append("type", "idleCursor");
            writer.append("host", server::host::cached_name());
            writer.append("ns", &*idle.owner.namespace.to_string());
            if let Some(session) = &idle.owner.session {
                append_session(writer, "lsid", session);
            }
            if let Some(plan) = idle.plan.as_str() {
                writer.append("planSummary", plan);
            }
            let mut cursor = writer.document("cursor");
            cursor.append("cursorId", idle.id);
            cursor.append("createdDate", Value::DateTime(server::clock::wall_ms(idle.history.created_ms)));
            cursor.append("lastAccessDate", Value::DateTime(server::clock::wall_ms(idle.last_use_ms)));
            cursor.append("nDocsReturned", idle.returned as i64);
            cursor.append("nBatchesReturned", idle.history.batches as i64);
            cursor.append("noCursorTimeout", idle.no_timeout);
            cursor.append("tailable", idle.tailable);
            cursor.append("awaitData", idle.awaits);
            if let Some(command) = Doc::from_bytes(&idle.history.command) {
                cursor.append("originatingCommand", command);
            }
        })
    })
}

/// The wait of an operation.
#[derive(Clone, Copy, Default)]
struct State {
    killed: bool,
    /// Whether it waits for `fsyncUnlock`.
    waits: bool,
}

fn describe(
    call: &Call<'_>,
    id: i32,
    identity: &ClientIdentity,
    command: Doc<'_>,
    elapsed: Duration,
    state: State,
) -> DocBuf {
    let State { killed, waits } = state;
    DocBuf::build(|writer| {
        writer.append("type", "op");
        writer.append("host", server::host::cached_name());
        writer.append("desc", &format!("conn{}", identity.connection_id));
        writer.append("connectionId", identity.connection_id as i32);
        if let Some(client) = identity.client {
            writer.append("client", &client.to_string());
        }
        if let Some(metadata) = identity.metadata.get().and_then(|metadata| Doc::from_bytes(metadata)) {
            let application = metadata.get("application").and_then(Value::as_document);
            if let Some(name) = application.and_then(|application| application.get("name")) {
                writer.append("appName", name);
            }
            writer.append("clientMetadata", metadata);
        }
        writer.append("active", true);
        writer.append("currentOpTime", &server::clock::rfc3339(server::clock::now_ms()));
        if let Some(user) = identity.user() {
            user.write(&mut writer.array("effectiveUsers").document());
        }
        writer.append("opid", id);
        if let Some(lsid) = command.get("lsid") {
            writer.append("lsid", lsid);
        }
        writer.append("secs_running", elapsed.as_secs() as i64);
        writer.append("microsecs_running", elapsed.as_micros() as i64);
        writer.append("op", kind(call, command));
        writer.append("ns", &namespace_of(command));
        writer.append("command", command);
        if killed {
            writer.append("killPending", true);
        }
        writer.append("numYields", 0);
        drop(writer.document("locks"));
        writer.append("waitingForLock", waits);
        drop(writer.document("lockStats"));
    })
}

/// Returns the operation's kind in MongoDB's terms.
fn kind(call: &Call<'_>, command: Doc<'_>) -> &'static str {
    call.table.of_body(command).map_or(OperationKind::Command, |spec| spec.kind).name()
}

pub fn kill_op(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let Some(field) = call.fields().find(|field| field.key() == "op") else {
        return Err(Error::new(error::Code::NO_SUCH_KEY, "Missing expected field \"op\""));
    };
    let Some(id) = arguments::number_to_i64(field.value()) else {
        let message = format!("Expected field \"op\" to have numeric type, but found {}", field.kind.alias());
        return Err(Error::type_mismatch(message));
    };
    if let Value::Double(number) = field.value()
        && number.fract() != 0.0
    {
        let found = values::text::element("op", field.value());
        let message = format!(
            "Expected field \"op\" to have a value exactly representable as a 64-bit integer, but found {found}"
        );
        return Err(Error::bad_value(message));
    }
    if i32::try_from(id).is_err() && u32::try_from(id).is_err() {
        let message = format!("invalid op : {id}. Op ID cannot be represented with 32 bits");
        return Err(Error::new(error::Code(26823), message));
    }
    let workers = call.worker.server.workers();
    let operations = workers.iter().flat_map(|worker| worker.operations.list());
    operations.filter(|operation| i64::from(operation.id) == id).for_each(|operation| operation.kill());
    reply.append("info", "attempting to kill op");
    Ok(())
}
