//! The first rows of a plan that counts on an index's order: they come along with the answer to whether it may.
//!
//! Otherwise a sort with a small limit would wait for two answers, one after the other, and each takes longer than finding its rows.

use crate::connection::Event;
use crate::failure::Result;
use crate::plan::{Access, MariaDbPlan, RowPosition};
use crate::store::MariaDbStore;
use std::sync::{Arc, Mutex, PoisonError};

/// Queries for more rows than this are asked about first.
const ROWS_MAX: u64 = 100;

/// Documents that are kept, in bytes; a row behind them is read again by the scan.
const BYTES_MAX: usize = 256 << 10;

/// Kept with the plan until it is carried out; once.
#[derive(Debug, Default)]
pub(crate) struct Ahead(Mutex<Option<Rows>>);

/// The first rows, in order.
#[derive(Debug)]
pub(crate) struct Rows {
    pub rows: Vec<Row>,
    /// There are no others.
    pub all: bool,
}

#[derive(Debug)]
pub(crate) struct Row {
    pub at: RowPosition,
    pub json: Option<Vec<u8>>,
}

impl Ahead {
    pub fn take(&self) -> Option<Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn keep(&self, rows: Rows) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows);
    }
}

/// Whether a query is for few enough rows.
pub(crate) fn is_worth_it(limit: Option<u64>) -> Option<u64> {
    limit.filter(|limit| (1..=ROWS_MAX).contains(limit))
}

/// Asks whether the plan may count on its order, and for its first rows, which are kept if it may.
pub(crate) async fn ask(store: &MariaDbStore, plan: &MariaDbPlan, probe: &Arc<str>, limit: u64) -> Result<bool> {
    let (Access::Rows(rows), Some(table)) = (&plan.access, &plan.table) else { return Ok(false) };
    let columns = rows.index.as_ref().map_or(0, |index| index.columns.len());
    let mut lease = store.pool.lease().await?;
    lease.queue_execute(probe, &[]);
    rows.queue(&mut lease, table, None, limit);
    let mut may = true;
    while let Event::Row(_) = lease.next().await? {
        may = false;
    }
    let (mut found, mut bytes, mut received) = (Vec::new(), 0, 0);
    while let Event::Row(range) = lease.next().await? {
        received += 1;
        if !may || bytes > BYTES_MAX {
            continue;
        }
        let mut row = lease.row(range)?;
        let mut at = RowPosition { row: row.next_bytes()?.unwrap_or_default().to_vec(), keys: Vec::new() };
        let json = row.next_bytes()?.map(<[u8]>::to_vec);
        for _ in 0..columns {
            at.keys.push(row.next_bytes()?.unwrap_or_default().to_vec());
        }
        bytes += json.as_ref().map_or(0, Vec::len);
        found.push(Row { at, json });
    }
    let all = received < limit && found.len() as u64 == received;
    plan.ahead.keep(Rows { rows: found, all });
    Ok(may)
}
