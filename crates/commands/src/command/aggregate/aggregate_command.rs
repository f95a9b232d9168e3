//! `aggregate`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/aggregate/>

use crate::arguments;
use crate::arguments::aggregate::{Arguments, check_cursor, explained_with_write_concern};
use crate::arguments::options;
use crate::call::{Call, Disposition};
use crate::change_stream;
use crate::command::aggregate::explain;
use crate::pipeline::open::{aggregated_namespace, in_pipeline, open};
use crate::read::Batch;
use crate::read::open_cursor::{FIRST_BATCH_DOCUMENTS, open_cursor};
use crate::reply::append_namespace;
use cache::NotCached;
use document::{Doc, DocWriter, Value};
use error::{Code, Error, Result};

/// Parses the fields of an `aggregate`.
pub fn parse(call: &Call<'_>) -> Result<()> {
    check_name(call)?;
    let arguments = Arguments::read(call.all_fields())?;
    check_cursor(&arguments)?;
    aggregate::precheck(arguments.pipeline)
}

/// Fails with 72 for a pipeline that writes and reads linearizably.
fn check_level(call: &Call<'_>, pipeline: Doc<'_>) -> Result<()> {
    let last = pipeline.values().last().and_then(Value::as_document).and_then(Doc::first);
    let Some(stage) = last.map(|stage| stage.key()).filter(|stage| matches!(*stage, "$out" | "$merge")) else {
        return Ok(());
    };
    let level = match call.snapshot {
        Some(_) => "snapshot",
        None if call.envelope.is_linearizable() => "linearizable",
        None => return Ok(()),
    };
    let message = format!(
        "Command aggregate does not support {{ readConcern: {{ level: \"{level}\", provenance: \"clientSupplied\" }} }} \
         :: caused by :: {stage} cannot be used with a '{level}' read concern level"
    );
    Err(Error::new(Code::INVALID_OPTIONS, message))
}

/// Checks the collection's name before the fields.
fn check_name(call: &Call<'_>) -> Result<()> {
    let first = call.first();
    match first.value() {
        value if value.kind().is_number() => {}
        Value::String(_) => drop(arguments::namespace(call.database(), first)?),
        _ => {
            return Err(Error::type_mismatch(format!("collection name has invalid type: {}", first.kind.alias())));
        }
    }
    arguments::check_database(call.database())
}

pub async fn aggregate(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    check_name(call)?;
    let arguments = Arguments::read(call.fields())?;
    check_cursor(&arguments)?;
    let namespace = aggregated_namespace(call.database(), call.first(), arguments.pipeline)?;
    check_level(call, arguments.pipeline)?;
    call.worker.statistics().operations_command.add(1);
    if arguments.explain {
        if call.snapshot.is_some() {
            let message = "Command aggregate does not support { readConcern: { level: \"snapshot\", provenance: \
                           \"clientSupplied\" } } :: caused by :: Explain for the aggregate command cannot run with a \
                           readConcern other than 'local'. Current readConcern level: snapshot";
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        if call.envelope.write_concern.is_some() {
            return Err(explained_with_write_concern());
        }
        let command = call.request.body();
        if let Some(view) = explain::view(call, &namespace).await? {
            let (stages, hint) = (arguments.pipeline.to_owned(), arguments.hint);
            return explain::explain_view(call, view, stages, hint, explain::Verbosity::Planner, reply).await;
        }
        return explain::explain_aggregate(call, &namespace, &arguments, command, explain::Verbosity::Planner, reply)
            .await;
    }
    let mut reader = match change_stream::operand(call, arguments.pipeline) {
        Some(stage) => change_stream::open(call, &namespace, stage, &arguments).await?,
        None => {
            let collation = options::effective_collation(call, &namespace, arguments.collation).await?;
            let context = options::context(call, arguments.variables, collation)?;
            open(call, &namespace, &arguments, &context).await?
        }
    };
    let batch_size = arguments.batch_size.unwrap_or(FIRST_BATCH_DOCUMENTS);
    let mut cursor = reply.document("cursor");
    {
        let mut batch = Batch::begin(&mut cursor, "firstBatch", options::as_count(batch_size));
        let filled = reader.fill(call, &mut batch).await;
        filled.map_err(in_pipeline)?;
        call.worker.statistics().documents_returned.add(batch.len() as u64);
    }
    reader.append_state(&mut cursor);
    if !reader.is_done() {
        call.dependencies.refuse(NotCached::OpenCursor);
    }
    let id = if reader.is_done() { 0 } else { open_cursor(call, &namespace, reader, false, &cursor)? };
    cursor.append("id", id);
    append_namespace(&mut cursor, &namespace);
    call.append_snapshot_time(&mut cursor);
    Ok(Disposition::Reply)
}
