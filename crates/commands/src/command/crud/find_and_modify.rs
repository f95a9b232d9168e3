//! `findAndModify`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/findAndModify/>

use crate::arguments;
use crate::arguments::options;
use crate::arguments::unknown_field;
use crate::call::{Call, Disposition};
use crate::command::crud::update::{check_update, check_upsert};
use crate::envelope::check_statement_id;
use crate::read::index_filters;
use crate::reply::in_executor;
use crate::write;
use crate::write::statements::inline_statements;
use document::{Doc, DocBuf, DocWriter, Element, Kind, Value};
use error::{Code, Error, Result};
use query::{Item, MatchDetails, Meta, MetadataBuf, Predicate, Projection, Sort};
use store::{DeleteStatement, ReturnImage, StatementOutcome, UpdateStatement};
use update::Update;

const WITHIN: &str = "findAndModify";

const MAY_BE_NULL: [&str; 10] =
    ["query", "sort", "fields", "let", "collation", "remove", "new", "upsert", "bypassDocumentValidation", "batchSize"];

#[derive(Default)]
pub struct Arguments<'a> {
    pub query: Option<Doc<'a>>,
    pub sort: Option<Doc<'a>>,
    pub update: Option<Element<'a>>,
    pub fields: Option<Doc<'a>>,
    pub array_filters: Option<Doc<'a>>,
    pub variables: Option<Doc<'a>>,
    pub hint: Option<Value<'a>>,
    pub remove: bool,
    pub new: bool,
    pub upsert: bool,
    bypass_validation: bool,
    pub collation: Option<Doc<'a>>,
}

