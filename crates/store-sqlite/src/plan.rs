//! A plan: how to reach the documents of a query.

pub mod explain;

use crate::catalog::multikey::ExactKeyTypes;
use crate::catalog::{Collection, Index, IndexSql};
use document::{Doc, DocBuf};
use error::Result;
use fulltext::TextSearch;
use geo::Near;
use index_keys::geo_bounds::GeoPrefix;
use index_keys::key_filter::KeyFilter;
use index_keys::keys::{self, Key};
use index_keys::{FieldBounds, IndexField, Interval};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{Examined, ExaminedCounter, ExplainContext, Plan, PlanFacts, PlanSummary, VisitIndex};

#[derive(Debug)]
pub struct SqlitePlan {
    pub facts: PlanFacts,
    /// `None`: there is no such collection, and nothing to find.
    pub collection: Option<Arc<Collection>>,
    pub access: Access,
    /// A scan stops behind the last document, to go on from there.
    pub tailable: bool,
    /// What scans have looked at, but for what the scans of indexes have in a counter of their own.
    pub counter: ExaminedCounter,
}

#[derive(Debug)]
pub enum Access {
    /// The collection's table in natural order.
    Natural { forward: bool },
    /// Documents by the key of their `_id`, in the order given.
    Points(SmallVec<[Key; 1]>),
    /// Ranges of an index, in its order.
    Index(IndexScan),
    /// Several scans of indexes; a document that more than one of them reaches is given once.
    Union(Union),
    /// Around a point, by distance.
    Near(NearScan),
}

/// An index with the places whose distance is asked for.
#[derive(Debug)]
pub struct NearScan {
    pub index: Arc<Index>,
    pub near: Arc<Near>,
    /// What its keys begin with in front of the places.
    pub front: GeoPrefix,
    /// What its keys have to meet behind the places.
    pub filter: Option<KeyFilter>,
}

#[derive(Debug)]
pub struct IndexScan {
    /// `None`: the index on `_id`.
    pub index: Option<Arc<Index>>,
    /// Disjoint, ascending.
    pub intervals: Vec<Interval>,
    /// What a key within the intervals has to meet besides: bounds on fields that the intervals say nothing about.
    pub filter: Option<KeyFilter>,
    pub forward: bool,
    /// One document is enough for all keys that are the same up to this field.
    pub distinct_field: Option<usize>,
    /// What the intervals were made from, per field, for `explain`.
    pub bounds: Vec<(String, FieldBounds)>,
    /// Keys are given in the place of documents where they tell all that is asked for.
    pub covered: Option<CoveredFields>,
    /// The search by words that the intervals are for: one for each term.
    pub search: Option<Arc<TextSearch>>,
    pub counter: ExaminedCounter,
}

/// What is asked for of documents are fields of the index that is scanned.
#[derive(Debug)]
pub struct CoveredFields {
    /// Which of the index's fields, in its order.
    pub requested: Vec<bool>,
    /// The first keys did not tell their values: documents are read from there on.
    pub gave_up: AtomicBool,
}

#[derive(Debug)]
pub struct Union {
    pub branches: Vec<IndexScan>,
    /// Each branch gives the order of the query's sort, and so does the union: which of the branches' fields that is by. Without it,
    /// one branch comes behind the other.
    pub merged: Option<Vec<Vec<SortField>>>,
    /// The branches are what one scan of one index was taken apart to, for the order's sake.
    pub exploded: bool,
}

/// A field of an index as part of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortField {
    /// The field's place in the index.
    pub at: usize,
    /// The index has the field in the other direction than the sort.
    pub inverted: bool,
}

impl IndexScan {
    fn summary(&self) -> PlanSummary {
        self.index.as_ref().map_or(PlanSummary::Name("IXSCAN { _id: 1 }"), |index| index.summary.clone())
    }

    /// Everything within the intervals, in the index's order.
    pub fn new(index: Option<Arc<Index>>, intervals: Vec<Interval>) -> IndexScan {
        IndexScan {
            index,
            intervals,
            filter: None,
            forward: true,
            distinct_field: None,
            bounds: Vec::new(),
            covered: None,
            search: None,
            counter: ExaminedCounter::default(),
        }
    }

    pub fn is_multikey(&self) -> bool {
        match &self.search {
            // A document has each term once.
            Some(_) => self.intervals.len() > 1,
            None => self.index.as_ref().is_some_and(|index| index.is_multikey()),
        }
    }

    pub fn is_over_sphere(&self) -> bool {
        self.index.as_ref().is_some_and(|index| matches!(index.kind, store::IndexKind::Sphere(_)))
    }

    /// Which values are those that their keys are taken for.
    pub fn exact_key_types(&self) -> ExactKeyTypes {
        self.index.as_ref().map(|index| index.multikey.exact_key_types()).unwrap_or_default()
    }

    /// Whether a key is one of those that the scan looks for.
    pub fn contains_key(&self, key: &[u8]) -> bool {
        let behind = self.intervals.partition_point(|interval| *interval.high <= *key);
        self.intervals.get(behind).is_some_and(|interval| interval.contains(key))
            && self.filter.as_ref().is_none_or(|filter| filter.accepts(key))
    }

