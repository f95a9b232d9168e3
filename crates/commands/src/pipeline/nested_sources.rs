//! Source stages (`$collStats` and the like) within `$lookup` and `$unionWith`: they are replaced
//! by their documents before the pipeline is parsed.

use crate::call::Call;
use crate::pipeline::source_stage;
use crate::reply::in_executor;
use crate::views;
use document::{ArrayWriter, Doc, DocBuf, Value};
use error::{Code, Error, Result};
use futures_util::future::LocalBoxFuture;
use query::Context;
use store::Namespace;

/// The stages that are allowed there; others are refused by the parser.
const STAGES: [&str; 4] = ["$collStats", "$indexStats", "$listCatalog", "$planCacheStats"];

/// Returns the pipeline with these stages replaced; `None` if it has none.
pub async fn resolve(call: &Call<'_>, pipeline: Doc<'_>, context: &Context) -> Result<Option<DocBuf>> {
    if !any(pipeline) {
        return Ok(None);
    }
    rewritten(call, pipeline, context).await.map(Some)
}

fn any(pipeline: Doc<'_>) -> bool {
    let stages = pipeline.values().filter_map(Value::as_document).filter_map(Doc::first);
    let inner = stages.filter(|stage| matches!(stage.key(), "$lookup" | "$unionWith"));
    inner.filter_map(|stage| inner_pipeline(stage.value().as_document()?)).any(|inner| begins(inner) || any(inner))
}

fn inner_pipeline(spec: Doc<'_>) -> Option<Doc<'_>> {
    spec.get("pipeline").and_then(Value::as_array)
}

fn begins(pipeline: Doc<'_>) -> bool {
    let first = pipeline.values().next().and_then(Value::as_document).and_then(Doc::first);
    first.is_some_and(|first| STAGES.contains(&first.key()))
}

fn rewritten<'a>(call: &'a Call<'_>, pipeline: Doc<'a>, context: &'a Context) -> LocalBoxFuture<'a, Result<DocBuf>> {
    Box::pin(async move {
        let mut stages = Vec::new();
        for stage in pipeline.values() {
            let first = stage.as_document().and_then(Doc::first);
            let spec = first.filter(|first| matches!(first.key(), "$lookup" | "$unionWith"));
            let spec = spec.and_then(|first| Some((first.key(), first.value().as_document()?)));
            stages.push(match spec.and_then(|(name, spec)| Some((name, spec, inner_pipeline(spec)?))) {
                Some((name, spec, inner)) => rewritten_stage(call, name, spec, inner, context).await?,
                None => stage.as_document().map_or_else(DocBuf::new, Doc::to_owned),
            });
        }
        Ok(views::stages(|array| stages.iter().for_each(|stage| array.push(stage))))
    })
}

async fn rewritten_stage(
    call: &Call<'_>,
    name: &str,
    spec: Doc<'_>,
    inner: Doc<'_>,
    context: &Context,
) -> Result<DocBuf> {
    let inner = rewritten(call, inner, context).await?;
    let collection_key = if name == "$lookup" { "from" } else { "coll" };
    let given = match spec.get(collection_key).and_then(Value::as_str).filter(|_| begins(inner.as_doc())) {
        Some(collection) => Some(given(call, collection, inner.as_doc(), context).await?),
        None => None,
    };
    Ok(DocBuf::build(|writer| {
        let mut writer = writer.document(name);
        for field in spec.elements() {
            match (field.key(), &given) {
                ("pipeline", Some(given)) => writer.append("pipeline", Value::Array(given.as_doc())),
                ("pipeline", None) => writer.append("pipeline", Value::Array(inner.as_doc())),
                // Documents in memory have no collection.
                (key, Some(_)) if key == collection_key => {}
                _ => writer.append_element(field),
            }
        }
    }))
}

/// Returns the pipeline over a collection with its first stage replaced by that stage's documents.
async fn given(call: &Call<'_>, collection: &str, pipeline: Doc<'_>, context: &Context) -> Result<DocBuf> {
    let view = views::resolve(call, &Namespace::new(call.database(), collection)).await?;
    if !view.stages.as_doc().is_empty() {
        let name = pipeline.values().next().and_then(Value::as_document).and_then(Doc::first);
        let name = name.map_or("", |first| first.key());
        return Err(Error::new(Code(40602), format!("{name} is only valid as the first stage in a pipeline")));
    }
    let found = source_stage::documents(call, &view.base, pipeline, context).await;
    let found = found.map_err(|error| in_executor(error, "PlanExecutor error during aggregation"))?;
    let Some((documents, rest)) = found else { return Ok(pipeline.to_owned()) };
    Ok(views::stages(|array| {
        write_documents(&documents.into_iter().collect::<Vec<_>>(), array);
        rest.as_doc().values().for_each(|stage| array.push(stage));
    }))
}

fn write_documents(documents: &[DocBuf], stages: &mut ArrayWriter<'_>) {
    let mut stage = stages.document();
    let mut array = stage.array("$documents");
    for document in documents {
        array.document().append("$literal", document);
    }
}
