//! First stages of a pipeline whose documents come from the server itself rather than from a collection's documents.

use crate::arguments;
use crate::command::current_op;
use crate::command::plan_cache;
use crate::command::sessions;
use crate::command::statistics::{host_and_port, write_storage_stats};
use crate::command::{time_series, views};
use crate::dispatch::Call;
use crate::logical_session::LogicalSessionId;
use crate::reply::in_executor;
use document::{ArrayWriter, Doc, DocBuf, DocWriter, Value};
use error::{Code, Error, Result};
use query::Context;
use query::aggregate::foreign::documents_of;
use std::collections::VecDeque;
use store::explain::append_count;
use store::{Namespace, Rules};

/// Whether a first stage stands without a collection (`aggregate: 1`).
pub fn needs_no_collection(stage: &str) -> bool {
    matches!(stage, "$currentOp" | "$listLocalSessions" | "$documents")
}

/// Whether a stage gives documents of its own, so that nothing can come before it.
pub fn is_first_stage(stage: &str) -> bool {
    needs_no_collection(stage)
        || matches!(stage, "$changeStream" | "$listSessions" | "$collStats" | "$indexStats" | "$planCacheStats")
}

/// Such a stage was put before a collection.
pub fn needs_no_collection_error(stage: &str) -> Error {
    let message = match stage {
        "$currentOp" => CURRENT_OP_NAMESPACE.to_owned(),
        "$listLocalSessions" => query::aggregate::LOCAL_SESSIONS_NAMESPACE.to_owned(),
        _ => format!("'{stage}' can only be run with {{aggregate: 1}}"),
    };
    Error::new(Code::INVALID_NAMESPACE, message)
}

const CURRENT_OP_NAMESPACE: &str = "$currentOp must be run against the 'admin' database with {aggregate: 1}";

/// The documents such a stage gives, and the rest of the pipeline; `None` when the first stage is another.
pub async fn documents(
    call: &Call<'_>,
    namespace: &Namespace,
    pipeline: Doc<'_>,
    context: &Context,
) -> Result<Option<(VecDeque<DocBuf>, DocBuf)>> {
    let mut names = pipeline.values().filter_map(Value::as_document).filter_map(Doc::first).map(|stage| stage.key());
    if let Some(name) = names.by_ref().skip(1).find(|name| is_first_stage(name)) {
        let message = format!("{name} is only valid as the first stage in a pipeline");
        return Err(Error::new(Code(40602), message));
    }
    let stage = pipeline.values().next().and_then(Value::as_document).and_then(Doc::first);
    let Some(stage) = stage else { return Ok(None) };
    let asks_for_users = match stage.key() {
        "$listSessions" | "$listLocalSessions" => sessions::asks_for_users(stage)?,
        _ => false,
    };
    let documents = match stage.key() {
        "$changeStream" => {
            return Err(Error::new(Code(40573), "The $changeStream stage is only supported on replica sets"));
        }
        "$documents" => documents_of(stage.value(), context)
            .map_err(|error| in_executor(error, "PlanExecutor error during aggregation"))?
            .into(),
        "$currentOp" => {
            if &*namespace.database != "admin" {
                return Err(Error::new(Code::INVALID_NAMESPACE, CURRENT_OP_NAMESPACE));
            }
            current_op::check_stage(stage.value())?;
            let options = stage.value().as_document().unwrap_or(Doc::EMPTY);
            current_op::operations(call, crate::command::options::is_set(options, "idleConnections")).into()
        }
        "$listSessions" if namespace.to_string() != "config.system.sessions" => {
            return Err(Error::new(Code::INVALID_NAMESPACE, query::aggregate::SESSIONS_NAMESPACE));
        }
        "$listLocalSessions" | "$listSessions" if asks_for_users => VecDeque::new(),
        "$listLocalSessions" | "$listSessions" => known_sessions(call),
        "$collStats" => [collection_stats(call, namespace, stage.value()).await?].into(),
        "$indexStats" if stage.value().as_document().is_none_or(|options| !options.is_empty()) => {
            let message = "The $indexStats stage specification must be an empty object";
            return Err(Error::new(Code(28803), message));
        }
        "$indexStats" => index_stats(call, namespace).await?,
        "$planCacheStats" => {
            plan_cache::check_stage(stage.value())?;
            plan_cache::check_collection(call, namespace).await?;
            VecDeque::new()
        }
        _ => return Ok(None),
    };
    let mut rest = Vec::new();
    {
        let mut writer = ArrayWriter::begin(&mut rest);
        pipeline.values().skip(1).for_each(|stage| writer.push(stage));
    }
    Ok(Some((documents, DocBuf::from_vec(rest).unwrap_or_default())))
}

