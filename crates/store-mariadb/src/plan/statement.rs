//! The statements that read a plan's rows.

use crate::catalog::table::Table;
use crate::plan::access::{IndexScan, OrderedMerge, RowKeyLookup, RowSource};
use crate::plan::candidate::probe_value;
use crate::plan::merged;
use crate::plan::parameters::padded;
use crate::plan::plan_texts::PlanTexts;
use crate::plan::pushdown::Condition;
use crate::plan::row_position::{RowPosition, after_position, key_param};
use mariadb_client::Connection;
use mariadb_wire::Param;
use std::sync::Arc;

/// Pages that are estimated smaller are read without joining: preparing the statement would take
/// longer than it saves.
const JOINED_BYTES_MIN: u64 = 16 << 10;

/// The cost of a row besides its document, as bytes of a document.
const ROW_BYTES: u64 = 256;

impl RowSource {
    /// Returns the statement that reads a page of at most `limit` rows of `table`: row key,
    /// document and the index's keys. For its parameters see [`RowSource::params`].
    ///
    /// MariaDB (10.11) has no index condition pushdown in descending scans: it fetches each row
    /// before it checks its keys. So in large pages of such a scan the documents are joined to the
    /// keys that remain. The same holds if keys of sibling indexes are checked. If fields are read
    /// from keys, only documents with undecodable keys are joined.
    pub fn statement(&self, table: &Table, after: bool, limit: u64) -> Arc<str> {
        self.statement_with(table, after, limit, None)
    }

    /// As [`RowSource::statement`]; each row ends with the result of the query `probe`.
    fn statement_with(&self, table: &Table, after: bool, limit: u64, probe: Option<&str>) -> Arc<str> {
        let key = table.row_key.column();
        if let Some(found) = &self.lookup {
            return self.lookup_statement(table, found, after);
        }
        // Only the first page has a probe.
        let speculation = self.index.as_ref().and_then(|index| index.speculative_rows).filter(|_| probe.is_some());
        let speculation = speculation.map(|rows| format!(" ROWS EXAMINED {rows}")).unwrap_or_default();
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
            // Without a hint the server prefers to read the rows in order, speculating on an early
            // end.
            from = index.source(&table.quoted);
            if let Some(covered) = &self.covered {
                let undecodable = covered.undecodable(&index.columns);
                let on = format!("documents.{key} = k.{key} AND ({undecodable})");
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
            conditions.push(after_position(columns, &key, self.forward));
        }
        let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        let direction = if self.forward { "" } else { " DESC" };
        let ordered = format!("{from}{filter} ORDER BY {order}{key}{direction}");
        format!("SELECT {key}, {doc}{columns}{probe} FROM {ordered} LIMIT ?{speculation}").into()
    }

    fn lookup_statement(&self, table: &Table, found: &RowKeyLookup, after: bool) -> Arc<str> {
        let (key, found_key) = (table.row_key.column(), found.key);
        let condition = self.condition.as_ref().map_or("TRUE", |condition| &condition.sql);
        let from = format!("FROM {} WHERE {condition}", found.table);
        let keys = match &found.group_by {
            Some(column) => {
                let after = if after { " HAVING found_key > ?" } else { "" };
                format!("SELECT MIN({found_key}) AS found_key {from} GROUP BY {column}{after}")
            }
            None => {
                let pending = found.side.as_ref().map(|side| {
                    let after = if after { format!(" WHERE {key} > ?") } else { String::new() };
                    format!(" UNION SELECT {key} FROM {}{after}", side.pending)
                });
                let after = if after { format!(" AND {found_key} > ?") } else { String::new() };
                format!("SELECT DISTINCT {found_key} AS found_key {from}{after}{}", pending.unwrap_or_default())
            }
        };
        let holds = found.row_condition.as_ref().map(|holds| format!(" AND ({holds})")).unwrap_or_default();
        format!(
            "SELECT found_key, doc FROM ({keys} ORDER BY found_key LIMIT ?) AS found \
             LEFT JOIN {} AS documents ON documents.{key} = found.found_key{holds} ORDER BY found_key",
            table.quoted
        )
        .into()
    }

