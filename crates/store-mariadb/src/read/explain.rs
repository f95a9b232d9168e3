//! Explains a plan: MongoDB's stages, and MariaDB's own plans of its statements.

mod bounds;

use crate::catalog::table::Table;
use crate::encoding;
use crate::plan::MariaDbPlan;
use crate::plan::access::{
    Access, DistanceSearch, IndexScan, MergeBranch, OrderedMerge, RowKeyLookup, RowSource, SideIndexScan,
};
use crate::read::count::{self, Statement};
use crate::store::MariaDbStore;
use access::explain::write_ranges;
use document::{Doc, DocBuf, DocWriter, Value};
use fulltext::TextSearch;
use mariadb_client::{Event, Result};
use query::Predicate;
use query::predicate::{Node, Test};
use std::sync::Arc;
use store::explain::append_multikey_paths;
use store::index_kind::descends;
use store::{Examined, ExplainContext, IndexSpec, Plan, PlanSummary};

/// The page size for which MariaDB explains statements: a usual first batch.
const PAGE_ROWS: u64 = 101;

pub(crate) fn stages(plan: &MariaDbPlan, about: &ExplainContext<'_>) -> DocBuf {
    let stages = Stages { plan, about };
    DocBuf::build(|writer| match &plan.access {
        Access::Rows(rows) if plan.table.is_some() => stages.write_rows(rows, about.predicate.map(|it| it.0), writer),
        // The element table belongs to the same index, as MongoDB sees it.
        Access::Union(branches) if plan.table.is_some() && branches.iter().all(|(filter, _)| filter.is_none()) => {
            let predicate = about.predicate.map(|it| it.0);
            branches.first().iter().for_each(|(_, rows)| stages.write_rows(rows, predicate, writer));
        }
        Access::Union(branches) if plan.table.is_some() => {
            writer.append("stage", "SUBPLAN");
            about.write_execution_stats(|ran| ran.found, writer);
            let mut input = writer.document("inputStage");
            input.append("stage", "FETCH");
            if !stages.is_covered_by_branches(branches) {
                about.write_filter(|_, _| false, &mut input);
            }
            stages.write_fetched(&mut input);
            let mut or = input.document("inputStage");
            or.append("stage", "OR");
            about.write_execution_stats(|_| plan.examined().entries, &mut or);
            let mut inputs = or.array("inputStages");
            for (at, (filter, rows)) in branches.iter().enumerate().filter(|(_, (filter, _))| filter.is_some()) {
                let others = branches[at + 1..].iter().take_while(|(filter, _)| filter.is_none());
                let looked = others.fold(rows.tally.get(), |sum, (_, rows)| sum + rows.tally.get());
                stages.write_index(rows, filter.as_ref(), looked, &mut inputs.document());
            }
        }
        _ => {
            writer.append("stage", "EOF");
            about.write_execution_stats(|_| 0, writer);
        }
    })
}

/// Returns the plan in one line, as [`stages`] would describe it, for the statistics of operations.
pub(crate) fn summary(plan: &MariaDbPlan) -> PlanSummary {
    match &plan.access {
        _ if plan.table.is_none() => PlanSummary::Name("EOF"),
        Access::Rows(rows) => summary_of(rows),
        Access::Union(branches) if branches.iter().all(|(filter, _)| filter.is_none()) => {
            branches.first().map_or(PlanSummary::None, |(_, rows)| summary_of(rows))
        }
        Access::Union(branches) => {
            let branches = branches.iter().filter(|(filter, _)| filter.is_some());
            PlanSummary::joined(branches.map(|(_, rows)| summary_of_index(rows)))
        }
        Access::Nothing => PlanSummary::Name("EOF"),
    }
}

fn summary_of(rows: &RowSource) -> PlanSummary {
    match rows {
        RowSource { ids: Some(_), index: None, .. } => PlanSummary::Name("IDHACK"),
        RowSource { index: None, lookup: None, .. } => PlanSummary::Name("COLLSCAN"),
        rows => summary_of_index(rows),
    }
}