fn known_sessions(call: &Call<'_>) -> VecDeque<DocBuf> {
    let workers = call.worker.server.workers();
    let mut sessions: Vec<(LogicalSessionId, i64)> = workers.iter().flat_map(|worker| worker.sessions.list()).collect();
    // The same session may have been seen by several workers; its latest use counts.
    sessions.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    sessions.dedup_by_key(|(id, _)| *id);
    sessions
        .into_iter()
        .map(|(id, last_use)| {
            DocBuf::build(|writer| {
                writer.document("_id").append("id", Value::Binary { subtype: 4, bytes: &id });
                writer.append("lastUse", Value::DateTime(last_use));
            })
        })
        .collect()
}

async fn collection_stats(call: &Call<'_>, namespace: &Namespace, options: Value<'_>) -> Result<DocBuf> {
    let Some(options) = options.as_document() else {
        let message = format!("$collStats must take a nested object but found: $collStats: {}", options.kind().alias());
        return Err(Error::new(Code(40166), message));
    };
    let mut scale = 1_u64;
    for (key, value) in options.iter() {
        match key {
            "count" | "latencyStats" | "queryExecStats" => {}
            "storageStats" => {
                let given = value.as_document().and_then(|options| options.get("scale"));
                scale = given.and_then(arguments::number_to_i64).unwrap_or(1).max(1) as u64;
            }
            other => return Err(arguments::unknown_field("$collStats", other)),
        }
    }
    let stats = call.worker.store.collection_stats(namespace).await?;
    let Some(stats) = stats else {
        let during = "PlanExecutor error during aggregation :: caused by :: ";
        views::refuse(call, namespace).await.map_err(|error| error.context(during))?;
        let what = if options.get("count").is_some() {
            "Unable to retrieve count in"
        } else {
            "Unable to retrieve storageStats in"
        };
        let message = format!(
            "PlanExecutor error during aggregation :: caused by :: {what} $collStats stage :: caused by :: Collection \
             [{namespace}] not found."
        );
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message));
    };
    let info = call.worker.store.collection(namespace).await?;
    let rules = info.map(|info| Rules::of(info.options.as_doc())).transpose()?.flatten();
    let cap = rules.and_then(|rules| rules.cap);
    Ok(DocBuf::build(|writer| {
        writer.append("ns", &namespace.to_string());
        writer.append("host", &host_and_port());
        writer.append("localTime", Value::DateTime(call.now_ms));
        if options.get("storageStats").is_some() {
            write_storage_stats(&stats, cap, scale, &mut writer.document("storageStats"));
        }
        if options.get("count").is_some() {
            append_count("count", stats.documents, writer);
        }
    }))
}

async fn index_stats(call: &Call<'_>, namespace: &Namespace) -> Result<VecDeque<DocBuf>> {
    let mut indexes = call.worker.store.indexes(namespace).await?;
    if indexes.is_none() {
        if let Some(series) = time_series::find(call, namespace).await? {
            let own = call.worker.store.indexes(&series.buckets).await?.unwrap_or_default();
            let own = own.into_iter().filter(|index| index.name != "_id_");
            return Ok(own
                .map(|index| write_index(&time_series::indexes::listed(index.spec.as_doc(), &series)))
                .collect());
        }
        let view = views::resolve(call, namespace).await?;
        if !view.stages.as_doc().is_empty() {
            // Behind the view's own stages it would not come first.
            return Err(Error::new(Code(40602), "$indexStats is only valid as the first stage in a pipeline"));
        }
        indexes = call.worker.store.indexes(&view.base).await?;
    }
    let indexes = indexes.unwrap_or_default();
    Ok(indexes.iter().map(|index| write_index(&index.spec)).collect())
}

/// What `$indexStats` says of an index with this specification.
fn write_index(spec: &DocBuf) -> DocBuf {
    DocBuf::build(|writer: &mut DocWriter<'_>| {
        for name in ["name", "key"] {
            writer.append(name, spec.as_doc().get(name).unwrap_or(Value::Null));
        }
        writer.append("host", &host_and_port());
        writer.append("spec", spec);
    })
}
