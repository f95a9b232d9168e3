//! A plan: which rows are read, in which order, by which statement. [`crate::plan::planner`] makes them.

pub(crate) mod candidate;
pub(crate) mod covered;
pub(crate) mod element_bounds;
pub(crate) mod index_bounds;
pub(crate) mod index_choice;
pub(crate) mod index_choice_cache;
mod merged;
pub(crate) mod natural_order;
mod ordered_merge;
pub(crate) mod plan_cache;
pub(crate) mod planner;
pub(crate) mod pushdown;
pub(crate) mod sibling_index_filter;
pub(crate) mod side_index_scan;

pub(crate) use merged::{Branch, Merged, column as merged_column};

use crate::catalog::table::{RowKey, Table};
use crate::plan::candidate::probe_value;
use crate::plan::covered::Covered;
use crate::plan::index_choice_cache::Chosen;
use crate::plan::pushdown::Condition;
use crate::plan::side_index_scan::Keyed;
use crate::read::explain;
use crate::read::prefetch::Ahead;
use crate::read::rings::Rings;
use document::DocBuf;
use mariadb_client::Connection;
use mariadb_client::quote;
use mariadb_wire::Param;
use query::{Predicate, Sort};
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use store::{
    Examined, ExaminedCounter, ExplainContext, IndexSpec, Namespace, Plan, PlanFacts, PlanSummary, VisitIndex,
};

#[derive(Debug)]
pub(crate) struct MariaDbPlan {
    pub namespace: Namespace,
    /// `None`: there is no such collection.
    pub table: Option<Arc<Table>>,
    pub access: Access,
    pub facts: PlanFacts,
    /// A scan stops behind the last row, to go on from there.
    pub tailable: bool,
    /// MariaDB is asked what its statements have read.
    pub counts_closely: AtomicBool,
    pub reads_afresh: AtomicBool,
    /// What is known of its rows already.
    pub ahead: Ahead,
    /// See [`Plan::natural_order`].
    pub natural_order: Option<Sort>,
    /// What is looked for, where rows that are kept will do.
    pub reads: Option<Box<Predicate>>,
    /// What its index was chosen by.
    pub chosen: Option<Chosen>,
    /// What has been written of it, shared with the plans of the same query that come after it.
    pub written: Option<Arc<Written>>,
}

/// Texts of a plan that reads rows in one place, each made when it is asked for first.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The statement of the first page, without joined documents and with them; and the one that asks something besides.
    first: [OnceLock<Arc<str>>; 2],
    asking: [OnceLock<Arc<str>>; 2],
    summary: OnceLock<PlanSummary>,
}

/// What it has looked at tells whether the choice was right.
impl Drop for MariaDbPlan {
    fn drop(&mut self) {
        if let Some(chosen) = &self.chosen {
            chosen.note(Plan::examined(self).documents);
        }
    }
}

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

/// A page of fewer bytes, as far as is known, is read without joining: preparing the statement would take longer than it saves.
const JOINED_BYTES_MIN: u64 = 16 << 10;

/// What looking at a row costs beside its document, as bytes of one.
const ROW_BYTES: u64 = 256;

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

#[derive(Clone, Debug)]
pub(crate) struct KeyColumn {
    /// As it stands in statements: see [`KeyColumn::named`].
    pub name: Arc<str>,
    pub descends: bool,
}

impl KeyColumn {
    pub fn named(column: &str, descends: bool) -> KeyColumn {
        KeyColumn { name: format!("k.{}", quote(column)).into(), descends }
    }
}

impl IndexScan {
    /// The table, read by way of the index.
    pub fn source(&self, table: &Table) -> String {
        source(table, &self.key)
    }
}

/// The table, read by way of an index of that name in MariaDB: `k`, as key columns have it.
pub(crate) fn source(table: &Table, key: &str) -> String {
    format!("{} AS k FORCE INDEX ({})", table.quoted, quote(key))
}

#[derive(Clone, Debug)]
pub(crate) struct Counting {
    /// Rows of documents that all match; `None`: of none.
    pub matching: Option<Condition>,
    /// Rows of documents that may match, none of the others among them.
    pub odd: Condition,
    pub predicate: Predicate,
}

impl MariaDbPlan {
    pub fn new(namespace: &Namespace, table: Option<Arc<Table>>, access: Access, facts: PlanFacts) -> MariaDbPlan {
        MariaDbPlan {
            namespace: namespace.clone(),
            table,
            access,
            facts,
            tailable: false,
            counts_closely: AtomicBool::default(),
            reads_afresh: AtomicBool::default(),
            ahead: Ahead::default(),
            natural_order: None,
            reads: None,
            chosen: None,
            written: None,
        }
    }

