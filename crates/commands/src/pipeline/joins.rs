//! Pipelines with stages that read or write other collections: `$lookup`, `$graphLookup`,
//! `$unionWith`, `$out`, `$merge`.
//!
//! The stages before the first of these run in the [`Reader`] of the collection. From there on a
//! [`Chain`] takes over, whose links are executed here against the store.

mod chain;
mod look_up;
mod target;
mod write;

use crate::arguments::aggregate::Arguments;
use crate::call::Call;
use crate::pipeline::geo_near;
use crate::pipeline::open::in_pipeline;
use crate::pipeline::over_views;
use crate::read::{Batch, ReadSpec, Reader};
use aggregate::Pipeline;
use aggregate::PipelinePart;
use aggregate::PipelineSource;
use aggregate::joins::MATCHES_BYTES_MAX;
use chain::Chain;
use document::{DocBuf, Value};
use error::Result;
use futures_util::future::LocalBoxFuture;
use query::{ItemBuf, Predicate};
use std::collections::VecDeque;
use store::Namespace;
use values::spill::Budget;

/// Opens a pipeline over a collection; returns `None` for a view. A pipeline that ends with a write
/// is executed at once.
pub async fn open(
    call: &Call<'_>,
    namespace: &Namespace,
    pipeline: Pipeline,
    hint: Option<Value<'_>>,
    budget: &Budget,
) -> Result<Option<Reader>> {
    let (source, pipeline) = pipeline.into_source();
    let parts = pipeline.into_parts();
    check_targets(call, &parts).await?;
    let opened = open_source(call, namespace, source, parts, hint, budget).await.map_err(in_pipeline)?;
    let Some((reader, parts)) = opened else { return Ok(None) };
    run_writes(call, reader, parts, budget).await.map_err(in_pipeline).map(Some)
}

/// Opens a pipeline over documents in memory. One that ends with a write is executed at once.
pub async fn open_over(
    call: &Call<'_>,
    documents: VecDeque<DocBuf>,
    pipeline: Pipeline,
    budget: &Budget,
) -> Result<Reader> {
    let parts = pipeline.into_parts();
    check_targets(call, &parts).await?;
    run_writes(call, Reader::over(documents, None), parts, budget).await.map_err(in_pipeline)
}

/// Checks the targets of stages that write, before anything is read.
async fn check_targets(call: &Call<'_>, parts: &[PipelinePart]) -> Result<()> {
    for part in parts {
        if let PipelinePart::CrossCollection(foreign) = part {
            target::check(call, foreign).await?;
        }
    }
    Ok(())
}

/// Returns the reader with the parts behind it. If the last of them writes, it is executed, and the
/// reader is empty.
async fn run_writes(call: &Call<'_>, reader: Reader, mut parts: Vec<PipelinePart>, budget: &Budget) -> Result<Reader> {
    let is_write = |part: &PipelinePart| matches!(part, PipelinePart::CrossCollection(foreign) if foreign.writes());
    let Some(PipelinePart::CrossCollection(writing)) = parts.pop_if(|part| is_write(part)) else {
        return Ok(chained(reader, parts, budget));
    };
    write::execute(call, &writing, chained(reader, parts, budget)).await?;
    Ok(Reader::over(VecDeque::new(), None))
}

/// Returns the reader with the parts behind it.
fn chained(reader: Reader, parts: Vec<PipelinePart>, budget: &Budget) -> Reader {
    if parts.is_empty() { reader } else { Reader::from_stages(Box::new(Chain::new(Some(reader), parts, budget))) }
}

/// Returns the reader with a pipeline behind it.
fn through(reader: Reader, pipeline: &Pipeline, budget: &Budget) -> Reader {
    chained(reader, pipeline.clone().into_parts(), budget)
}

