//! The record that a client's transaction leaves in its commit ([`outcome_record`]).

use super::row_values::{blob, bytes, integer};
use crate::catalog::names;
use crate::transaction::outcome_record;
use ::store::change_feed::LoggedTransaction;
use document::DocBuf;
use mariadb_client::Result;
use mariadb_wire::binlog::rows::Row;
use mariadb_wire::binlog::table_map::TableMap;

/// A client's transaction.
#[derive(Clone, Debug)]
pub(super) struct GroupTransaction {
    pub session: DocBuf,
    pub number: i64,
}

impl GroupTransaction {
    pub fn as_logged(&self) -> LoggedTransaction<'_> {
        LoggedTransaction { session: self.session.as_doc(), number: self.number }
    }
}

/// Returns whether a table has the records of sessions. Columns: session, number, statements,
/// outcome, time.
pub(super) fn is_table(map: &TableMap) -> bool {
    map.database == names::OWN_SCHEMA && map.table == "retryable_writes" && map.columns.len() == 5
}

/// Returns the transaction whose commit has written a row; `None` if it records something else.
pub(super) fn read(row: &Row<'_>, map: &TableMap) -> Result<Option<GroupTransaction>> {
    let Some(after) = &row.after else { return Ok(None) };
    let recorded = blob(bytes(after, map, 3)?);
    let Some(session) = outcome_record::committed_session(recorded.as_doc()) else { return Ok(None) };
    Ok(Some(GroupTransaction { session: session.to_owned(), number: integer(after, map, 1)? }))
}
