//! Feeds documents from a reader's source to a pipeline, until the pipeline has enough results.

use super::describe::{Describer, describe};
use super::sinks::PipelineSink;
use super::{Source, documents_to_scan};
use aggregate::Demand;
use aggregate::Execution;
use document::Doc;
use error::{Error, Result};
use query::ReadFields;
use query::{Item, MatchDetails, Predicate};
use server::operation::OperationContext;
use store::{DocumentStore, ScanEnd};

/// Feeds a pipeline until it has `results_max` results, needs no more input, or its source is used
/// up.
pub(super) struct Feed<'s> {
    pub residual: Option<&'s Predicate>,
    pub describer: Option<&'s mut Describer>,
    pub fields: Option<&'s ReadFields>,
    pub execution: &'s mut Execution,
    /// The remaining number of documents to feed.
    pub limit: &'s mut Option<u64>,
    pub examined: &'s mut u64,
    pub matched: &'s mut u64,
    pub results_max: usize,
    pub operation: &'s OperationContext,
}

impl Feed<'_> {
    pub async fn run(mut self, source: &mut Source, store: &dyn DocumentStore) -> Result<()> {
        match source {
            Source::Scan { plan, position, exhausted } => {
                let expected = documents_to_scan(self.results_max, 0, *self.limit);
                let mut sink = PipelineSink { feed: &mut self, has_enough: false, scratch: Vec::new() };
                let operation = sink.feed.operation;
                let end =
                    operation.run_interruptible(store.scan(&**plan, position.as_ref(), expected, &mut sink)).await?;
                let has_enough = sink.has_enough;
                match end {
                    ScanEnd::Exhausted => *exhausted = true,
                    ScanEnd::Stopped(reached) => *position = Some(reached),
                }
                *exhausted |= has_enough;
            }
            Source::List(documents) => {
                while let Some(document) = documents.pop_front() {
                    self.operation.tick()?;
                    *self.examined += 1;
                    if self.describe_and_push(document.as_doc(), &MatchDetails::default())? == Demand::Enough {
                        documents.clear();
                    }
                    if self.execution.ready_count() >= self.results_max {
                        break;
                    }
                }
            }
            Source::Sorted(sorted, over) => {
                while self.execution.ready_count() < self.results_max {
                    self.operation.tick()?;
                    *self.examined += 1;
                    let demand = sorted.next_with(|item| self.push(item))?.transpose()?;
                    if demand != Some(Demand::More) {
                        *over = true;
                        break;
                    }
                }
            }
            Source::Stages(_) | Source::Followed(_) => {
                return Err(Error::internal("no pipeline is behind other stages"));
            }
        }
        Ok(())
    }

    pub fn describe_and_push(&mut self, document: Doc<'_>, details: &MatchDetails) -> Result<Demand> {
        if self.describer.is_none() {
            return self.push(document);
        }
        let mut describer = self.describer.take();
        let demand = describe(describer.as_deref_mut(), document, details).and_then(|item| self.push(item));
        self.describer = describer;
        demand
    }

    #[inline]
    pub fn push<'d>(&mut self, item: impl Into<Item<'d>>) -> Result<Demand> {
        let demand = self.execution.push(item)?;
        if let Some(limit) = self.limit {
            *limit -= 1;
            if *limit == 0 {
                return Ok(Demand::Enough);
            }
        }
        Ok(demand)
    }
}
