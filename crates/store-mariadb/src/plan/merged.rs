//! Rows of several places in indexes, each in the order wanted, as one: the first keys of each
//! branch are put in order, and only the documents of those that come first among all are fetched.

use crate::catalog::table::Table;
use crate::index::key_column::KeyColumn;
use crate::plan::access::{MergeBranch, RowSource};
use crate::plan::pushdown::Condition;
use crate::plan::row_position::{RowPosition, after_position, key_param};
use mariadb_wire::Param;
use std::sync::Arc;

impl RowSource {
    /// As [`RowSource::statement`]. A document that several branches reach comes once: its keys are
    /// the same in all indexes.
    pub(crate) fn merged_statement(
        &self,
        table: &Table,
        branches: &[MergeBranch],
        goes_on: bool,
        probe: &str,
    ) -> Arc<str> {
        let columns = self.index.as_ref().map_or(&[][..], |index| &index.columns);
        let key = table.row_key.column();
        let order = |columns: &[KeyColumn], forward: bool| {
            let down = |descends: bool| if descends == forward { " DESC" } else { "" };
            let columns: String = columns.iter().map(|it| format!("{}{}, ", it.name, down(it.descends))).collect();
            format!("ORDER BY {columns}k.{key}{}", if forward { "" } else { " DESC" })
        };
        let parts: Vec<String> = branches
            .iter()
            .map(|branch| {
                let keys: String = branch
                    .columns
                    .iter()
                    .zip(columns)
                    .map(|(own, common)| format!(", {} AS {}", own.name, common.name.trim_start_matches("k.")))
                    .collect();
                let mut conditions: Vec<String> =
                    branch.condition.iter().map(|condition| condition.sql.clone()).collect();
                if goes_on {
                    conditions.push(after_position(&branch.columns, &format!("k.{key}"), branch.forward));
                }
                let filter =
                    if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
                let MergeBranch { source, columns, forward, has_duplicates, .. } = branch;
                let distinct = if *has_duplicates { "DISTINCT " } else { "" };
                let order = order(columns, *forward);
                format!("(SELECT {distinct}k.{key} AS {key}{keys} FROM {source}{filter} {order} LIMIT ?)")
            })
            .collect();
        let (all, order) = (parts.join(" UNION "), order(columns, self.forward));
        let keys: String = columns.iter().map(|column| format!(", {}", column.name)).collect();
        format!(
            "SELECT k.{key}, documents.doc{keys}{probe} FROM ({all} {} LIMIT ?) AS k \
             STRAIGHT_JOIN {} AS documents ON documents.{key} = k.{key} {order}",
            order.replace("k.", ""),
            table.quoted,
        )
        .into()
    }
}

/// As [`RowSource::params`].
pub(crate) fn params<'p>(
    table: &Table,
    branches: &'p [MergeBranch],
    at: Option<&'p RowPosition>,
    limit: u64,
) -> Vec<Param<'p>> {
    let mut params = Vec::new();
    for branch in branches {
        params.extend(branch.condition.iter().flat_map(Condition::params));
        if let Some(at) = at {
            params.extend(at.keys.iter().flat_map(|key| [Param::Bytes(key), Param::Bytes(key)]));
            params.push(key_param(table.row_key, &at.row));
        }
        params.push(Param::Unsigned(limit));
    }
    params.push(Param::Unsigned(limit));
    params
}
