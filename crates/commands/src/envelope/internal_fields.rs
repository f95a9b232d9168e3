//! Fields that MongoDB's servers send to one another along with a command. A client may send them,
//! too: they must be well-formed, and must not ask for anything that a single server lacks.

use crate::arguments;
use crate::arguments::{array, document, is_absent, missing_field, plain_boolean, string, unknown_field, wrong_type};
use crate::call::Call;
use crate::table::spec::{InternalField, Spec};
use document::{Element, Kind, Value};
use error::{Code, Error, Result};

/// Takes them from the command's own fields. Fails with the first error in them.
pub fn take(call: &mut Call<'_>) -> Result<()> {
    let spec = call.spec;
    if spec.internal_fields.is_empty() {
        return Ok(());
    }
    let mut checked = Ok(());
    call.envelope.fields.retain(|field| match checked.as_ref().map_or(Ok(false), |()| check(spec, *field)) {
        Ok(is_internal) => !is_internal,
        Err(error) => {
            checked = Err(error);
            true
        }
    });
    checked?;
    for (name, field) in spec.internal_fields.iter().filter(|(name, _)| call.request.body().get(name).is_some()) {
        match field {
            InternalField::StatementIds(statements) => check_statement_ids(call, statements)?,
            InternalField::PlainBoolean if *name == "needsMerge" && call.request.body().get("fromMongos").is_none() => {
                return Err(Error::failed_to_parse("Cannot specify 'needsMerge' without 'fromMongos'"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks a field if it is one of these; returns whether it is.
fn check(spec: &Spec, field: Element<'_>) -> Result<bool> {
    let Some((_, kind)) = spec.internal_fields.iter().find(|(name, _)| *name == field.key()) else { return Ok(false) };
    let within = spec.fields_name();
    match kind {
        InternalField::StatementIds(_) => {
            let ids = array(within, field)?;
            let within = format!("{within}.stmtIds");
            ids.elements().filter(|id| !is_absent(*id)).try_for_each(|id| expect(&within, id, Kind::Int32, "int"))?;
        }
        InternalField::Encryption(_) | InternalField::OptionalBoolean | InternalField::Term if is_absent(field) => {}
        InternalField::Encryption(code) => refuse_encryption(*code, within, field)?,
        InternalField::BucketsNamespace => {
            if plain_boolean(field)? {
                let message = "'isTimeseriesNamespace' parameter can only be set when the request is sent on \
                               system.buckets namespace";
                return Err(Error::new(Code(5916400), message));
            }
        }
        InternalField::OptionalBoolean => drop(arguments::boolean(within, field)?),
        InternalField::RuntimeConstants => check_constants(within, field)?,
        InternalField::Term => {
            arguments::integer(within, field)?;
            return Err(Error::bad_value("cannot supply 'term' without active replication"));
        }
        InternalField::PlainBoolean => drop(plain_boolean(field)?),
        InternalField::Exchange => check_exchange(field)?,
        InternalField::Tenant => {
            let message = "Multitenancy not enabled, cannot set $tenant in command body";
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
    }
    Ok(true)
}

/// Fails with 16 unless there is one id for each statement. `name`: the field with the statements.
fn check_statement_ids(call: &Call<'_>, name: &str) -> Result<()> {
    let body = call.request.body();
    let Some(ids) = body.get("stmtIds").and_then(Value::as_array) else { return Ok(()) };
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

/// Fails with `code`: encrypted collections exist in replica sets only.
fn refuse_encryption(code: Option<i32>, within: &str, field: Element<'_>) -> Result<()> {
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
    let Some(code) = code else {
        let fields = schema.first().and_then(|schema| schema.value().as_document());
        return Err(match fields {
            Some(_) => missing_field("schema", "fields"),
            None => Error::new(Code(6371205), "Expected an object for schema in EncryptionInformation"),
        });
    };
    Err(Error::new(Code(code), "Encrypted index operations are only supported on replica sets"))
}

/// Checks the values of `$$NOW` and the like; the server uses its own.
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

/// Checks the distribution of a pipeline's documents to several readers.
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
    Ok(())
}

/// Fails with 2 for an `exchange` between several readers, which only MongoDB's routers send. Not a
/// part of [`take`], because privileges are checked before.
pub fn refuse_exchange(call: &Call<'_>) -> Result<()> {
    let is_exchange = |(_, field): &(&str, InternalField)| matches!(field, InternalField::Exchange);
    if !call.spec.internal_fields.iter().any(is_exchange) {
        return Ok(());
    }
    let exchange = call.request.body().get("exchange").and_then(Value::as_document);
    match exchange.and_then(|exchange| exchange.get("consumers")).and_then(Value::to_i64) {
        Some(..=1) | None => Ok(()),
        Some(_) => {
            call.parse_own()?;
            Err(Error::bad_value("the exchange initial batch size must be zero"))
        }
    }
}
