//! The first rows of a plan that counts on an index's order: they come along with the answer to whether it may.
//!
//! Otherwise a sort with a small limit would wait for two answers, one after the other, and each takes longer than finding its rows. And
//! where it was but hoped that enough of the rows that come first in the order match, this is where it turns out.

use crate::catalog::table::Table;
use crate::plan::MariaDbPlan;
use crate::plan::access::Access;
use crate::plan::prefetched_rows::Rows;
use crate::store::MariaDbStore;
use mariadb_client::{Event, Result};
use std::sync::Arc;

/// Rows that are asked for at the most; a scan goes on behind them.
const ROWS_MAX: u64 = 100;

/// Documents that are kept, in bytes; a row behind them is read again by the scan.
const BYTES_MAX: usize = 1 << 20;

/// How many rows to ask for, of a query for so many.
fn rows_of(table: &Table, wanted: Option<u64>) -> u64 {
    let fit = BYTES_MAX as u64 / table.document_bytes.get().max(1);
    wanted.unwrap_or(ROWS_MAX).min(ROWS_MAX).min(fit).max(1)
}

/// Whether a plan may count on an index's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum May {
    Yes,
    No,
    /// It may, and would look at more rows than was hoped.
    InVain,
}

/// Asks for the plan's first rows, and in the same statement whether it may count on their order; they are kept if it may.
pub(crate) async fn ask(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    probe: &Arc<str>,
    wanted: Option<u64>,
) -> Result<May> {
    let (Access::Rows(rows), Some(table)) = (&plan.access, &plan.table) else { return Ok(May::No) };
    let limit = rows_of(table, wanted);
    let columns = rows.index.as_ref().map_or(0, |index| index.columns.len());
    let mut lease = store.pool.lease_for(&plan.namespace).await?;
    rows.queue_asking(&mut lease, table, plan.written.as_deref(), probe, limit);
    let mut found = Rows { payloads: store.spare.take(), ..Rows::default() };
    let (mut may, mut bytes, mut received) = (true, 0, 0);
    let warnings = loop {
        let range = match lease.next().await? {
            Event::Row(range) => range,
            Event::Finished(ok) => break ok.warnings,
        };
        received += 1;
        if !may || bytes > BYTES_MAX {
            continue;
        }
        let mut row = lease.row(range.clone())?;
        row.next_bytes()?;
        bytes += row.next_bytes()?.map_or(0, <[u8]>::len);
        for _ in 0..columns {
            row.next_bytes()?;
        }
        may = row.next_bytes()?.is_none();
        let (payload, types) = lease.raw_row(range);
        found.payloads.extend_from_slice(payload);
        found.ends.push(found.payloads.len());
        if found.types.is_empty() {
            found.types = types.to_vec();
        }
    };
    // The server warns of rows that it did not look at.
    let hopes = plan.hopes();
    if hopes && warnings > 0 && received < limit {
        store.spare.set(found.into_spare());
        return Ok(May::InVain);
    }
    if received == 0 {
        // Nobody has said anything.
        lease.queue_execute(probe, &[]);
        while let Event::Row(_) = lease.next().await? {
            may = false;
        }
    }
    if !may {
        return Ok(May::No);
    }
    if rows.covered.is_none() {
        table.document_bytes.note(bytes, found.ends.len());
    }
    // The scan looks for others behind them, if it was no more than hoped that there are enough.
    found.all = !hopes && received < limit && found.ends.len() as u64 == received;
    plan.ahead.keep(found);
    Ok(May::Yes)
}
