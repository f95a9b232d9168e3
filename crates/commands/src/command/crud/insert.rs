//! `insert`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/insert/>

use crate::arguments;
use crate::arguments::unknown_field;
use crate::call::{Call, Disposition};
use crate::envelope::check_statement_id;
use crate::envelope::collection_uuid;
use crate::time_series;
use crate::write;
use crate::write::statements::inline_statements;
use bytes::Bytes;
use document::validate;
use document::{Doc, DocBuf, DocWriter, Element, Kind, Value};
use error::{Code, Error, Result};

const WITHIN: &str = "insert";

/// The fields of an `insert`.
struct Arguments<'a> {
    options: write::Options,
    documents: Vec<Doc<'a>>,
}

impl<'a> Arguments<'a> {
    fn read(call: &Call<'a>, fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        let mut options = write::Options::default();
        let mut documents = None;
        for field in fields {
            match field.key() {
                "documents" => {
                    documents = Some(inline_statements("insert.documents", arguments::array(WITHIN, field)?)?);
                }
                _ if arguments::is_left_out(field, &["ordered", "bypassDocumentValidation"]) => {}
                "ordered" => options.ordered = arguments::boolean(WITHIN, field)?,
                "bypassDocumentValidation" => {
                    options.bypass_validation = arguments::boolean_or_number(WITHIN, field)?;
                }
                "stmtId" => check_statement_id(WITHIN, field)?,
                "collectionUUID" => drop(collection_uuid::read(WITHIN, field)?),
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        if let Some(sequence) = call.request.sequence("documents") {
            documents = Some(sequence.collect());
        }
        let documents = documents.ok_or_else(|| arguments::missing_field(WITHIN, "documents"))?;
        Ok(Arguments { options, documents })
    }
}

/// What is wrong with an `insert` of its own.
pub fn parse(call: &Call<'_>) -> Result<()> {
    let arguments = Arguments::read(call, call.all_fields())?;
    call.check_namespace()?;
    write::check_length(arguments.documents.len())
}

pub async fn insert(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let Arguments { options, documents } = Arguments::read(call, call.fields())?;
    let namespace = arguments::namespace(call.database(), call.first())?;
    write::check_length(documents.len())?;
    arguments::check_to_write(&namespace)?;
    let statements: Vec<Result<Bytes>> = documents.iter().map(|document| prepare(call, *document)).collect();
    let first_is_wrong = statements.first().is_some_and(Result::is_err);
    let mut outcomes = write::carry_out::<Bytes>(call, &namespace, options, statements).await;
    // Only what does not work is looked at again: it may be a time-series collection.
    if (write::met_view(&outcomes) || first_is_wrong)
        && let Some(series) = time_series::find(call, &namespace).await?
    {
        outcomes = time_series::writing::insert(call, &series, options, &documents).await;
    }
    let outcomes = outcomes?;

    let inserted = outcomes.statements.iter().filter(|(_, outcome)| outcome.is_ok()).count();
    call.worker.statistics().operations_insert.add(outcomes.statements.len() as u64);
    call.worker.statistics().documents_inserted.add(inserted as u64);
    if write::write_unacknowledged(call, reply) {
        return Ok(Disposition::Reply);
    }
    reply.append("n", inserted as i32);
    write::write_errors(&outcomes, reply);
    write::write_retried(&outcomes, reply);
    Ok(Disposition::Reply)
}

/// [`ready`] for a document of the request, which is not copied if it is as it should be.
fn prepare(call: &Call<'_>, document: Doc<'_>) -> Result<Bytes> {
    Ok(ready(call, document)?.map_or_else(|| call.request.share(document), |rebuilt| Bytes::from(rebuilt.into_vec())))
}

/// [`ready`] for a document that was made here.
pub fn prepare_own(call: &Call<'_>, document: &DocBuf) -> Result<Bytes> {
    let rebuilt = ready(call, document.as_doc())?;
    Ok(rebuilt.map_or_else(|| Bytes::copy_from_slice(document.as_bytes()), |rebuilt| Bytes::from(rebuilt.into_vec())))
}

/// What becomes of a document before it is stored: `_id` is there, first and of a type an id can have; empty timestamps tell
/// the time. `None` for a document that is as it should be.
fn ready(call: &Call<'_>, document: Doc<'_>) -> Result<Option<DocBuf>> {
    if document.size() > document::DOCUMENT_BYTES_MAX {
        return Err(Error::bad_value(format!(
            "object to insert too large. size in bytes: {}, max size: {}",
            document.size(),
            document::DOCUMENT_BYTES_MAX
        )));
    }
    if validate::is_deeper_than(document, document::DEPTH_STORED_MAX) {
        let levels = document::DEPTH_STORED_MAX;
        let message = format!("cannot insert document because it exceeds {levels} levels of nesting");
        return Err(Error::new(Code::OVERFLOW, message));
    }
    let mut id = None;
    let mut id_first = false;
    let mut empty_timestamp = false;
    for (index, element) in document.elements().enumerate() {
        if element.key_bytes() == b"_id" {
            if id.is_some() {
                return Err(Error::bad_value("can't have multiple _id fields in one document"));
            }
            check_id(element.value())?;
            id = Some(element);
            id_first = index == 0;
        } else if element.kind == Kind::Timestamp {
            empty_timestamp |= element.raw_value() == [0; 8];
        }
    }
    if id_first && !empty_timestamp {
        return Ok(None);
    }
    Ok(Some(DocBuf::build(|writer| {
        match id {
            Some(id) => writer.append_element(id),
            None => writer.append("_id", call.worker.new_object_id(call.now_ms)),
        }
        for element in document.elements().filter(|element| element.key_bytes() != b"_id") {
            if element.kind == Kind::Timestamp && element.raw_value() == [0; 8] {
                writer.append(element.key(), call.worker.new_timestamp(call.now_ms));
            } else {
                writer.append_element(element);
            }
        }
    })))
}

/// Refuses values that cannot be an `_id`.
fn check_id(id: Value<'_>) -> Result<()> {
    match id {
        Value::Array(_) | Value::Regex { .. } | Value::IllFormed { kind: Kind::Regex, .. } | Value::Undefined => {
            Err(Error::new(Code::INVALID_ID_FIELD, format!("The '_id' value cannot be of type {}", id.kind().alias())))
        }
        Value::Document(document) => check_id_fields(document),
        _ => Ok(()),
    }
}

fn check_id_fields(document: Doc<'_>) -> Result<()> {
    for (key, value) in document.iter() {
        if key.starts_with('$') {
            return Err(Error::new(
                Code::DOLLAR_PREFIXED_FIELD_NAME,
                format!("_id fields may not contain '$'-prefixed fields: {key} is not valid for storage."),
            ));
        }
        if let Value::Document(nested) | Value::Array(nested) = value {
            check_id_fields(nested)?;
        }
    }
    Ok(())
}