fn summary_of_index(rows: &RowSource) -> PlanSummary {
    let of = |stage: &str, spec: &IndexSpec| PlanSummary::of_index(stage, spec.key.as_doc());
    let stage = match rows.rings() {
        Some(rings) => stage_of_rings(rings),
        None if rows.is_distinct() => "DISTINCT_SCAN",
        None => "IXSCAN",
    };
    match (rows.index.as_deref(), rows.lookup.as_ref().and_then(|lookup| lookup.spec.as_ref())) {
        (Some(IndexScan { merged: Some(merged), .. }), _) => {
            // The element table is shown with the index itself.
            let told = merged.branches.iter().filter(|branch| !branch.has_duplicates);
            PlanSummary::joined(told.map(|branch| of("IXSCAN", &branch.spec)))
        }
        (Some(index), _) => of(stage, &index.spec),
        (None, Some(spec)) => of(stage, spec),
        (None, None) => of(stage, &crate::index::id_index()),
    }
}

fn stage_of_rings(rings: &DistanceSearch) -> &'static str {
    store::near::stage(&rings.shape.kind)
}

struct Stages<'s> {
    plan: &'s MariaDbPlan,
    about: &'s ExplainContext<'s>,
}

impl Stages<'_> {
    fn write_rows(&self, rows: &RowSource, predicate: Option<&Predicate>, writer: &mut DocWriter<'_>) {
        let (about, looked) = (self.about, self.plan.examined());
        if about.counted && rows.is_everything() && self.plan.facts.exact {
            writer.append("stage", "RECORD_STORE_FAST_COUNT");
            return;
        }
        if let Some(index) = rows.index.as_ref().filter(|index| about.counted && index.counting.is_some()) {
            if !bounds::is_one_range(&index.spec, index.array_fields, predicate) {
                return self.write_scan(rows, predicate, looked, writer);
            }
            writer.append("stage", "COUNT_SCAN");
            about.write_execution_stats(|ran| ran.found, writer);
            about.write_count("keysExamined", looked.keys, writer);
            self.write_key(index, writer);
            bounds::write_edges(&index.spec, index.array_fields, predicate, &mut writer.document("indexBounds"));
            return;
        }
        let one_id = predicate.is_none_or(|predicate| {
            matches!(predicate.root(), Node::Path { test: Test::Equal(_), .. }) && rows.ids.is_some()
        });
        if rows.ids.is_some() && one_id {
            writer.append("stage", "IDHACK");
            about.write_execution_stats(|ran| ran.found, writer);
            about.write_count("keysExamined", looked.keys, writer);
            about.write_count("docsExamined", looked.documents, writer);
        } else if let Some(search) = rows.side().and_then(|side| side.search.as_deref()) {
            self.write_text_match(rows, search, looked, writer);
        } else if let (Some(rings), Some(spec)) =
            (rows.rings(), rows.lookup.as_ref().and_then(|lookup| lookup.spec.as_ref()))
        {
            self.write_rings(rows, rings, spec, writer);
        } else if rows.covered.is_some() && looked.documents == 0 {
            self.write_scan(rows, predicate, looked, writer);
        } else if rows.ids.is_some() || rows.index.is_some() || rows.lookup.is_some() {
            writer.append("stage", "FETCH");
            about.write_filter(|path, test| is_represented_by(rows, predicate, path, test), writer);
            self.write_fetched(writer);
            // The element table and the index are shown as one.
            self.write_index(rows, predicate, looked, &mut writer.document("inputStage"));
        } else {
            writer.append("stage", "COLLSCAN");
            about.write_filter(|_, _| false, writer);
            about.write_execution_stats(|ran| ran.found, writer);
            if let Some(condition) = &rows.condition {
                writer.append("serverFilter", condition.sql.as_str());
            }
            writer.append("direction", direction(rows.forward));
            about.write_count("docsExamined", looked.documents, writer);
        }
    }

    fn write_fetched(&self, writer: &mut DocWriter<'_>) {
        self.about.write_execution_stats(|ran| ran.found, writer);
        self.about.write_count("docsExamined", self.plan.examined().documents, writer);
        self.about.write_count("alreadyHasObj", 0, writer);
    }

    fn write_text_match(&self, rows: &RowSource, search: &TextSearch, looked: Examined, writer: &mut DocWriter<'_>) {
        let spec = rows.lookup.as_ref().and_then(|lookup| lookup.spec.as_deref());
        let term = |looked: Examined, writer: &mut DocWriter<'_>| self.write_index(rows, None, looked, writer);
        self.about.write_text_match(spec, search, looked, term, writer);
    }

    /// Writes a search by distance, ring by ring.
    fn write_rings(&self, rows: &RowSource, rings: &DistanceSearch, spec: &IndexSpec, writer: &mut DocWriter<'_>) {
        writer.append("stage", stage_of_rings(rings));
        self.about.write_execution_stats(|ran| ran.found, writer);
        writer.append("keyPattern", spec.key.as_doc());
        writer.append("indexName", spec.name.as_str());
        writer.append("indexVersion", 2);
        let mut inputs = writer.array("inputStages");
        let mut fetch = inputs.document();
        fetch.append("stage", "FETCH");
        self.write_fetched(&mut fetch);
        self.write_index(rows, None, self.plan.examined(), &mut fetch.document("inputStage"));
    }

    fn write_merged(&self, branches: &[MergeBranch], writer: &mut DocWriter<'_>) {
        let looked = self.plan.examined();
        writer.append("stage", "SORT_MERGE");
        self.about.write_execution_stats(|_| looked.entries, writer);
        self.about.write_count("keysExamined", looked.keys, writer);
        let mut stages = writer.array("inputStages");
        for branch in branches {
            let mut stage = stages.document();
            stage.append("stage", "IXSCAN");
            self.write_spec(&branch.spec, false, None, &mut stage);
            stage.append("direction", direction(branch.forward));
            if let Some(condition) = &branch.condition {
                stage.append("serverFilter", condition.sql.as_str());
            }
        }
    }

    fn write_index(
        &self,
        rows: &RowSource,
        predicate: Option<&Predicate>,
        looked: Examined,
        writer: &mut DocWriter<'_>,
    ) {
        match rows.index.as_ref().and_then(|index| index.merged.as_ref()) {
            None => self.write_scan(rows, predicate, looked, writer),
            Some(OrderedMerge { branches, sorted: None }) => self.write_merged(branches, writer),
            Some(OrderedMerge { sorted: Some(pattern), .. }) => {
                writer.append("stage", "SORT");
                self.about.write_execution_stats(|_| looked.entries, writer);
                writer.append("sortPattern", pattern.as_doc());
                self.write_scan(rows, predicate, looked, &mut writer.document("inputStage"));
            }
        }
    }

    fn write_scan(
        &self,
        rows: &RowSource,
        predicate: Option<&Predicate>,
        looked: Examined,
        writer: &mut DocWriter<'_>,
    ) {
        let different = rows.is_distinct();
        writer.append("stage", if different { "DISTINCT_SCAN" } else { "IXSCAN" });
        let covered = rows.covered.is_some() && looked.documents == 0;
        if covered {
            self.about.write_filter(|path, test| is_represented_by(rows, predicate, path, test), writer);
        }
        self.about.write_execution_stats(|ran| if covered { ran.found } else { looked.entries }, writer);
        let id;
        let (spec, arrays) = match &rows.index {
            Some(index) => (&*index.spec, index.array_fields),
            None => {
                id = rows
                    .lookup
                    .as_ref()
                    .and_then(|lookup| lookup.spec.clone())
                    .unwrap_or_else(|| crate::index::id_index().into());
                (&*id, if rows.lookup.is_some() && !different { u64::MAX } else { 0 })
            }
        };
        if let Some(side) = rows.side() {
            self.write_keyed(spec, side, writer);
        } else {
            self.write_spec(spec, arrays != 0, Some(arrays), writer);
            writer.append("direction", direction(rows.forward));
            bounds::write(spec, arrays, predicate, rows.forward, &mut writer.document("indexBounds"));
        }
        let conditions: Vec<&str> = rows.conditions().map(|condition| condition.sql.as_str()).collect();
        if !conditions.is_empty() {
            writer.append("serverFilter", conditions.join(" AND ").as_str());
        }
        self.about.write_count("keysExamined", looked.keys, writer);
        self.about.write_count("seeks", looked.seeks, writer);
    }

    /// Writes the scan of a side table.
    fn write_keyed(&self, spec: &IndexSpec, side: &SideIndexScan, writer: &mut DocWriter<'_>) {
        match side.bounds.as_slice() {
            // A wildcard index is shown as an index on the queried path.
            [(path, _), (field, _)] if path == "$_path" => {
                let pattern = DocBuf::build(|writer| {
                    writer.append(path, 1);
                    writer.append(field, 1);
                });
                self.write_facts(spec, pattern.as_doc(), side.table.arrays != 0, None, writer);
            }
            // A document has a key for each of its words.
            _ => self.write_spec(spec, side.table.arrays != 0 || side.search.is_some(), None, writer),
        }
        writer.append("direction", direction(side.search.is_none()));
        let mut bounds = writer.document("indexBounds");
        let kinds = spec.key.as_doc().values().chain(std::iter::repeat(Value::Int32(1)));
        for ((path, ranges), kind) in side.bounds.iter().zip(kinds) {
            write_ranges(ranges, !descends(kind), &mut bounds.array(path));
        }
    }

    fn write_key(&self, index: &IndexScan, writer: &mut DocWriter<'_>) {
        self.write_spec(&index.spec, index.array_fields != 0, Some(index.array_fields), writer);
    }

    fn write_spec(&self, spec: &IndexSpec, multikey: bool, arrays: Option<u64>, writer: &mut DocWriter<'_>) {
        self.write_facts(spec, spec.key.as_doc(), multikey, arrays, writer);
    }

    /// Writes the facts about an index. `arrays`: which fields have arrays, as bits, if known.
    fn write_facts(
        &self,
        spec: &IndexSpec,
        pattern: Doc<'_>,
        multikey: bool,
        arrays: Option<u64>,
        writer: &mut DocWriter<'_>,
    ) {
        let options = spec.spec.as_doc();
        writer.append("keyPattern", pattern);
        writer.append("indexName", spec.name.as_str());
        writer.append("isMultiKey", multikey);
        if let Some(arrays) = arrays.filter(|arrays| *arrays != u64::MAX && are_at_ends(*arrays, pattern)) {
            append_multikey_paths(pattern, |field, _| arrays & 1 << field != 0, writer);
        }
        writer.append("isUnique", spec.unique);
        writer.append("isSparse", spec.sparse);
        writer.append("isPartial", options.get("partialFilterExpression").is_some_and(Value::is_truthy));
        writer.append("indexVersion", options.get("v").unwrap_or(Value::Int32(2)));
    }

    /// Returns whether the filter is an `$or`, and the index of each branch represents it exactly.
    fn is_covered_by_branches(&self, branches: &[(Option<Predicate>, RowSource)]) -> bool {
        let is_or = self.about.predicate.is_some_and(|(predicate, _)| matches!(predicate.root(), Node::Or(_)));
        let is_said = |(filter, rows): &(Option<Predicate>, RowSource)| {
            let Some(filter) = filter else { return true };
            filter
                .describe_rest(Doc::EMPTY, |path, test| is_represented_by(rows, Some(filter), path, test))
                .as_doc()
                .is_empty()
        };
        is_or && branches.iter().all(is_said)
    }
}