/// Opens the source in front of the parts, and returns the remaining parts; `None` for a view.
async fn open_source(
    call: &Call<'_>,
    namespace: &Namespace,
    source: PipelineSource,
    mut parts: Vec<PipelinePart>,
    hint: Option<Value<'_>>,
    budget: &Budget,
) -> Result<Option<(Reader, Vec<PipelinePart>)>> {
    let execution = match parts.first() {
        Some(PipelinePart::Local(pipeline)) => Some(pipeline.start(budget.clone())),
        _ => None,
    };
    if execution.is_some() {
        parts.remove(0);
    }
    let request = ReadSpec {
        predicate: Some(source.predicate),
        sort: source.sort,
        limit: source.limit,
        needs: source.needs,
        fields: source.fields,
        pipeline: execution,
        hint,
        budget: Some(budget.clone()),
        bypass_row_cache: call.bypasses_row_cache(),
        ..ReadSpec::default()
    };
    let reader = Reader::open(&*call.worker.store, namespace, request).await?;
    Ok((!reader.is_view()).then_some((reader, parts)))
}

/// Opens a nested pipeline over the documents of a collection or a view that satisfy `condition`.
async fn open_pipeline(
    call: &Call<'_>,
    namespace: &Namespace,
    condition: Option<Predicate>,
    pipeline: &Pipeline,
    budget: &Budget,
) -> Result<Reader> {
    let mut pipeline = match condition {
        Some(condition) => pipeline.clone().with_leading_match(condition),
        None => pipeline.clone(),
    };
    geo_near::resolve_key(&*call.worker.store, namespace, &mut pipeline).await?;
    let (source, rest) = pipeline.clone().into_source();
    if let Some((reader, parts)) = open_source(call, namespace, source, rest.into_parts(), None, budget).await? {
        return Ok(chained(reader, parts, budget));
    }
    let view = over_views::open(call, namespace, &Arguments::default(), &call.context()).await?;
    Ok(through(view, &pipeline, budget))
}

/// Reads a nested pipeline to its end; returns `None` if its result is too large for a join.
fn read<'a>(
    call: &'a Call<'_>,
    namespace: &'a Namespace,
    condition: Option<Predicate>,
    pipeline: &'a Pipeline,
    budget: &'a Budget,
) -> LocalBoxFuture<'a, Result<Option<Vec<DocBuf>>>> {
    Box::pin(async move {
        let _nested = call.operation.enter_nested_pipeline()?;
        let reader = open_pipeline(call, namespace, condition, pipeline, budget).await?;
        collect(call, reader, MATCHES_BYTES_MAX).await
    })
}

/// Reads to the end; returns `None` if the result exceeds `bytes_max`.
async fn collect(call: &Call<'_>, mut reader: Reader, bytes_max: usize) -> Result<Option<Vec<DocBuf>>> {
    let (mut documents, mut bytes) = (Vec::new(), 0);
    while !reader.is_done() {
        for document in read_documents(call, &mut reader, usize::MAX).await? {
            bytes += document.as_bytes().len();
            if bytes > bytes_max {
                return Ok(None);
            }
            documents.push(document);
        }
    }
    Ok(Some(documents))
}

/// Reads at most this many documents, and no more than fit into a reply.
async fn read_some(call: &Call<'_>, reader: &mut Reader, documents_max: usize) -> Result<Vec<ItemBuf>> {
    let (items, read) = read_so_far(call, reader, documents_max).await;
    read.map(|()| items)
}

/// Reads as [`read_some`] does; on an error, also returns the documents before it.
async fn read_so_far(call: &Call<'_>, reader: &mut Reader, documents_max: usize) -> (Vec<ItemBuf>, Result<()>) {
    let mut items = Vec::new();
    let read = reader.fill(call, &mut Batch::collecting(&mut items, documents_max)).await;
    (items, read)
}

/// Reads as [`read_some`] does, without metadata.
async fn read_documents(call: &Call<'_>, reader: &mut Reader, documents_max: usize) -> Result<Vec<DocBuf>> {
    let items = read_some(call, reader, documents_max).await?;
    Ok(items.into_iter().map(ItemBuf::into_document).collect())
}
