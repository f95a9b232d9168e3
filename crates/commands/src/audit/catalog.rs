//! Events of changes to the catalog.

use super::{Events, Recording};
use crate::table::spec::Spec;
use document::{Doc, DocBuf, DocWriter, Value, doc};
use error::Code;
use server::Worker;
use server::audit::kind;
use store::Namespace;

/// The result of an index build that failed.
const INDEX_BUILD_ABORTED: Code = Code(276);

/// What existed before a command, as far as its events depend on that.
pub(super) enum Before {
    /// A command that creates its collection if it is missing. It was missing.
    Missing { namespace: Namespace, database_is_new: bool },
    /// `create`.
    Create { database_is_new: bool },
    /// `createIndexes`, on these indexes, if the collection exists.
    CreateIndexes { namespace: Namespace, indexes: Option<Vec<String>>, database_is_new: bool },
    /// `dropIndexes`, with these indexes.
    DropIndexes { namespace: Namespace, indexes: Vec<String> },
    /// `drop`.
    Drop,
    /// `dropDatabase`, with these collections.
    DropDatabase { collections: Vec<String> },
    /// `renameCollection`.
    Rename,
}

impl Before {
    /// Looks up what a command may change. Returns `None` for commands that change nothing in the
    /// catalog.
    pub async fn of(worker: &Worker, spec: &Spec, body: Doc<'_>) -> Option<Before> {
        let database = body.get("$db").and_then(Value::as_str).unwrap_or_default();
        let first = body.first().map(|first| first.value()).and_then(Value::as_str);
        let namespace = || Some(Namespace::new(database, first?));
        match spec.name {
            "create" => Some(Before::Create { database_is_new: is_new(worker, database).await }),
            "drop" => Some(Before::Drop),
            "renameCollection" => Some(Before::Rename),
            "dropDatabase" => {
                let collections = worker.store.collections(database).await.unwrap_or_default();
                Some(Before::DropDatabase { collections: collections.into_iter().map(|each| each.name).collect() })
            }
            "dropIndexes" => {
                let namespace = namespace()?;
                Some(Before::DropIndexes { indexes: indexes(worker, &namespace).await.unwrap_or_default(), namespace })
            }
            "createIndexes" => {
                let namespace = namespace()?;
                let indexes = indexes(worker, &namespace).await;
                let database_is_new = indexes.is_none() && is_new(worker, database).await;
                Some(Before::CreateIndexes { namespace, indexes, database_is_new })
            }
            "insert" | "update" | "findAndModify" => Before::if_missing(worker, namespace()?).await,
            "aggregate" => Before::if_missing(worker, output_of(database, body)?).await,
            "cloneCollectionAsCapped" => {
                let target = body.get("toCollection").and_then(Value::as_str)?;
                Before::if_missing(worker, Namespace::new(database, target)).await
            }
            _ => None,
        }
    }

    async fn if_missing(worker: &Worker, namespace: Namespace) -> Option<Before> {
        // Answered from memory for collections in use.
        match worker.store.cached_indexes(&namespace).await {
            Ok(None) => {
                let database_is_new = is_new(worker, &namespace.database).await;
                Some(Before::Missing { namespace, database_is_new })
            }
            Ok(Some(_)) | Err(_) => None,
        }
    }

