//! Fields that MongoDB's servers send to one another along with a command. A client may send them too: they have to be
//! well-formed, and ask for nothing that a single server has.

use crate::arguments::{
    self, array, document, is_absent, missing_field, plain_boolean, string, unknown_field, wrong_type,
};
use crate::dispatch::Call;
use document::{Element, Kind, Value};
use error::{Code, Error, Result};

const TAKING_ENCRYPTION: [&str; 7] = ["insert", "update", "delete", "findAndModify", "find", "aggregate", "count"];

/// The commands that would ignore fields they do not know, or look at some of them first.
const LENIENT: [&str; 10] =
    ["find", "count", "distinct", "collMod", "collStats", "dataSize", "dbStats", "validate", "compact", "hello"];

/// Takes them from the command's fields.
pub fn take(call: &mut Call<'_>) -> Result<()> {
    let command = call.spec.name;
    let mut checked = Ok(());
    call.envelope.fields.retain(|field| match checked.as_ref().map_or(Ok(false), |()| check(command, *field)) {
        Ok(is_one) => !is_one,
        Err(error) => {
            checked = Err(error);
            true
        }
    });
    checked?;
    let has = |name: &str| call.request.body().get(name).is_some();
    if has("stmtIds") {
        check_statement_ids(call)?;
    }
    if command == "aggregate" && has("needsMerge") && !has("fromMongos") {
        return Err(Error::failed_to_parse("Cannot specify 'needsMerge' without 'fromMongos'"));
    }
    Ok(())
}