/// Returns whether all fields of an ordered index with arrays are top-level: otherwise the part of
/// the path with the array is unknown.
fn are_at_ends(arrays: u64, key: Doc<'_>) -> bool {
    let fits = |(field, (path, kind)): (usize, (&str, Value<'_>))| {
        kind.kind().is_number() && (arrays & 1 << field == 0 || !path.contains('.'))
    };
    key.iter().enumerate().all(fits)
}

/// Returns whether the keys that are read represent a condition exactly, except unordered keys.
fn is_represented_by(rows: &RowSource, predicate: Option<&Predicate>, path: &str, test: &Test) -> bool {
    let (spec, arrays) = match (rows.index.as_deref(), rows.lookup.as_deref()) {
        // Pending rows are read as well.
        (None, Some(RowKeyLookup { side: Some(_), .. })) => return false,
        (Some(index), _) => (&index.spec, index.array_fields),
        (None, Some(RowKeyLookup { spec: Some(spec), .. })) => (spec, 0),
        _ => return rows.ids.is_some() && path == "_id" && matches!(test, Test::Equal(_) | Test::In(_)),
    };
    bounds::is_decided(spec, arrays, predicate, path, test)
}

fn direction(forward: bool) -> &'static str {
    if forward { "forward" } else { "backward" }
}