    pub async fn add_events(&self, recording: &Recording<'_>, events: &mut Events<'_>, result: Code) {
        let succeeded = result == Code(0);
        let Recording { worker, body, .. } = recording;
        match self {
            Before::Missing { namespace, database_is_new } => {
                if let Ok(Some(_)) = worker.store.cached_indexes(namespace).await {
                    add_created(events, &namespace.to_string(), *database_is_new, Doc::EMPTY);
                }
            }
            Before::Create { database_is_new } if succeeded => {
                add_created(events, &recording.namespace(), *database_is_new, *body);
            }
            Before::CreateIndexes { namespace, indexes: before, database_is_new } => {
                let after = indexes(worker, namespace).await;
                if before.is_none() && after.is_some() {
                    add_created(events, &namespace.to_string(), *database_is_new, Doc::EMPTY);
                }
                let before = before.as_deref().unwrap_or_default();
                let after = after.unwrap_or_default();
                add_index_builds(recording, events, before, &after, succeeded);
            }
            Before::DropIndexes { namespace, indexes: before } if succeeded => {
                let left = indexes(worker, namespace).await.unwrap_or_default();
                for dropped in before.iter().filter(|index| !left.contains(index)) {
                    let namespace = namespace.to_string();
                    let param = || doc! { "ns": namespace.as_str(), "indexName": dropped.as_str() };
                    events.add(kind::DROP_INDEX, param, result);
                }
            }
            Before::Drop if succeeded || result == Code::NAMESPACE_NOT_FOUND => {
                let param = || doc! { "ns": recording.namespace().as_str() };
                events.add(kind::DROP_COLLECTION, param, result);
            }
            Before::DropDatabase { collections } if succeeded && !collections.is_empty() => {
                let database = recording.database();
                for collection in collections {
                    let param = || doc! { "ns": format!("{database}.{collection}").as_str() };
                    events.add(kind::DROP_COLLECTION, param, result);
                }
                events.add(kind::DROP_DATABASE, || doc! { "ns": database }, result);
            }
            Before::Rename if succeeded => {
                let name = |key| body.get(key).and_then(Value::as_str).unwrap_or_default();
                let param = || doc! { "old": name("renameCollection"), "new": name("to") };
                events.add(kind::RENAME_COLLECTION, param, result);
            }
            _ => {}
        }
    }
}

/// Adds the creation of a collection or view, and of its database.
fn add_created(events: &mut Events<'_>, namespace: &str, database_is_new: bool, create: Doc<'_>) {
    if database_is_new {
        let database = namespace.split('.').next().unwrap_or_default();
        events.add(kind::CREATE_DATABASE, || doc! { "ns": database }, Code(0));
    }
    let param = || {
        DocBuf::build(|writer: &mut DocWriter<'_>| {
            writer.append("ns", namespace);
            for field in ["viewOn", "pipeline"] {
                if let Some(value) = create.get(field) {
                    writer.append(field, value);
                }
            }
        })
    };
    events.add(kind::CREATE_COLLECTION, param, Code(0));
}

/// Adds the start and the end of each index build.
fn add_index_builds(
    recording: &Recording<'_>,
    events: &mut Events<'_>,
    before: &[String],
    after: &[String],
    succeeded: bool,
) {
    let inline = recording.body.get("indexes").and_then(Value::as_array);
    let sequence = recording.request.sequence("indexes").into_iter().flatten();
    let specs = inline.into_iter().flat_map(Doc::values).filter_map(Value::as_document).chain(sequence);
    for spec in specs {
        let name = spec.get("name").and_then(Value::as_str).unwrap_or_default();
        if before.iter().any(|index| index == name) {
            continue;
        }
        let is_built = after.iter().any(|index| index == name);
        if !is_built && succeeded {
            // An index of the same keys exists under another name.
            continue;
        }
        let mut add = |state: &str, result| {
            let param = || {
                let namespace = recording.namespace();
                doc! {
                    "ns": namespace.as_str(), "indexName": name, "indexSpec": spec, "indexBuildState": state
                }
            };
            events.add(kind::CREATE_INDEX, param, result);
        };
        add("IndexBuildStarted", Code(0));
        match is_built {
            true => add("IndexBuildSucceeded", Code(0)),
            false => add("IndexBuildAborted", INDEX_BUILD_ABORTED),
        }
    }
}

async fn indexes(worker: &Worker, namespace: &Namespace) -> Option<Vec<String>> {
    let indexes = worker.store.indexes(namespace).await.ok().flatten()?;
    Some(indexes.into_iter().map(|index| index.name.to_string()).collect())
}

async fn is_new(worker: &Worker, database: &str) -> bool {
    worker.store.collections(database).await.is_ok_and(|collections| collections.is_empty())
}

/// Returns the collection that a pipeline writes to.
fn output_of(database: &str, body: Doc<'_>) -> Option<Namespace> {
    let last = body.get("pipeline").and_then(Value::as_array)?.values().last()?.as_document()?.first()?;
    let target = match (last.key(), last.value()) {
        ("$out", target) => target,
        ("$merge", Value::Document(merge)) => merge.get("into")?,
        ("$merge", target) => target,
        _ => return None,
    };
    match target {
        Value::String(collection) => Some(Namespace::new(database, collection)),
        Value::Document(target) => {
            let text = |key| target.get(key).and_then(Value::as_str);
            Some(Namespace::new(text("db").unwrap_or(database), text("coll")?))
        }
        _ => None,
    }
}
