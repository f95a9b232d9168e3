//! The fast path of `find` by `_id`, the most frequent command of most applications.
//!
//! A `find` whose filter names one `_id`, without options that would change its reply, returns that
//! document or nothing. It needs no parsed predicate, no plan, no reader, no cursor, and never
//! waits: the store looks the document up, and it is written straight into the reply. That halves
//! the cost of the command. Anything else, including invalid options, is left to [`super::find`].

use crate::call::Call;
use crate::read;
use crate::reply::{append_names, in_executor};
use cache::Dependencies;
use cache::dependencies::Aspect;
use document::{Doc, DocWriter, Element, Kind, Value};
use error::Result;
use mongo_wire::Request;
use query::Predicate;
use store::{Namespace, StoredDoc};

/// Returns whether a request probably qualifies: a cheap test that is rarely wrong.
pub fn is_likely(request: &Request) -> bool {
    let filter = request.body().elements().nth(1).filter(|second| second.key_bytes() == b"filter");
    filter.and_then(the_id).is_some()
}

/// Answers the command, or returns false: then the reply must be discarded.
pub fn find_by_id(call: &Call<'_>, reply: &mut DocWriter<'_>) -> Result<bool> {
    let Some(id) = wanted_id(call) else { return Ok(false) };
    let Some(collection) = call.first().value().as_str() else { return Ok(false) };
    let mut cursor = reply.document("cursor");
    let looked_up = {
        let mut batch = cursor.array("firstBatch");
        call.worker.store.lookup(call.database(), collection, id, &mut |document| match document {
            StoredDoc::Bson(document) => {
                batch.push_raw(Kind::Document, document.as_bytes());
                Ok(())
            }
            StoredDoc::Json(json) => {
                batch.try_push(Kind::Document, |out| read::transcode(json, out).map(|()| true)).map(|_| ())
            }
        })
    };
    let Some(found) = looked_up else { return Ok(false) };
    let found = found.map_err(|error| in_executor(error, "Executor error during find command"))?;
    let statistics = call.worker.statistics();
    statistics.operations_query.add(1);
    statistics.documents_returned.add(found.into());
    cursor.append("id", 0i64);
    append_names(&mut cursor, call.database(), collection);
    let filter = call.fields().find(|field| field.key_bytes() == b"filter").and_then(|it| it.value().as_document());
    if let Some(Ok(predicate)) = filter.filter(|_| call.dependencies.is_recording()).map(|filter| {
        // An `_id` that can be looked up compares by its bytes, whatever the collation.
        Predicate::parse_query(filter, &call.context())
    }) {
        let namespace = Namespace::new(call.database(), collection);
        call.dependencies.depend_on(|| Dependencies::matching(namespace, predicate, Aspect::Documents));
    }
    Ok(true)
}

/// Returns the requested `_id`, if the command has no other conditions.
fn wanted_id<'a>(call: &Call<'a>) -> Option<Value<'a>> {
    let mut id = None;
    for field in call.fields() {
        match (field.key_bytes(), field.value()) {
            (b"filter", _) => id = Some(the_id(field)?),
            (b"limit", Value::Int32(0..) | Value::Int64(0..)) => {}
            // With zero, the first batch is empty and the document comes with the next.
            (b"batchSize", Value::Int32(1..) | Value::Int64(1..)) => {}
            (b"skip", Value::Int32(0) | Value::Int64(0)) => {}
            (b"singleBatch", Value::Boolean(_)) => {}
            (b"projection" | b"sort", Value::Document(Doc::EMPTY)) => {}
            _ => return None,
        }
    }
    id
}

/// Returns the value in a filter `{_id: value}` or `{_id: {$eq: value}}`, if it equals nothing but
/// itself. The store decides which types do; documents could contain operators.
fn the_id(filter: Element<'_>) -> Option<Value<'_>> {
    let element = only_element(filter)?;
    if element.key_bytes() != b"_id" {
        return None;
    }
    match element.kind {
        Kind::Document => only_element(element).filter(|it| it.key_bytes() == b"$eq" && it.kind != Kind::Document),
        _ => Some(element),
    }
    .map(Element::value)
}

fn only_element(field: Element<'_>) -> Option<Element<'_>> {
    let Value::Document(document) = field.value() else { return None };
    let mut elements = document.elements();
    elements.next().filter(|_| elements.next().is_none())
}
