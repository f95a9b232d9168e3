//! `hello` and `isMaster`: the handshake, and the monitoring of the server by drivers.
//!
//! Source: <https://github.com/mongodb/specifications/blob/master/source/mongodb-handshake/handshake.md>

use crate::arguments;
use crate::call::{Call, Disposition};
use crate::envelope::check_client;
use crate::login::arguments::{Authenticate, Start};
use crate::login::{attempt, sasl, x509};
use crate::replica_set;
use auth::UserName;
use bytes::Bytes;
use document::{Doc, DocBuf, DocWriter, Element, ObjectId, Value};
use error::{Code, Error, Result};
use mongo_wire::request::RequestKind;
use server::logical_session;
use server::{ClientIdentity, Topology};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The announced limits.
pub const MESSAGE_BYTES_MAX: i32 = 48_000_000;
pub const WRITE_BATCH_MAX: i32 = 100_000;

/// The supported wire versions: drivers of the last ten years connect; the upper end is MongoDB
/// 6.0.
const WIRE_VERSION_MIN: i32 = 0;
const WIRE_VERSION_MAX: i32 = 17;

/// The command's name in messages, also for `isMaster`.
const WITHIN: &str = "hello";

#[derive(Default)]
struct Arguments<'a> {
    compression: Option<Element<'a>>,
    hello_ok: bool,
    client: Option<Element<'a>>,
    topology_version: Option<Doc<'a>>,
    /// The user whose mechanisms are asked for.
    user: Option<UserName>,
    /// The first command of a login.
    login: Option<Doc<'a>>,
    await_time: Option<Duration>,
}

pub async fn hello(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let arguments = read(call)?;
    note_client(&call.session.identity, arguments.client)?;
    let counter = wait_for_change(call, &arguments).await?;
    // A router stays one while its servers have no primary: commands wait for it.
    let is_replica_set = matches!(call.worker.server.settings.topology, Topology::ReplicaSet { .. });
    let is_primary = !is_replica_set || call.worker.server.is_writable();
    if call.spec.name == "hello" {
        reply.append("isWritablePrimary", is_primary);
    } else {
        reply.append("ismaster", is_primary);
    }
    if arguments.hello_ok {
        reply.append("helloOk", true);
    }
    write_topology(call, is_primary, reply);
    write_topology_version(call.worker.server.process_id, counter, &mut reply.document("topologyVersion"));
    reply.append("maxBsonObjectSize", document::DOCUMENT_BYTES_MAX as i32);
    reply.append("maxMessageSizeBytes", MESSAGE_BYTES_MAX);
    reply.append("maxWriteBatchSize", WRITE_BATCH_MAX);
    reply.append("localTime", Value::DateTime(server::clock::now_ms()));
    reply.append("logicalSessionTimeoutMinutes", logical_session::TIMEOUT_MINUTES);
    reply.append("connectionId", call.session.connection_id as i32);
    reply.append("minWireVersion", WIRE_VERSION_MIN);
    reply.append("maxWireVersion", WIRE_VERSION_MAX);
    reply.append("readOnly", false);
    negotiate_compression(call, arguments.compression, reply)?;
    if let Some(user) = &arguments.user {
        call.worker.server.login_statistics.mechanisms_asked.increment();
        let mechanisms = sasl::mechanisms_of(call, user).await?;
        let mut array = reply.array("saslSupportedMechs");
        mechanisms.into_iter().for_each(|mechanism| array.push(mechanism));
    }
    if let Some(login) = arguments.login {
        begin_login(call, login, reply).await;
    }
    Ok(match call.request.kind {
        RequestKind::Msg { exhaust_allowed: true, .. }
            if arguments.await_time.is_some() && !call.worker.server.is_stopping() =>
        {
            Disposition::ReplyThenRun(next_hello(call, counter))
        }
        _ => Disposition::Reply,
    })
}

