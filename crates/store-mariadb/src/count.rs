//! Counting without reading: rows of the table, of ids, of an index's keys.

use crate::connection::{Connection, Event};
use crate::failure::Result;
use crate::handlers::Watch;
use crate::plan::{Access, Counting, IndexScan, MariaDbPlan, Rows, padded};
use crate::pushdown::Condition;
use crate::spelling;
use crate::store::MariaDbStore;
use crate::table::Table;
use document::Doc;
use mariadb_wire::Param;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Examined;

/// How many documents a plan gives, where the server can tell, `enough` at the most.
pub(crate) async fn count(store: &MariaDbStore, plan: &MariaDbPlan, enough: Option<u64>) -> Result<Option<u64>> {
    let facts = store::Plan::facts(plan);
    let (Some(table), false) = (&plan.table, facts.view) else { return Ok((!facts.view).then_some(0)) };
    let rows = match &plan.access {
        Access::Nothing => return Ok(Some(0)),
        Access::Rows(rows) => rows,
        Access::Union(_) => return Ok(None),
    };
    let counting = rows.index.as_ref().and_then(|index| Some((index, index.counting.as_deref()?)));
    let counted = match counting {
        Some((index, counting)) => {
            let mut lease = store.pool.lease().await?;
            let watch = match plan.counts_closely.load(Ordering::Relaxed) {
                true => Some(Watch::begin(&mut lease).await?),
                false => None,
            };
            let counted = by_index(&mut lease, table, index, counting, enough).await;
            let keys = Examined { keys: *counted.as_ref().unwrap_or(&0), seeks: 1, ..Examined::default() };
            rows.tally.add(match watch {
                Some(watch) if counted.is_ok() => watch.end(&mut lease).await?.of_keys(),
                _ => keys,
            });
            counted
        }
        None if facts.exact && rows.condition.is_none() => {
            let mut lease = store.pool.lease().await?;
            by_ids(&mut lease, table, rows).await
        }
        None => return Ok(None),
    };
    match counted {
        Err(failure) if failure.is_missing_table() => Ok(Some(0)),
        Ok(count) => Ok(Some(enough.map_or(count, |enough| count.min(enough)))),
        Err(failure) => Err(failure),
    }
}

async fn by_ids(connection: &mut Connection, table: &Table, rows: &Rows) -> Result<u64> {
    match &rows.ids {
        None => connection.queue_execute(&table.statements.count, &[]),
        Some(ids) => {
            let length = padded(ids.len());
            let last = ids.last().map(Vec::as_slice).unwrap_or_default();
            let mut params: Vec<Param<'_>> = ids.iter().map(|id| Param::Text(id)).collect();
            params.resize(length, Param::Text(last));
            let marks = ",?".repeat(length - 1);
            let sql = format!("SELECT COUNT(*) FROM {} WHERE id IN (?{marks})", table.quoted);
            connection.queue_execute(&sql.into(), &params);
        }
    }
    number(connection).await
}

/// The keys that all match are counted; documents whose key does not tell are looked at.
async fn by_index(
    connection: &mut Connection,
    table: &Table,
    index: &IndexScan,
    counting: &Counting,
    enough: Option<u64>,
) -> Result<u64> {
    let from = index.source(table);
    let filter = |condition: &Condition| format!("WHERE {}", condition.sql);
    let matching = counting.matching.as_ref().map(filter).unwrap_or_default();
    let column = table.row_key.column();
    let sql: Arc<str> = match enough {
        Some(_) => format!("SELECT COUNT(*) FROM (SELECT k.{column} FROM {from} {matching} LIMIT ?) AS found").into(),
        None => format!("SELECT COUNT(*) FROM {from} {matching}").into(),
    };
    let params = counting.matching.iter().flat_map(Condition::params).chain(enough.map(Param::Unsigned));
    connection.queue_execute_anew(&sql, &params.collect::<Vec<_>>());
    let sql: Arc<str> = format!("SELECT doc FROM {from} {}", filter(&counting.odd)).into();
    connection.queue_execute(&sql, &counting.odd.params().collect::<Vec<_>>());
    let mut count = number(connection).await?;
    let mut bson = Vec::new();
    while let Event::Row(range) = connection.next().await? {
        let mut row = connection.row(range)?;
        let Some(json) = row.next_bytes()? else { continue };
        bson.clear();
        spelling::read(json, &mut bson)?;
        count += u64::from(counting.predicate.matches(Doc::from_bytes(&bson).unwrap_or(Doc::EMPTY))?);
    }
    Ok(count)
}

async fn number(connection: &mut Connection) -> Result<u64> {
    let mut number = 0;
    while let Event::Row(range) = connection.next().await? {
        number = connection.row(range)?.next_u64()?;
    }
    Ok(number)
}