/// Returns a plan's statements with MariaDB's EXPLAIN of each; those that count if `counted`.
/// `None` if the plan has no statements.
pub(crate) async fn statements(store: &MariaDbStore, plan: &MariaDbPlan, counted: bool) -> Result<Option<DocBuf>> {
    let Some(table) = plan.table.as_ref().filter(|_| plan.all_rows().next().is_some()) else { return Ok(None) };
    let counting = if counted { count::statements(plan, None) } else { None };
    let mut lease = store.lease_documents(&plan.namespace).await?;
    let mut explained_statements = Vec::new();
    for (sql, params) in counting.unwrap_or_else(|| plan.all_rows().map(|rows| reading(plan, table, rows)).collect()) {
        lease.queue_execute(&Arc::from(format!("EXPLAIN FORMAT=JSON {sql}")), &params);
        let mut explained = Vec::new();
        while let Event::Row(range) = lease.next().await? {
            if let Some(json) = lease.row(range)?.next_bytes()? {
                explained.clear();
                // An EXPLAIN that cannot be parsed is omitted; the statement is shown nevertheless.
                if encoding::decode(repaired(json).as_bytes(), &mut explained).is_err() {
                    explained.clear();
                }
            }
        }
        explained_statements.push((sql, explained));
    }
    Ok(Some(DocBuf::build(|writer| {
        let mut statements = writer.array("statements");
        for (sql, explained) in &explained_statements {
            let mut statement = statements.document();
            statement.append("sql", &**sql);
            if let Some(explained) = Doc::from_bytes(explained) {
                statement.append("explain", explained);
            }
        }
    })))
}