/// Whether the field is such a one.
fn check(command: &str, field: Element<'_>) -> Result<bool> {
    // What MongoDB's messages call a command's fields as a whole.
    let within = if command == "find" { "FindCommandRequest" } else { command };
    match (field.key_bytes(), command) {
        (b"stmtIds", "insert" | "update" | "delete") => {
            let ids = array(within, field)?;
            let within = format!("{within}.stmtIds");
            ids.elements().filter(|id| !is_absent(*id)).try_for_each(|id| expect(&within, id, Kind::Int32, "int"))?;
        }
        (b"encryptionInformation", _) if TAKING_ENCRYPTION.contains(&command) => {
            if !is_absent(field) {
                refuse_encryption(command, within, field)?;
            }
        }
        (b"isTimeseriesNamespace", "insert" | "update" | "delete") => {
            if plain_boolean(field)? {
                let message = "'isTimeseriesNamespace' parameter can only be set when the request is sent on \
                               system.buckets namespace";
                return Err(Error::new(Code(5916400), message));
            }
        }
        (b"isTimeseriesNamespace", "dropIndexes") if is_absent(field) => {}
        (b"isTimeseriesNamespace", "dropIndexes") => drop(arguments::boolean(within, field)?),
        (b"runtimeConstants", "update" | "delete" | "findAndModify" | "find" | "aggregate") => {
            check_constants(within, field)?;
        }
        (b"term", "find") if is_absent(field) => {}
        (b"term", "find") => {
            arguments::integer(within, field)?;
            return Err(Error::bad_value("cannot supply 'term' without active replication"));
        }
        (b"allowSpeculativeMajorityRead", "find")
        | (b"needsMerge" | b"fromMongos" | b"isMapReduceCommand", "aggregate") => drop(plain_boolean(field)?),
        (b"exchange", "aggregate") => check_exchange(field)?,
        (b"$tenant", _) if LENIENT.contains(&command) => {
            let message = "Multitenancy not enabled, cannot set $tenant in command body";
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Each statement has one, where they are there.
fn check_statement_ids(call: &Call<'_>) -> Result<()> {
    let body = call.request.body();
    let Some(ids) = body.get("stmtIds").and_then(Value::as_array) else { return Ok(()) };
    let name = match call.spec.name {
        "insert" => "documents",
        "update" => "updates",
        "delete" => "deletes",
        _ => return Ok(()),
    };
    if body.get("stmtId").is_some() {
        let message = "May not specify both stmtId and stmtIds in write command.";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    let statements = match call.request.sequence(name) {
        Some(sequence) => sequence.count(),
        None => body.get(name).and_then(Value::as_array).map_or(0, |statements| statements.elements().count()),
    };
    let ids = ids.elements().filter(|id| !is_absent(*id)).count();
    if ids == statements {
        return Ok(());
    }
    Err(Error::new(
        Code::INVALID_LENGTH,
        format!(
            "Number of statement ids must match the number of batch entries. Got {ids} statement ids but {statements} \
             operations."
        ),
    ))
}

fn expect(within: &str, field: Element<'_>, kind: Kind, name: &str) -> Result<()> {
    if field.kind == kind { Ok(()) } else { Err(wrong_type(within, field, name)) }
}

/// Encrypted collections are those of replica sets.
fn refuse_encryption(command: &str, within: &str, field: Element<'_>) -> Result<()> {
    let information = document(within, field)?;
    let within = format!("{within}.encryptionInformation");
    let mut schema = None;
    for field in information.elements() {
        match field.key() {
            "type" => drop(arguments::integer(&within, field)?),
            "schema" => schema = Some(document(&within, field)?),
            "deleteTokens" => drop(document(&within, field)?),
            other => return Err(unknown_field(&within, other)),
        }
    }
    let schema = schema.ok_or_else(|| missing_field(&within, "schema"))?;
    let code = match command {
        "insert" => 6371602,
        "update" => 6371905,
        "delete" => 6371701,
        "findAndModify" => 6371800,
        _ => {
            let fields = schema.first().and_then(|schema| schema.value().as_document());
            return Err(match fields {
                Some(_) => missing_field("schema", "fields"),
                None => Error::new(Code(6371205), "Expected an object for schema in EncryptionInformation"),
            });
        }
    };
    Err(Error::new(Code(code), "Encrypted index operations are only supported on replica sets"))
}

/// The values of `$$NOW` and the like, which are the server's own here.
fn check_constants(within: &str, field: Element<'_>) -> Result<()> {
    if is_absent(field) {
        return Ok(());
    }
    let constants = document(within, field)?;
    let within = format!("{within}.runtimeConstants");
    for field in constants.elements() {
        match field.key() {
            "localNow" => expect(&within, field, Kind::DateTime, "date")?,
            "clusterTime" => expect(&within, field, Kind::Timestamp, "timestamp")?,
            "jsScope" => drop(document(&within, field)?),
            "isMapReduce" => drop(arguments::boolean(&within, field)?),
            other => return Err(unknown_field(&within, other)),
        }
    }
    for name in ["localNow", "clusterTime"] {
        constants.get(name).ok_or_else(|| missing_field(&within, name))?;
    }
    Ok(())
}

/// How the documents of a pipeline would be handed out to several readers.
fn check_exchange(field: Element<'_>) -> Result<()> {
    const WITHIN: &str = "aggregate.exchange";
    if is_absent(field) {
        return Ok(());
    }
    let exchange = document("aggregate", field)?;
    for field in exchange.elements() {
        match field.key() {
            "policy" => match string(WITHIN, field)? {
                "broadcast" | "roundrobin" | "keyRange" => {}
                other => {
                    let message =
                        format!("Enumeration value '{other}' for field '{WITHIN}.policy' is not a valid value.");
                    return Err(Error::bad_value(message));
                }
            },
            "consumers" => expect(WITHIN, field, Kind::Int32, "int")?,
            "orderPreserving" => drop(arguments::boolean(WITHIN, field)?),
            "bufferSize" => expect(WITHIN, field, Kind::Int32, "int")?,
            "key" => drop(document(WITHIN, field)?),
            "boundaries" | "consumerIds" => drop(array(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    for name in ["policy", "consumers"] {
        exchange.get(name).ok_or_else(|| missing_field(WITHIN, name))?;
    }
    match exchange.get("consumers").and_then(Value::to_i64) {
        Some(..=1) | None => Ok(()),
        Some(_) => Err(Error::bad_value("the exchange initial batch size must be zero")),
    }
}
