//! A plan: how to reach the documents of a query.

use crate::catalog::{Collection, Index};
use crate::explain;
use crate::keys::Key;
use document::{DocBuf, ValueBuf};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;
use store::{Plan, PlanFacts};

#[derive(Debug)]
pub struct SqlitePlan {
    pub facts: PlanFacts,
    /// `None`: there is no such collection, and nothing to find.
    pub collection: Option<Arc<Collection>>,
    pub access: Access,
    /// A scan stops behind the last document, to go on from there.
    pub tailable: bool,
}

#[derive(Debug)]
pub enum Access {
    /// The collection's table in natural order.
    Natural { forward: bool },
    /// Documents by the key of their `_id`, in the order given.
    Points(SmallVec<[Key; 1]>),
    /// Ranges of an index, in its order.
    Index(IndexScan),
}

#[derive(Debug)]
pub struct IndexScan {
    /// `None`: the index on `_id`.
    pub index: Option<Arc<Index>>,
    /// Disjoint, ascending.
    pub intervals: Vec<Interval>,
    pub forward: bool,
    /// What the intervals were made from, per field, for `explain`.
    pub bounds: Vec<(String, FieldBounds)>,
}

/// Keys from `low` (with it) to `high` (without it).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    pub low: Vec<u8>,
    pub high: Vec<u8>,
}

/// The values of one field that a plan looks at: disjoint, ascending.
pub type FieldBounds = Vec<Range>;

/// A range of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    pub low: ValueBuf,
    pub low_included: bool,
    pub high: ValueBuf,
    pub high_included: bool,
}

impl Range {
    pub fn point(value: ValueBuf) -> Range {
        Range { low: value.clone(), low_included: true, high: value, high_included: true }
    }

    pub fn is_point(&self) -> bool {
        self.low_included && self.high_included && self.low == self.high
    }

    pub fn everything() -> Range {
        let (low, high) = (document::Value::MinKey.to_owned(), document::Value::MaxKey.to_owned());
        Range { low, low_included: true, high, high_included: true }
    }
}

impl SqlitePlan {
    /// The collection, if the plan gives all of it: then its counters know how many documents that is.
    pub fn whole_collection(&self) -> Option<&Collection> {
        let whole = self.facts.exact && matches!(self.access, Access::Natural { .. });
        self.collection.as_deref().filter(|collection| whole && !collection.is_dropped())
    }
}

impl SqlitePlan {
    /// Whether the plan reads few documents, however large the collection: those of some `_id`s, or, where `one` is
    /// enough and nothing has to be sorted, the first of an index's keys.
    pub fn is_narrow(&self, one: bool) -> bool {
        match &self.access {
            Access::Points(_) => true,
            Access::Index(scan) => one && self.facts.exact && self.facts.sorted && !scan.intervals.is_empty(),
            Access::Natural { .. } => one && self.facts.exact && self.facts.sorted,
        }
    }
}

impl Plan for SqlitePlan {
    fn facts(&self) -> &PlanFacts {
        &self.facts
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn winning_plan(&self) -> DocBuf {
        explain::winning_plan(self)
    }
}
