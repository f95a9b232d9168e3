//! Reading: executes a store's scan and completes it, in batches.
//!
//! A [`Reader`] holds all that a cursor retains between two batches: the source of its documents (a
//! plan and a position, or documents in memory), and the remaining steps: residual filter, blocking
//! sort, pipeline, skip, limit, projection. It holds no snapshot, lock or connection. Documents are
//! written straight into the reply if no step has to examine them first.

mod batch;
mod describe;
pub mod document_source;
mod feed;
pub mod followed;
pub mod index_bounds;
pub mod index_filters;
pub mod limits;
pub mod list_cursor;
pub mod open_cursor;
mod sinks;
pub mod spec;
pub mod table_scan;
pub mod text_indexes;
mod whole;

pub use batch::Batch;
pub use limits::{BLOCKING_BYTES_MAX, blocking_bytes_max};
pub use sinks::{Visit, for_each, transcode};
pub use spec::ReadSpec;

use crate::call::Call;
use aggregate::Execution;
use describe::{Describer, in_turn, index_order};
use document::{Collation, Doc, DocBuf};
use document_source::DocumentSource;
use error::{Error, Result};
use feed::Feed;
use followed::FollowedSource;
use query::ReadFields;
use query::sort::{Sorted, Sorter};
use query::{Item, ItemBuf, Meta, Predicate, Projection, Sort};
use server::document_cache::{BatchKey, Continuation};
use server::operation::OperationContext;
use sinks::{DecidingFields, SortSink, StreamSink};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use store::{DocumentStore, Namespace, Plan, Position, Query, ReadPreference, ScanEnd};
use values::spill::Budget;

/// A read in progress.
#[derive(Debug)]
pub struct Reader {
    source: Source,
    /// The filter to re-check; `None` if the source returns exactly the matching documents.
    residual: Option<Predicate>,
    /// The sort that the source does not provide, until it has been executed.
    sort: Option<Sort>,
    budget: Budget,
    /// The most sorted documents that are needed.
    sort_limit: Option<u64>,
    pipeline: Option<PipelineRun>,
    projection: Option<Projection>,
    /// Adds metadata to documents, if it is requested.
    describer: Option<Box<Describer>>,
    /// The only fields of documents that are needed.
    fields: Option<ReadFields>,
    /// The fields to check before the others are parsed.
    deciding_fields: Option<DecidingFields>,
    skip: u64,
    limit: Option<u64>,
    /// A document that did not fit into the last batch.
    pending: Option<ItemBuf>,
    done: bool,
    pub examined: u64,
    /// The number of documents that matched the filter.
    pub matched: u64,
    pub returned: u64,
    /// Whether the read tails a capped collection and never ends; `Some(true)` if it waits for
    /// documents.
    tail: Option<bool>,
    /// The remaining time limit of the whole read (`maxTimeMS`).
    pub time_left: Option<Duration>,
    /// The servers that later batches may come from; `None`: the primary.
    pub read_preference: Option<Arc<ReadPreference>>,
    /// The cache key of its batches, if they are cached.
    pub batch_key: Option<Arc<BatchKey>>,
}

/// An executing pipeline.
#[derive(Debug)]
struct PipelineRun {
    execution: Execution,
    /// Whether its input has ended.
    finished: bool,
}

/// The source of documents.
#[derive(Debug)]
enum Source {
    Scan {
        plan: Arc<dyn Plan>,
        position: Option<Position>,
        exhausted: bool,
    },
    List(VecDeque<DocBuf>),
    /// Documents sorted in memory, and whether they are used up.
    Sorted(Box<Sorted>, bool),
    /// The results of other stages, such as joins.
    Stages(Box<dyn DocumentSource>),
    /// Changes, which never end.
    Followed(Box<dyn FollowedSource>),
}

impl Reader {
    /// Asks the store for a plan; does not read yet.
    pub async fn open(store: &dyn DocumentStore, namespace: &Namespace, spec: ReadSpec<'_>) -> Result<Reader> {
        let predicate = spec.predicate.unwrap_or_else(Predicate::everything);
        let limit = spec.limit.map(|limit| limit.saturating_add(spec.skip));
        let sort = spec.sort;
        // Stores cannot sort by metadata, nor apply a limit to such an order.
        let by_fields = sort.as_ref().is_none_or(|sort| sort.needs().is_empty());
        let query = Query {
            predicate: &predicate,
            sort: sort.as_ref().filter(|_| by_fields),
            limit: limit.filter(|_| by_fields),
            hint: spec.hint,
            fields: spec.fields.as_ref().filter(|_| by_fields && spec.needs.is_empty()),
        };
        let plan = store.plan(namespace, query).await?;
        table_scan::check(namespace, &predicate, &*plan)?;
        if spec.bypass_row_cache {
            plan.bypass_caches();
        }
        Ok(Reader::on(plan, predicate, ReadSpec { sort, predicate: None, ..spec }))
    }

