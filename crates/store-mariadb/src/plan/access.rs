//! Access paths: which rows a plan reads and in which order, as data.

use crate::index::key_column::KeyColumn;
use crate::index::side_index::side_table::SideTable;
use crate::plan::covered_fields::CoveredFields;
use crate::plan::pushdown::Condition;
use access::FieldBounds;
use access::geo_bounds::GeoPrefix;
use document::{Doc, DocBuf};
use fulltext::TextSearch;
use geo::Near;
use index_keys::{IndexShape, keys};
use mariadb_client::quote;
use query::Predicate;
use std::sync::Arc;
use store::{ExaminedCounter, IndexSpec, PlanFacts};

/// An access path, the facts about the documents it returns, and the order probe: a query that must
/// return no row for the path's order to hold.
pub(crate) type AccessChoice = (Access, PlanFacts, Option<Arc<str>>);

/// An access path.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// No rows.
    Nothing,
    Rows(RowSource),
    /// Several sources, one by one. If they have filters (the branches of an `$or`), a document
    /// comes with the first branch whose filter it matches. A source without a filter belongs to
    /// the branch before, and is disjoint from its rows.
    Union(Vec<(Option<Predicate>, RowSource)>),
}

/// The rows that one statement reads. Its parts are shared with later plans of the same query.
#[derive(Clone, Debug)]
pub(crate) struct RowSource {
    /// Only rows with one of these id texts.
    pub ids: Option<Vec<Vec<u8>>>,
    /// Only rows whose row keys are looked up elsewhere, where the condition holds.
    pub lookup: Option<Arc<RowKeyLookup>>,
    /// Read through this index, in its order; otherwise in the order of row keys.
    pub index: Option<Arc<IndexScan>>,
    /// Only rows for which this holds: a superset of the matching documents.
    pub condition: Option<Arc<Condition>>,
    /// Fields are read from the index's keys instead of documents.
    pub covered: Option<Arc<CoveredFields>>,
    pub forward: bool,
    pub tally: ExaminedCounter,
}

/// A lookup of row keys in another table.
#[derive(Clone, Debug)]
pub(crate) struct RowKeyLookup {
    /// The quoted table: an element table (see [`crate::index::element_table`]), a side table, or
    /// the collection's own table through an index.
    pub table: String,
    /// The column with the row keys.
    pub key: &'static str,
    /// One row per value of this column is enough.
    pub group_by: Option<String>,
    /// A condition that the row must meet, in the collection's table as `documents`. A row key that
    /// TRUNCATE has left behind may belong to another document now.
    pub row_condition: Option<String>,
    /// The index to which the lookup belongs.
    pub spec: Option<Arc<IndexSpec>>,
    /// The scan of a side table, if it is one.
    pub side: Option<Box<SideIndexScan>>,
}

/// A scan of an index on columns.
#[derive(Clone, Debug)]
pub(crate) struct IndexScan {
    /// The index's name in MariaDB.
    pub sql_name: String,
    /// The index's specification.
    pub spec: Arc<IndexSpec>,
    /// The fields that have arrays, as bits.
    pub array_fields: u64,
    pub columns: Vec<KeyColumn>,
    /// The condition needs only the index's columns.
    pub covers_condition: bool,
    /// A further condition on the keys of other indexes.
    pub sibling_filter: Option<Condition>,
    /// The plan is speculative: its first page may examine at most this many rows; if they are not
    /// enough, the query is planned again.
    pub speculative_rows: Option<u64>,
    /// Several ranges, merged in the order of `columns`; otherwise the index is read from end to
    /// end.
    pub merged: Option<OrderedMerge>,
    /// How rows are counted, if the plan's conditions are the whole filter.
    pub counting: Option<Box<Counting>>,
}

impl IndexScan {
    /// Returns the table, read through the index.
    pub fn source(&self, quoted: &str) -> String {
        indexed_table(quoted, &self.sql_name)
    }
}

/// Returns the quoted table as `k`, read through the index of this name in MariaDB.
pub(crate) fn indexed_table(quoted: &str, key: &str) -> String {
    format!("{quoted} AS k FORCE INDEX ({})", quote(key))
}