    /// Returns whether a page of `limit` rows joins documents to keys.
    pub fn joins(&self, table: &Table, limit: u64) -> bool {
        let of_index = |index: &IndexScan| {
            index.merged.is_some() || index.sibling_filter.is_some() || self.joins_to_index(table, limit)
        };
        self.covered.is_none() && self.index.as_deref().is_some_and(of_index)
    }

    /// Returns whether keys are read in the index alone. Then the statement must be prepared again.
    fn joins_to_index(&self, table: &Table, limit: u64) -> bool {
        let is_large = || limit.saturating_mul(table.document_bytes.get() + ROW_BYTES) >= JOINED_BYTES_MIN;
        // A condition on one column consists of ranges of the index.
        let drops = |index: &IndexScan| index.columns.len() > 1 && self.condition.is_some();
        self.index.as_ref().filter(|_| self.covered.is_none()).is_some_and(|index| match &index.merged {
            Some(merged) => merged.sorted.is_none(),
            None => {
                !self.forward && drops(index) && index.sibling_filter.is_none() && index.covers_condition && is_large()
            }
        })
    }

    fn merged(&self) -> Option<&OrderedMerge> {
        self.index.as_ref()?.merged.as_ref()
    }

    /// Queues the statement for a page. `texts` caches the text of the first page.
    pub fn queue(
        &self,
        connection: &mut Connection,
        table: &Table,
        texts: Option<&PlanTexts>,
        after: Option<&RowPosition>,
        limit: u64,
    ) {
        let make = || self.statement(table, after.is_some(), limit);
        let statement = match texts.filter(|_| after.is_none()) {
            Some(texts) => texts.first[usize::from(self.joins(table, limit))].get_or_init(make).clone(),
            None => make(),
        };
        self.queue_as(connection, table, &statement, after, limit);
    }

    /// Queues the statement for the first page, whose rows end with the result of the query
    /// `probe`.
    pub fn queue_with_probe(
        &self,
        connection: &mut Connection,
        table: &Table,
        texts: Option<&PlanTexts>,
        probe: &str,
        limit: u64,
    ) {
        let make = || self.statement_with(table, false, limit, Some(probe));
        let statement = match texts {
            Some(texts) => texts.context[usize::from(self.joins(table, limit))].get_or_init(make).clone(),
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
        // In a repeated execution MariaDB 10.11 no longer skips from one value to the next
        // (documents for the 13 values of a million: 3 s).
        match self.is_distinct() || self.joins_to_index(table, limit) {
            true => connection.queue_execute_reprepared(statement, &params),
            false => connection.queue_execute(statement, &params),
        }
    }

    /// Returns the parameters of [`RowSource::statement`]: ids, the condition's, the position of
    /// the last row, the limit.
    pub fn params<'p>(&'p self, table: &Table, after: Option<&'p RowPosition>, limit: u64) -> Vec<Param<'p>> {
        if let Some(merged) = self.merged() {
            return merged::params(table, &merged.branches, after, limit);
        }
        let mut params = Vec::new();
        if let Some(ids) = &self.ids {
            // Lists are padded to a few lengths, so that few statements are prepared.
            let last = ids.last().map(Vec::as_slice).unwrap_or_default();
            params.extend(ids.iter().map(|id| Param::Text(id)));
            params.resize(padded(ids.len()), Param::Text(last));
        }
        params.extend(self.conditions().flat_map(Condition::params));
        if let Some(after) = after {
            params.extend(after.keys.iter().flat_map(|key| [Param::Bytes(key), Param::Bytes(key)]));
            let times = if self.side().is_some() { 2 } else { 1 };
            params.extend(std::iter::repeat_n(key_param(table.row_key, &after.row), times));
        }
        params.push(Param::Unsigned(limit));
        params
    }
}