    /// Continues another read of the same plan, which needs no sort or pipeline here.
    pub fn resume(continuation: &Continuation, spec: ReadSpec<'_>) -> Reader {
        let mut spec = spec;
        let predicate = spec.predicate.take().unwrap_or_else(Predicate::everything);
        let mut reader = Reader::on(continuation.plan.clone(), predicate, spec);
        reader.advance(continuation);
        reader
    }

    /// Moves the read to the position of another one with the same plan.
    pub fn advance(&mut self, continuation: &Continuation) {
        if let Source::Scan { position, .. } = &mut self.source {
            *position = Some(continuation.position.clone());
        }
        (self.skip, self.limit) = (continuation.skip, continuation.limit);
    }

    /// Marks the read as ended.
    pub fn end(&mut self) {
        self.done = true;
    }

    /// Returns where the read continues; `None` if that depends on more than its position.
    pub fn continuation(&self) -> Option<Continuation> {
        let streams = self.sort.is_none()
            && self.pipeline.is_none()
            && self.pending.is_none()
            && self.describer.is_none()
            && self.tail.is_none();
        match &self.source {
            Source::Scan { plan, position: Some(position), exhausted: false } if streams => Some(Continuation {
                plan: plan.clone(),
                position: position.clone(),
                skip: self.skip,
                limit: self.limit,
                collation: Collation::SIMPLE,
            }),
            _ => None,
        }
    }

    fn on(plan: Arc<dyn Plan>, predicate: Predicate, spec: ReadSpec<'_>) -> Reader {
        let natural_order = plan.natural_order();
        let mut sort = natural_order.clone().or(spec.sort);
        let limit = spec.limit.map(|limit| limit.saturating_add(spec.skip));
        let by_fields = sort.as_ref().is_none_or(|sort| sort.needs().is_empty());
        let facts = *plan.facts();
        let needs = sort.as_ref().map_or(spec.needs, |sort| spec.needs.and(sort.needs()));
        let sorted = facts.sorted && by_fields && natural_order.is_none();
        if let Some(near) = predicate.near().filter(|_| sort.as_ref().is_none_or(Sort::is_empty)) {
            sort = Some(Sort::by_distance(near.clone()));
        }
        let by_distance = plan.is_by_distance() && sort.as_ref().is_some_and(Sort::is_by_distance);
        let index = index_order(&*plan, needs, spec.projection.as_ref());
        let describer = Describer::new(needs, sort.as_ref().filter(|_| sorted), predicate.near(), index);
        if let Some(sort) = sort.as_mut().filter(|_| needs.contains(Meta::SortKey)) {
            sort.record_keys();
        }
        let predicate = in_turn(&*plan, &predicate).unwrap_or(predicate);
        let fields = spec.fields.filter(|_| describer.is_none());
        let deciding_fields = spec.compared.filter(|_| describer.is_none()).map(DecidingFields);
        let in_order = if sort.as_ref().is_some_and(Sort::is_by_distance) { by_distance } else { sorted };
        Reader {
            source: Source::Scan { plan, position: None, exhausted: false },
            residual: (needs.contains(Meta::TextScore) || !facts.exact).then_some(predicate),
            sort: sort.filter(|_| !in_order),
            sort_limit: limit,
            budget: spec.budget.unwrap_or_else(|| blocking_bytes_max().into()),
            pipeline: spec.pipeline.map(|execution| PipelineRun { execution, finished: false }),
            projection: spec.projection,
            describer,
            fields,
            deciding_fields,
            skip: spec.skip,
            limit: spec.limit,
            ..Reader::over(VecDeque::new(), None)
        }
    }

