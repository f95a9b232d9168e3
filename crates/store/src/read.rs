//! Reading: a query becomes a plan, a plan is scanned, a sink receives the documents.

use crate::hint::NATURAL;
use crate::{Examined, ExplainContext, Hint, IndexSpec, PlanSummary};
use document::{Doc, DocBuf, Value, doc};
use error::Result;
use query::ReadFields;
use query::{Predicate, Sort};
use std::any::Any;
use std::fmt;

/// The documents that a command reads.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    pub predicate: &'a Predicate,
    pub sort: Option<&'a Sort>,
    /// `skip + limit` if the command has a limit: the number of matching documents after which it
    /// needs no more.
    pub limit: Option<u64>,
    /// The command's `hint` as sent: an index name or key pattern. If an index filter replaces it,
    /// an array of the names and patterns of the only indexes that may be used
    /// ([`Query::allowed`]).
    pub hint: Option<Value<'a>>,
    /// The only fields that the command reads, those of the predicate and the sort included; `None`
    /// for all. A scan may leave out other fields, but not these.
    pub fields: Option<&'a ReadFields>,
}

/// The indexes that an index filter allows for a query.
#[derive(Clone, Copy)]
pub struct AllowedIndexes<'a>(Doc<'a>);

impl AllowedIndexes<'_> {
    pub fn has(&self, name: &str, key: Doc<'_>) -> bool {
        self.0.values().any(|allowed| Hint::of(Some(allowed)).is_some_and(|allowed| allowed.names(name, key)))
    }

    /// Returns whether the index on `_id` is allowed.
    pub fn has_id(&self) -> bool {
        self.has("_id_", doc! { "_id": 1 }.as_doc())
    }
}

impl<'a> Query<'a> {
    /// Returns a query for all matching documents, whole, in any order.
    pub fn of(predicate: &'a Predicate) -> Query<'a> {
        Query { predicate, sort: None, limit: None, hint: None, fields: None }
    }

    /// Returns the only indexes that may be used, if an index filter applies. The query has no hint
    /// then.
    pub fn allowed(&self) -> Option<AllowedIndexes<'a>> {
        self.hint.and_then(Value::as_array).map(AllowedIndexes)
    }

    /// Fails with 2 for a text search with a hint or a sort by natural order. Planners must call
    /// this first.
    pub fn check(&self) -> Result<()> {
        let natural = self.sort.and_then(|sort| sort.parts().first()).is_some_and(|part| part.path == NATURAL);
        self.predicate.check_text_order(self.hint.is_some() && self.allowed().is_none(), natural)
    }
}

/// Receives an index, and a function that returns whether a path of it is known to have, or to have
/// had, arrays in documents.
pub type VisitIndex<'v> = dyn FnMut(&IndexSpec, &dyn Fn(&str) -> bool) + 'v;

/// A store's decision how to find a query's documents. Opaque to everything but the store that made
/// it. Stored in cursors, which any worker may continue.
pub trait Plan: Any + Send + Sync + fmt::Debug {
    fn facts(&self) -> &PlanFacts;
    fn as_any(&self) -> &dyn Any;

    /// Returns whether documents come in the order of the distance that the query defines
    /// (`$near`).
    fn is_by_distance(&self) -> bool {
        false
    }

    /// Returns the sort that produces the collection's natural order, if the query has no sort and
    /// the scan does not read in natural order.
    fn natural_order(&self) -> Option<Sort> {
        None
    }

    /// Visits the indexes that the planner could choose from, except `_id_`.
    fn visit_indexes(&self, visit: &mut VisitIndex<'_>) {
        let _ = visit;
    }

    /// Returns the stages of the plan for `explain`, in MongoDB's terms. Built on demand, so that
    /// queries do not pay for it.
    fn stages(&self, about: &ExplainContext<'_>) -> DocBuf;

    /// Returns the stages without statistics of an execution.
    fn winning_plan(&self) -> DocBuf {
        self.stages(&ExplainContext::default())
    }

    /// Returns the plan as one line, for the profiler and the log. Cheap for the usual plans.
    fn summary(&self) -> PlanSummary {
        PlanSummary::of(self.winning_plan().as_doc())
    }

    /// Returns counts of the keys and documents that scans of the plan have examined so far.
    fn examined(&self) -> Examined;

    /// Makes scans count exactly what they examine, even at a cost; for `explain`.
    fn enable_exact_counts(&self) {}

    /// Makes scans read the stored data instead of the store's caches of earlier reads.
    fn bypass_caches(&self) {}
}

/// The facts about a plan that its caller needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanFacts {
    /// Every document of the scan matches the predicate. Otherwise the caller checks again
    /// (residual filter).
    pub exact: bool,
    /// Documents come in the order of the query's sort.
    pub sorted: bool,
    /// The name is a view's: the caller must read what the view is defined on. Scanning fails with
    /// 166.
    pub view: bool,
}

/// Where a scan stopped: opaque bytes, meaningful only to the plan's store. Documents behind it
/// have not been given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position(pub Vec<u8>);

/// How a scan ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// No document is left.
    Exhausted,
    /// The sink stopped it. Continuing behind this position gives the rest.
    Stopped(Position),
}

/// A sink's answer to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// The document is taken, and the scan ends: its position is behind this document.
    StopAfter,
    /// The document is not taken (it does not fit any more): the scan's position is before this
    /// document.
    StopBefore,
}

/// Whether a sink rejects documents by their prefix, the first fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixFiltering {
    Never,
    /// Not yet: for the time being the sink accepts every document.
    Later,
    Now,
}

/// A sink's verdict on the prefix of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixVerdict {
    /// The prefix lacks some of the fields that the sink decides by.
    Undecided,
    /// The whole document must be read.
    Wanted,
    /// The document is not needed.
    Rejected,
}

/// Receiver of the documents of a scan.
pub trait Sink {
    /// Returns whether the scan must call [`Sink::record`].
    fn wants_records(&self) -> bool {
        false
    }

    /// Receives the record number of the next document, by which natural order is defined, if the
    /// store has such numbers and the sink wants them.
    fn record(&mut self, number: i64) {
        let _ = number;
    }

    /// Returns whether the sink can reject a document by some of its fields. Used by stores that
    /// read large documents in pieces.
    fn filters_by_prefix(&self) -> PrefixFiltering {
        PrefixFiltering::Never
    }

    /// Decides about a document by its first fields, before the others are read. The sink has
    /// counted a rejected document, and [`Sink::accept`] is not called for it.
    fn check_prefix(&mut self, prefix: Doc<'_>) -> Result<PrefixVerdict> {
        let _ = prefix;
        Ok(PrefixVerdict::Undecided)
    }

    /// Receives a document.
    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow>;
}

/// A document in its store's format, borrowed from a page or a packet until `accept` returns.
#[derive(Clone, Copy)]
pub enum StoredDoc<'a> {
    Bson(Doc<'a>),
    /// JSON text in the encoding of `document::json`.
    Json(&'a [u8]),
}
