//! `splitVector`: keys that split a collection into chunks of about equal size. Connectors read the
//! chunks in parallel.

use crate::arguments::{is_absent, number_to_i64};
use crate::call::{Call, Disposition};
use crate::command::catalog::collections::named_in_full;
use crate::read::{ReadSpec, Reader};
use crate::reply::NO_CODE;
use crate::views;
use document::{Doc, DocBuf, DocWriter, Value};
use error::{Code, Error, Result};
use query::sort::KeyRange;
use query::{Predicate, Sort};
use store::index_rules::same_key;
use store::{IndexSpec, Namespace, catalog};

const MEGABYTE: u64 = 1 << 20;
const PIECE_MEGABYTES_MAX: u64 = 1024;

/// The fields of a `splitVector`.
#[derive(Default)]
struct Arguments<'a> {
    key: Option<Doc<'a>>,
    min: Option<Doc<'a>>,
    max: Option<Doc<'a>>,
    force: bool,
    /// The size of a chunk, if it is given.
    bytes: Option<u64>,
    documents: Option<u64>,
    keys_max: Option<u64>,
}

pub async fn split_vector(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let namespace = named_in_full(call.first())?;
    let arguments = Arguments::read(call)?;
    let key = arguments.key.ok_or_else(|| Error::new(NO_CODE, "no key pattern found in splitVector"))?;
    if arguments.min.is_some() != arguments.max.is_some() {
        return Err(Error::new(NO_CODE, "either provide both min and max or leave both empty"));
    }
    let Some(stats) = call.worker.store.collection_stats(&namespace).await? else {
        views::refuse(call, &namespace).await?;
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, "ns not found"));
    };
    let index = index(call, &namespace, key).await?;
    let bytes = if arguments.force { Some(stats.data_bytes) } else { arguments.bytes };
    let bytes = bytes.ok_or_else(|| invalid("need to specify the desired max chunk size"))?;
    let mut split_keys = reply.array("splitKeys");
    if stats.documents == 0 || !arguments.force && stats.data_bytes < bytes {
        return Ok(Disposition::Reply);
    }
    let average = (stats.data_bytes / stats.documents).max(1);
    let piece = match arguments.force {
        true => walk(call, &namespace, &index, &arguments, u64::MAX).await?.0 / 2,
        false => arguments.documents.unwrap_or(u64::MAX).min(bytes / (2 * average)),
    };
    let (_, keys) = walk(call, &namespace, &index, &arguments, piece).await?;
    keys.iter().for_each(|key| split_keys.push(key));
    Ok(Disposition::Reply)
}

impl<'a> Arguments<'a> {
    fn read(call: &Call<'a>) -> Result<Arguments<'a>> {
        let mut arguments = Arguments::default();
        let amount = |value: Value<'_>| number_to_i64(value).and_then(|number| u64::try_from(number).ok());
        for field in call.fields().filter(|field| !is_absent(*field)) {
            let value = field.value();
            let document = || value.as_document().filter(|document| !document.is_empty());
            match field.key() {
                "keyPattern" => arguments.key = document(),
                "min" => arguments.min = document(),
                "max" => arguments.max = document(),
                "force" => arguments.force = value.is_truthy(),
                "maxChunkSize" => {
                    let megabytes = amount(value).filter(|megabytes| (1..=PIECE_MEGABYTES_MAX).contains(megabytes));
                    let refuse = || invalid("maxChunkSize must lie within the range [1MB, 1024MB]");
                    arguments.bytes = Some(megabytes.ok_or_else(refuse)? * MEGABYTE);
                }
                "maxChunkSizeBytes" => {
                    let range = MEGABYTE..=PIECE_MEGABYTES_MAX * MEGABYTE;
                    let bytes = amount(value).filter(|bytes| range.contains(bytes));
                    let refuse = || invalid("The specified max chunk size must lie within the range [1MB, 1024MB]");
                    arguments.bytes = Some(bytes.ok_or_else(refuse)?);
                }
                "maxChunkObjects" => arguments.documents = amount(value).filter(|documents| *documents > 0),
                "maxSplitPoints" => arguments.keys_max = amount(value).filter(|keys| *keys > 0),
                // As with MongoDB, unknown fields are ignored.
                _ => {}
            }
        }
        Ok(arguments)
    }
}

fn invalid(message: &str) -> Error {
    Error::new(Code::INVALID_OPTIONS, message)
}

/// Returns the index whose key begins with the fields of the split key.
async fn index(call: &Call<'_>, namespace: &Namespace, key: Doc<'_>) -> Result<IndexSpec> {
    let length = key.elements().count();
    let indexes = call.worker.store.indexes(namespace).await?.unwrap_or_default();
    let begins = |index: &IndexSpec| {
        let beginning = DocBuf::build(|writer| {
            index.key.as_doc().elements().take(length).for_each(|field| writer.append_element(field));
        });
        same_key(beginning.as_doc(), key)
    };
    indexes.into_iter().find(begins).ok_or_else(|| {
        let key = values::text::document(key);
        Error::new(Code::INDEX_NOT_FOUND, format!("couldn't find index over splitting key {key}"))
    })
}

/// Scans the keys in order; returns their number, and each key that follows `piece` others.
async fn walk(
    call: &Call<'_>,
    namespace: &Namespace,
    index: &IndexSpec,
    arguments: &Arguments<'_>,
    piece: u64,
) -> Result<(u64, Vec<DocBuf>)> {
    let collation = catalog::default_collation(index.spec.as_doc())?;
    let order = Sort::of_index(index.key.as_doc(), collation, true);
    let order = order.ok_or_else(|| Error::internal("an index that is split by has no order"))?;
    let predicate = match (arguments.min, arguments.max) {
        (None, None) => Predicate::everything(),
        (min, max) => {
            let range = KeyRange::new(order.clone(), min, max);
            if range.is_empty() {
                return Ok((0, Vec::new()));
            }
            Predicate::within(range)
        }
    };
    let hint = Some(Value::Document(index.key.as_doc()));
    let request = ReadSpec { predicate: Some(predicate), sort: Some(order), hint, ..ReadSpec::default() };
    let mut reader = Reader::open(&*call.worker.store, namespace, request).await?;
    let (mut seen, mut counted) = (0_u64, 0_u64);
    let mut last: Option<DocBuf> = None;
    let mut keys: Vec<DocBuf> = Vec::new();
    let keys_max = arguments.keys_max.unwrap_or(u64::MAX);
    reader
        .for_each(call, |document| {
            seen += 1;
            counted += 1;
            let is_due = counted > piece && (keys.len() as u64) < keys_max;
            if is_due || last.is_none() {
                let key = key_of(document, arguments.key.unwrap_or(Doc::EMPTY));
                // Documents with the same key stay in one chunk.
                if is_due && last.as_ref() != Some(&key) {
                    keys.push(key.clone());
                    counted = 0;
                }
                if keys.last() == Some(&key) || last.is_none() {
                    last = Some(key);
                }
            }
            Ok(())
        })
        .await?;
    Ok((seen, keys))
}

fn key_of(document: Doc<'_>, key: Doc<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        for field in key.elements() {
            let mut parts = field.key().split('.');
            let first = parts.next().and_then(|part| document.get(part));
            let value = parts.fold(first, |value, part| value?.as_document()?.get(part));
            writer.append(field.key(), value.unwrap_or(Value::Null));
        }
    })
}
