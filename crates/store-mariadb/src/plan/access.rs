//! Which rows a plan reads: the access path, as data.

use crate::index::key_column::KeyColumn;
use crate::index::side_index::side_table::SideTable;
use crate::plan::covered_fields::Covered;
use crate::plan::pushdown::Condition;
use document::{Doc, DocBuf};
use fulltext::TextSearch;
use geo::Near;
use index_keys::geo_bounds::GeoPrefix;
use index_keys::{FieldBounds, IndexShape, keys};
use mariadb_client::quote;
use query::Predicate;
use std::sync::Arc;
use store::{ExaminedCounter, IndexSpec, PlanFacts};

/// An access path, what is known of the documents it gives, and the query that must give no row
/// for its order to hold.
pub(crate) type Choice = (Access, PlanFacts, Option<Arc<str>>);

/// Which rows are read, and in which order.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// No row at all.
    Nothing,
    Rows(Rows),
    /// One after the other. Where they have a filter (the branches of an `$or`), a document comes with the first whose filter it matches.
    /// Rows without one belong to the branch before them, with which they have none in common.
    Union(Vec<(Option<Predicate>, Rows)>),
}

/// Rows that one statement reads. What it takes to say which is shared with the plans of the same query that come later.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// Only rows with one of these ids.
    pub ids: Option<Vec<Vec<u8>>>,
    /// Only rows whose keys are found elsewhere, where the condition holds.
    pub found: Option<Arc<Found>>,
    /// By way of this index, in its order; else by row key.
    pub index: Option<Arc<IndexScan>>,
    /// Only rows for which this holds: all documents that match, and perhaps others.
    pub condition: Option<Arc<Condition>>,
    /// Keys of the index are read in the place of documents.
    pub covered: Option<Arc<Covered>>,
    pub forward: bool,
    pub tally: ExaminedCounter,
}

/// Where the keys of rows are found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The table, quoted: that with the values of arrays (see [`crate::index::element_table`]), or the collection's own by way of an index.
    pub table: String,
    /// The column there with the keys of rows.
    pub key: &'static str,
    /// One row for each value of this column will do.
    pub group: Option<String>,
    /// What holds for the row of such a key, in the collection's table as `documents`. Keys that TRUNCATE has left behind may be others' now.
    pub holds: Option<String>,
    /// The index that this stands for.
    pub spec: Option<Arc<IndexSpec>>,
    /// What there is besides where gateways compute the keys.
    pub keyed: Option<Box<Keyed>>,
}

/// An index that is read.
#[derive(Clone, Debug)]
pub(crate) struct IndexScan {
    /// MariaDB's name for it.
    pub key: String,
    /// As MongoDB knows it.
    pub spec: Arc<IndexSpec>,
    /// Fields whose arrays are looked up as well, as bits.
    pub arrays: u64,
    pub columns: Vec<KeyColumn>,
    /// The condition is about the index's columns alone, so that the index tells of each row whether it holds.
    pub covers: bool,
    /// Only rows for which this holds as well, about the keys of other indexes.
    pub filter: Option<Condition>,
    /// The first page is to look at no more rows than this, and another way to be taken where they are not enough for it.
    pub hope: Option<u64>,
    /// The places that are put together in the order of `columns`; else the index is read from end to end.
    pub merged: Option<Merged>,
    /// How the rows divide into those to count and those to look at, where the plan's conditions are all there is to the filter.
    pub counting: Option<Box<Counting>>,
}

impl IndexScan {
    /// The table, read by way of the index.
    pub fn source(&self, quoted: &str) -> String {
        source(quoted, &self.key)
    }
}

/// The table, read by way of an index of that name in MariaDB: `k`, as key columns have it.
pub(crate) fn source(quoted: &str, key: &str) -> String {
    format!("{quoted} AS k FORCE INDEX ({})", quote(key))
}

#[derive(Clone, Debug)]
pub(crate) struct Counting {
    /// Rows of documents that all match; `None`: of none.
    pub matching: Option<Condition>,
    /// Rows of documents that may match, none of the others among them.
    pub odd: Condition,
    pub predicate: Predicate,
}

/// Places that are put together.
#[derive(Clone, Debug)]
pub(crate) struct Merged {
    pub branches: Vec<Branch>,
    /// The order, as a pattern, where the server sorts the rows of each branch by their keys; else their indexes give it.
    pub sorted: Option<DocBuf>,
}

/// One of the places.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub spec: Arc<IndexSpec>,
    /// The table by way of the index, or of another table, as `k`.
    pub source: String,
    /// A row may come several times.
    pub repeats: bool,
    /// The columns that give the order: as many as the rows' [`super::IndexScan::columns`], of the same directions.
    pub columns: Vec<KeyColumn>,
    pub forward: bool,
    pub condition: Option<Condition>,
}

/// The names under which the columns of all branches go.
pub(crate) fn merged_column(position: usize, descends: bool) -> KeyColumn {
    KeyColumn::named(&format!("s{position}"), descends)
}

/// What is known of rows that are found by such an index.
#[derive(Clone, Debug)]
pub(crate) struct Keyed {
    pub keys: SideTable,
    /// The table of rows that are pending, quoted.
    pub pending: String,
    /// What the keys were made from, per field, for `explain`.
    pub bounds: Vec<(String, FieldBounds)>,
    pub search: Option<Arc<TextSearch>>,
    /// Documents are read in the order of their distance.
    pub rings: Option<Rings>,
    /// A hint names the index: what it has no keys of is not given, though pending rows are read.
    pub only: Option<Arc<IndexShape>>,
}

impl Keyed {
    /// Whether a document that was read is one that the index has, if that is asked for.
    pub fn gives(&self, document: Doc<'_>) -> bool {
        // What could not be indexed may have come by SQL, and is read by every lookup.
        self.only.as_ref().is_none_or(|shape| keys::index_keys(document, shape).map_or(true, |keys| !keys.is_empty()))
    }
}

/// By which index, and around which point.
#[derive(Clone, Debug)]
pub(crate) struct Rings {
    pub near: Arc<Near>,
    pub shape: Arc<IndexShape>,
    /// What the index has in front of the places.
    pub front: GeoPrefix,
}

impl Rows {
    /// Whether one row for each value of a column will do.
    pub fn gives_different(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.group.is_some())
    }

    /// What there is of an index whose keys gateways compute.
    pub fn keyed(&self) -> Option<&Keyed> {
        self.found.as_ref()?.keyed.as_deref()
    }

    /// The rings in which they are read by their distance.
    pub fn rings(&self) -> Option<&Rings> {
        self.keyed()?.rings.as_ref()
    }

    /// The whole table by row key.
    pub fn all(forward: bool) -> Rows {
        let tally = ExaminedCounter::default();
        Rows { ids: None, found: None, index: None, condition: None, covered: None, forward, tally }
    }

    /// The rows whose keys are found elsewhere.
    pub fn found_in(found: Found, condition: Condition) -> Rows {
        Rows { found: Some(found.into()), condition: Some(condition.into()), ..Rows::all(true) }
    }

    /// What the server checks of a row, before its document is fetched.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        let index = self.index.as_ref();
        let merged = index.and_then(|index| index.merged.as_ref()).and_then(|merged| merged.branches.first());
        let branch = merged.and_then(|branch| branch.condition.as_ref());
        self.condition.as_deref().into_iter().chain(index.and_then(|index| index.filter.as_ref())).chain(branch)
    }

    /// What all rows are, without exception.
    pub fn is_everything(&self) -> bool {
        self.ids.is_none() && self.index.is_none() && self.condition.is_none()
    }
}
