//! Pipelines with stages that read or write other collections: `$lookup`, `$graphLookup`, `$unionWith`, `$out`, `$merge`.
//!
//! Documents go through the pipeline batch by batch: what runs by itself is an [`Execution`], the stages in between are
//! carried out here against the store. The results are held until all are there, within the limit of a blocking stage.

mod look_up;
mod target;
mod write;

use crate::command::{options, views};
use crate::dispatch::Call;
use crate::read::{BLOCKING_BYTES_MAX, Batch, Reader, Request};
use document::{Doc, DocBuf, DocWriter, Value};
use error::{Code, Error, Result};
use futures_util::future::LocalBoxFuture;
use look_up::Partners;
use query::aggregate::foreign::Foreign;
use query::aggregate::{Demand, Execution, Facets, Part, Pipeline, facet_document};
use query::spill::Budget;
use query::{Predicate, aggregate};
use std::sync::Arc;
use store::Namespace;

/// How many documents go through the pipeline at a time.
const BATCH_DOCUMENTS: u64 = 500;

/// A part of the pipeline at work.
enum Link {
    Local(Execution),
    Foreign(Arc<Foreign>, Partners),
    /// `$facet` with stages of this kind, which begins when all its input is there.
    Facets(Facets, Vec<DocBuf>),
    /// `$out` and `$merge`, which begin when all their input is there.
    Write(Arc<Foreign>, Vec<DocBuf>),
}

impl Link {
    fn begin(part: Part, budget: &Budget) -> Link {
        match part {
            Part::Facets(facets) => Link::Facets(facets, Vec::new()),
            Part::Local(pipeline) => Link::Local(pipeline.start(budget.clone())),
            Part::Foreign(foreign) => match *foreign {
                Foreign::Out(_) | Foreign::Merge(_) => Link::Write(foreign, Vec::new()),
                _ => Link::Foreign(foreign, Partners::default()),
            },
        }
    }
}

/// Sends what `reader` reads through the pipeline; gives the results.
pub fn run<'a>(
    call: &'a Call<'_>,
    mut reader: Reader,
    pipeline: Pipeline,
    budget: &'a Budget,
) -> LocalBoxFuture<'a, Result<Vec<DocBuf>>> {
    Box::pin(async move {
        let mut links = Vec::new();
        for part in pipeline.into_parts() {
            if let Part::Foreign(foreign) = &part {
                target::check(call, foreign)?;
            }
            links.push(Link::begin(part, budget));
        }
        let mut results = Vec::new();
        let mut held_bytes = 0;
        loop {
            let documents = next_batch(call, &mut reader).await?;
            let mut over = reader.is_done();
            for document in send_through(call, &mut links, documents, &mut over, budget).await? {
                held_bytes += document.as_bytes().len();
                results.push(document);
            }
            check_held(held_bytes)?;
            if over {
                return Ok(results);
            }
        }
    })
}

fn check_held(bytes: usize) -> Result<()> {
    if bytes <= BLOCKING_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
        format!("the results of the pipeline exceed the memory limit of {BLOCKING_BYTES_MAX} bytes"),
    ))
}

async fn next_batch(call: &Call<'_>, reader: &mut Reader) -> Result<Vec<DocBuf>> {
    let mut bytes = Vec::new();
    let mut writer = DocWriter::begin(&mut bytes);
    let mut batch = Batch::begin(&mut writer, "", options::as_count(BATCH_DOCUMENTS));
    reader.fill(&*call.worker.store, call.running, &mut batch).await?;
    drop(batch);
    drop(writer);
    let batch = Doc::from_bytes(&bytes).and_then(|document| document.get("")).and_then(Value::as_array);
    Ok(batch.unwrap_or(Doc::EMPTY).values().filter_map(Value::as_document).map(Doc::to_owned).collect())
}

/// Sends a batch through all links. `over`: it is the last one; set where a link wants no more.
async fn send_through(
    call: &Call<'_>,
    links: &mut [Link],
    mut documents: Vec<DocBuf>,
    over: &mut bool,
    budget: &Budget,
) -> Result<Vec<DocBuf>> {
    for link in links {
        documents = match link {
            Link::Local(execution) => run_locally(execution, documents, over)?,
            Link::Foreign(foreign, partners) => match &**foreign {
                Foreign::Lookup(lookup) => look_up::look_up(call, lookup, partners, documents, budget).await?,
                Foreign::GraphLookup(lookup) => look_up::search(call, lookup, documents, budget).await?,
                Foreign::UnionWith(union) if *over => {
                    let namespace = Namespace::new(call.database(), &union.collection);
                    let more = match &union.documents {
                        Some(given) => {
                            let given = given.iter().cloned().collect();
                            run(call, Reader::over(given, None), union.pipeline.clone(), budget).await?
                        }
                        None => read(call, &namespace, Predicate::everything(), union.pipeline.clone(), budget).await?,
                    };
                    documents.extend(more);
                    documents
                }
                _ => documents,
            },
            Link::Facets(facets, held) => {
                held.append(&mut documents);
                check_held(held.iter().map(|document| document.as_bytes().len()).sum())?;
                if *over { vec![run_facets(call, facets, held, budget).await?] } else { Vec::new() }
            }
            Link::Write(foreign, held) => {
                held.append(&mut documents);
                check_held(held.iter().map(|document| document.as_bytes().len()).sum())?;
                if *over {
                    write::carry_out(call, foreign, std::mem::take(held)).await?;
                }
                Vec::new()
            }
        };
    }
    Ok(documents)
}

fn run_locally(execution: &mut Execution, documents: Vec<DocBuf>, over: &mut bool) -> Result<Vec<DocBuf>> {
    for document in documents {
        if execution.push(document.as_doc())? == Demand::Enough {
            *over = true;
            break;
        }
    }
    if *over {
        execution.finish()?;
    }
    Ok(std::iter::from_fn(|| execution.pop()).collect())
}

/// Sends the documents through each facet; gives the one document of all results.
async fn run_facets(call: &Call<'_>, facets: &Facets, documents: &[DocBuf], budget: &Budget) -> Result<DocBuf> {
    let mut results = Vec::with_capacity(facets.len());
    for (name, pipeline) in facets.iter() {
        let input = documents.iter().cloned().collect();
        results.push((&**name, run(call, Reader::over(input, None), pipeline.clone(), budget).await?));
    }
    facet_document(&results)
}

/// Reads another collection through a pipeline.
async fn read(
    call: &Call<'_>,
    namespace: &Namespace,
    predicate: Predicate,
    pipeline: Pipeline,
    budget: &Budget,
) -> Result<Vec<DocBuf>> {
    let _nested = call.running.nest()?;
    let (source, pipeline) = pipeline.into_source();
    let source = aggregate::Source { predicate: predicate.and(source.predicate), ..source };
    let mut reader = open_source(call, namespace, source, None, budget).await?;
    if reader.is_view() {
        reader.supply(views::documents(call, namespace).await?)?;
    }
    run(call, reader, pipeline, budget).await
}

/// Opens what stands in front of a pipeline.
pub async fn open_source(
    call: &Call<'_>,
    namespace: &Namespace,
    source: aggregate::Source,
    hint: Option<Value<'_>>,
    budget: &Budget,
) -> Result<Reader> {
    let request = Request {
        predicate: Some(source.predicate),
        sort: source.sort,
        limit: source.limit,
        hint,
        budget: Some(budget.clone()),
        ..Request::default()
    };
    Reader::open(&*call.worker.store, namespace, request).await
}
