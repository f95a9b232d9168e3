//! Reads the documents of several updates at once: by one query if each filter is
//! `{<path>: <value>}`, otherwise by one query each.

use crate::catalog::table::Table;
use crate::read::scan;
use crate::write::change::statement::{Change, MatchedRow, RunningStatement};
use ahash::{AHashMap, AHashSet};
use document::path::Path;
use document::{Doc, DocBuf, Value, ValueBuf, key};
use futures_util::{StreamExt, stream};
use mariadb_client::Result;
use query::predicate::{Node, Test};
use query::{Context, Predicate};
use std::ops::ControlFlow;
use std::sync::Arc;
use store::{AccessStats, Examined, Flow, Plan, Query};

/// Documents read at the same time by `_id`, which needs no connection of its own, and otherwise.
const READ_BY_ID: usize = 64;
const READ_OTHERWISE: usize = 4;

/// The documents that the statements of a run match.
pub(super) struct Read {
    /// Access statistics and matched row of each statement.
    pub found: Vec<(AccessStats, Option<MatchedRow>)>,
    /// The values that the statements name, if all name one of the same path.
    pub named: Option<Named>,
}

/// A path, and the encoded value that each statement names; equal values have equal encodings.
pub(super) struct Named {
    pub path: Path,
    pub values: Vec<Vec<u8>>,
}

impl Named {
    fn of<C: Change>(all: &[RunningStatement<'_, C>]) -> Option<Named> {
        let (path, _) = named(all.first()?.statement.predicate())?;
        let mut values = Vec::with_capacity(all.len());
        for running in all {
            let (other, value) = named(running.statement.predicate())?;
            if other.as_str() != path.as_str() {
                return None;
            }
            values.push(encoded(value));
        }
        Some(Named { path: path.clone(), values })
    }

    /// Calls `visit` for each value that a document has on the path.
    pub fn visit(&self, document: Doc<'_>, visit: &mut impl FnMut(Vec<u8>)) {
        let _ = self.path.visit_keys(document, &mut |value| {
            visit(encoded(value.sort_value()));
            ControlFlow::Continue(())
        });
    }
}

fn encoded(value: Value<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    key::encode(value, &mut bytes);
    bytes
}

/// Returns the path and value of a filter that is nothing but an equality with a scalar.
fn named(predicate: &Predicate) -> Option<(&Path, Value<'_>)> {
    let Node::Path { path, test: Test::Equal(value) } = predicate.root() else { return None };
    let value = value.as_value();
    let is_plain = matches!(
        value,
        Value::Int32(_)
            | Value::Int64(_)
            | Value::Double(_)
            | Value::Decimal128(_)
            | Value::String(_)
            | Value::ObjectId(_)
            | Value::DateTime(_)
            | Value::Boolean(_)
            | Value::Binary { .. }
    );
    (is_plain && !path.has_position()).then_some((path, value))
}

pub(super) async fn read<C: Change>(all: &[RunningStatement<'_, C>], table: &Arc<Table>) -> Result<Read> {
    if let Some(named) = Named::of(all)
        && let Some(found) = by_one_query(all, table, &named).await?
    {
        return Ok(Read { found, named: Some(named) });
    }
    Ok(Read { found: one_by_one(all, table).await?, named: None })
}

/// Reads all documents by one query. Returns `None` if a statement matches several documents: its
/// own plan decides which one it changes.
async fn by_one_query<C: Change>(
    all: &[RunningStatement<'_, C>],
    table: &Arc<Table>,
    named: &Named,
) -> Result<Option<Vec<(AccessStats, Option<MatchedRow>)>>> {
    let [first, ..] = all else { return Ok(None) };
    let mut asked = AHashSet::with_capacity(all.len());
    let mut by_value = AHashMap::<&[u8], Vec<usize>>::with_capacity(all.len());
    let filter = DocBuf::build(|writer| {
        let mut condition = writer.document(named.path.as_str());
        let mut list = condition.array("$in");
        for (position, (running, value)) in all.iter().zip(&named.values).enumerate() {
            by_value.entry(value).or_default().push(position);
            if asked.insert(value)
                && let Some((_, value)) = self::named(running.statement.predicate())
            {
                list.push(value);
            }
        }
    });
    let predicate = Predicate::parse(filter.as_doc(), &Context::at(0))?;
    let query = Query { predicate: &predicate, sort: None, limit: None, hint: None, fields: None };
    let plan = first.store.plan_on(first.namespace, Some(table.clone()), &query).await?;
    let mut found: Vec<Option<MatchedRow>> = all.iter().map(|_| None).collect();
    let (mut is_clear, mut bson) = (true, Vec::new());
    let mut take = |key: &[u8], json: &[u8]| {
        bson.clear();
        crate::encoding::decode(json, &mut bson)?;
        let document = Doc::from_bytes(&bson).unwrap_or(Doc::EMPTY);
        let mut positions: Vec<usize> = Vec::new();
        named.visit(document, &mut |value| {
            positions.extend(by_value.get(value.as_slice()).into_iter().flatten().copied())
        });
        positions.sort_unstable();
        positions.dedup();
        for position in positions {
            let mut bson = Vec::new();
            let (Some(running), Some(found)) = (all.get(position), found.get_mut(position)) else { continue };
            let Some(details) = running.matches(json, &mut bson)? else { continue };
            is_clear &= found.is_none();
            *found = Some(MatchedRow { key: key.to_vec(), json: json.to_vec(), bson, details });
        }
        Ok(if is_clear { Flow::Continue } else { Flow::StopAfter })
    };
    scan::rows(first.store, &plan, None, all.len() + 1, &mut take).await?;
    if !is_clear {
        return Ok(None);
    }
    let single = first.plan_on(Some(table.clone())).await?;
    let access = |is_found: bool| {
        let count = u64::from(is_found);
        let examined = Examined { keys: count, entries: count, documents: count, seeks: 1 };
        AccessStats { examined, summary: single.summary() }
    };
    Ok(Some(found.into_iter().map(|found| (access(found.is_some()), found)).collect()))
}

async fn one_by_one<C: Change>(
    all: &[RunningStatement<'_, C>],
    table: &Arc<Table>,
) -> Result<Vec<(AccessStats, Option<MatchedRow>)>> {
    let mut plans = Vec::with_capacity(all.len());
    for running in all {
        plans.push(running.plan_on(Some(table.clone())).await?);
    }
    let by_ids = plans.iter().all(|plan| plan.single_id().is_some());
    let at_once = if by_ids { READ_BY_ID } else { READ_OTHERWISE };
    let reading = stream::iter(all.iter().zip(&plans)).map(|(running, plan)| running.find(plan));
    let found: Vec<Result<Option<MatchedRow>>> = reading.buffered(at_once).collect().await;
    let access = plans.iter().map(|plan| AccessStats { examined: plan.examined(), summary: plan.summary() });
    access.zip(found).map(|(access, found)| Ok((access, found?))).collect()
}

/// Returns the id of a document to insert.
pub(super) fn upserted(document: Doc<'_>) -> Option<ValueBuf> {
    document.get("_id").map(ValueBuf::from)
}