    pub fn of_nothing(namespace: &Namespace, table: Option<Arc<Table>>) -> MariaDbPlan {
        let facts = PlanFacts { exact: true, sorted: true, view: false };
        MariaDbPlan::new(namespace, table, Access::Nothing, facts)
    }

    /// The plan for a name that is a view's: it gives nothing but that.
    pub fn view(namespace: &Namespace) -> MariaDbPlan {
        let facts = PlanFacts { exact: false, sorted: false, view: true };
        MariaDbPlan::new(namespace, None, Access::Nothing, facts)
    }

    /// The plan that follows a capped collection.
    pub fn tail(namespace: &Namespace, table: Arc<Table>) -> MariaDbPlan {
        let facts = PlanFacts { exact: false, sorted: true, view: false };
        let access = Access::Rows(Rows::all(true));
        let mut plan = MariaDbPlan::new(namespace, Some(table), access, facts);
        plan.tailable = true;
        plan
    }

    /// All rows that are read.
    pub fn all_rows(&self) -> impl Iterator<Item = &Rows> {
        let (one, several) = match &self.access {
            Access::Nothing => (None, [].as_slice()),
            Access::Rows(rows) => (Some(rows), [].as_slice()),
            Access::Union(branches) => (None, branches.as_slice()),
        };
        one.into_iter().chain(several.iter().map(|(_, rows)| rows))
    }

    /// Whether it may turn out to look at more rows than another one would.
    pub fn hopes(&self) -> bool {
        self.all_rows().any(|rows| rows.index.as_ref().is_some_and(|index| index.hope.is_some()))
    }

