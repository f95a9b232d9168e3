//! `failCommand`: delays a command, closes its connection, or lets it fail.
//!
//! It is evaluated after the fields about session and API are checked, and before most others, as
//! in MongoDB.

use super::{error_labels, prepare, usage};
use crate::call::{Call, Disposition};
use crate::command::admin::hello;
use crate::envelope::Envelope;
use document::{Doc, DocBuf, DocWriter, Value};
use error::{Code, Error, Result};
use std::time::Duration;

/// The codes that MongoDB reports only together with details (`errorExtraInfo`).
const WITH_DETAILS: &[i32] = &[65, 121, 169, 227, 236, 249, 271, 283, 284, 304, 320, 346, 348, 11000, 13388];

/// The codes of servers that are not the primary, or no longer.
const NOT_PRIMARY: &[i32] = &[189, 10107, 11602, 13435, 13436];

/// Applies the fail point to a command that was not yet checked. Returns the disposition if the
/// connection must be closed, and fails with the error of the fail point.
pub(super) async fn apply<'a>(call: &mut Call<'a>, body: Doc<'a>) -> Result<Option<Disposition>> {
    let (delayed, outcome) = match prepare::reaches_fail_point(call, body) {
        true => fire(call, body).await,
        false => (Duration::ZERO, Ok(None)),
    };
    call.delayed = delayed;
    call.envelope = Envelope::new(call.envelope.first);
    outcome
}

/// Returns how long the command was delayed, and its outcome.
async fn fire(call: &Call<'_>, body: Doc<'_>) -> (Duration, Result<Option<Disposition>>) {
    let acts = |data: Doc<'_>| is_true(data, "closeConnection") || is_true(data, "blockConnection") || has_code(data);
    let fired = call.worker.server.fail_command.fire(|data| acts(data) && matches(call, body, data));
    let Some(fired) = fired else { return (Duration::ZERO, Ok(None)) };
    let data = fired.as_doc();
    let mut delayed = Duration::ZERO;
    if is_true(data, "blockConnection") {
        match block_time(data) {
            Ok(time) => delayed = time,
            Err(error) => return (delayed, Err(error)),
        }
        let slept = async {
            tokio::time::sleep(delayed).await;
            Ok(())
        };
        if let Err(error) = call.operation.run_interruptible(slept).await {
            return (delayed, Err(error));
        }
    }
    let outcome = match code(data) {
        _ if is_true(data, "closeConnection") => Ok(Some(Disposition::Close)),
        Some(code) => Err(failure(call, data, code)),
        None => Ok(None),
    };
    (delayed, outcome)
}

/// The `writeConcernError` of a fail point, for a write that was executed.
pub(super) struct InjectedError(DocBuf);

impl InjectedError {
    /// Returns the error to report, if the fail point has one for the command.
    pub(super) fn of(call: &Call<'_>, body: Doc<'_>) -> Option<InjectedError> {
        let has_error = |data: Doc<'_>| matches!(data.get("writeConcernError"), Some(Value::Document(_)));
        let fail_command = &call.worker.server.fail_command;
        let writes = fail_command.is_on() && call.spec.writes(body);
        let fired = writes.then(|| fail_command.fire(|data| has_error(data) && matches(call, body, data)));
        fired.flatten().map(InjectedError)
    }

    pub(super) fn write(&self, call: &Call<'_>, reply: &mut DocWriter<'_>) {
        let data = self.0.as_doc();
        let Some(error) = data.element("writeConcernError") else { return };
        reply.append_element(error);
        let code = error.value().as_document().and_then(|error| error.get("code")?.to_i64());
        let code = code.and_then(|code| i32::try_from(code).ok()).map_or(Code::UNKNOWN_ERROR, Code);
        match labels(data) {
            Some(given) => write_labels(given, reply),
            None => write_labels(error_labels::of(call.spec, &call.envelope, code).iter().copied(), reply),
        }
    }
}

/// Returns whether the fail point is about this command.
fn matches(call: &Call<'_>, body: Doc<'_>, data: Doc<'_>) -> bool {
    let spec = call.spec;
    let names = match data.get("failCommands") {
        Some(Value::Array(names) | Value::Document(names)) => names,
        _ => return false,
    };
    let is_named = |name: &str| name == spec.name || spec.aliases.contains(&name);
    let text = |name: &str| data.get(name).map(|value| value.as_str().unwrap_or_default());
    // The fail point must stay configurable.
    spec.name != "configureFailPoint"
        && names.values().filter_map(Value::as_str).any(is_named)
        && (!call.is_trusted || is_true(data, "failInternalCommands"))
        && text("appName").is_none_or(|name| has_name(call, name))
        && text("threadName").is_none_or(|name| name == format!("conn{}", call.session.connection_id))
        && text("namespace").is_none_or(|name| name == namespace(call, body))
}

