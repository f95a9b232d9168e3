//! Opens a pipeline: parses it, and asks the store for the part that it can execute.

use crate::arguments::aggregate::Arguments;
use crate::arguments::{self, options};
use crate::call::Call;
use crate::pipeline::{geo_near, joins, nested_sources, over_views, referenced_views, source_stage};
use crate::read::{ReadSpec, Reader, index_filters};
use crate::reply::in_executor;
use crate::views;
use ::aggregate::Pipeline;
use cache::dependencies::Aspect;
use cache::{Dependencies, NotCached};
use document::{Doc, Element, Value};
use error::{Code, Error, Result};
use query::Context;
use store::Namespace;

/// Returns the namespace: a collection, or for `aggregate: 1` the database, which only some first
/// stages support.
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

/// Returns whether an error means that a text search is missing.
fn needs_search(error: &Error) -> bool {
    matches!(error.code(), Code::INDEX_NOT_FOUND | Code(40218))
}

/// Parses a pipeline, whose stage names have been checked, and asks the store for the part that it
/// can execute.
pub async fn open(
    call: &Call<'_>,
    namespace: &Namespace,
    arguments: &Arguments<'_>,
    context: &Context,
) -> Result<Reader> {
    let budget = options::budget(call, arguments.allow_disk_use);
    let resolved = nested_sources::resolve(call, arguments.pipeline, context).await?;
    let resolved = resolved.as_ref().map(|pipeline| Arguments { pipeline: pipeline.as_doc(), ..arguments.clone() });
    let arguments = resolved.as_ref().unwrap_or(arguments);
    let resolved = match referenced_views::resolve(call, arguments.pipeline, context).await {
        // The view may have the same collation as the other one.
        Err(error) if error.code() == Code(167) && views::definition(call, namespace).await?.is_some() => {
            return over_views::open(call, namespace, arguments, context).await;
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
        if pipeline.has_cross_collection_stages() {
            return joins::open_over(call, documents, pipeline, &budget).await;
        }
        let execution = (!pipeline.is_identity()).then(|| pipeline.start(budget.clone()));
        return Ok(Reader::over(documents, execution));
    }
    let mut pipeline = match Pipeline::parse_checked(arguments.pipeline, context) {
        // The view's own stages may contain the text search.
        Err(error) if needs_search(&error) && views::definition(call, namespace).await?.is_some() => {
            return over_views::open(call, namespace, arguments, context).await;
        }
        parsed => parsed?.with_second_engine(),
    };
    if pipeline.lacks_geo_field() && views::definition(call, namespace).await?.is_some() {
        return over_views::open(call, namespace, arguments, context).await;
    }
    geo_near::resolve_key(&*call.worker.store, namespace, &mut pipeline).await?;
    let filter =
        index_filters::of_pipeline(call, namespace, arguments.pipeline, &pipeline, arguments.collation).await?;
    let hint = index_filters::hint(&filter, arguments.hint);
    if pipeline.has_cross_collection_stages() {
        call.dependencies.depend_on(|| {
            Dependencies::all_documents(namespace.clone(), referenced_views::namespaces(call, arguments.pipeline))
        });
        let opened = joins::open(call, namespace, pipeline, hint, &budget).await;
        return match opened? {
            Some(reader) => Ok(reader),
            None => over_views::open(call, namespace, arguments, context).await,
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
        return over_views::open(call, namespace, arguments, context).await;
    }
    Ok(reader)
}