/// How the rows of an index scan are counted.
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    /// Rows whose documents certainly match; `None`: all rows.
    pub matching: Option<Condition>,
    /// Rows that need re-checking; disjoint from `matching`.
    pub unordered: Condition,
    pub predicate: Predicate,
}

/// Ranges of keys that are merged in order.
#[derive(Clone, Debug)]
pub(crate) struct OrderedMerge {
    pub branches: Vec<MergeBranch>,
    /// The sort pattern, if the server sorts the rows of each branch by their keys; otherwise their
    /// indexes give the order.
    pub sorted: Option<DocBuf>,
}

/// One of the merged ranges.
#[derive(Clone, Debug)]
pub(crate) struct MergeBranch {
    pub spec: Arc<IndexSpec>,
    /// The table as `k`, read through the index or joined to an element table.
    pub source: String,
    /// A row may occur several times.
    pub has_duplicates: bool,
    /// The columns that give the order: as many as [`IndexScan::columns`], with the same
    /// directions.
    pub columns: Vec<KeyColumn>,
    pub forward: bool,
    pub condition: Option<Condition>,
}

/// Returns the common name of a column of all branches.
pub(crate) fn merged_column(position: usize, descends: bool) -> KeyColumn {
    KeyColumn::named(&format!("s{position}"), descends)
}

/// A scan of a side table.
#[derive(Clone, Debug)]
pub(crate) struct SideIndexScan {
    pub table: SideTable,
    /// The quoted table of pending rows.
    pub pending: String,
    /// The bounds of each field, for `explain`.
    pub bounds: Vec<(String, FieldBounds)>,
    pub search: Option<Arc<TextSearch>>,
    /// Documents are read by distance.
    pub rings: Option<DistanceSearch>,
    /// A hint names the index: documents without keys in it are not returned, though pending rows
    /// are read.
    pub only: Option<Arc<IndexShape>>,
}

impl SideIndexScan {
    /// Returns whether a document that was read may be returned: with a hint, only if the index has
    /// it.
    pub fn includes(&self, document: Doc<'_>) -> bool {
        // A document that cannot be indexed, written by SQL, is returned by every lookup.
        self.only.as_ref().is_none_or(|shape| keys::index_keys(document, shape).map_or(true, |keys| !keys.is_empty()))
    }
}

/// A search by distance around a point.
#[derive(Clone, Debug)]
pub(crate) struct DistanceSearch {
    pub near: Arc<Near>,
    pub shape: Arc<IndexShape>,
    /// The index's fields before the location.
    pub prefix: GeoPrefix,
}

impl RowSource {
    /// Returns whether it reads one row per value of a column.
    pub fn is_distinct(&self) -> bool {
        self.lookup.as_ref().is_some_and(|lookup| lookup.group_by.is_some())
    }

    /// Returns the scan of a side table, if it is one.
    pub fn side(&self) -> Option<&SideIndexScan> {
        self.lookup.as_ref()?.side.as_deref()
    }

    /// Returns the search by distance, if it is one.
    pub fn rings(&self) -> Option<&DistanceSearch> {
        self.side()?.rings.as_ref()
    }

    /// Returns the whole table in the order of row keys.
    pub fn all(forward: bool) -> RowSource {
        let tally = ExaminedCounter::default();
        RowSource { ids: None, lookup: None, index: None, condition: None, covered: None, forward, tally }
    }

    /// Returns the rows whose row keys are looked up elsewhere.
    pub fn looked_up(lookup: RowKeyLookup, condition: Condition) -> RowSource {
        RowSource { lookup: Some(lookup.into()), condition: Some(condition.into()), ..RowSource::all(true) }
    }

    /// Returns the conditions that the server checks before it fetches a document.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        let index = self.index.as_ref();
        let merged = index.and_then(|index| index.merged.as_ref()).and_then(|merged| merged.branches.first());
        let branch = merged.and_then(|branch| branch.condition.as_ref());
        self.condition.as_deref().into_iter().chain(index.and_then(|index| index.sibling_filter.as_ref())).chain(branch)
    }

    /// Returns whether it reads all rows of the table.
    pub fn is_everything(&self) -> bool {
        self.ids.is_none() && self.index.is_none() && self.condition.is_none()
    }
}
