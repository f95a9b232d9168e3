//! What a statement of a transaction must satisfy before it is executed.
//!
//! [`crate::dispatch`] executes the statements, `commitTransaction` and `abortTransaction` among
//! them.

use crate::call::Call;
use crate::envelope::{self, Envelope};
use crate::table::spec::{Access, Spec};
use document::{Doc, DocWriter, Element, Value};
use error::{Code, Error, Result};
use server::Topology;
use server::session_state::StatementRole;
use store::Namespace;

/// Refuses to end a transaction outside of one.
pub fn end_without_transaction(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let message = format!("{} must be run within a transaction", call.spec.name);
    Err(Error::new(Code(125), message))
}

/// Refuses a statement that a transaction cannot have, and a `txnNumber` with a command that is not
/// a retryable write.
///
/// A standalone server supports neither, and fails with MongoDB's error for both.
pub fn check(topology: &Topology, spec: &Spec, envelope: &Envelope<'_>) -> Result<()> {
    if envelope.txn_number.is_none() && !envelope.in_transaction {
        return Ok(());
    }
    if envelope.txn_number.is_some_and(i64::is_negative) {
        return Err(Error::new(Code::INVALID_OPTIONS, "Transaction number cannot be negative"));
    }
    if *topology == Topology::Standalone {
        let message = "Transaction numbers are only allowed on a replica set member or mongos";
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    if envelope.in_transaction {
        return check_statement(spec, envelope);
    }
    if spec.access == Access::Write {
        return Ok(());
    }
    let message = format!(
        "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was \
         not provided, and {} is not a retryable write command.",
        spec.name
    );
    Err(Error::new(Code::NOT_A_RETRYABLE_WRITE_COMMAND, message))
}

/// Returns the role of a command in its transaction.
pub fn role(spec: &Spec, envelope: &Envelope<'_>) -> StatementRole {
    match spec.name {
        "commitTransaction" => StatementRole::Commit,
        "abortTransaction" => StatementRole::Abort,
        _ if envelope.starts_transaction => StatementRole::First,
        _ => StatementRole::Next,
    }
}

fn check_statement(spec: &Spec, envelope: &Envelope<'_>) -> Result<()> {
    let name = spec.name;
    match name {
        "count" => {
            return refuse(
                "Cannot run 'count' in a multi-document transaction. Please see \
                 http://dochub.mongodb.org/core/transaction-count for a recommended alternative.",
            );
        }
        "commitTransaction" if envelope.starts_transaction => {
            return refuse("Cannot start a transaction with a commit");
        }
        "abortTransaction" if envelope.starts_transaction => {
            return refuse("Cannot start a transaction with an abort");
        }
        "killCursors" if envelope.starts_transaction => {
            return refuse("Cannot run killCursors as the first operation in a multi-document transaction.");
        }
        _ if !spec.in_transaction => {
            return refuse(&format!("Cannot run '{name}' in a multi-document transaction."));
        }
        _ => {}
    }
    match (envelope.database, envelope.first.value()) {
        ("config", _) => refuse("Cannot run command against the config database in a transaction."),
        ("local", _) => refuse("Cannot run command against the 'local' database in a transaction."),
        (database, Value::String(collection @ "system.profile")) => {
            refuse(&format!("Cannot run command against the '{database}.{collection}' collection in a transaction."))
        }
        _ => Ok(()),
    }
}

/// Refuses what only the statement's place in the transaction forbids: a write concern, and a read
/// concern except that of the first statement.
pub fn check_concerns(spec: &Spec, envelope: &Envelope<'_>) -> Result<()> {
    let invalid = |message: &str| Err(Error::new(Code::INVALID_OPTIONS, message));
    let ends = matches!(role(spec, envelope), StatementRole::Commit | StatementRole::Abort);
    if envelope.write_concern.is_some() && !ends {
        return invalid("writeConcern is not allowed within a multi-statement transaction");
    }
    let Some(concern) = envelope.read_concern else { return Ok(()) };
    if !envelope.starts_transaction {
        let is_empty = concern.value().as_document().is_some_and(Doc::is_empty);
        return match is_empty {
            true => Ok(()),
            false => invalid("Only the first command in a transaction may specify a readConcern"),
        };
    }
    check_level(concern)
}

/// Checks the read concern of a transaction. All its levels read a snapshot of committed documents.
fn check_level(concern: Element<'_>) -> Result<()> {
    let Some(fields) = concern.value().as_document() else {
        return Err(Error::failed_to_parse("readConcern field should be an object"));
    };
    envelope::check_snapshot_time(fields)?;
    for field in fields.elements() {
        match (field.key(), field.value()) {
            ("level", Value::String("local" | "majority" | "snapshot")) => {}
            ("level", Value::String("available" | "linearizable")) => {
                let message = "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order \
                               to run in a transaction";
                return Err(Error::new(Code::INVALID_OPTIONS, message));
            }
            ("level", _) => return Err(envelope::refuse_level(field)),
            ("afterClusterTime" | "afterOpTime" | "atClusterTime" | "provenance", _) => {}
            (other, _) => {
                return Err(Error::new(Code::INVALID_OPTIONS, format!("Unrecognized option in readConcern: {other}")));
            }
        }
    }
    Ok(())
}

/// Refuses what a command cannot do in a transaction, by its own fields: stages that write or that
/// report on the server, tailable cursors, writes of system collections. Unlike the checks before,
/// this aborts the transaction.
pub fn check_operation(call: &Call<'_>) -> Result<()> {
    let field = |name: &str| call.fields().find(|field| field.key() == name).map(|field| field.value());
    if call.spec.access == Access::Write
        && let Some(collection) = call.first().value().as_str()
        && collection.starts_with("system.")
    {
        let message =
            format!("Cannot write to system collection {}.{collection} within a transaction.", call.database());
        return Err(Error::new(Code(50791), message));
    }
    if call.first().value().as_str() == Some(store::views::COLLECTION) {
        return Err(Error::new(Code(51071), "Cannot query system.views within a transaction"));
    }
    if call.spec.name == "find" && field("tailable").is_some_and(Value::is_truthy) {
        let message = "It is illegal to open a tailable cursor in a transaction";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    if call.spec.name != "aggregate" {
        return Ok(());
    }
    if field("explain").is_some_and(Value::is_truthy) {
        return refuse(
            "Operation not permitted in transaction :: caused by :: Explain for the aggregate command cannot run within a \
             multi-document transaction",
        );
    }
    field("pipeline").and_then(Value::as_array).map_or(Ok(()), check_stages)
}

fn check_stages(stages: Doc<'_>) -> Result<()> {
    for stage in stages.values().filter_map(Value::as_document).filter_map(Doc::first) {
        match stage.key() {
            name @ ("$out" | "$merge") => return refuse(&format!("{name} cannot be used in a transaction")),
            name @ ("$collStats" | "$indexStats" | "$planCacheStats" | "$listSessions" | "$unionWith") => {
                return refuse(&format!("Stage not supported inside of a multi-document transaction: {name}"));
            }
            name @ ("$currentOp" | "$listLocalSessions" | "$changeStream") => {
                return refuse(&format!(
                    "Operation not permitted in transaction :: caused by :: Aggregation stage {name} cannot run within a \
                     multi-document transaction."
                ));
            }
            _ => {}
        }
        let pipelines = stage.value().as_document().into_iter().flat_map(|body| body.elements());
        for inner in pipelines {
            let is_pipeline = stage.key() == "$facet" || inner.key() == "pipeline";
            if let Some(stages) = inner.value().as_array().filter(|_| is_pipeline) {
                check_stages(stages)?;
            }
        }
    }
    Ok(())
}

/// Refuses to write to the time-series collection `namespace` in a transaction.
pub fn refuse_time_series(call: &Call<'_>, namespace: &Namespace) -> Result<()> {
    match (call.envelope.in_transaction, call.spec.name) {
        (false, _) => Ok(()),
        (true, "insert") => refuse(&format!(
            "time-series insert failed: {namespace} :: caused by :: Cannot insert into a time-series collection in a \
             multi-document transaction: {namespace}"
        )),
        (true, _) => {
            refuse(&format!("Cannot perform a multi-document transaction on a time-series collection: {namespace}"))
        }
    }
}

/// Refuses to create a view or a time-series collection (`what`) in a transaction.
pub fn refuse_to_create(call: &Call<'_>, what: &str) -> Result<()> {
    match call.envelope.in_transaction {
        true => refuse(&format!("Cannot create a {what} in a multi-document transaction.")),
        false => Ok(()),
    }
}

fn refuse(message: &str) -> Result<()> {
    Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message))
}
