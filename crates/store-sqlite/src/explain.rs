//! A plan in MongoDB's words: the `winningPlan` of `explain`.

use crate::catalog::{Index, id_index};
use crate::plan::{Access, FieldBounds, IndexScan, SqlitePlan, Union};
use document::{Doc, DocBuf, DocWriter, Value};
use query::fulltext::TextSearch;
use store::IndexSpec;
use store::duplicate::write_value;

pub fn winning_plan(plan: &SqlitePlan) -> DocBuf {
    if plan.collection.is_none() {
        return document::doc! { "stage": "EOF" };
    }
    match &plan.access {
        Access::Natural { forward } => document::doc! { "stage": "COLLSCAN", "direction": direction(*forward) },
        Access::Points(_) => document::doc! { "stage": "IDHACK" },
        Access::Index(IndexScan { index: Some(index), search: Some(search), forward, .. }) => {
            DocBuf::build(|writer| write_text_match(index, search, *forward, writer))
        }
        Access::Index(scan) => fetch(scan),
        Access::Union(union) => write_union(union),
        Access::Near(scan) => DocBuf::build(|writer| {
            let stage = if scan.index.kind.name() == "2d" { "GEO_NEAR_2D" } else { "GEO_NEAR_2DSPHERE" };
            writer.append("stage", stage);
            writer.append("keyPattern", scan.index.spec.key.as_doc());
            writer.append("indexName", scan.index.spec.name.as_str());
            writer.append("indexVersion", 2);
        }),
    }
}

fn fetch(scan: &IndexScan) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("stage", "FETCH");
        write_index_scan(scan, &mut writer.document("inputStage"));
    })
}

/// Branches in order fetch for themselves or together, as MongoDB has it; branches in no order, together.
fn write_union(union: &Union) -> DocBuf {
    let stage = if union.merged.is_some() { "SORT_MERGE" } else { "OR" };
    let fetched_before = union.merged.is_some() && !union.exploded;
    let inner = DocBuf::build(|writer| {
        writer.append("stage", stage);
        let mut stages = writer.array("inputStages");
        for scan in &union.branches {
            match fetched_before {
                true => stages.push(&fetch(scan)),
                false => write_index_scan(scan, &mut stages.document()),
            }
        }
    });
    if fetched_before {
        return inner;
    }
    DocBuf::build(|writer| {
        writer.append("stage", "FETCH");
        writer.append("inputStage", &inner);
    })
}

fn write_text_match(index: &Index, search: &TextSearch, forward: bool, writer: &mut DocWriter<'_>) {
    writer.append("stage", "TEXT_MATCH");
    writer.append("indexPrefix", Doc::EMPTY);
    writer.append("indexName", index.spec.name.as_str());
    search.describe(&mut writer.document("parsedTextQuery"));
    writer.append("textIndexVersion", 3);
    let mut fetch = writer.document("inputStage");
    fetch.append("stage", "FETCH");
    let mut input = fetch.document("inputStage");
    let term = |writer: &mut DocWriter<'_>| {
        writer.append("stage", "IXSCAN");
        writer.append("keyPattern", index.spec.key.as_doc());
        write_index(&index.spec, true, index.partial.is_some(), forward, writer);
        writer.append("indexBounds", Doc::EMPTY);
    };
    match search.terms.len() {
        0 => input.append("stage", "EOF"),
        1 => term(&mut input),
        terms => {
            input.append("stage", "OR");
            let mut stages = input.array("inputStages");
            (0..terms).for_each(|_| term(&mut stages.document()));
        }
    }
}

fn write_index(spec: &IndexSpec, multikey: bool, partial: bool, forward: bool, writer: &mut DocWriter<'_>) {
    writer.append("indexName", spec.name.as_str());
    writer.append("isMultiKey", multikey);
    writer.append("isUnique", spec.unique);
    writer.append("isSparse", spec.sparse);
    writer.append("isPartial", partial);
    writer.append("indexVersion", 2);
    writer.append("direction", direction(forward));
}

fn write_index_scan(scan: &IndexScan, writer: &mut DocWriter<'_>) {
    let id;
    let (spec, multikey, partial): (&IndexSpec, bool, bool) = match &scan.index {
        Some(index) => (&index.spec, index.is_multikey(), index.partial.is_some()),
        None => {
            id = id_index();
            (&id, false, false)
        }
    };
    writer.append("stage", if scan.different.is_some() { "DISTINCT_SCAN" } else { "IXSCAN" });
    match scan.bounds.as_slice() {
        // A wildcard is shown as an index on the path that is looked at.
        [(path, _), (field, _)] if path == "$_path" => {
            let mut pattern = writer.document("keyPattern");
            pattern.append(path, 1);
            pattern.append(field, 1);
        }
        _ => writer.append("keyPattern", spec.key.as_doc()),
    }
    write_index(spec, multikey, partial, scan.forward, writer);
    let mut bounds = writer.document("indexBounds");
    let directions = spec.key.as_doc().values().chain(std::iter::repeat(Value::Int32(1)));
    for ((path, ranges), direction) in scan.bounds.iter().zip(directions) {
        let ascending = !matches!(direction, Value::Int32(..0) | Value::Int64(..0))
            && !matches!(direction, Value::Double(number) if number < 0.0);
        let mut array = bounds.array(path);
        range_texts(ranges, scan.forward == ascending).iter().for_each(|text| array.push(text.as_str()));
    }
}

fn direction(forward: bool) -> &'static str {
    if forward { "forward" } else { "backward" }
}

/// `[1, 5)`, in the direction of the scan.
fn range_texts(ranges: &FieldBounds, forward: bool) -> Vec<String> {
    let mut texts: Vec<String> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let mut text = String::new();
        let low = (&range.low.value, !range.low.behind);
        let high = (&range.high.value, range.high.behind);
        let (from, to) = if forward { (low, high) } else { (high, low) };
        text.push(if from.1 { '[' } else { '(' });
        write_value(from.0.as_value(), &mut text);
        text.push_str(", ");
        write_value(to.0.as_value(), &mut text);
        text.push(if to.1 { ']' } else { ')' });
        texts.push(text);
    }
    if !forward {
        texts.reverse();
    }
    texts
}