fn reading<'p>(plan: &MariaDbPlan, table: &Table, rows: &'p RowSource) -> Statement<'p> {
    let mut params = rows.params(table, None, PAGE_ROWS);
    match plan.single_id() {
        Some(_) => {
            params.truncate(1);
            (table.statements.by_id.clone(), params)
        }
        None => (rows.statement(table, false, PAGE_ROWS), params),
    }
}

/// Repairs MariaDB's JSON: it prints keys, which are bytes, without escaping.
fn repaired(json: &[u8]) -> String {
    let text = String::from_utf8_lossy(json);
    let mut mended = String::with_capacity(text.len());
    let mut within = false;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' => within = !within,
            '\\' if within => {
                match chars.peek() {
                    Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
                        mended.extend(['\\', chars.next().unwrap_or('n')])
                    }
                    _ => mended.push_str("\\\\"),
                }
                continue;
            }
            char if within && char.is_control() => {
                mended.push(char::REPLACEMENT_CHARACTER);
                continue;
            }
            _ => {}
        }
        mended.push(char);
    }
    mended
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_in_a_text_do_no_harm() {
        for (json, mended) in [
            (&b"{\"a\": \"x\0y\xff\"}"[..], "{\"a\": \"x\u{FFFD}y\u{FFFD}\"}"),
            (b"{\"a\": \"\\u00 \\q \\\"\"}\n", "{\"a\": \"\\\\u00 \\\\q \\\"\"}\n"),
        ] {
            assert_eq!(super::repaired(json), mended);
            let mut bson = Vec::new();
            assert!(crate::encoding::decode(mended.as_bytes(), &mut bson).is_ok());
        }
    }
}
