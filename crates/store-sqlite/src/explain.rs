//! A plan in MongoDB's words: the `winningPlan` of `explain`.

use crate::catalog::id_index;
use crate::plan::{Access, FieldBounds, IndexScan, SqlitePlan};
use document::{DocBuf, DocWriter};
use store::IndexSpec;
use store::duplicate::write_value;

pub fn winning_plan(plan: &SqlitePlan) -> DocBuf {
    if plan.collection.is_none() {
        return document::doc! { "stage": "EOF" };
    }
    match &plan.access {
        Access::Natural { forward } => document::doc! { "stage": "COLLSCAN", "direction": direction(*forward) },
        Access::Points(_) => document::doc! { "stage": "IDHACK" },
        Access::Index(scan) => DocBuf::build(|writer| {
            writer.append("stage", "FETCH");
            write_index_scan(scan, &mut writer.document("inputStage"));
        }),
    }
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
    writer.append("stage", "IXSCAN");
    writer.append("keyPattern", spec.key.as_doc());
    writer.append("indexName", spec.name.as_str());
    writer.append("isMultiKey", multikey);
    writer.append("isUnique", spec.unique);
    writer.append("isSparse", spec.sparse);
    writer.append("isPartial", partial);
    writer.append("indexVersion", 2);
    writer.append("direction", direction(scan.forward));
    let mut bounds = writer.document("indexBounds");
    for (path, ranges) in &scan.bounds {
        let mut array = bounds.array(path);
        range_texts(ranges, scan.forward).iter().for_each(|text| array.push(text.as_str()));
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
        let low = (&range.low, range.low_included);
        let high = (&range.high, range.high_included);
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
