//! `insert`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/insert/>

use crate::arguments;
use crate::arguments::unknown_field;
use crate::call::{Call, Disposition};
use crate::command::sessions::transactions;
use crate::envelope::check_statement_id;
use crate::envelope::collection_uuid;
use crate::replica_set;
use crate::time_series;
use crate::write::statements::inline_statements;
use crate::write::{self, new_document};
use bytes::Bytes;
use document::{Doc, DocWriter, Element};
use error::Result;

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

/// Parses the fields of an `insert`.
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
    let statements: Vec<Result<Bytes>> =
        documents.iter().map(|document| new_document::prepare(call, *document)).collect();
    let first_is_wrong = statements.first().is_some_and(Result::is_err);
    let mut outcomes = write::execute::<Bytes>(call, &namespace, options, statements).await;
    // Only a failed insert pays for this check: the collection may be a time-series collection.
    if (write::met_view(&outcomes) || first_is_wrong)
        && let Some(series) = time_series::find(call, &namespace).await?
    {
        transactions::refuse_time_series(call, &namespace)?;
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
    replica_set::write_outcome_time(call, reply);
    write::write_errors(&outcomes, reply);
    write::write_retried(&outcomes, reply);
    Ok(Disposition::Reply)
}