    /// The keys of a document that the scan meets, in ascending order.
    pub fn matching_keys(&self, document: Doc<'_>, collection: &Collection) -> Result<Vec<Key>> {
        let mut keys = match &self.index {
            Some(index) => keys::index_keys(document, index)?,
            None => {
                let mut key = Vec::new();
                keys::id_key(document, &collection.collation, &mut key);
                vec![Key::from_slice(&key)]
            }
        };
        keys.retain(|key| self.contains_key(key));
        Ok(keys)
    }

    /// Which fields keys are to tell, as long as they do.
    pub fn covered(&self) -> Option<&CoveredFields> {
        self.covered.as_ref().filter(|covered| !covered.gave_up.load(Ordering::Relaxed))
    }

    /// Whether no documents but those are looked at whose keys do not tell all; and none have been so far.
    pub fn is_covered(&self) -> bool {
        self.covered().is_some() && self.counter.get().documents == 0
    }

    /// The statements that scan the index.
    pub fn sql<'s>(&'s self, collection: &'s Collection) -> &'s IndexSql {
        self.index.as_ref().map_or(&collection.sql.id, |index| &index.sql)
    }

    /// The index's fields.
    pub fn fields<'s>(&'s self, collection: &'s Collection) -> &'s [IndexField] {
        self.index.as_ref().map_or(std::slice::from_ref(&collection.id_field), |index| &index.fields)
    }
}

impl SqlitePlan {
    /// The collection, if the plan gives all of it: then its counters know how many documents that is.
    pub fn whole_collection(&self) -> Option<&Collection> {
        let whole = self.facts.exact && matches!(self.access, Access::Natural { .. });
        self.collection.as_deref().filter(|collection| whole && !collection.is_dropped())
    }

    /// The scan that has one key for each document of the plan: counting the ones is counting the others.
    pub fn one_key_per_document(&self) -> Option<(&Collection, &IndexScan)> {
        let (Access::Index(scan), Some(collection)) = (&self.access, self.collection.as_deref()) else { return None };
        let one_point = || match scan.bounds.as_slice() {
            [(_, ranges)] => ranges.len() == 1 && ranges[0].is_point(),
            _ => false,
        };
        let one_key = !scan.is_multikey() || one_point();
        (self.facts.exact && one_key && scan.distinct_field.is_none() && !collection.is_dropped())
            .then_some((collection, scan))
    }

    /// The indexes that are read and lack entries: of this collection, and their numbers.
    pub fn deferred_indexes(&self) -> Option<(&Collection, Vec<i64>)> {
        let mut deferred = Vec::new();
        let mut note = |index: &Index| {
            if index.has_deferred_entries() && !deferred.contains(&index.id) {
                deferred.push(index.id);
            }
        };
        match &self.access {
            Access::Natural { .. } | Access::Points(_) => {}
            Access::Index(scan) => scan.index.as_deref().into_iter().for_each(note),
            Access::Union(union) => union.branches.iter().filter_map(|scan| scan.index.as_deref()).for_each(note),
            Access::Near(scan) => note(&scan.index),
        }
        self.collection.as_deref().filter(|_| !deferred.is_empty()).map(|collection| (collection, deferred))
    }

    /// Whether the plan reads few documents, however large the collection: those of some `_id`s, or, where `one` is
    /// enough and nothing has to be sorted, the first of an index's keys.
    pub fn reads_few(&self, one: bool) -> bool {
        match &self.access {
            Access::Points(_) => true,
            Access::Index(scan) => one && self.facts.exact && self.facts.sorted && scan.filter.is_none(),
            Access::Natural { .. } => one && self.facts.exact && self.facts.sorted,
            Access::Union(_) | Access::Near(_) => false,
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

    fn is_by_distance(&self) -> bool {
        self.collection.is_none() || matches!(self.access, Access::Near(_))
    }

    fn visit_indexes(&self, visit: &mut VisitIndex<'_>) {
        let indexes = self.collection.iter().flat_map(|collection| &collection.indexes);
        let usable = indexes.filter(|index| index.is_usable());
        for index in usable {
            let arrays = index.multikey.parts();
            let has_arrays =
                |path: &str| index.fields.iter().any(|field| field.path == path && arrays & field.all_parts() != 0);
            visit(&index.spec, &has_arrays);
        }
    }

    fn stages(&self, about: &ExplainContext<'_>) -> DocBuf {
        explain::stages(self, about)
    }

    fn summary(&self) -> PlanSummary {
        match &self.access {
            _ if self.collection.is_none() => PlanSummary::Name("EOF"),
            Access::Natural { .. } => PlanSummary::Name("COLLSCAN"),
            Access::Points(_) => PlanSummary::Name("IDHACK"),
            Access::Index(scan) if scan.distinct_field.is_none() => scan.summary(),
            Access::Union(union) => PlanSummary::joined(union.branches.iter().map(IndexScan::summary)),
            _ => PlanSummary::of(self.winning_plan().as_doc()),
        }
    }

    fn examined(&self) -> Examined {
        let scans = match &self.access {
            Access::Index(scan) => scan.counter.get(),
            Access::Union(union) => {
                union.branches.iter().fold(Examined::default(), |sum, scan| sum + scan.counter.get())
            }
            Access::Natural { .. } | Access::Points(_) | Access::Near(_) => Examined::default(),
        };
        scans + self.counter.get()
    }
}
