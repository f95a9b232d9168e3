//! `dataSize`: the size of a collection's documents, or of those between two keys of an index.

use crate::arguments::number_to_i64;
use crate::call::{Call, Disposition};
use crate::command::catalog::collections::named_in_full;
use crate::read::{Visit, for_each};
use crate::views;
use document::{Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use query::sort::KeyRange;
use query::{Predicate, Sort};
use std::time::Instant;
use store::explain::append_count;
use store::index_rules::same_key;
use store::{Namespace, Query, catalog};

/// The arguments. As with MongoDB, unknown fields are ignored, and flags may have any type.
#[derive(Default)]
struct Arguments<'a> {
    estimate: bool,
    key: Option<Doc<'a>>,
    min: Option<Doc<'a>>,
    max: Option<Doc<'a>>,
    bytes_max: Option<u64>,
    documents_max: Option<u64>,
}

/// Fails with 2 for one bound without the other, 16634 for bounds with other fields, and without a
/// code if no index has them.
pub async fn data_size(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let namespace = named_in_full(call.first())?;
    let arguments = Arguments::read(call)?;
    let began = Instant::now();
    let (mut bytes, mut documents) = (0, 0);
    let mut is_cut = false;
    let stats = call.worker.store.collection_stats(&namespace).await?;
    if stats.is_none() {
        views::refuse(call, &namespace).await?;
    }
    if let Some(stats) = &stats {
        let predicate = arguments.predicate(call, &namespace).await?;
        if arguments.estimate && arguments.min.is_none() {
            (bytes, documents) = (stats.data_bytes, stats.documents);
        } else if let Some(predicate) = predicate {
            let store = &*call.worker.store;
            let query = Query::of(&predicate);
            let plan = store.plan(&namespace, query).await?;
            for_each(store, &plan, &predicate, true, call.operation, |document: Doc<'_>| {
                bytes += document.size() as u64;
                documents += 1;
                is_cut = arguments.bytes_max.is_some_and(|most| bytes > most)
                    || arguments.documents_max.is_some_and(|most| documents > most);
                Ok(if is_cut { Visit::Stop } else { Visit::Continue })
            })
            .await?;
            if arguments.estimate {
                // Documents are assumed to have equal sizes.
                bytes = stats.data_bytes / stats.documents.max(1) * documents;
            }
        }
        reply.append("estimate", arguments.estimate);
        if is_cut {
            reply.append("maxReached", true);
        }
    }
    append_count("size", bytes, reply);
    append_count("numObjects", documents, reply);
    reply.append("millis", began.elapsed().as_millis() as i32);
    Ok(Disposition::Reply)
}

impl<'a> Arguments<'a> {
    fn read(call: &Call<'a>) -> Result<Arguments<'a>> {
        let mut arguments = Arguments::default();
        let (mut min, mut max) = (None, None);
        for field in call.fields() {
            match field.key() {
                "estimate" => arguments.estimate = field.value().is_truthy(),
                "keyPattern" => arguments.key = field.value().as_document().filter(|key| !key.is_empty()),
                "min" => min = Some(field),
                "max" => max = Some(field),
                "maxSize" => arguments.bytes_max = limit(field),
                "maxObjects" => arguments.documents_max = limit(field),
                _ => {}
            }
        }
        match (min, max) {
            (Some(_), None) => return Err(Error::bad_value("max must be set if min is set")),
            (None, Some(_)) => return Err(Error::bad_value("min must be set if max is set")),
            _ => {}
        }
        let bound = |field: Option<Element<'a>>| match field {
            None => Ok(None),
            Some(field) => match field.value() {
                Value::Document(bound) => Ok(Some(bound).filter(|bound| !bound.is_empty())),
                _ => Err(Error::bad_value(format!("{} key must be an object", field.key()))),
            },
        };
        (arguments.min, arguments.max) = (bound(min)?, bound(max)?);
        Ok(arguments)
    }

    /// Returns the filter of the documents that count; `None` if none can match.
    async fn predicate(&self, call: &Call<'_>, namespace: &Namespace) -> Result<Option<Predicate>> {
        // MongoDB leaves the fields written so far in the error reply.
        let beside = || document::doc! { "estimate": self.estimate }.into_vec();
        let failed = |message: &str| Err(Error::new(crate::reply::NO_CODE, message).with_details(beside()));
        let (min, max) = match (self.min, self.max) {
            (None, None) => return Ok(Some(Predicate::everything())),
            (Some(min), Some(max)) => (min, max),
            _ => return failed("only one of min or max specified"),
        };
        let key = self.key.map_or_else(|| ascending(min), Doc::to_owned);
        let indexes = call.worker.store.indexes(namespace).await?.unwrap_or_default();
        let order = match indexes
            .iter()
            .find(|index| same_key(index.key.as_doc(), key.as_doc()) && is_directed(key.as_doc()))
        {
            Some(index) => {
                let collation = catalog::default_collation(index.spec.as_doc())?;
                Sort::of_index(index.key.as_doc(), collation, true)
            }
            None => None,
        };
        let Some(order) = order else { return failed("couldn't find valid index containing key pattern") };
        for bound in [min, max] {
            if !bound.elements().map(|part| part.key_bytes()).eq(key.as_doc().elements().map(|part| part.key_bytes())) {
                let (bound, key) = (values::text::document(bound), values::text::document(key.as_doc()));
                let message = format!("field names of bound {bound} do not match those of keyPattern {key}");
                return Err(Error::new(Code(16634), message));
            }
        }
        let range = KeyRange::new(order, Some(min), Some(max));
        Ok((!range.is_empty()).then(|| Predicate::within(range)))
    }
}

/// Reads a limit; `None` if it is not a number, or zero.
fn limit(field: Element<'_>) -> Option<u64> {
    let is_nan = matches!(field.value(), Value::Double(number) if number.is_nan());
    let most = number_to_i64(field.value()).filter(|most| *most != 0 || is_nan)?;
    Some(u64::try_from(most).unwrap_or(0))
}

/// Returns whether each field has a direction or a kind; a boolean is neither.
fn is_directed(key: Doc<'_>) -> bool {
    key.values().all(|value| !matches!(value, Value::Boolean(_)))
}

fn ascending(bound: Doc<'_>) -> DocBuf {
    DocBuf::build(|writer| bound.elements().for_each(|part| writer.append(part.key(), 1)))
}