fn read<'a>(call: &mut Call<'a>) -> Result<Arguments<'a>> {
    let mut arguments = Arguments::default();
    for field in call.fields() {
        match field.key() {
            // Null counts as absent in these fields.
            "helloOk"
            | "topologyVersion"
            | "maxAwaitTimeMS"
            | "forShell"
            | "hostInfo"
            | "internalClient"
            | "loadBalanced"
            | "saslSupportedMechs"
            | "speculativeAuthenticate"
                if arguments::is_absent(field) => {}
            "helloOk" => arguments.hello_ok = arguments::boolean_or_number(WITHIN, field)?,
            "compression" => arguments.compression = Some(field),
            "client" => arguments.client = Some(field),
            "topologyVersion" => {
                let version = arguments::document(WITHIN, field)?;
                check_topology_version(version)?;
                arguments.topology_version = Some(version);
            }
            "maxAwaitTimeMS" => {
                arguments.await_time = Some(Duration::from_millis(arguments::non_negative(WITHIN, field)?));
            }
            "saslSupportedMechs" => arguments.user = Some(user_name(field)?),
            "speculativeAuthenticate" => {
                let login = arguments::document(WITHIN, field)?;
                check_login(login)?;
                arguments.login = Some(login);
            }
            "forShell" => drop(arguments::boolean_or_number(WITHIN, field)?),
            "loadBalanced" => drop(arguments::boolean(WITHIN, field)?),
            "hostInfo" => drop(arguments::string(WITHIN, field)?),
            "internalClient" => check_internal(arguments::document(WITHIN, field)?)?,
            // Other fields (`backpressure` …) have no effect.
            _ => {}
        }
    }
    match (arguments.topology_version, arguments.await_time) {
        (Some(_), None) => {
            Err(Error::new(Code(31368), "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'"))
        }
        (None, Some(_)) => {
            Err(Error::new(Code(31368), "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'"))
        }
        _ => Ok(arguments),
    }
}

/// Records the client's metadata. Fails with 186 unless it is sent in the first handshake of its
/// connection.
fn note_client(identity: &ClientIdentity, client: Option<Element<'_>>) -> Result<()> {
    if let Some(client) = client {
        if identity.is_introduced.load(Relaxed) {
            let message = "The client metadata document may only be sent in the first hello";
            return Err(Error::new(Code::CLIENT_METADATA_CANNOT_BE_MUTATED, message));
        }
        check_client(client)?;
        // An array passes the check only with field names that no array has.
        if let Some(metadata) = client.value().as_document() {
            let _ = identity.metadata.set(Bytes::copy_from_slice(metadata.as_bytes()));
        }
    }
    identity.is_introduced.store(true, Relaxed);
    Ok(())
}

/// Returns the user whose login mechanisms are requested: `db.user`, or a document.
fn user_name(field: Element<'_>) -> Result<UserName> {
    match field.value() {
        Value::String(name) => match name.split_once('.') {
            Some((db, user)) => Ok(UserName::new(user, db)),
            None => Err(Error::bad_value("UserName must contain a '.' separated database.user pair")),
        },
        Value::Document(name) => {
            let missing = ["user", "db"].into_iter().find(|part| name.get(part).is_none());
            let message = |part| format!("UserName must contain a field named: {part}");
            let name = UserName::from_document(name);
            name.ok_or_else(|| {
                Error::bad_value(missing.map_or_else(|| "UserName must contain strings".into(), message))
            })
        }
        _ => Err(arguments::wrong_types(WITHIN, field, "'[string, object']")),
    }
}

/// Takes the first step of a login, and writes its reply. If it fails, the reply has no such field:
/// the client then logs in by commands of their own, and sees the error.
async fn begin_login(call: &Call<'_>, login: Doc<'_>, reply: &mut DocWriter<'_>) {
    let Some(command) = login.first() else { return };
    let fields = || login.elements().skip(1);
    let db = login.get("db").and_then(Value::as_str).unwrap_or_default();
    if command.key() == "saslStart" {
        if let Ok(start) = attempt::read(call, fields(), db, Start::parse(fields(), true))
            && let Ok(message) = sasl::start(call, &start, db).await
        {
            message.write(&mut reply.document("speculativeAuthenticate"));
        }
    } else if let Ok(arguments) = attempt::read(call, fields(), db, Authenticate::parse(fields(), true))
        && let Ok(user) = x509::authenticate(call, &arguments).await
    {
        user.write(&mut reply.document("speculativeAuthenticate"));
    }
}

/// Checks the name of the first command of a login.
fn check_login(login: Doc<'_>) -> Result<()> {
    match login.first().map(|first| first.key()) {
        Some("saslStart" | "authenticate") => Ok(()),
        Some(other) => Err(Error::new(Code(51769), format!("hello.speculativeAuthenticate unknown command: {other}"))),
        None => Err(Error::bad_value("hello.speculativeAuthenticate must be a non-empty Object")),
    }
}

/// Checks what servers announce of themselves to one another.
fn check_internal(client: Doc<'_>) -> Result<()> {
    const WITHIN: &str = "hello.internalClient";
    if let Some(field) = client.elements().find(|field| !matches!(field.key(), "minWireVersion" | "maxWireVersion")) {
        return Err(arguments::unknown_field(WITHIN, field.key()));
    }
    let missing = ["minWireVersion", "maxWireVersion"].into_iter().rev().find(|name| client.get(name).is_none());
    missing.map_or(Ok(()), |name| Err(arguments::missing_field(WITHIN, name)))
}

