//! A plan: how to find the documents of a query.

mod contract;
mod explain;

use crate::catalog::multikey::ExactKeyTypes;
use crate::catalog::{Collection, Index, IndexSql};
use access::geo_bounds::GeoPrefix;
use access::key_filter::KeyFilter;
use access::{FieldBounds, Interval};
use document::Doc;
use error::Result;
use fulltext::TextSearch;
use geo::Near;
use index_keys::IndexField;
use index_keys::keys::{self, Key};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{ExaminedCounter, PlanFacts, PlanSummary};

#[derive(Debug)]
pub struct SqlitePlan {
    pub facts: PlanFacts,
    /// `None`: the collection does not exist, and nothing can be found.
    pub collection: Option<Arc<Collection>>,
    pub access: Access,
    /// A scan stops behind the last document, and can continue there later.
    pub tailable: bool,
    /// Counts of scans, except those of index scans, which have counters of their own.
    pub counter: ExaminedCounter,
}

#[derive(Debug)]
pub enum Access {
    /// Rows of the collection's table, in natural order.
    Natural { forward: bool, rows: RowRange },
    /// Documents by the key of their `_id`, in this order.
    Points(SmallVec<[Key; 1]>),
    /// Ranges of an index, in its order.
    Index(IndexScan),
    /// Several index scans; a document found by more than one of them is given once.
    Union(Union),
    /// Documents around a point, by distance.
    Near(NearScan),
}

/// Rows by their number in natural order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRange {
    /// Only rows with larger numbers.
    pub behind: i64,
    /// Only rows up to this number.
    pub last: i64,
}

impl RowRange {
    pub const ALL: RowRange = RowRange { behind: i64::MIN, last: i64::MAX };
}

impl Access {
    /// Returns the scan of the whole table.
    pub fn all(forward: bool) -> Access {
        Access::Natural { forward, rows: RowRange::ALL }
    }
}

/// A scan by distance, of an index with a geometry field.
#[derive(Debug)]
pub struct NearScan {
    pub index: Arc<Index>,
    pub near: Arc<Near>,
    /// The values of the fields in front of the geometry.
    pub front: GeoPrefix,
    /// Conditions on the fields behind the geometry.
    pub filter: Option<KeyFilter>,
}

#[derive(Debug)]
pub struct IndexScan {
    /// `None`: the index on `_id`.
    pub index: Option<Arc<Index>>,
    /// Disjoint, ascending.
    pub intervals: Vec<Interval>,
    /// Bounds on fields that the intervals do not express.
    pub filter: Option<KeyFilter>,
    pub forward: bool,
    /// One document is enough for all keys that are equal up to this field.
    pub distinct_field: Option<usize>,
    /// The bounds from which the intervals were built, per field, for `explain`.
    pub bounds: Vec<(String, FieldBounds)>,
    /// Documents are built from keys if these have all requested fields.
    pub covered: Option<CoveredFields>,
    /// The text search of the intervals: one for each term.
    pub search: Option<Arc<TextSearch>>,
    pub counter: ExaminedCounter,
}

/// A covered scan: all requested fields are fields of the index.
#[derive(Debug)]
pub struct CoveredFields {
    /// Whether each of the index's fields is requested, in its order.
    pub requested: Vec<bool>,
    /// The first keys could not be decoded: from there on, documents are read.
    pub gave_up: AtomicBool,
}

#[derive(Debug)]
pub struct Union {
    pub branches: Vec<IndexScan>,
    /// Each branch gives the order of the query's sort, by these of its fields, and the union
    /// merges them. Without it, the branches are read in sequence.
    pub merged: Option<Vec<Vec<SortField>>>,
    /// The branches are one index scan, exploded to give the order of the sort.
    pub exploded: bool,
}

/// A field of an index as part of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortField {
    /// The field's number in the index.
    pub at: usize,
    /// The index has the field in the opposite direction.
    pub inverted: bool,
}

impl IndexScan {
    pub fn summary(&self) -> PlanSummary {
        self.index.as_ref().map_or(PlanSummary::Name("IXSCAN { _id: 1 }"), |index| index.summary.clone())
    }

    /// Returns a scan of the intervals, in the index's order.
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

    /// Returns the types of keys that identify their values.
    pub fn exact_key_types(&self) -> ExactKeyTypes {
        self.index.as_ref().map(|index| index.multikey.exact_key_types()).unwrap_or_default()
    }

    /// Returns whether the scan includes a key.
    pub fn contains_key(&self, key: &[u8]) -> bool {
        let behind = self.intervals.partition_point(|interval| *interval.high <= *key);
        self.intervals.get(behind).is_some_and(|interval| interval.contains(key))
            && self.filter.as_ref().is_none_or(|filter| filter.accepts(key))
    }

    /// Returns the keys of a document that the scan includes, in ascending order.
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

    /// Returns the fields to decode from keys, unless the scan gave up decoding.
    pub fn covered(&self) -> Option<&CoveredFields> {
        self.covered.as_ref().filter(|covered| !covered.gave_up.load(Ordering::Relaxed))
    }

    /// Returns whether no document has been read so far, since all keys could be decoded.
    pub fn is_covered(&self) -> bool {
        self.covered().is_some() && self.counter.get().documents == 0
    }

    /// Returns the statements that scan the index.
    pub fn sql<'s>(&'s self, collection: &'s Collection) -> &'s IndexSql {
        self.index.as_ref().map_or(&collection.sql.id, |index| &index.sql)
    }

    /// Returns the index's fields.
    pub fn fields<'s>(&'s self, collection: &'s Collection) -> &'s [IndexField] {
        self.index.as_ref().map_or(std::slice::from_ref(&collection.id_field), |index| &index.fields)
    }
}

impl SqlitePlan {
    /// Returns the collection if the plan gives all of it: then its counters have the number of
    /// documents.
    pub fn whole_collection(&self) -> Option<&Collection> {
        let whole = self.facts.exact && matches!(self.access, Access::Natural { .. });
        self.collection.as_deref().filter(|collection| whole && !collection.is_dropped())
    }

    /// Returns the scan if it has one key for each document of the plan, so that counting keys
    /// counts documents.
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

    /// Returns the indexes of the plan that have deferred entries: their collection and ids.
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

    /// Returns whether the plan reads few documents, however large the collection: those of some
    /// `_id`s, or, if `one` is enough and no sort is needed, the first of an index's keys.
    pub fn reads_few(&self, one: bool) -> bool {
        match &self.access {
            Access::Points(_) => true,
            Access::Index(scan) => one && self.facts.exact && self.facts.sorted && scan.filter.is_none(),
            Access::Natural { .. } => one && self.facts.exact && self.facts.sorted,
            Access::Union(_) | Access::Near(_) => false,
        }
    }
}
