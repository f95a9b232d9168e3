//! `aggregate`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/aggregate/>

use crate::arguments;
use crate::arguments::options;
use crate::arguments::{plain_boolean, unknown_field};
use crate::call::{Call, Disposition};
use crate::command::aggregate::explain;
use crate::command::crud::find::{FIRST_BATCH_DOCUMENTS, open_cursor};
use crate::envelope::collection_uuid;
use crate::envelope::{WriteConcern, check_time_limit};
use crate::pipeline::{geo_near, joins, nested_sources, referenced_views, source_stage};
use crate::read::index_filters;
use crate::read::{Batch, ReadSpec, Reader};
use crate::reply::{append_namespace, in_executor};
use crate::table::spec::TimeLimitField;
use crate::views;
use ::aggregate::Pipeline;
use cache::dependencies::Aspect;
use cache::{Dependencies, NotCached};
use document::{Doc, DocWriter, Element, Value};
use error::{Code, Error, Result};
use query::Context;
use store::Namespace;

const WITHIN: &str = "aggregate";

/// The fields of an `aggregate`, read but not yet parsed.
#[derive(Clone, Default)]
pub struct Arguments<'a> {
    pub pipeline: Doc<'a>,
    pub batch_size: Option<u64>,
    pub has_cursor: bool,
    pub explain: bool,
    pub allow_disk_use: Option<bool>,
    pub hint: Option<Value<'a>>,
    pub variables: Option<Doc<'a>>,
    pub collation: Option<Doc<'a>>,
}