    /// Tails a capped collection with a plan of [`DocumentStore::tail`].
    pub fn follow(plan: Arc<dyn Plan>, spec: ReadSpec<'_>, awaits: bool) -> Reader {
        let describer = Describer::new(spec.needs, None, None, None);
        Reader {
            source: Source::Scan { plan, position: None, exhausted: false },
            residual: spec.predicate,
            describer,
            projection: spec.projection,
            skip: spec.skip,
            limit: spec.limit,
            tail: Some(awaits),
            ..Reader::over(VecDeque::new(), None)
        }
    }

    /// Returns whether the read waits for documents at the end.
    pub fn awaits(&self) -> bool {
        self.tail == Some(true)
    }

    /// Returns whether the read tails a collection, and so never ends.
    pub fn is_tail(&self) -> bool {
        self.tail.is_some()
    }

    /// Reads documents in memory.
    pub fn over(documents: VecDeque<DocBuf>, pipeline: Option<Execution>) -> Reader {
        Reader {
            source: Source::List(documents),
            residual: None,
            sort: None,
            sort_limit: None,
            budget: blocking_bytes_max().into(),
            pipeline: pipeline.map(|execution| PipelineRun { execution, finished: false }),
            projection: None,
            describer: None,
            fields: None,
            deciding_fields: None,
            skip: 0,
            limit: None,
            pending: None,
            done: false,
            examined: 0,
            matched: 0,
            returned: 0,
            tail: None,
            time_left: None,
            read_preference: None,
            batch_key: None,
        }
    }

    /// Reads the results of other stages.
    pub fn from_stages(stages: Box<dyn DocumentSource>) -> Reader {
        Reader { source: Source::Stages(stages), ..Reader::over(VecDeque::new(), None) }
    }

    /// Returns whether the name to read is a view's.
    pub fn is_view(&self) -> bool {
        self.plan().is_some_and(|plan| plan.facts().view)
    }

    /// Returns whether the end is known to be reached.
    pub fn is_done(&self) -> bool {
        self.done
    }

    pub fn plan(&self) -> Option<&Arc<dyn Plan>> {
        match &self.source {
            Source::Scan { plan, .. } => Some(plan),
            Source::List(_) | Source::Sorted(..) | Source::Stages(_) | Source::Followed(_) => None,
        }
    }

    /// Returns the sort that is executed in memory, if the store does not provide the order.
    pub fn sorts_by(&self) -> Option<&Sort> {
        self.sort.as_ref()
    }

    /// Returns whether documents pass through a pipeline.
    pub fn has_pipeline(&self) -> bool {
        self.pipeline.is_some()
    }

    /// Returns whether the store is only asked for a count, if it supports that.
    pub fn counts(&self) -> bool {
        matches!(self.source, Source::Scan { position: None, .. })
            && self.limit.is_none()
            && self.describer.is_none()
            && self.pipeline.as_ref().is_some_and(|pipeline| pipeline.execution.needs_count_only())
    }

    /// Returns whether the filter must be re-checked here.
    pub fn residual(&self) -> bool {
        self.residual.is_some()
    }

    /// Reads until the batch is full or the end is reached.
    pub async fn fill(&mut self, call: &Call<'_>, batch: &mut Batch<'_>) -> Result<()> {
        let operation = call.operation;
        operation.check_interrupt()?;
        let plan = self.plan().cloned();
        let looked = plan.as_deref().map(Plan::examined);
        let before = batch.len();
        let filled = self.fill_on(call, batch).await;
        if let (Some(plan), Some(looked)) = (plan, looked) {
            operation.stats.record_scan(&plan, plan.examined() - looked);
        }
        filled?;
        self.returned += (batch.len() - before) as u64;
        Ok(())
    }

    async fn fill_on(&mut self, call: &Call<'_>, batch: &mut Batch<'_>) -> Result<()> {
        let (store, operation) = (&*call.worker.store, call.operation);
        if let Some(sort) = self.sort.take() {
            operation.stats.record_sort();
            self.sort_everything(sort, store, operation).await?;
        }
        if self.pipeline.is_some() {
            self.fill_from_pipeline(store, operation, batch).await
        } else {
            self.fill_from_source(call, batch).await
        }
    }