    /// The one id asked for, where nothing else narrows the rows.
    pub fn single_id(&self) -> Option<&[u8]> {
        match &self.access {
            Access::Rows(Rows { ids: Some(ids), condition: None, .. }) => match ids.as_slice() {
                [id] => Some(id),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the rows come by row key, so that changing one does not move it.
    pub fn is_by_row_key(&self) -> bool {
        match &self.access {
            Access::Nothing => true,
            Access::Rows(rows) => rows.index.is_none(),
            Access::Union(_) => false,
        }
    }
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

    /// The statement that reads a page of at most so many rows of `table`: row key, document and the index's keys. Parameters: see
    /// [`Rows::params`].
    ///
    /// In an index that is read backwards MariaDB (10.11) fetches each row before it looks at its keys (no index condition pushdown). In
    /// large pages of it documents are joined to the keys that are left, where some may be dropped. Where other indexes' keys are looked at as
    /// well they are joined to the rows that are left, too. Where keys are read in the place of documents, only those are joined that are needed.
    pub fn statement(&self, table: &Table, after: bool, limit: u64) -> Arc<str> {
        self.statement_with(table, after, limit, None)
    }

    /// As [`Rows::statement`]; each row ends with what the query `probe` says.
    fn statement_with(&self, table: &Table, after: bool, limit: u64, probe: Option<&str>) -> Arc<str> {
        let key = table.row_key.column();
        if let Some(found) = &self.found {
            return self.found_elsewhere(table, found, after);
        }
        // Whoever asks something besides does so of the first page.
        let hope = self.index.as_ref().and_then(|index| index.hope).filter(|_| probe.is_some());
        let hope = hope.map(|rows| format!(" ROWS EXAMINED {rows}")).unwrap_or_default();
        let probe = probe.map(|probe| format!(", {}", probe_value(probe))).unwrap_or_default();
        if let Some(merged) = self.merged() {
            return self.merged_statement(table, &merged.branches, after, &probe);
        }
        let mut conditions = Vec::new();
        if let Some(ids) = &self.ids {
            conditions.push(format!("id IN (?{})", ",?".repeat(padded(ids.len()) - 1)));
        }
        conditions.extend(self.conditions().map(|condition| condition.sql.clone()));
        let (mut columns, mut order, mut from, mut key) =
            (String::new(), String::new(), table.quoted.clone(), key.to_owned());
        let mut doc = "doc";
        if let Some(index) = &self.index {
            // Left alone, the server would rather read the rows in order, in the hope of meeting enough of them soon.
            from = index.source(table);
            if let Some(covered) = &self.covered {
                let untold = covered.untold(&index.columns);
                let on = format!("documents.{key} = k.{key} AND ({untold})");
                from.push_str(&format!(" LEFT JOIN {} AS documents ON {on}", table.quoted));
                doc = "documents.doc";
            } else if self.joins(table, limit) {
                from.push_str(&format!(" STRAIGHT_JOIN {} AS documents ON documents.{key} = k.{key}", table.quoted));
                doc = "documents.doc";
            }
            key.insert_str(0, "k.");
            for column in &index.columns {
                let descends = column.descends == self.forward;
                columns.push_str(&format!(", {}", column.name));
                order.push_str(&format!("{}{}, ", column.name, if descends { " DESC" } else { "" }));
            }
        }
        if after {
            let columns = self.index.as_ref().map_or(&[][..], |index| &index.columns);
            conditions.push(behind(columns, &key, self.forward));
        }
        let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        let direction = if self.forward { "" } else { " DESC" };
        let ordered = format!("{from}{filter} ORDER BY {order}{key}{direction}");
        format!("SELECT {key}, {doc}{columns}{probe} FROM {ordered} LIMIT ?{hope}").into()
    }

    fn found_elsewhere(&self, table: &Table, found: &Found, after: bool) -> Arc<str> {
        let (key, found_key) = (table.row_key.column(), found.key);
        let condition = self.condition.as_ref().map_or("TRUE", |condition| &condition.sql);
        let from = format!("FROM {} WHERE {condition}", found.table);
        let keys = match &found.group {
            Some(column) => {
                let after = if after { " HAVING found_key > ?" } else { "" };
                format!("SELECT MIN({found_key}) AS found_key {from} GROUP BY {column}{after}")
            }
            None => {
                let pending = found.keyed.as_ref().map(|keyed| {
                    let after = if after { format!(" WHERE {key} > ?") } else { String::new() };
                    format!(" UNION SELECT {key} FROM {}{after}", keyed.pending)
                });
                let after = if after { format!(" AND {found_key} > ?") } else { String::new() };
                format!("SELECT DISTINCT {found_key} AS found_key {from}{after}{}", pending.unwrap_or_default())
            }
        };
        let holds = found.holds.as_ref().map(|holds| format!(" AND ({holds})")).unwrap_or_default();
        format!(
            "SELECT found_key, doc FROM ({keys} ORDER BY found_key LIMIT ?) AS found \
             LEFT JOIN {} AS documents ON documents.{key} = found.found_key{holds} ORDER BY found_key",
            table.quoted
        )
        .into()
    }

    /// Whether a page of so many rows is of documents joined to keys.
    pub fn joins(&self, table: &Table, limit: u64) -> bool {
        let of_index =
            |index: &IndexScan| index.merged.is_some() || index.filter.is_some() || self.joins_to_index(table, limit);
        self.covered.is_none() && self.index.as_deref().is_some_and(of_index)
    }

    /// Whether these keys are read in the index alone; then the statement is to be prepared anew.
    fn joins_to_index(&self, table: &Table, limit: u64) -> bool {
        let is_large = || limit.saturating_mul(table.document_bytes.get() + ROW_BYTES) >= JOINED_BYTES_MIN;
        // A condition on one column is nothing but ranges of the index.
        let drops = |index: &IndexScan| index.columns.len() > 1 && self.condition.is_some();
        self.index.as_ref().filter(|_| self.covered.is_none()).is_some_and(|index| match &index.merged {
            Some(merged) => merged.sorted.is_none(),
            None => !self.forward && drops(index) && index.filter.is_none() && index.covers && is_large(),
        })
    }

    fn merged(&self) -> Option<&Merged> {
        self.index.as_ref()?.merged.as_ref()
    }

    /// Queues the statement for a page. `written`: where the first one's text is kept.
    pub fn queue(
        &self,
        connection: &mut Connection,
        table: &Table,
        written: Option<&Written>,
        after: Option<&RowPosition>,
        limit: u64,
    ) {
        let make = || self.statement(table, after.is_some(), limit);
        let statement = match written.filter(|_| after.is_none()) {
            Some(written) => written.first[usize::from(self.joins(table, limit))].get_or_init(make).clone(),
            None => make(),
        };
        self.queue_as(connection, table, &statement, after, limit);
    }

    /// Queues the statement for the first page, whose rows end with what the query `probe` says.
    pub fn queue_asking(
        &self,
        connection: &mut Connection,
        table: &Table,
        written: Option<&Written>,
        probe: &str,
        limit: u64,
    ) {
        let make = || self.statement_with(table, false, limit, Some(probe));
        let statement = match written {
            Some(written) => written.asking[usize::from(self.joins(table, limit))].get_or_init(make).clone(),
            None => make(),
        };
        self.queue_as(connection, table, &statement, None, limit);
    }

    fn queue_as(
        &self,
        connection: &mut Connection,
        table: &Table,
        statement: &Arc<str>,
        after: Option<&RowPosition>,
        limit: u64,
    ) {
        let params = self.params(table, after, limit);
        // Run a second time, MariaDB 10.11 no longer skips from one value to the next (documents for the 13 values of a million: 3 s).
        match self.gives_different() || self.joins_to_index(table, limit) {
            true => connection.queue_execute_anew(statement, &params),
            false => connection.queue_execute(statement, &params),
        }
    }

    /// The parameters of [`Rows::statement`]: ids, the condition's, the position to go on behind, how many rows.
    pub fn params<'p>(&'p self, table: &Table, after: Option<&'p RowPosition>, limit: u64) -> Vec<Param<'p>> {
        if let Some(merged) = self.merged() {
            return merged::params(table, &merged.branches, after, limit);
        }
        let mut params = Vec::new();
        if let Some(ids) = &self.ids {
            // Lists are made of a few lengths, so that few statements need preparing.
            let last = ids.last().map(Vec::as_slice).unwrap_or_default();
            params.extend(ids.iter().map(|id| Param::Text(id)));
            params.resize(padded(ids.len()), Param::Text(last));
        }
        params.extend(self.conditions().flat_map(Condition::params));
        if let Some(after) = after {
            params.extend(after.keys.iter().flat_map(|key| [Param::Bytes(key), Param::Bytes(key)]));
            let times = if self.keyed().is_some() { 2 } else { 1 };
            params.extend(std::iter::repeat_n(key_param(table.row_key, &after.row), times));
        }
        params.push(Param::Unsigned(limit));
        params
    }
}

/// The condition for rows behind a position: behind it in the first column, or level with it there and behind it in the rest. Written so, the
/// server makes ranges of the index of it, down to the row's key, and begins where the last page ended.
fn behind(columns: &[KeyColumn], key: &str, forward: bool) -> String {
    let compare = |descends: bool| if descends == forward { "<" } else { ">" };
    let mut condition = format!("{key} {} ?", if forward { ">" } else { "<" });
    for column in columns.iter().rev() {
        let (name, compare) = (&column.name, compare(column.descends));
        condition = format!("({name} {compare} ? OR {name} = ? AND {condition})");
    }
    condition
}

/// Where a scan of rows has come to: a row's key, and the index's keys of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RowPosition {
    pub row: Vec<u8>,
    pub keys: Vec<Vec<u8>>,
}

impl RowPosition {
    /// Appends it as bytes: each key behind its length, the row's key last.
    pub fn write(&self, out: &mut Vec<u8>) {
        for key in &self.keys {
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
        }
        out.extend_from_slice(&self.row);
    }

    /// Reads what [`RowPosition::write`] has written, for an index of so many columns.
    pub fn read(mut bytes: &[u8], columns: usize) -> Option<RowPosition> {
        let mut keys = Vec::with_capacity(columns);
        for _ in 0..columns {
            let (length, rest) = bytes.split_first_chunk()?;
            let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            keys.push(key.to_vec());
            bytes = rest;
        }
        Some(RowPosition { row: bytes.to_vec(), keys })
    }
}

/// Lists of parameters are made of a few lengths.
pub(crate) fn padded(length: usize) -> usize {
    length.max(1).next_power_of_two()
}

/// A condition that holds for these rows. Lists are made of a few lengths, so that few statements need preparing.
pub(crate) fn among(rows: &[u64]) -> (String, Vec<Param<'static>>) {
    let length = padded(rows.len());
    let last = rows.last().copied().unwrap_or_default();
    let params = rows.iter().copied().chain(std::iter::repeat(last)).take(length).map(Param::Unsigned);
    (format!("IN (?{})", ",?".repeat(length - 1)), params.collect())
}

/// A row key's bytes, as positions keep them, as a parameter.
pub(crate) fn key_param(row_key: RowKey, key: &[u8]) -> Param<'_> {
    match row_key {
        RowKey::Sequence => Param::Unsigned(key.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))),
        RowKey::Id => Param::Text(key),
    }
}

