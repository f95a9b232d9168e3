//! An executing pipeline over other collections: links that pass documents on, and a source in
//! front of them.
//!
//! Evaluation is lazy: the last link that can work does a little, and the source is read only if no
//! link can. So a cursor over a large join needs memory for a few batches.

use super::look_up::{self, LookupState};
use super::{open_pipeline, read_so_far, read_some};
use crate::call::Call;
use crate::read::Reader;
use crate::read::document_source::DocumentSource;
use aggregate::joins::{CrossCollectionStage, UnionWith};
use aggregate::{Demand, Execution, Facets, Pipeline, PipelinePart, check_facet_size, facet_document};
use document::DocBuf;
use error::{Error, Result};
use futures_util::future::LocalBoxFuture;
use query::ItemBuf;
use server::operation::OperationContext;
use std::collections::VecDeque;
use std::sync::Arc;
use store::Namespace;
use values::spill::Budget;

/// How much a link produces before those behind it run.
const DOCUMENTS_AT_ONCE: usize = 500;
const BYTES_AT_ONCE: usize = 1024 * 1024;

/// The documents in a pipeline.
#[derive(Debug)]
pub struct Chain {
    /// The source of documents; `None` if documents are fed to the chain.
    source: Option<Box<Reader>>,
    /// The error of the source. The documents before it pass through the links first: perhaps no
    /// more are needed.
    failure: Option<Error>,
    links: Vec<Link>,
    ready: VecDeque<ItemBuf>,
    budget: Budget,
    over: bool,
}

/// A part of the pipeline, and its input.
#[derive(Debug)]
struct Link {
    work: Work,
    input: VecDeque<ItemBuf>,
    /// Whether no more input will come.
    input_over: bool,
    /// Its error, which is reported once the links behind it need more.
    failure: Option<Error>,
    over: bool,
}

#[derive(Debug)]
enum Work {
    Local(Execution),
    Join(Arc<CrossCollectionStage>, Box<LookupState>),
    /// `$unionWith`: the reader of the other collection's pipeline, once the input is used up.
    Union(Arc<CrossCollectionStage>, Option<Box<Reader>>),
    /// A `$facet` that contains such stages.
    Facets(Vec<Facet>),
}

#[derive(Debug)]
struct Facet {
    name: Box<str>,
    chain: Chain,
    results: Vec<DocBuf>,
    bytes: usize,
}

impl Chain {
    pub fn new(source: Option<Reader>, parts: Vec<PipelinePart>, budget: &Budget) -> Chain {
        let links: Vec<Link> = parts.into_iter().map(|part| Link::new(part, budget)).collect();
        let (source, budget) = (source.map(Box::new), budget.clone());
        Chain { source, failure: None, links, ready: VecDeque::new(), budget, over: false }
    }

    /// Lets one link do a part of its work; returns false if none has any.
    async fn step(&mut self, call: &Call<'_>, count: usize) -> Result<bool> {
        call.operation.check_interrupt()?;
        call.operation.yield_if_due().await;
        let Some(index) = self.links.iter().rposition(Link::can_work) else { return Ok(false) };
        let (before, rest) = self.links.split_at_mut(index);
        let Some((link, behind)) = rest.split_first_mut() else { return Ok(false) };
        let out = behind.first_mut().map_or(&mut self.ready, |next| &mut next.input);
        let had_input = !link.input_over;
        link.work(call, count.clamp(1, DOCUMENTS_AT_ONCE), out, &self.budget).await?;
        if had_input && link.input_over {
            // The link needs no more input, so the links before it are stopped.
            before.iter_mut().for_each(Link::end);
            self.source = None;
        }
        if link.over {
            match behind.first_mut() {
                Some(next) => next.input_over = true,
                None => self.over = true,
            }
        }
        Ok(true)
    }

    async fn read(&mut self, call: &Call<'_>) -> Result<()> {
        let Some(first) = self.links.first_mut() else {
            self.over = true;
            return Ok(());
        };
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        match &mut self.source {
            Some(source) if !source.is_done() => {
                let (documents, read) = read_so_far(call, source, DOCUMENTS_AT_ONCE).await;
                first.input = documents.into();
                self.failure = read.err();
            }
            _ => {
                self.source = None;
                first.input_over = true;
            }
        }
        Ok(())
    }

    /// Feeds documents to a chain without a source, and processes them as far as possible.
    async fn feed(&mut self, call: &Call<'_>, documents: impl Iterator<Item = ItemBuf>) -> Result<()> {
        match self.links.first_mut() {
            Some(first) if !first.over => first.input.extend(documents),
            Some(_) => {}
            None => self.ready.extend(documents),
        }
        while !self.over && self.step(call, DOCUMENTS_AT_ONCE).await? {}
        Ok(())
    }

    /// Ends the input of a chain without a source.
    async fn finish(&mut self, call: &Call<'_>) -> Result<()> {
        if let Some(first) = self.links.first_mut() {
            first.input_over = true;
        }
        while !self.over && self.step(call, DOCUMENTS_AT_ONCE).await? {}
        Ok(())
    }
}

impl DocumentSource for Chain {
    fn is_over(&self) -> bool {
        self.over && self.ready.is_empty()
    }

    fn pop(&mut self) -> Option<ItemBuf> {
        self.ready.pop_front()
    }

    fn put_back(&mut self, document: ItemBuf) {
        self.ready.push_front(document);
    }

    fn advance<'a>(&'a mut self, call: &'a Call<'_>, count: usize) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            while self.ready.is_empty() && !self.over {
                if !self.step(call, count).await? {
                    self.read(call).await?;
                }
            }
            Ok(())
        })
    }
}

