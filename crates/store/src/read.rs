//! Reading: a query becomes a plan, a plan is scanned, a sink takes the documents.

use crate::index_rules::same_key;
use crate::{Examined, ExplainContext, IndexSpec, PlanSummary};
use document::{Doc, DocBuf, Value, doc};
use error::Result;
use query::ReadFields;
use query::{Predicate, Sort};
use std::any::Any;
use std::fmt;

/// What a command wants to read.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    pub predicate: &'a Predicate,
    pub sort: Option<&'a Sort>,
    /// `skip + limit` where the command gives a limit: how many matching documents it can use at the most.
    pub limit: Option<u64>,
    /// The command's `hint`: an index name or key pattern, as sent. Or, of an index filter that goes before it, an array of the
    /// names and patterns of the only indexes that may be used ([`Query::allowed`]).
    pub hint: Option<Value<'a>>,
    /// The only fields of the documents that are looked at, those of the predicate and the sort included; `None` for all. What a scan gives may
    /// have these alone, and has all of them that the document has.
    pub fields: Option<&'a ReadFields>,
}

/// The indexes that an index filter leaves a query.
#[derive(Clone, Copy)]
pub struct AllowedIndexes<'a>(Doc<'a>);

impl AllowedIndexes<'_> {
    pub fn has(&self, name: &str, key: Doc<'_>) -> bool {
        self.0.values().any(|allowed| match allowed {
            Value::String(allowed) => allowed == name,
            Value::Document(pattern) => same_key(pattern, key),
            _ => false,
        })
    }

    /// Whether the index on `_id` is one of them.
    pub fn has_id(&self) -> bool {
        self.has("_id_", doc! { "_id": 1 }.as_doc())
    }
}

impl<'a> Query<'a> {
    /// All documents that match, whole, in whichever order.
    pub fn of(predicate: &'a Predicate) -> Query<'a> {
        Query { predicate, sort: None, limit: None, hint: None, fields: None }
    }

    /// The only indexes that may be used, where not all may. There is no hint then.
    pub fn allowed(&self) -> Option<AllowedIndexes<'a>> {
        self.hint.and_then(Value::as_array).map(AllowedIndexes)
    }

    /// Error 2 for a search by words that is to be found by a hint or in natural order. For planners to ask first.
    pub fn check(&self) -> Result<()> {
        let natural = self.sort.and_then(|sort| sort.parts().first()).is_some_and(|part| part.path == "$natural");
        self.predicate.check_text_order(self.hint.is_some() && self.allowed().is_none(), natural)
    }
}

/// Takes an index, and what tells of its paths whether it is known that documents have, or had, arrays on them.
pub type VisitIndex<'v> = dyn FnMut(&IndexSpec, &dyn Fn(&str) -> bool) + 'v;

/// A store's decision how to find a query's documents. Opaque to everyone but the store that made it; lives in cursors, which
/// any worker may continue.
pub trait Plan: Any + Send + Sync + fmt::Debug {
    fn facts(&self) -> &PlanFacts;
    fn as_any(&self) -> &dyn Any;

    /// Whether documents come in the order of the distance that the query asks for (`$near`).
    fn is_by_distance(&self) -> bool {
        false
    }

    /// The sort that gives the collection's natural order, where the query asks for no other and the scan does not read in it.
    fn natural_order(&self) -> Option<Sort> {
        None
    }

    /// Shows the indexes that there were to choose from, `_id_` aside.
    fn visit_indexes(&self, visit: &mut VisitIndex<'_>) {
        let _ = visit;
    }

    /// The plan's shape in MongoDB's words for `explain`. Built when asked, so that queries don't pay for it.
    fn stages(&self, about: &ExplainContext<'_>) -> DocBuf;

    /// The stages alone.
    fn winning_plan(&self) -> DocBuf {
        self.stages(&ExplainContext::default())
    }

    /// The plan in a line, as the profiler and the log have it. Cheap where a plan is of the usual kinds.
    fn summary(&self) -> PlanSummary {
        PlanSummary::of(self.winning_plan().as_doc())
    }

    /// What scans of the plan have looked at so far.
    fn examined(&self) -> Examined;

    /// Has scans find out what they look at even where that is extra work: for `explain`.
    fn enable_exact_counts(&self) {}

    /// Has scans read what is stored, not what the store keeps of earlier reads.
    fn bypass_caches(&self) {}
}

/// What the caller needs to know about a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanFacts {
    /// Every document that the scan gives matches the predicate; otherwise the caller checks again (residual filter).
    pub exact: bool,
    /// Documents come in the order of the query's sort.
    pub sorted: bool,
    /// There is no collection of that name but a view: to be read by way of what it stands for. Scanning is error 166.
    pub view: bool,
}

/// Where a scan stopped: opaque bytes, meaningful to the plan's store. Documents behind it have not been given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position(pub Vec<u8>);

/// How a scan ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// Nothing is left.
    Exhausted,
    /// The sink stopped it; going on behind this position gives the rest.
    Stopped(Position),
}

/// What a sink says to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// Taken, and no more wanted: the scan's position is behind this document.
    StopAfter,
    /// Not taken (it does not fit any more): the scan's position is before this document.
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

    /// Receives the record number of the next document, by which natural order is defined, if the store has such
    /// numbers and the sink wants them.
    fn record(&mut self, number: i64) {
        let _ = number;
    }

    /// Returns whether the sink can reject a document by some of its fields. Used by stores that read large documents
    /// in pieces.
    fn filters_by_prefix(&self) -> PrefixFiltering {
        PrefixFiltering::Never
    }

    /// Decides about a document by its first fields, before the others are read. The sink has counted a rejected
    /// document, and [`Sink::accept`] is not called for it.
    fn check_prefix(&mut self, prefix: Doc<'_>) -> Result<PrefixVerdict> {
        let _ = prefix;
        Ok(PrefixVerdict::Undecided)
    }

    /// Receives a document.
    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow>;
}

/// A document as its store keeps it. Borrowed from a page or a packet: gone when `accept` returns.
#[derive(Clone, Copy)]
pub enum StoredDoc<'a> {
    Bson(Doc<'a>),
    /// JSON text in the spelling of `document::json`.
    Json(&'a [u8]),
}