/// Checks the topology version that the client knows.
fn check_topology_version(version: Doc<'_>) -> Result<()> {
    const WITHIN: &str = "hello.topologyVersion";
    if let Some(field) = version.elements().find(|field| !matches!(field.key(), "processId" | "counter")) {
        return Err(arguments::unknown_field(WITHIN, field.key()));
    }
    let missing = ["processId", "counter"].into_iter().find(|name| version.get(name).is_none());
    missing.map_or(Ok(()), |name| Err(arguments::missing_field(WITHIN, name)))
}

/// Waits until the topology differs from what the client knows, or its time is up; returns the
/// topology counter.
async fn wait_for_change(call: &Call<'_>, arguments: &Arguments<'_>) -> Result<i64> {
    let mut changes = call.worker.server.topology_changes();
    let counter = *changes.borrow_and_update();
    let (Some(known), Some(await_time)) = (arguments.topology_version, arguments.await_time) else {
        return Ok(counter);
    };
    let process = known.get("processId");
    let known_counter = match known.get("counter") {
        Some(Value::Int64(known_counter)) => known_counter,
        Some(other) => return Err(arguments::wrong_kind("hello.topologyVersion", "counter", other.kind(), "long")),
        None => return Err(arguments::missing_field("hello.topologyVersion", "counter")),
    };
    let news = process != Some(Value::ObjectId(call.worker.server.process_id)) || known_counter < counter;
    if news || call.worker.server.is_stopping() {
        return Ok(counter);
    }
    if known_counter > counter {
        return Err(Error::new(
            Code(31382),
            format!(
                "Received a topology version with counter: {known_counter} which is greater than the server topology \
                 version counter: {counter}"
            ),
        ));
    }
    let awaiting = &call.worker.statistics().hello_awaiting;
    awaiting.add(1);
    let change = async {
        // The reply is due in either case; the counter distinguishes them.
        let _ = tokio::time::timeout(await_time, changes.changed()).await;
        Ok(())
    };
    let waited = call.operation.run_interruptible(change).await;
    awaiting.subtract(1);
    waited?;
    let counter = *changes.borrow();
    Ok(counter)
}

fn write_topology(call: &Call<'_>, is_primary: bool, reply: &mut DocWriter<'_>) {
    match &call.worker.server.settings.topology {
        Topology::Standalone => {}
        Topology::Router => reply.append("msg", "isdbgrid"),
        Topology::ReplicaSet { name, advertised } => {
            {
                let mut hosts = reply.array("hosts");
                hosts.push(advertised);
            }
            reply.append("setName", name);
            reply.append("setVersion", 1);
            reply.append("secondary", !is_primary);
            if is_primary {
                reply.append("primary", advertised);
            }
            reply.append("me", advertised);
            if is_primary {
                reply.append("electionId", replica_set::ELECTION);
            }
            let written = call.worker.server.cluster_clock.committed();
            let mut last_write = reply.document("lastWrite");
            for (optime, date) in [("opTime", "lastWriteDate"), ("majorityOpTime", "majorityWriteDate")] {
                replica_set::write_time(optime, written, &mut last_write);
                last_write.append(date, Value::DateTime(i64::from(written.seconds()) * 1000));
            }
        }
    }
}

pub fn write_topology_version(process: ObjectId, counter: i64, writer: &mut DocWriter<'_>) {
    writer.append("processId", process);
    writer.append("counter", counter);
}

/// Writes the compressors that both sides support, in the client's order of preference.
fn negotiate_compression(call: &Call<'_>, field: Option<Element<'_>>, reply: &mut DocWriter<'_>) -> Result<()> {
    let Some(field) = field else { return Ok(()) };
    let offered = &call.worker.server.settings.compressors;
    let names = arguments::array(WITHIN, field)?;
    if let Some(name) = names.elements().find(|name| name.value().as_str().is_none()) {
        return Err(arguments::wrong_type("hello.compression", name, "string"));
    }
    let mut agreed =
        names.values().filter_map(Value::as_str).filter(|name| offered.iter().any(|ours| ours == name)).peekable();
    if agreed.peek().is_some() {
        let mut names = reply.array("compression");
        agreed.for_each(|name| names.push(name));
    }
    Ok(())
}

/// Returns the body of the next `hello` of a stream: the same, with the counter of this reply.
fn next_hello(call: &Call<'_>, counter: i64) -> DocBuf {
    DocBuf::build(|writer| {
        for element in call.request.body().elements() {
            if element.key() == "topologyVersion" {
                write_topology_version(call.worker.server.process_id, counter, &mut writer.document("topologyVersion"));
            } else if !matches!(
                element.key(),
                "compression" | "client" | "saslSupportedMechs" | "speculativeAuthenticate"
            ) {
                writer.append_element(element);
            }
        }
    })
}
