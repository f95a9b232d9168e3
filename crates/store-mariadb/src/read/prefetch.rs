//! Prefetch: reads the first rows of a plan that relies on an index's order together with its order
//! probe.
//!
//! Otherwise a sort with a small limit would wait for two round trips, each of which takes longer
//! than finding its rows. It also shows whether a speculative plan finds enough matches within its
//! row limit.

use crate::catalog::table::Table;
use crate::plan::MariaDbPlan;
use crate::plan::access::Access;
use crate::plan::prefetched_rows::PrefetchedRows;
use crate::store::MariaDbStore;
use mariadb_client::{Event, Result};
use std::sync::Arc;

/// The most rows prefetched; a scan continues after them.
const ROWS_MAX: u64 = 100;

/// The most bytes of documents prefetched; the scan reads later rows again.
const BYTES_MAX: usize = 1 << 20;

/// Returns how many rows to prefetch for a query with this limit.
fn rows_of(table: &Table, wanted: Option<u64>) -> u64 {
    let fit = BYTES_MAX as u64 / table.document_bytes.get().max(1);
    wanted.unwrap_or(ROWS_MAX).min(ROWS_MAX).min(fit).max(1)
}

/// The result of an order probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderCheck {
    /// The index has the order.
    Holds,
    /// The index has unordered keys.
    Broken,
    /// The speculative plan has hit its row limit.
    GaveUp,
}

/// Reads the plan's first rows with its order probe, and stores them in the plan if the order
/// holds.
pub(crate) async fn prefetch(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    probe: &Arc<str>,
    wanted: Option<u64>,
) -> Result<OrderCheck> {
    let (Access::Rows(rows), Some(table)) = (&plan.access, &plan.table) else { return Ok(OrderCheck::Broken) };
    let limit = rows_of(table, wanted);
    let columns = rows.index.as_ref().map_or(0, |index| index.columns.len());
    let mut lease = store.lease_documents(&plan.namespace).await?;
    rows.queue_with_probe(&mut lease, table, plan.texts.as_deref(), probe, limit);
    let mut prefetched = PrefetchedRows { payloads: store.row_buffer.take(), ..PrefetchedRows::default() };
    let (mut in_order, mut bytes, mut received) = (true, 0, 0);
    let warnings = loop {
        let range = match lease.next().await? {
            Event::Row(range) => range,
            Event::Finished(ok) => break ok.warnings,
        };
        received += 1;
        if !in_order || bytes > BYTES_MAX {
            continue;
        }
        let mut row = lease.row(range.clone())?;
        row.next_bytes()?;
        bytes += row.next_bytes()?.map_or(0, <[u8]>::len);
        for _ in 0..columns {
            row.next_bytes()?;
        }
        in_order = row.next_bytes()?.is_none();
        let (payload, types) = lease.raw_row(range);
        prefetched.payloads.extend_from_slice(payload);
        prefetched.ends.push(prefetched.payloads.len());
        if prefetched.types.is_empty() {
            prefetched.types = types.to_vec();
        }
    };
    // The server warns if it has stopped at the row limit.
    let is_speculative = plan.is_speculative();
    if is_speculative && warnings > 0 && received < limit {
        store.row_buffer.set(prefetched.into_buffer());
        return Ok(OrderCheck::GaveUp);
    }
    if received == 0 {
        // Without rows there is no answer to the probe.
        lease.queue_execute(probe, &[]);
        while let Event::Row(_) = lease.next().await? {
            in_order = false;
        }
    }
    if !in_order {
        return Ok(OrderCheck::Broken);
    }
    if rows.covered.is_none() {
        table.document_bytes.note(bytes, prefetched.ends.len());
    }
    // The scan of a speculative plan continues after them.
    prefetched.is_complete = !is_speculative && received < limit && prefetched.ends.len() as u64 == received;
    plan.prefetched.store(prefetched);
    Ok(OrderCheck::Holds)
}