impl Plan for MariaDbPlan {
    fn facts(&self) -> &PlanFacts {
        &self.facts
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn natural_order(&self) -> Option<Sort> {
        self.natural_order.clone()
    }

    fn visit_indexes(&self, visit: &mut VisitIndex<'_>) {
        for index in self.table.iter().flat_map(|table| &table.indexes) {
            let met = index.values.as_ref().map_or(0, |values| values.fields);
            let has_arrays = |path: &str| {
                index.fields().enumerate().any(|(position, field)| field == path && met & 1 << position != 0)
            };
            visit(&index.spec, &has_arrays);
        }
    }

    fn is_by_distance(&self) -> bool {
        matches!(&self.access, Access::Rows(rows) if rows.rings().is_some())
    }

    fn stages(&self, about: &ExplainContext<'_>) -> DocBuf {
        explain::stages(self, about)
    }

    fn summary(&self) -> PlanSummary {
        match &self.written {
            Some(written) => written.summary.get_or_init(|| explain::summary(self)).clone(),
            None => explain::summary(self),
        }
    }

    fn examined(&self) -> Examined {
        self.all_rows().fold(Examined::default(), |sum, rows| sum + rows.tally.get())
    }

    fn enable_exact_counts(&self) {
        self.counts_closely.store(true, Ordering::Relaxed);
        self.bypass_caches();
    }

    fn bypass_caches(&self) {
        self.reads_afresh.store(true, Ordering::Relaxed);
    }
}
