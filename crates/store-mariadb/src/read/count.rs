//! Counts documents without reading them: rows of the table, ids, keys of an index.

use crate::catalog::table::Table;
use crate::encoding;
use crate::plan::MariaDbPlan;
use crate::plan::access::{Access, Counting, IndexScan, RowSource};
use crate::plan::parameters::padded;
use crate::plan::pushdown::Condition;
use crate::read::handler_counters::HandlerCounters;
use crate::store::MariaDbStore;
use document::Doc;
use mariadb_client::{Connection, Event, Result};
use mariadb_wire::Param;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Examined;

/// A statement with its parameters.
pub(crate) type Statement<'p> = (Arc<str>, Vec<Param<'p>>);

/// Returns how many documents a plan has, `enough` at most; `None` if the server cannot count them.
pub(crate) async fn count(store: &MariaDbStore, plan: &MariaDbPlan, enough: Option<u64>) -> Result<Option<u64>> {
    let facts = store::Plan::facts(plan);
    if plan.table.is_none() || facts.view {
        return Ok((!facts.view).then_some(0));
    }
    let rows = match &plan.access {
        Access::Nothing => return Ok(Some(0)),
        Access::Rows(rows) => rows,
        Access::Union(_) => return Ok(None),
    };
    let Some(statements) = statements(plan, enough) else { return Ok(None) };
    let mut lease = store.lease_documents(&plan.namespace).await?;
    let counted = match rows.index.as_ref().and_then(|index| index.counting.as_deref()) {
        Some(counting) => {
            let counters = match plan.exact_counts.load(Ordering::Relaxed) {
                true => Some(HandlerCounters::begin(&mut lease).await?),
                false => None,
            };
            let counted = by_index(&mut lease, counting, &statements).await;
            let keys = Examined { keys: *counted.as_ref().unwrap_or(&0), seeks: 1, ..Examined::default() };
            rows.tally.add(match counters {
                Some(counters) if counted.is_ok() => counters.end(&mut lease).await?.of_keys(),
                _ => keys,
            });
            counted
        }
        None => {
            statements.iter().for_each(|(sql, params)| lease.queue_execute(sql, params));
            number(&mut lease).await
        }
    };
    match counted {
        Err(failure) if failure.is_missing_table() => Ok(Some(0)),
        Ok(count) => Ok(Some(enough.map_or(count, |enough| count.min(enough)))),
        Err(failure) => Err(failure),
    }
}

/// Returns the statements that count a plan's documents: one; or for an index, one that counts keys
/// that certainly match, and one that reads the documents to re-check. `None` if all must be read.
pub(crate) fn statements(plan: &MariaDbPlan, enough: Option<u64>) -> Option<Vec<Statement<'_>>> {
    let (Some(table), Access::Rows(rows)) = (&plan.table, &plan.access) else { return None };
    match rows.index.as_ref().and_then(|index| Some((index, index.counting.as_deref()?))) {
        Some((index, counting)) => Some(of_keys(table, index, counting, enough).into()),
        None if store::Plan::facts(plan).exact && rows.condition.is_none() => Some(vec![of_ids(table, rows)]),
        None => None,
    }
}

fn of_ids<'p>(table: &Table, rows: &'p RowSource) -> Statement<'p> {
    let Some(ids) = &rows.ids else { return (table.statements.count.clone(), Vec::new()) };
    let length = padded(ids.len());
    let last = ids.last().map(Vec::as_slice).unwrap_or_default();
    let mut params: Vec<Param<'_>> = ids.iter().map(|id| Param::Text(id)).collect();
    params.resize(length, Param::Text(last));
    let marks = ",?".repeat(length - 1);
    (format!("SELECT COUNT(*) FROM {} WHERE id IN (?{marks})", table.quoted).into(), params)
}

fn of_keys<'p>(table: &Table, index: &IndexScan, counting: &'p Counting, enough: Option<u64>) -> [Statement<'p>; 2] {
    let from = index.source(&table.quoted);
    let filter = |condition: &Condition| format!("WHERE {}", condition.sql);
    let matching = counting.matching.as_ref().map(filter).unwrap_or_default();
    let column = table.row_key.column();
    let keys = match enough {
        Some(_) => format!("SELECT COUNT(*) FROM (SELECT k.{column} FROM {from} {matching} LIMIT ?) AS found"),
        None => format!("SELECT COUNT(*) FROM {from} {matching}"),
    };
    let params = counting.matching.iter().flat_map(Condition::params).chain(enough.map(Param::Unsigned));
    let documents = format!("SELECT doc FROM {from} {}", filter(&counting.unordered));
    [(keys.into(), params.collect()), (documents.into(), counting.unordered.params().collect())]
}

async fn by_index(connection: &mut Connection, counting: &Counting, statements: &[Statement<'_>]) -> Result<u64> {
    for (position, (sql, params)) in statements.iter().enumerate() {
        match position {
            0 => connection.queue_execute_reprepared(sql, params),
            _ => connection.queue_execute(sql, params),
        }
    }
    let mut count = number(connection).await?;
    let mut bson = Vec::new();
    while let Event::Row(range) = connection.next().await? {
        let mut row = connection.row(range)?;
        let Some(json) = row.next_bytes()? else { continue };
        bson.clear();
        encoding::decode(json, &mut bson)?;
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
