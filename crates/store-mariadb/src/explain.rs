//! A plan in MongoDB's words: the `winningPlan` of `explain`.

use crate::plan::{Access, MariaDbPlan, Rows};
use document::{DocBuf, DocWriter, Value};

pub(crate) fn winning_plan(plan: &MariaDbPlan) -> DocBuf {
    DocBuf::build(|writer| match &plan.access {
        Access::Rows(rows) if plan.table.is_some() => write_rows(rows, writer),
        // A document's arrays lie in a table of their own; as MongoDB sees it, that is the same index.
        Access::Union(branches) if plan.table.is_some() && branches.iter().all(|(filter, _)| filter.is_none()) => {
            branches.first().iter().for_each(|(_, rows)| write_rows(rows, writer));
        }
        Access::Union(branches) if plan.table.is_some() => {
            writer.append("stage", "SUBPLAN");
            let mut input = writer.document("inputStage");
            input.append("stage", "FETCH");
            let mut or = input.document("inputStage");
            or.append("stage", "OR");
            let mut stages = or.array("inputStages");
            branches.iter().for_each(|(_, rows)| write_index(rows, &mut stages.document()));
        }
        _ => writer.append("stage", "EOF"),
    })
}

fn write_rows(rows: &Rows, writer: &mut DocWriter<'_>) {
    if rows.ids.is_some() {
        writer.append("stage", "IDHACK");
    } else if rows.index.is_some() {
        writer.append("stage", "FETCH");
        write_index(rows, &mut writer.document("inputStage"));
    } else {
        writer.append("stage", "COLLSCAN");
        if let Some(condition) = &rows.condition {
            writer.append("serverFilter", condition.sql.as_str());
        }
        writer.append("direction", direction(rows.forward));
    }
}

fn write_index(rows: &Rows, writer: &mut DocWriter<'_>) {
    let Some(index) = &rows.index else { return write_rows(rows, writer) };
    let spec = &index.spec;
    writer.append("stage", "IXSCAN");
    writer.append("keyPattern", spec.key.as_doc());
    writer.append("indexName", spec.name.as_str());
    writer.append("isMultiKey", index.multikey);
    writer.append("isUnique", spec.unique);
    writer.append("isSparse", spec.sparse);
    writer.append("isPartial", spec.spec.as_doc().get("partialFilterExpression").is_some_and(Value::is_truthy));
    writer.append("indexVersion", 2);
    writer.append("direction", direction(rows.forward));
    if let Some(condition) = &rows.condition {
        writer.append("serverFilter", condition.sql.as_str());
    }
}

fn direction(forward: bool) -> &'static str {
    if forward { "forward" } else { "backward" }
}
