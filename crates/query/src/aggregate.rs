//! Aggregation pipelines: parsed once, then fed with documents.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/aggregation-pipeline/>

use crate::{Context, Predicate, Sort};
use document::{Doc, DocBuf};
use error::{Code, Error, Result};

/// A parsed pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {}

/// What the front of a pipeline asks of the store; the rest of the pipeline no longer contains it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The leading `$match` stages.
    pub predicate: Predicate,
    /// A `$sort` right behind them.
    pub sort: Option<Sort>,
    /// How many documents the pipeline can use at the most, where a `$limit` right behind says so.
    pub limit: Option<u64>,
}

impl Pipeline {
    /// `stages`: the command's `pipeline` (an array).
    pub fn parse(_stages: Doc<'_>, _context: &Context) -> Result<Pipeline> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "pipeline"))
    }

    /// Takes off the front what a store can be asked for.
    pub fn into_source(self) -> (Source, Pipeline) {
        (Source { predicate: Predicate::everything(), sort: None, limit: None }, self)
    }

    /// No stages left: documents pass through unchanged, and the caller may skip the pipeline altogether.
    pub fn is_identity(&self) -> bool {
        false
    }

    /// Begins a run. Blocking stages fail with error 292 past `memory_bytes_max`.
    pub fn start(&self, _memory_bytes_max: usize) -> Execution {
        Execution {}
    }
}

/// Whether a pipeline wants more documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    More,
    /// No further document can change the outcome (`$limit` reached).
    Enough,
}

/// A run of a pipeline: documents are pushed in, results queue up to be taken out.
#[derive(Debug)]
pub struct Execution {}

impl Execution {
    pub fn push(&mut self, _document: Doc<'_>) -> Result<Demand> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "pipeline"))
    }

    /// The input is over: blocking stages give out what they hold.
    pub fn finish(&mut self) -> Result<()> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "pipeline"))
    }

    /// The next result, if one is ready.
    pub fn pop(&mut self) -> Option<DocBuf> {
        None
    }

    /// How many results are ready.
    pub fn ready(&self) -> usize {
        0
    }
}