impl<'a> Arguments<'a> {
    pub fn read(fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        let mut arguments = Arguments::default();
        for field in fields {
            match field.key() {
                _ if arguments::is_left_out(field, &MAY_BE_NULL) => {}
                "query" => arguments.query = Some(arguments::document(WITHIN, field)?),
                "sort" => arguments.sort = Some(arguments::document(WITHIN, field)?).filter(|sort| !sort.is_empty()),
                "update" => arguments.update = Some(check_update(field)?),
                "fields" => {
                    arguments.fields = Some(arguments::document(WITHIN, field)?).filter(|fields| !fields.is_empty());
                }
                "arrayFilters" => {
                    let filters = arguments::array(WITHIN, field)?;
                    inline_statements("findAndModify.arrayFilters", filters)?;
                    arguments.array_filters = Some(filters);
                }
                "writeConcern" => drop(arguments::document(WITHIN, field)?),
                "let" => arguments.variables = Some(arguments::document(WITHIN, field)?),
                "hint" => arguments.hint = options::hint(field)?,
                "collation" => arguments.collation = options::collation(WITHIN, field)?,
                "remove" => arguments.remove = arguments::boolean_or_number(WITHIN, field)?,
                "new" => arguments.new = arguments::boolean_or_number(WITHIN, field)?,
                "upsert" => arguments.upsert = arguments::boolean_or_number(WITHIN, field)?,
                "stmtId" => check_statement_id(WITHIN, field)?,
                // An option without effect.
                "batchSize" if field.kind == Kind::Int32 => {}
                "batchSize" => return Err(arguments::wrong_type(WITHIN, field, "int")),
                "bypassDocumentValidation" => {
                    arguments.bypass_validation = arguments::boolean_or_number(WITHIN, field)?;
                }
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        Ok(arguments)
    }

    /// Checks the combination of arguments.
    pub fn check(&self) -> Result<()> {
        let message = match (self.remove, self.update) {
            (false, None) => "Either an update or remove=true must be specified",
            (true, Some(_)) => "Cannot specify both an update and remove=true",
            (true, None) if self.upsert => "Cannot specify both upsert=true and remove=true ",
            (true, None) if self.new => {
                "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document"
            }
            (true, None) if self.array_filters.is_some() => "Cannot specify arrayFilters and remove=true",
            (false, Some(update)) if self.array_filters.is_some() && update.kind == Kind::Array => {
                "Cannot specify arrayFilters and a pipeline update"
            }
            _ => return Ok(()),
        };
        Err(Error::failed_to_parse(message))
    }
}

/// Parses the fields of a `findAndModify`.
pub fn parse(call: &Call<'_>) -> Result<()> {
    Arguments::read(call.all_fields())?;
    call.check_namespace()
}

pub async fn find_and_modify(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let arguments = Arguments::read(call.fields())?;
    let namespace = arguments::namespace(call.database(), call.first())?;
    arguments.check()?;
    arguments::check_to_write(&namespace)?;
    let collation = options::effective_collation(call, &namespace, arguments.collation).await?;
    let context = options::context(call, arguments.variables, collation)?;
    let update = arguments.update.map(|update| Update::parse(update.value(), arguments.array_filters, &context));
    let update = update.transpose()?;
    let predicate = Predicate::parse_query(arguments.query.unwrap_or(Doc::EMPTY), &context)?;
    context.metadata_requests.take();
    check_upsert(arguments.upsert, &predicate)?;
    // A command for a single id does not sort, so an invalid sort is not reported.
    let sort = match arguments.sort.filter(|_| !is_by_id(&arguments)) {
        Some(sort) => Some(Sort::parse(sort, &context)?),
        None => None,
    };
    if sort.as_ref().is_some_and(|sort| sort.needs().contains(Meta::TextScore)) && predicate.text_search().is_none() {
        return Err(Meta::TextScore.unavailable());
    }
    let projection = match arguments.fields {
        Some(fields) => Some(Projection::parse(fields, arguments.query.unwrap_or(Doc::EMPTY), &context)?),
        None => None,
    };
    if arguments.new && projection.as_ref().is_some_and(Projection::is_positional) {
        return Err(Error::bad_value("cannot use a positional projection and return the new document"));
    }
    let searched = projection
        .as_ref()
        .filter(|projection| projection.needs().contains(Meta::TextScore))
        .map(|_| predicate.clone());
    if context.metadata_requests.take().contains(Meta::SortKey) {
        return Err(Error::bad_value("Cannot use a $meta sortKey projection in findAndModify commands."));
    }
    let sort = sort.filter(|sort| !sort.is_empty()).or_else(|| predicate.own_order());
    let options =
        write::Options { ordered: true, bypass_validation: arguments.bypass_validation, ..write::Options::default() };
    let outcomes = match update {
        Some(update) => {
            let mut statements = vec![Ok(update_statement(call, &arguments, update, predicate, sort))];
            index_filters::apply(call, &namespace, &mut statements, &[arguments.collation]).await?;
            write::execute(call, &namespace, options, statements).await?
        }
        None => {
            let hint = arguments.hint.map(Value::to_owned);
            let statement = DeleteStatement { predicate, sort, one: true, hint, image: ReturnImage::Before };
            let mut statements = vec![Ok(statement)];
            index_filters::apply(call, &namespace, &mut statements, &[arguments.collation]).await?;
            write::execute(call, &namespace, options, statements).await?
        }
    };
    let retried = outcomes.retried;
    let Some((_, outcome)) = outcomes.statements.into_iter().next() else {
        return Err(Error::internal("the store gave no outcome"));
    };
    let outcome = outcome.map_err(|error| match error.code() {
        Code::COMMAND_NOT_SUPPORTED_ON_VIEW | Code::DATABASE_DIFFER_CASE => error,
        // Unlike a delete, this is refused as a whole.
        Code::ILLEGAL_OPERATION | Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION if call.envelope.in_transaction => {
            store::transaction::capped(&namespace, false)
        }
        _ => in_executor(error, "Plan executor error during findAndModify"),
    })?;
    count(call, &arguments, &outcome);
    write_last_error(&arguments, &outcome, reply);
    let image = match (outcome.image, projection) {
        (Some(image), Some(projection)) => Some(project(&image, &projection, searched.as_ref(), outcome.text_score)?),
        (image, _) => image,
    };
    match &image {
        Some(image) => reply.append("value", image),
        None => reply.append("value", Value::Null),
    }
    if retried {
        reply.append("retriedStmtId", 0);
    }
    Ok(Disposition::Reply)
}

/// Returns whether the command names one `_id`, and has no projection, hint or collation.
fn is_by_id(arguments: &Arguments<'_>) -> bool {
    let beside = arguments.fields.is_some() || arguments.hint.is_some() || arguments.collation.is_some();
    let mut fields = arguments.query.unwrap_or(Doc::EMPTY).elements();
    let (Some(only), None) = (fields.next(), fields.next()) else { return false };
    let is_value = match only.value() {
        Value::Document(value) => !value.first().is_some_and(|first| first.key_bytes().starts_with(b"$")),
        Value::Regex { .. } | Value::Array(_) | Value::Null | Value::Undefined | Value::IllFormed { .. } => false,
        _ => true,
    };
    !beside && only.key_bytes() == b"_id" && is_value
}

fn update_statement(
    call: &Call<'_>,
    arguments: &Arguments<'_>,
    update: Update,
    predicate: Predicate,
    sort: Option<Sort>,
) -> UpdateStatement {
    UpdateStatement {
        predicate,
        sort,
        update,
        multi: false,
        upsert: arguments.upsert,
        new_id: call.worker.new_object_id(call.now_ms),
        hint: arguments.hint.map(Value::to_owned),
        image: if arguments.new { ReturnImage::After } else { ReturnImage::Before },
    }
}

fn count(call: &Call<'_>, arguments: &Arguments<'_>, outcome: &StatementOutcome) {
    let statistics = call.worker.statistics();
    statistics.operations_command.add(1);
    if arguments.remove {
        statistics.documents_deleted.add(outcome.matched);
    } else {
        statistics.documents_updated.add(outcome.modified);
        statistics.documents_inserted.add(u64::from(outcome.upserted.is_some()));
    }
}

fn write_last_error(arguments: &Arguments<'_>, outcome: &StatementOutcome, reply: &mut DocWriter<'_>) {
    let mut last_error = reply.document("lastErrorObject");
    let n = outcome.matched + u64::from(outcome.upserted.is_some());
    last_error.append("n", n as i32);
    if !arguments.remove {
        last_error.append("updatedExisting", outcome.matched > 0);
        if let Some(id) = &outcome.upserted {
            last_error.append("upserted", id);
        }
    }
}

fn project(
    image: &DocBuf,
    projection: &Projection,
    searched: Option<&Predicate>,
    text_score: Option<f64>,
) -> Result<DocBuf> {
    // The record id of the document is not known here.
    let mut metadata = MetadataBuf::default();
    metadata.set(Meta::RecordId, Value::Null);
    let mut details = MatchDetails::default();
    if let Some(predicate) = searched {
        predicate.matches_with(image.as_doc(), &mut details)?;
    }
    let mut projected = Vec::new();
    if let Some(score) = text_score.or(details.text_score) {
        metadata.set_text_score(score);
    }
    let item = Item { document: image.as_doc(), metadata: metadata.as_metadata() };
    projection.apply(item, &mut projected)?;
    DocBuf::from_vec(projected).ok_or_else(|| Error::internal("a projection wrote no document"))
}