impl<'a> Arguments<'a> {
    pub fn read(fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        let mut arguments = Arguments::default();
        let mut pipeline = None;
        for field in fields {
            match field.key() {
                "pipeline" => pipeline = Some(read_pipeline(field)?),
                _ if arguments::is_left_out(field, &["let", "collation", "bypassDocumentValidation"]) => {}
                "cursor" => {
                    let message = "cursor field must be missing or an object";
                    field.value().as_document().ok_or_else(|| Error::type_mismatch(message))?;
                    arguments.batch_size = options::cursor_batch_size("cursor", field)?;
                    arguments.has_cursor = true;
                }
                "explain" => arguments.explain = plain_boolean(field)?,
                "hint" => arguments.hint = options::hint(field)?,
                "let" => arguments.variables = Some(arguments::document(WITHIN, field)?),
                "collation" => arguments.collation = options::collation(WITHIN, field)?,
                "allowDiskUse" => arguments.allow_disk_use = Some(plain_boolean(field)?),
                "maxTimeMS" => check_time_limit(WITHIN, TimeLimitField::NonNegative, field)?,
                "readConcern" => drop(arguments::document(WITHIN, field)?),
                "writeConcern" => drop(WriteConcern::read(field)?),
                "bypassDocumentValidation" => drop(arguments::boolean_or_number(WITHIN, field)?),
                "collectionUUID" => drop(collection_uuid::read(WITHIN, field)?),
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        arguments.pipeline = pipeline.ok_or_else(|| arguments::missing_field(WITHIN, "pipeline"))?;
        Ok(arguments)
    }
}

fn read_pipeline(field: Element<'_>) -> Result<Doc<'_>> {
    let stages = field.value().as_array();
    let stages = stages.ok_or_else(|| Error::type_mismatch("'pipeline' option must be specified as an array"))?;
    if stages.values().any(|stage| stage.as_document().is_none()) {
        return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
    }
    Ok(stages)
}

/// What is wrong with an `aggregate` of its own.
pub fn parse(call: &Call<'_>) -> Result<()> {
    check_name(call)?;
    let arguments = Arguments::read(call.all_fields())?;
    check_cursor(&arguments)?;
    aggregate::precheck(arguments.pipeline)
}

pub fn check_cursor(arguments: &Arguments<'_>) -> Result<()> {
    match arguments.has_cursor || arguments.explain {
        true => Ok(()),
        false => {
            let message = "The 'cursor' option is required, except for aggregate with the explain argument";
            Err(Error::failed_to_parse(message))
        }
    }
}

/// Fails with 72 for a pipeline that writes and reads linearizably.
fn check_level(call: &Call<'_>, pipeline: Doc<'_>) -> Result<()> {
    let last = pipeline.values().last().and_then(Value::as_document).and_then(Doc::first);
    let Some(stage) = last.map(|stage| stage.key()).filter(|stage| matches!(*stage, "$out" | "$merge")) else {
        return Ok(());
    };
    if !call.envelope.is_linearizable() {
        return Ok(());
    }
    let message = format!(
        "Command aggregate does not support {{ readConcern: {{ level: \"linearizable\", provenance: \"clientSupplied\" }} }} \
         :: caused by :: {stage} cannot be used with a 'linearizable' read concern level"
    );
    Err(Error::new(Code::INVALID_OPTIONS, message))
}

/// The error of an aggregation that is explained and has a `writeConcern`. The missing blank is MongoDB's.
pub fn explained_with_write_concern() -> Error {
    Error::failed_to_parse("Aggregation explain does not support the'writeConcern' option")
}

/// What is wrong with the collection's name at first sight.
fn check_name(call: &Call<'_>) -> Result<()> {
    let first = call.first();
    match first.value() {
        value if value.kind().is_number() => {}
        Value::String(_) => drop(arguments::namespace(call.database(), first)?),
        _ => {
            return Err(Error::type_mismatch(format!("collection name has invalid type: {}", first.kind.alias())));
        }
    }
    arguments::check_database(call.database())
}

pub async fn aggregate(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    check_name(call)?;
    let arguments = Arguments::read(call.fields())?;
    check_cursor(&arguments)?;
    let namespace = aggregated_namespace(call.database(), call.first(), arguments.pipeline)?;
    check_level(call, arguments.pipeline)?;
    call.worker.statistics().operations_command.add(1);
    if arguments.explain {
        if call.envelope.write_concern.is_some() {
            return Err(explained_with_write_concern());
        }
        let command = call.request.body();
        if let Some(view) = explain::view(call, &namespace).await? {
            let (stages, hint) = (arguments.pipeline.to_owned(), arguments.hint);
            return explain::explain_view(call, view, stages, hint, explain::Verbosity::Planner, reply).await;
        }
        return explain::explain_aggregate(call, &namespace, &arguments, command, explain::Verbosity::Planner, reply)
            .await;
    }
    let collation = options::settle_collation(call, &namespace, arguments.collation).await?;
    let context = options::context(call, arguments.variables, collation)?;
    let mut reader = open(call, &namespace, &arguments, &context).await?;
    let batch_size = arguments.batch_size.unwrap_or(FIRST_BATCH_DOCUMENTS);
    let mut cursor = reply.document("cursor");
    {
        let mut batch = Batch::begin(&mut cursor, "firstBatch", options::as_count(batch_size));
        let filled = reader.fill(call, &mut batch).await;
        filled.map_err(in_pipeline)?;
        call.worker.statistics().documents_returned.add(batch.len() as u64);
    }
    if !reader.is_done() {
        call.dependencies.refuse(NotCached::OpenCursor);
    }
    let id = if reader.is_done() { 0 } else { open_cursor(call, &namespace, reader, false, &cursor)? };
    cursor.append("id", id);
    append_namespace(&mut cursor, &namespace);
    Ok(Disposition::Reply)
}

/// The namespace: a collection, or for `aggregate: 1` the database itself, which only some first stages can do with.
pub fn aggregated_namespace(database: &str, first: Element<'_>, pipeline: Doc<'_>) -> Result<Namespace> {
    aggregate::precheck(pipeline)?;
    if let Some(stage) = pipeline.values().next().and_then(Value::as_document).and_then(Doc::first) {
        source_stage::check(stage)?;
    }
    match arguments::number_to_i64(first.value()) {
        None if first.value().as_str().is_none() => {
            Err(Error::type_mismatch(format!("collection name has invalid type: {}", first.kind.alias())))
        }
        None => {
            if let Some(name) = first_stage(pipeline).filter(|name| source_stage::needs_no_collection(name)) {
                return Err(source_stage::needs_no_collection_error(name));
            }
            options::strict_name(database, first)
        }
        Some(1) => {
            match first_stage(pipeline) {
                None => {
                    let message = "{aggregate: 1} is not valid for an empty pipeline.";
                    return Err(Error::new(Code::INVALID_NAMESPACE, message));
                }
                Some("$changeStream") => {}
                Some(name) if source_stage::may_lack_collection(name) => {}
                Some(name) => {
                    let message = format!("{{aggregate: 1}} is not valid for '{name}'; a collection is required.");
                    return Err(Error::new(Code::INVALID_NAMESPACE, message));
                }
            }
            Ok(Namespace::new(database, "$cmd.aggregate"))
        }
        Some(_) => Err(Error::failed_to_parse(
            "Invalid command format: the 'aggregate' field must specify a collection name or 1",
        )),
    }
}

fn first_stage(pipeline: Doc<'_>) -> Option<&str> {
    Some(pipeline.values().next()?.as_document()?.first()?.key())
}

pub fn in_pipeline(error: Error) -> Error {
    in_executor(error, "PlanExecutor error during aggregation")
}

/// Whether something is missing that only a search by words gives.
fn needs_search(error: &Error) -> bool {
    matches!(error.code(), Code::INDEX_NOT_FOUND | Code(40218))
}

/// Parses the pipeline, which has been looked at, or is a view's, and asks the store for what it can do of it.
pub async fn open(
    call: &Call<'_>,
    namespace: &Namespace,
    arguments: &Arguments<'_>,
    context: &Context,
) -> Result<Reader> {
    let budget = options::budget(call, arguments.allow_disk_use);
    let settled = nested_sources::settle(call, arguments.pipeline, context).await?;
    let settled = settled.as_ref().map(|pipeline| Arguments { pipeline: pipeline.as_doc(), ..arguments.clone() });
    let arguments = settled.as_ref().unwrap_or(arguments);
    let resolved = match referenced_views::resolve(call, arguments.pipeline, context).await {
        // The view's own collation may be that of the other one.
        Err(error) if error.code() == Code(167) && views::definition(call, namespace).await?.is_some() => {
            return views::open(call, namespace, arguments, context).await;
        }
        resolved => resolved?,
    };
    let context = resolved.as_ref().unwrap_or(context);
    if resolved.is_some() {
        call.dependencies.refuse(NotCached::NotACollection);
    }
    if let Some((documents, rest)) = source_stage::documents(call, namespace, arguments.pipeline, context).await? {
        call.dependencies.refuse(NotCached::NotACollection);
        let pipeline = Pipeline::parse_checked(rest.as_doc(), context)?;
        if pipeline.has_foreign() {
            return joins::open_over(call, documents, pipeline, &budget).await;
        }
        let execution = (!pipeline.is_identity()).then(|| pipeline.start(budget.clone()));
        return Ok(Reader::over(documents, execution));
    }
    let mut pipeline = match Pipeline::parse_checked(arguments.pipeline, context) {
        // A view's own stages may search by words, which goes for those behind them.
        Err(error) if needs_search(&error) && views::definition(call, namespace).await?.is_some() => {
            return views::open(call, namespace, arguments, context).await;
        }
        parsed => parsed?.with_second_engine(),
    };
    if pipeline.lacks_geo_field() && views::definition(call, namespace).await?.is_some() {
        return views::open(call, namespace, arguments, context).await;
    }
    geo_near::settle_key(&*call.worker.store, namespace, &mut pipeline).await?;
    let filter =
        index_filters::of_pipeline(call, namespace, arguments.pipeline, &pipeline, arguments.collation).await?;
    let hint = index_filters::hint(&filter, arguments.hint);
    if pipeline.has_foreign() {
        call.dependencies.depend_on(|| {
            Dependencies::all_documents(namespace.clone(), referenced_views::namespaces(call, arguments.pipeline))
        });
        let opened = joins::open(call, namespace, pipeline, hint, &budget).await;
        return match opened? {
            Some(reader) => Ok(reader),
            None => views::open(call, namespace, arguments, context).await,
        };
    }
    let (source, pipeline) = pipeline.into_source();
    let identity = pipeline.is_identity();
    call.dependencies
        .depend_on(|| Dependencies::matching(namespace.clone(), source.predicate.clone(), Aspect::Documents));
    let request = ReadSpec {
        predicate: Some(source.predicate),
        sort: source.sort,
        limit: source.limit,
        needs: source.needs,
        fields: source.fields,
        pipeline: (!identity).then(|| pipeline.start(budget.clone())),
        hint,
        budget: Some(budget),
        bypass_row_cache: call.bypasses_row_cache(),
        ..ReadSpec::default()
    };
    let reader = Reader::open(&*call.worker.store, namespace, request).await?;
    if reader.is_view() {
        return views::open(call, namespace, arguments, context).await;
    }
    Ok(reader)
}
