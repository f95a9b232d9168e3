//! First stages of a pipeline whose documents come from the server itself rather than from a
//! collection.

mod list_catalog;
mod specification;
mod statistics;

use crate::call::Call;
use crate::command::admin::current_op;
use crate::command::indexes::plan_cache;
use crate::command::sessions::logical_sessions::{self, ListedSessions};
use crate::pipeline::config_lists;
use crate::reply::{append_session, in_executor};
use aggregate::joins::documents_of;
use document::{ArrayWriter, Doc, DocBuf, Value};
use error::{Code, Error, Result};
use query::Context;
use server::logical_session::{LogicalSessionId, UserDigest, user_digest};
use std::collections::VecDeque;
use store::Namespace;

pub use specification::check;

/// Returns whether a first stage requires `aggregate: 1`, without a collection.
pub fn needs_no_collection(stage: &str) -> bool {
    matches!(stage, "$currentOp" | "$listLocalSessions" | "$documents" | SHARDED_DATA)
}

/// Returns whether a first stage may be used without a collection.
pub fn may_lack_collection(stage: &str) -> bool {
    needs_no_collection(stage) || stage == "$listCatalog"
}

/// Returns whether a stage produces documents itself, so that none may come before it.
pub fn is_first_stage(stage: &str) -> bool {
    needs_no_collection(stage)
        || matches!(
            stage,
            "$changeStream" | "$listCatalog" | "$listSessions" | "$collStats" | "$indexStats" | "$planCacheStats"
        )
}

const SHARDED_DATA: &str = "$shardedDataDistribution";

/// Returns the error for such a stage on a collection.
pub fn needs_no_collection_error(stage: &str) -> Error {
    let message = match stage {
        "$currentOp" => CURRENT_OP_NAMESPACE.to_owned(),
        "$listLocalSessions" => aggregate::LOCAL_SESSIONS_NAMESPACE.to_owned(),
        _ => format!("'{stage}' can only be run with {{aggregate: 1}}"),
    };
    Error::new(Code::INVALID_NAMESPACE, message)
}

const CURRENT_OP_NAMESPACE: &str = "$currentOp must be run against the 'admin' database with {aggregate: 1}";

/// Fails with 73 for a stage about the whole server on another database than `admin`.
pub fn check_database(stage: &str, namespace: &Namespace) -> Result<()> {
    match stage == "$currentOp" && &*namespace.database != "admin" {
        true => Err(Error::new(Code::INVALID_NAMESPACE, CURRENT_OP_NAMESPACE)),
        false => Ok(()),
    }
}

/// Returns the documents of such a stage, and the remaining pipeline; `None` for other stages.
pub async fn documents(
    call: &Call<'_>,
    namespace: &Namespace,
    pipeline: Doc<'_>,
    context: &Context,
) -> Result<Option<(VecDeque<DocBuf>, DocBuf)>> {
    for (index, stage) in pipeline.values().filter_map(Value::as_document).filter_map(Doc::first).enumerate() {
        if !is_first_stage(stage.key()) {
            continue;
        }
        check(stage)?;
        if index > 0 && stage.key() == "$changeStream" && call.worker.store.change_feed().is_none() {
            return Err(aggregate::no_change_streams());
        }
        if index > 0 {
            let name = if stage.key() == "$changeStream" { "$_internalChangeStreamOplogMatch" } else { stage.key() };
            let message = format!("{name} is only valid as the first stage in a pipeline");
            return Err(Error::new(Code(40602), message));
        }
    }
    let stage = pipeline.values().next().and_then(Value::as_document).and_then(Doc::first);
    if config_lists::is_list(call, namespace) && !stage.is_some_and(|stage| is_first_stage(stage.key())) {
        return Ok(Some((config_lists::list(call, namespace).await?.into(), pipeline.to_owned())));
    }
    let Some(stage) = stage else { return Ok(None) };
    let sessions = match stage.key() {
        "$listSessions" | "$listLocalSessions" => logical_sessions::listed_sessions(stage)?,
        _ => ListedSessions::Own,
    };
    let documents = match stage.key() {
        "$changeStream" => {
            return Err(aggregate::no_change_streams());
        }
        "$documents" => documents_of(stage.value(), context)
            .map_err(|error| in_executor(error, "PlanExecutor error during aggregation"))?
            .into(),
        "$currentOp" => {
            check_database("$currentOp", namespace)?;
            current_op::check_stage(stage.value())?;
            let options = stage.value().as_document().unwrap_or(Doc::EMPTY);
            let is_set = |name| crate::arguments::options::is_set(options, name);
            let of_all = is_set("allUsers");
            let mut operations = current_op::operations(call, of_all);
            if is_set("idleCursors") {
                operations.extend(current_op::idle_cursors(call, of_all));
            }
            operations.into()
        }
        "$listSessions" if namespace.to_string() != "config.system.sessions" => {
            return Err(Error::new(Code::INVALID_NAMESPACE, aggregate::SESSIONS_NAMESPACE));
        }
        "$listLocalSessions" | "$listSessions" => known_sessions(call, &sessions),
        "$collStats" => {
            let options = stage.value().as_document().unwrap_or(Doc::EMPTY);
            [statistics::of_collection(call, namespace, options).await?].into()
        }
        "$indexStats" => statistics::of_indexes(call, namespace).await?,
        "$listCatalog" => list_catalog::documents(call, namespace).await?,
        "$planCacheStats" => {
            plan_cache::check_collection(call, namespace).await?;
            VecDeque::new()
        }
        _ => return Ok(None),
    };
    Ok(Some((documents, behind_first(pipeline))))
}

/// Returns the stages behind the first.
pub fn behind_first(pipeline: Doc<'_>) -> DocBuf {
    let mut rest = Vec::new();
    {
        let mut writer = ArrayWriter::begin(&mut rest);
        pipeline.values().skip(1).for_each(|stage| writer.push(stage));
    }
    DocBuf::from_vec(rest).unwrap_or_default()
}

fn known_sessions(call: &Call<'_>, listed: &ListedSessions) -> VecDeque<DocBuf> {
    let named: Vec<UserDigest> = match listed {
        ListedSessions::Of(users) => users.iter().map(user_digest).collect(),
        ListedSessions::Own => vec![call.session.user_digest()],
        ListedSessions::OfAll => Vec::new(),
    };
    let is_listed =
        |session: &LogicalSessionId| matches!(listed, ListedSessions::OfAll) || named.contains(&session.user);
    let workers = call.worker.server.workers();
    let mut sessions: Vec<(LogicalSessionId, i64)> = workers.iter().flat_map(|worker| worker.sessions.list()).collect();
    sessions.retain(|(id, _)| is_listed(id));
    // A session may be known to several workers; its latest use counts.
    sessions.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    sessions.dedup_by_key(|(id, _)| *id);
    let listed = sessions.into_iter().map(|(id, last_use)| {
        let owner = workers.iter().find_map(|worker| worker.sessions.owner(&id));
        DocBuf::build(|writer| {
            append_session(writer, "_id", &id);
            writer.append("lastUse", Value::DateTime(last_use));
            if let Some(owner) = &owner {
                writer.append("user", owner.at_database().as_str());
            }
        })
    });
    listed.collect()
}