impl Link {
    fn new(part: PipelinePart, budget: &Budget) -> Link {
        let work = match part {
            PipelinePart::Local(pipeline) => Work::Local(pipeline.start(budget.clone())),
            PipelinePart::Facets(facets) => Work::Facets(Facet::all(&facets, budget)),
            PipelinePart::CrossCollection(foreign) => match &*foreign {
                CrossCollectionStage::UnionWith(_) => Work::Union(foreign, None),
                _ => Work::Join(foreign, Box::default()),
            },
        };
        Link { work, input: VecDeque::new(), input_over: false, failure: None, over: false }
    }

    fn can_work(&self) -> bool {
        !self.over && (self.input_over || !self.input.is_empty() || self.failure.is_some())
    }

    fn end(&mut self) {
        self.input.clear();
        self.over = true;
    }

    async fn work(
        &mut self,
        call: &Call<'_>,
        count: usize,
        out: &mut VecDeque<ItemBuf>,
        budget: &Budget,
    ) -> Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let before = out.len();
        match self.work_on(call, count, out, budget).await {
            Err(failure) if out.len() > before => self.failure = Some(failure),
            done => done?,
        }
        Ok(())
    }

    async fn work_on(
        &mut self,
        call: &Call<'_>,
        count: usize,
        out: &mut VecDeque<ItemBuf>,
        budget: &Budget,
    ) -> Result<()> {
        match &mut self.work {
            Work::Local(execution) => {
                let over = run_locally(call.operation, execution, &mut self.input, &mut self.input_over, count);
                out.extend(std::iter::from_fn(|| execution.pop_item()));
                self.over = over?;
            }
            Work::Join(foreign, state) => {
                let mut bytes = 0;
                while out.len() < count && bytes < BYTES_AT_ONCE {
                    let Some(document) = self.input.pop_front() else { break };
                    call.operation.tick()?;
                    call.operation.yield_if_due().await;
                    let following = self.input.iter().take(count - out.len() - 1);
                    let joined = look_up::join(call, foreign, state, document.as_item(), following, budget).await?;
                    bytes += joined.size();
                    out.push_back(joined);
                }
                self.over = self.input_over && self.input.is_empty();
            }
            Work::Union(foreign, reader) => {
                out.append(&mut self.input);
                if let (CrossCollectionStage::UnionWith(union), true) = (&**foreign, self.input_over) {
                    self.over = read_union(call, union, reader, count, out, budget).await?;
                }
            }
            Work::Facets(facets) => {
                for facet in facets.iter_mut() {
                    facet.feed(call, &self.input, self.input_over).await?;
                }
                self.input.clear();
                self.over = self.input_over;
                if self.over {
                    let results: Vec<_> =
                        facets.iter_mut().map(|facet| (&*facet.name, std::mem::take(&mut facet.results))).collect();
                    out.push_back(facet_document(&results)?.into());
                }
            }
        }
        Ok(())
    }
}

/// Passes documents through local stages until enough come out; returns true at their end. Sets
/// `input_over` if they need no more input.
fn run_locally(
    operation: &OperationContext,
    execution: &mut Execution,
    input: &mut VecDeque<ItemBuf>,
    input_over: &mut bool,
    count: usize,
) -> Result<bool> {
    while execution.ready_count() < count {
        let Some(document) = input.pop_front() else { break };
        operation.tick()?;
        if execution.push(document.as_item())? == Demand::Enough {
            *input_over = true;
            input.clear();
        }
    }
    Ok(*input_over && input.is_empty() && execution.advance(count, &mut operation.pacer())?)
}

/// Continues to read the documents that a `$unionWith` appends; returns true at their end.
async fn read_union(
    call: &Call<'_>,
    union: &UnionWith,
    reader: &mut Option<Box<Reader>>,
    count: usize,
    out: &mut VecDeque<ItemBuf>,
    budget: &Budget,
) -> Result<bool> {
    let _nested = call.operation.enter_nested_pipeline()?;
    if let Some(meta) = union.missing_metadata {
        return Err(meta.unavailable());
    }
    if reader.is_none() {
        let opened = match &union.documents {
            Some(given) => super::through(Reader::over(given.iter().cloned().collect(), None), &union.pipeline, budget),
            None => {
                let namespace = Namespace::new(call.database(), &union.collection);
                open_pipeline(call, &namespace, None, &union.pipeline, budget).await?
            }
        };
        *reader = Some(Box::new(opened));
    }
    let Some(reader) = reader else { return Ok(true) };
    out.extend(read_some(call, reader, count).await?);
    Ok(reader.is_done())
}

impl Facet {
    fn all(facets: &Facets, budget: &Budget) -> Vec<Facet> {
        let facet = |(name, pipeline): &(Box<str>, Pipeline)| Facet {
            name: name.clone(),
            chain: Chain::new(None, pipeline.clone().into_parts(), budget),
            results: Vec::new(),
            bytes: 0,
        };
        facets.iter().map(facet).collect()
    }

    fn feed<'a>(
        &'a mut self,
        call: &'a Call<'_>,
        documents: &'a VecDeque<ItemBuf>,
        over: bool,
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.chain.feed(call, documents.iter().cloned()).await?;
            if over {
                self.chain.finish(call).await?;
            }
            while let Some(document) = self.chain.pop().map(ItemBuf::into_document) {
                self.bytes += document.as_bytes().len();
                check_facet_size(self.bytes)?;
                self.results.push(document);
            }
            Ok(())
        })
    }
}
