//! Checking a collection: by the server, and by reading every document.

use crate::catalog::TableLookup;
use crate::encoding;
use crate::index::manage;
use crate::plan::planner;
use crate::plan::planner_query::IndexOrder;
use crate::read::scan;
use crate::store::MariaDbStore;
use document::Doc;
use index_keys::IndexShape;
use index_keys::keys::index_keys;
use mariadb_client::{Event, Result};
use mariadb_wire::row::TextRow;
use query::Predicate;
use store::{Flow, Namespace, Query, Validation};

/// Checks the table with the server, and reads every document.
pub(crate) async fn validate(store: &MariaDbStore, namespace: &Namespace) -> Result<Validation> {
    let mut findings = Vec::new();
    let indexes = manage::list(store, namespace).await?.unwrap_or_default();
    let mut counts: Vec<(IndexShape, u64)> =
        indexes.into_iter().filter_map(|index| Some((IndexShape::new(index).ok()?, 0))).collect();
    let mut lease = store.pool.lease_for(namespace).await?;
    let TableLookup::Collection(table) = store.catalog.read(&mut lease, namespace).await? else {
        return Ok(Validation::default());
    };
    lease.queue_query(&format!("CHECK TABLE {}", table.quoted));
    while let Event::Row(range) = lease.next().await? {
        let mut row = TextRow::new(lease.raw_row(range).0);
        let mut text =
            || -> Result<String> { Ok(String::from_utf8_lossy(row.next_bytes()?.unwrap_or_default()).into_owned()) };
        let (_, _, kind, message) = (text()?, text()?, text()?, text()?);
        // Warnings and notes concern old row versions, not the current rows.
        if kind.eq_ignore_ascii_case("error") || kind == "status" && message != "OK" {
            findings.push(format!("MariaDB: {message}"));
        }
    }
    drop(lease);
    let everything = Predicate::everything();
    let query = Query::of(&everything);
    let plan = planner::plan(namespace, Some(table), &query, IndexOrder::Untrusted)?.plan;
    let mut bson = Vec::new();
    let mut take = |_: &[u8], json: &[u8]| {
        bson.clear();
        if let Err(error) = encoding::decode(json, &mut bson) {
            findings.push(error.message().to_owned());
            return Ok(Flow::Continue);
        }
        match Doc::from_bytes(&bson).filter(|document| document.get("_id").is_some()) {
            None => findings.push("a document has no _id".into()),
            Some(document) => {
                for (index, count) in &mut counts {
                    *count += index_keys(document, index).map_or(0, |keys| keys.len() as u64);
                }
            }
        }
        Ok(Flow::Continue)
    };
    scan::rows(store, &plan, None, usize::MAX, &mut take).await?;
    let keys = counts.into_iter().map(|(index, count)| (index.spec.name, count)).collect();
    Ok(Validation { findings, keys })
}