    async fn sort_everything(
        &mut self,
        sort: Sort,
        store: &dyn DocumentStore,
        operation: &OperationContext,
    ) -> Result<()> {
        let limit = self.sort_limit.and_then(|limit| usize::try_from(limit).ok());
        let mut sorter = Sorter::new(sort, limit, self.budget.clone());
        if let Source::Scan { plan, .. } = &self.source {
            let mut sink = SortSink {
                residual: self.residual.as_ref(),
                describer: self.describer.as_deref_mut(),
                sorter: &mut sorter,
                // Checking a prefix first is useless if all documents are retained.
                deciding_fields: self.deciding_fields.as_ref().filter(|_| limit.is_some() || self.residual.is_some()),
                fields: self.fields.as_ref(),
                operation,
                scratch: Vec::new(),
                trimmed: Vec::new(),
                examined: &mut self.examined,
                matched: &mut self.matched,
            };
            operation.run_interruptible(store.scan(&**plan, None, usize::MAX, &mut sink)).await?;
        }
        self.source = Source::Sorted(Box::new(sorter.finish()?), false);
        self.residual = None;
        Ok(())
    }

    async fn fill_from_source(&mut self, call: &Call<'_>, batch: &mut Batch<'_>) -> Result<()> {
        let (store, operation) = (&*call.worker.store, call.operation);
        if self.limit == Some(0) {
            self.done = self.tail.is_none();
            return Ok(());
        }
        if batch.is_full() {
            return Ok(());
        }
        match &mut self.source {
            Source::Scan { plan, position, exhausted } => {
                let expected = documents_to_scan(batch.room(), self.skip, self.limit);
                let mut sink = StreamSink {
                    residual: self.residual.as_ref(),
                    projection: self.projection.as_ref(),
                    describer: self.describer.as_deref_mut(),
                    deciding_fields: self.deciding_fields.as_ref(),
                    fields: self.fields.as_ref(),
                    skip: &mut self.skip,
                    limit: &mut self.limit,
                    batch,
                    operation,
                    scratch: Vec::new(),
                    examined: &mut self.examined,
                    matched: &mut self.matched,
                };
                match operation.run_interruptible(store.scan(&**plan, position.as_ref(), expected, &mut sink)).await? {
                    ScanEnd::Exhausted => *exhausted = true,
                    ScanEnd::Stopped(reached) => *position = Some(reached),
                }
                self.done = *exhausted || self.limit == Some(0) && self.tail.is_none();
            }
            Source::List(documents) => {
                while let Some(document) = documents.pop_front() {
                    operation.tick()?;
                    if self.skip > 0 {
                        self.skip -= 1;
                        continue;
                    }
                    if !push_projected(document.as_doc().into(), self.projection.as_ref(), batch)? {
                        documents.push_front(document);
                        break;
                    }
                    self.limit = self.limit.map(|limit| limit - 1);
                    if batch.is_full() || self.limit == Some(0) {
                        break;
                    }
                }
                self.done = self.limit == Some(0) || documents.is_empty();
            }
            Source::Sorted(sorted, over) => {
                // As with a scan, the end is known only after a read beyond the last document.
                while !batch.is_full() && self.limit != Some(0) {
                    operation.tick()?;
                    if self.skip > 0 && self.pending.is_none() {
                        self.skip -= 1;
                        *over = sorted.next_with(|_| ())?.is_none();
                        if *over {
                            break;
                        }
                        continue;
                    }
                    let projection = self.projection.as_ref();
                    let mut take = |item: Item<'_>| {
                        let taken = push_projected(item, projection, batch)?;
                        Ok::<_, Error>((!taken).then(|| item.to_owned()))
                    };
                    let left_over = match self.pending.take() {
                        Some(document) => Some(take(document.as_item())),
                        None => sorted.next_with(take)?,
                    };
                    let Some(left_over) = left_over else {
                        *over = true;
                        break;
                    };
                    self.pending = left_over?;
                    if self.pending.is_some() {
                        break;
                    }
                    self.limit = self.limit.map(|limit| limit - 1);
                }
                self.done = self.limit == Some(0) || *over;
            }
            Source::Stages(stages) => self.done = fill_from_stages(&mut **stages, call, batch).await?,
            Source::Followed(source) => self.done = source.fill(call, batch).await?,
        }
        Ok(())
    }

    async fn fill_from_pipeline(
        &mut self,
        store: &dyn DocumentStore,
        operation: &OperationContext,
        batch: &mut Batch<'_>,
    ) -> Result<()> {
        loop {
            if !self.drain_pipeline(operation, batch)? {
                return Ok(());
            }
            let counts = self.counts();
            let Some(pipeline) = &mut self.pipeline else { return Ok(()) };
            if self.source.is_exhausted() {
                if pipeline.finished {
                    self.done = true;
                    return Ok(());
                }
                pipeline.finished = pipeline.execution.advance(batch.room(), &mut operation.pacer())?;
                operation.yield_if_due().await;
                continue;
            }
            let results_max = batch.room();
            if self.limit == Some(0) {
                self.source = Source::List(VecDeque::new());
                continue;
            }
            if counts
                && let Source::Scan { plan, exhausted, .. } = &mut self.source
                && let Some(number) = operation.run_interruptible(store.count(&**plan, None)).await?
            {
                pipeline.execution.push_count(number)?;
                self.matched += number;
                *exhausted = true;
                continue;
            }
            if let Source::Scan { plan, position: None, exhausted } = &mut self.source
                && self.limit.is_none()
                && self.describer.is_none()
                && let Some(size) = pipeline.execution.sample_size().filter(|size| *size > 0)
                && let Some(chosen) = operation.run_interruptible(store.sample(&**plan, size)).await?
            {
                *exhausted = true;
                self.matched += chosen.len() as u64;
                self.examined += chosen.len() as u64;
                for document in &chosen {
                    operation.tick()?;
                    pipeline.execution.push(document.as_doc())?;
                }
                continue;
            }
            let feed = Feed {
                residual: self.residual.as_ref(),
                describer: self.describer.as_deref_mut(),
                fields: self.fields.as_ref(),
                execution: &mut pipeline.execution,
                limit: &mut self.limit,
                examined: &mut self.examined,
                matched: &mut self.matched,
                results_max,
                operation,
            };
            if let Err(failure) = feed.run(&mut self.source, store).await {
                // Later stages may find the documents before the error sufficient.
                self.drain_pipeline(operation, batch)?;
                return Err(failure);
            }
        }
    }

    /// Takes results from the pipeline; returns false when the batch is full.
    fn drain_pipeline(&mut self, operation: &OperationContext, batch: &mut Batch<'_>) -> Result<bool> {
        let Some(pipeline) = &mut self.pipeline else { return Ok(false) };
        while !batch.is_full() {
            operation.tick()?;
            let Some(document) = self.pending.take().or_else(|| pipeline.execution.pop_item()) else { return Ok(true) };
            batch.check_size(document.as_doc())?;
            if !batch.push(document.as_item()) {
                self.pending = Some(document);
                return Ok(false);
            }
        }
        // The end is known without another read, which saves the client a round trip.
        self.done = pipeline.finished && pipeline.execution.ready_count() == 0;
        Ok(false)
    }
}