/// Returns whether the client calls itself `name` in its handshake.
fn has_name(call: &Call<'_>, name: &str) -> bool {
    let metadata = call.session.identity.metadata.get().and_then(|metadata| Doc::from_bytes(metadata));
    let application = metadata.and_then(|metadata| metadata.get("application")?.as_document());
    application.is_some_and(|application| application.get("name") == Some(Value::String(name)))
}

/// Returns the namespace of a command: its collection, or its database.
fn namespace(call: &Call<'_>, body: Doc<'_>) -> String {
    match usage::of(call.spec, body).namespace {
        Some(namespace) => format!("{}.{}", namespace.database, namespace.collection),
        None if call.spec.name == "aggregate" => format!("{}.$cmd.aggregate", call.database()),
        None => call.database().to_owned(),
    }
}

fn is_true(data: Doc<'_>, name: &str) -> bool {
    data.get(name) == Some(Value::Boolean(true))
}

fn has_code(data: Doc<'_>) -> bool {
    whole_number(data, "errorCode").is_some()
}

/// Returns the code of the error; 0 is none.
fn code(data: Doc<'_>) -> Option<Code> {
    let code = whole_number(data, "errorCode").and_then(|code| i32::try_from(code).ok())?;
    (code != 0).then_some(Code(code))
}

fn whole_number(data: Doc<'_>, name: &str) -> Option<i64> {
    let value = data.get(name).filter(|value| value.kind().is_number())?;
    let is_whole = !matches!(value, Value::Double(number) if number.fract() != 0.0);
    value.to_i64().filter(|_| is_whole)
}

fn block_time(data: Doc<'_>) -> Result<Duration> {
    let milliseconds = data.get("blockTimeMS").filter(|value| value.kind().is_number()).and_then(Value::to_i64);
    let invalid = |message: &str| Error::new(Code::INVALID_OPTIONS, message);
    let milliseconds =
        milliseconds.ok_or_else(|| invalid("must specify 'blockTimeMS' when 'blockConnection' is true"))?;
    let milliseconds = u64::try_from(milliseconds).map_err(|_| invalid("'blockTimeMS' must be non-negative"))?;
    Ok(Duration::from_millis(milliseconds))
}

/// Returns the labels that replace those that the server would add.
fn labels(data: Doc<'_>) -> Option<impl Iterator<Item = &str>> {
    Some(data.get("errorLabels")?.as_array()?.values().filter_map(Value::as_str))
}

fn write_labels<'l>(labels: impl Iterator<Item = &'l str>, reply: &mut DocWriter<'_>) {
    let mut labels = labels.peekable();
    if labels.peek().is_some() {
        let mut array = reply.array("errorLabels");
        labels.for_each(|label| array.push(label));
    }
}

/// Returns the error of the fail point.
fn failure(call: &Call<'_>, data: Doc<'_>, code: Code) -> Error {
    let server = &call.worker.server;
    let details = data.get("errorExtraInfo").and_then(Value::as_document);
    let has_details = WITH_DETAILS.contains(&code.0);
    if has_details && details.is_none() {
        let message = format!("Missing required extra info for error code {}", code.name());
        return Error::new(Code(40671), message);
    }
    let given = labels(data);
    let added = if given.is_some() { &[][..] } else { error_labels::of(call.spec, &call.envelope, code) };
    let details = DocBuf::build(|writer| {
        let details = details.filter(|_| has_details).unwrap_or(Doc::EMPTY);
        details.elements().for_each(|element| writer.append_element(element));
        if NOT_PRIMARY.contains(&code.0) {
            hello::write_topology_version(
                server.process_id,
                *server.topology_changes().borrow(),
                &mut writer.document("topologyVersion"),
            );
        }
        if let Some(given) = given {
            write_labels(given, writer);
        }
    });
    let error = Error::new(code, "Failing command via 'failCommand' failpoint").with_labels(added);
    if details.as_doc().is_empty() { error } else { error.with_details(details.into_vec()) }
}
