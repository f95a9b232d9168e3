//! `getDefaultRWConcern` and `setDefaultRWConcern`.
//!
//! Source: <https://www.mongodb.com/docs/v6.0/reference/command/setDefaultRWConcern/>

use crate::arguments;
use crate::call::{Call, Disposition};
use crate::default_concerns::{ID, stored};
use crate::dispatch::run_part;
use crate::envelope::{self, WriteConcern};
use document::{Doc, DocBuf, DocWriter, Value, doc};
use error::{Code, Error, Result};
use server::{Topology, clock};

/// Reports the default concerns.
pub async fn get(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    check_topology(call)?;
    let in_memory = call.fields().any(|field| field.key() == "inMemory" && field.value().is_truthy());
    let server = &call.worker.server;
    if !in_memory {
        server.default_concerns.set(stored(call.worker).await?);
    }
    write(call, in_memory, reply);
    Ok(Disposition::Reply)
}

/// Sets the default concerns, and reports them.
pub async fn set(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    check_topology(call)?;
    let field = |name: &str| call.fields().find(|field| field.key() == name && !arguments::is_absent(*field));
    let (read, written) = (field("defaultReadConcern"), field("defaultWriteConcern"));
    let read = read.and_then(|field| field.value().as_document());
    read.map_or(Ok(()), check_read)?;
    if let Some(concern) = written {
        let (parsed, _) = WriteConcern::read(concern)?;
        let has_provenance = concern.value().as_document().is_some_and(|it| it.get("provenance").is_some());
        if parsed.unacknowledged {
            return Err(Error::bad_value("Unacknowledged write concern is not suitable for the default write concern"));
        }
        if has_provenance {
            return Err(Error::bad_value("'provenance' must be unset in default write concern"));
        }
    }
    let written = written.and_then(|field| field.value().as_document());
    if read.is_none() && written.is_none() {
        let message = "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present";
        return Err(Error::bad_value(message));
    }
    let before = stored(call.worker).await?.unwrap_or_default();
    let of_before = |name| before.as_doc().get(name).and_then(Value::as_document);
    if written.is_some_and(Doc::is_empty) && of_before("defaultWriteConcern").is_some() {
        let message = "The global default write concern cannot be unset once it is set.";
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    let time = call.worker.server.cluster_clock.committed();
    let changed = DocBuf::build(|writer| {
        writer.append("_id", ID);
        let level = read.or_else(|| of_before("defaultReadConcern")).and_then(|concern| concern.get("level"));
        if let Some(level) = level {
            writer.document("defaultReadConcern").append("level", level);
        }
        let concern = written.filter(|concern| !concern.is_empty()).or_else(|| of_before("defaultWriteConcern"));
        if let Some(concern) = concern {
            write_concern(concern, &mut writer.document("defaultWriteConcern"));
        }
        writer.append("updateOpTime", time.value());
        writer.append("updateWallClockTime", Value::DateTime(call.now_ms));
    });
    replace(call, &changed).await?;
    call.worker.server.default_concerns.set(Some(changed));
    write(call, false, reply);
    Ok(Disposition::Reply)
}

/// Fails with 51300 for another topology than a replica set, after MongoDB's checks of the fields.
fn check_topology(call: &Call<'_>) -> Result<()> {
    if matches!(call.worker.server.settings.topology, Topology::ReplicaSet { .. }) {
        return Ok(());
    }
    for field in call.fields().filter(|field| !arguments::is_absent(*field)) {
        let inner = field.value().as_document().unwrap_or(Doc::EMPTY);
        match field.key() {
            "defaultReadConcern" => {
                if let Some(option) = inner.elements().find(|option| *option.key() != *"level") {
                    return Err(unrecognized(option.key()));
                }
            }
            "defaultWriteConcern" => drop(WriteConcern::parse(field)?),
            _ => {}
        }
    }
    let message = format!("'{}' is not supported on standalone nodes.", call.first().key());
    Err(Error::new(Code(51300), message))
}

fn unrecognized(option: &str) -> Error {
    Error::new(Code::INVALID_OPTIONS, format!("Unrecognized option in readConcern: {option}"))
}

/// Fails for a concern of reads that cannot be a default.
fn check_read(concern: Doc<'_>) -> Result<()> {
    let unsuitable = |what: &str| Err(Error::bad_value(format!("{what} is not suitable for the default read concern")));
    for field in concern.elements() {
        match (field.key(), field.value()) {
            ("level", Value::String("local" | "available" | "majority")) | ("provenance", _) => {}
            ("level", Value::String(level @ ("linearizable" | "snapshot"))) => {
                return unsuitable(&format!("level: '{level}'"));
            }
            ("level", _) => return Err(envelope::refuse_level(field)),
            (name @ ("afterClusterTime" | "afterOpTime" | "atClusterTime"), _) => {
                return unsuitable(&format!("'{name}'"));
            }
            (other, _) => return Err(unrecognized(other)),
        }
    }
    Ok(())
}

/// Writes a concern of writes as MongoDB stores it.
fn write_concern(concern: Doc<'_>, writer: &mut DocWriter<'_>) {
    writer.append("w", concern.get("w").unwrap_or(Value::Int32(1)));
    for flag in ["j", "fsync"] {
        if let Some(value) = concern.get(flag) {
            writer.append(flag, value.is_truthy());
        }
    }
    let limit = concern.get("wtimeout").and_then(arguments::number_to_i64);
    writer.append("wtimeout", limit.and_then(|limit| i32::try_from(limit).ok()).unwrap_or_default());
}

/// Stores the document in place of the one before.
async fn replace(call: &Call<'_>, changed: &DocBuf) -> Result<()> {
    let command = DocBuf::build(|writer| {
        writer.append("update", "settings");
        {
            let mut updates = writer.array("updates");
            let mut update = updates.document();
            update.document("q").append("_id", ID);
            update.append("u", changed);
            update.append("upsert", true);
        }
        writer.document("writeConcern").append("j", true);
        writer.append("$db", "config");
    });
    run_part(call, &command).await
}

fn write(call: &Call<'_>, in_memory: bool, reply: &mut DocWriter<'_>) {
    let stored = call.worker.server.default_concerns.stored();
    let stored = stored.as_ref().map_or(Doc::EMPTY, |stored| stored.as_doc());
    let (read, written) = (stored.get("defaultReadConcern"), stored.get("defaultWriteConcern"));
    let source = |value: Option<Value<'_>>| if value.is_some() { "global" } else { "implicit" };
    match read {
        Some(read) => reply.append("defaultReadConcern", read),
        None => reply.document("defaultReadConcern").append("level", "local"),
    }
    match written {
        Some(written) => reply.append("defaultWriteConcern", written),
        None => write_concern(doc! { "w": "majority" }.as_doc(), &mut reply.document("defaultWriteConcern")),
    }
    for name in ["updateOpTime", "updateWallClockTime"] {
        if let Some(value) = stored.get(name) {
            reply.append(name, value);
        }
    }
    reply.append("defaultWriteConcernSource", source(written));
    reply.append("defaultReadConcernSource", source(read));
    if in_memory {
        reply.append("inMemory", true);
    }
    reply.append("localUpdateWallClockTime", Value::DateTime(clock::now_ms()));
}
