//! `$sample` of a small part of a collection: rows whose numbers are drawn at random.

use crate::connection::Event;
use crate::failure::Result;
use crate::figures;
use crate::plan::{Access, MariaDbPlan, padded};
use crate::spelling;
use crate::store::MariaDbStore;
use crate::table::RowKey;
use document::DocBuf;
use mariadb_wire::Param;
use std::sync::Arc;
use store::sampling::Draws;

/// As [`store::DocumentStore::sample`].
pub(crate) async fn sample(store: &MariaDbStore, plan: &MariaDbPlan, size: usize) -> Result<Option<Vec<DocBuf>>> {
    let (Access::Rows(rows), Some(table)) = (&plan.access, &plan.table) else { return Ok(None) };
    let is_everything = rows.is_everything() && rows.found.is_none() && store::Plan::facts(plan).exact;
    if !is_everything || plan.tailable || table.row_key != RowKey::Sequence {
        return Ok(None);
    }
    let mut lease = store.pool.lease().await?;
    let ends: Arc<str> = format!("SELECT MIN(seq), MAX(seq) FROM {}", table.quoted).into();
    lease.queue_execute(&ends, &[]);
    let mut numbers = None;
    while let Event::Row(range) = lease.next().await? {
        let mut row = lease.row(range)?;
        let [first, last] = [row.next_bytes()?, row.next_bytes()?];
        let number = |bytes: &[u8]| Some(i64::from_le_bytes(bytes.try_into().ok()?));
        numbers = first.and_then(number).zip(last.and_then(number));
    }
    let Some((first, last)) = numbers else { return Ok(None) };
    let documents = figures::estimated_rows(&mut lease, table).await?;
    let Some(mut draws) = Draws::new(size, first..=last, documents) else { return Ok(None) };
    let mut received = 0;
    while !draws.is_done() {
        let Some(drawn) = draws.draw() else { return Ok(None) };
        let last = drawn.last().copied().unwrap_or_default();
        // Lists are made of a few lengths, so that few statements need preparing.
        let length = padded(drawn.len());
        let all = drawn.iter().copied().chain(std::iter::repeat(last)).take(length);
        let params: Vec<Param<'_>> = all.map(|number| Param::Unsigned(number as u64)).collect();
        let sql = format!("SELECT doc FROM {} WHERE seq IN (?{})", table.quoted, ",?".repeat(length - 1));
        lease.queue_execute(&sql.into(), &params);
        while let Event::Row(range) = lease.next().await? {
            let mut row = lease.row(range)?;
            let Some(json) = row.next_bytes()? else { continue };
            let mut bson = Vec::new();
            spelling::read(json, &mut bson)?;
            received += 1;
            draws.note(bson);
        }
    }
    rows.tally.add(rows.examined(received));
    Ok(Some(draws.finish().into_iter().filter_map(DocBuf::from_vec).collect()))
}
