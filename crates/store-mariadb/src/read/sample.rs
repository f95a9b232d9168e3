//! `$sample` of a small part of a collection: rows whose row keys are drawn at random.

use crate::catalog::row_key::RowKey;
use crate::catalog::statistics;
use crate::encoding;
use crate::plan::MariaDbPlan;
use crate::plan::access::Access;
use crate::plan::parameters::in_list;
use crate::store::MariaDbStore;
use document::DocBuf;
use mariadb_client::{Event, Result};
use std::sync::Arc;
use store::row_sampler::RowSampler;

/// As [`store::DocumentStore::sample`].
pub(crate) async fn sample(store: &MariaDbStore, plan: &MariaDbPlan, size: usize) -> Result<Option<Vec<DocBuf>>> {
    match drawn(store, plan, size).await {
        // The collection was just dropped, which a scan handles.
        Err(failure) if failure.is_missing_table() => Ok(None),
        outcome => outcome,
    }
}

async fn drawn(store: &MariaDbStore, plan: &MariaDbPlan, size: usize) -> Result<Option<Vec<DocBuf>>> {
    let (Access::Rows(rows), Some(table)) = (&plan.access, &plan.table) else { return Ok(None) };
    let is_everything = rows.is_everything() && rows.lookup.is_none() && store::Plan::facts(plan).exact;
    if !is_everything || plan.tailable || table.row_key != RowKey::Sequence || table.is_sharded {
        return Ok(None);
    }
    let mut lease = store.lease_documents(&plan.namespace).await?;
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
    let documents = statistics::estimated_rows(&mut lease, table).await?;
    let Some(mut draws) = RowSampler::new(size, first..=last, documents) else { return Ok(None) };
    let mut received = 0;
    while !draws.is_done() {
        let Some(drawn) = draws.draw() else { return Ok(None) };
        let drawn: Vec<u64> = drawn.into_iter().map(|number| number as u64).collect();
        let (among, params) = in_list(&drawn);
        lease.queue_execute(&format!("SELECT doc FROM {} WHERE seq {among}", table.quoted).into(), &params);
        while let Event::Row(range) = lease.next().await? {
            let mut row = lease.row(range)?;
            let Some(json) = row.next_bytes()? else { continue };
            let mut bson = Vec::new();
            encoding::decode(json, &mut bson)?;
            received += 1;
            draws.add(bson);
        }
    }
    rows.tally.add(rows.examined(received));
    Ok(Some(draws.finish().into_iter().filter_map(DocBuf::from_vec).collect()))
}
