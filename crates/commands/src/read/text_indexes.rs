//! The text indexes that a command may search, looked up before it is parsed: without one, `$text`
//! is an error.

use crate::call::Call;
use document::{Doc, Value};
use error::Result;
use fulltext::{TextIndex, TextIndexes};
use memchr::memmem;
use server::Worker;
use std::sync::Arc;
use store::Namespace;

/// How `$text` begins in BSON, with any value.
const TEXT: &[u8] = b"$text\0";

/// Returns the text indexes of the collections that a command mentions. Looks none up if the
/// command contains no `$text`.
pub async fn mentioned(call: &Call<'_>) -> Result<TextIndexes> {
    let request = call.request;
    if call.spec.name == "insert" || memmem::find(&request.message, TEXT).is_none() {
        return Ok(TextIndexes::default());
    }
    let command = match call.first().value() {
        Value::Document(explained) => explained,
        _ => request.body(),
    };
    let own = command.first().and_then(|first| first.value().as_str()).unwrap_or_default();
    of(call.worker, call.database(), own, command).await
}

/// Returns the text indexes of the collections that a pipeline reads.
pub async fn of_pipeline(worker: &Worker, namespace: &Namespace, pipeline: Doc<'_>) -> Result<TextIndexes> {
    match memmem::find(pipeline.as_bytes(), TEXT) {
        Some(_) => of(worker, &namespace.database, &namespace.collection, pipeline).await,
        None => Ok(TextIndexes::default()),
    }
}

/// Returns the text indexes of a collection, and of the others that a command or pipeline on it
/// reads.
async fn of(worker: &Worker, database: &str, own: &str, reading: Doc<'_>) -> Result<TextIndexes> {
    let mut names = vec![own];
    add_foreign(reading, &mut names);
    names[1..].sort_unstable();
    let mut indexes = TextIndexes::default();
    names.dedup();
    for name in names {
        let specs = worker.store.cached_indexes(&Namespace::new(database, name)).await?.unwrap_or_default();
        if let Some(index) = TextIndex::find_in(specs.iter().map(|index| index.spec.as_doc())) {
            indexes.insert(name, Arc::new(index));
        }
    }
    Ok(indexes.for_collection(own))
}

/// Adds the text index of the collection below a view, in case it is searched.
pub async fn add(call: &Call<'_>, namespace: &Namespace, indexes: &mut TextIndexes) -> Result<()> {
    let specs = call.worker.store.cached_indexes(namespace).await?.unwrap_or_default();
    if let Some(index) = TextIndex::find_in(specs.iter().map(|index| index.spec.as_doc())) {
        indexes.insert(&namespace.collection, Arc::new(index));
    }
    Ok(())
}

/// Collects the possible names of other collections that a stage reads.
fn add_foreign<'d>(reading: Doc<'d>, names: &mut Vec<&'d str>) {
    for (name, value) in reading.iter() {
        match value {
            Value::String(text) if matches!(name, "from" | "coll" | "$unionWith") => names.push(text),
            Value::Document(inner) | Value::Array(inner) => add_foreign(inner, names),
            _ => {}
        }
    }
}