/// Fills a batch with the results of other stages; returns true at their end.
async fn fill_from_stages(stages: &mut dyn DocumentSource, call: &Call<'_>, batch: &mut Batch<'_>) -> Result<bool> {
    while !batch.is_full() {
        call.operation.tick()?;
        let Some(document) = stages.pop() else {
            if stages.is_over() {
                break;
            }
            stages.advance(call, batch.room()).await?;
            continue;
        };
        batch.check_size(document.as_doc())?;
        if !batch.push(document.as_item()) {
            stages.put_back(document);
            break;
        }
    }
    Ok(stages.is_over())
}

/// Adds a document to the batch; returns false if it does not fit.
fn push_projected(item: Item<'_>, projection: Option<&Projection>, batch: &mut Batch<'_>) -> Result<bool> {
    let Some(projection) = projection else { return Ok(batch.push(item)) };
    batch.push_with(|out| projection.apply(item, out))
}

impl Source {
    fn is_exhausted(&self) -> bool {
        match self {
            Source::Scan { exhausted, .. } => *exhausted,
            Source::List(documents) => documents.is_empty(),
            Source::Sorted(_, over) => *over,
            Source::Stages(stages) => stages.is_over(),
            Source::Followed(_) => false,
        }
    }
}

/// Returns the number of documents to expect from a scan.
fn documents_to_scan(room: usize, skip: u64, limit: Option<u64>) -> usize {
    let room = limit.map_or(room, |limit| room.min(usize::try_from(limit).unwrap_or(usize::MAX)));
    room.saturating_add(usize::try_from(skip).unwrap_or(usize::MAX))
}

/// Returns bytes that are known to be a document; `{}` if they are not.
pub(crate) fn as_document(bytes: &[u8]) -> Doc<'_> {
    Doc::from_bytes(bytes).unwrap_or(Doc::EMPTY)
}
