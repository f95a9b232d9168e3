//! The stages that a command adds above the store's plan.

use crate::arguments;
use document::{Doc, DocBuf, DocWriter, Value};
use query::{Meta, Sort};
use store::explain::append_count;

/// A stage above the plan.
pub enum Stage {
    Limit(u64),
    Skip(u64),
    Projection {
        name: &'static str,
        transform: DocBuf,
    },
    /// A sort in memory, which retains only the documents within the limit.
    Sort {
        pattern: DocBuf,
        limit: Option<u64>,
    },
    Count {
        skip: u64,
        limit: Option<u64>,
    },
    Update {
        upserts: bool,
        returns: bool,
    },
    Delete {
        returns: bool,
    },
    /// A `$group` that is part of the plan.
    Group {
        returned: Option<u64>,
    },
    /// An equality `$lookup` that is part of the plan, with its displayed fields.
    Lookup {
        shown: DocBuf,
    },
}

const FAST_COUNT: &str = "RECORD_STORE_FAST_COUNT";
const SIMPLE_PROJECTION: &str = "PROJECTION_SIMPLE";

/// The outcome of executing the plan below.
#[derive(Clone, Copy)]
pub struct Outcome {
    pub found: u64,
    pub milliseconds: i32,
}

/// Returns the stages of a `find` above the store's plan and its sort, outermost first.
pub fn of_find(command: Doc<'_>) -> Vec<Stage> {
    let mut stages = Vec::new();
    let amount = |key| command.get(key).and_then(arguments::number_to_i64).filter(|number| *number > 0);
    stages.extend(amount("limit").map(|limit| Stage::Limit(limit.unsigned_abs())));
    let projection = command.get("projection").and_then(Value::as_document).filter(|spec| !spec.is_empty());
    stages.extend(projection.map(|spec| of_projection(spec, spec.to_owned())));
    stages.extend(amount("skip").map(|skip| Stage::Skip(skip.unsigned_abs())));
    stages
}

/// Returns the stage of a projection, which is displayed as `transform`.
pub fn of_projection(spec: Doc<'_>, transform: DocBuf) -> Stage {
    let name = if is_simple_projection(spec) { SIMPLE_PROJECTION } else { "PROJECTION_DEFAULT" };
    Stage::Projection { name, transform }
}

/// Returns whether a projection only names whole fields.
pub fn is_simple_projection(spec: Doc<'_>) -> bool {
    spec.values().all(|value| value.kind().is_number() || matches!(value, Value::Boolean(_)))
        && spec.elements().all(|element| !element.key().contains('.'))
}

/// Returns the stage of a sort in memory. Metadata has no field name.
pub fn of_sort(sort: &Sort, limit: Option<u64>) -> Stage {
    let computed = |place: usize, meta: Meta, writer: &mut DocWriter<'_>| {
        writer.document(&format!("$computed{place}")).append("$meta", meta.name());
    };
    let pattern = DocBuf::build(|writer| {
        if sort.is_by_distance() {
            computed(0, Meta::GeoNearDistance, writer);
        }
        for (place, part) in sort.parts().iter().enumerate() {
            match part.meta {
                Some(meta) => computed(place, meta, writer),
                None => writer.append(part.path.as_str(), if part.ascending { 1 } else { -1 }),
            }
        }
    });
    Stage::Sort { pattern, limit }
}

/// Writes the stages, outermost first, and the plan below them.
pub fn write(stages: &[Stage], outcome: Option<Outcome>, plan: Doc<'_>, writer: &mut DocWriter<'_>) {
    let given = given(stages, outcome.map_or(0, |outcome| outcome.found));
    write_from(stages, &given, outcome, plan, writer);
}

/// Returns the number of documents that each stage returns; the last number is that of the plan.
fn given(stages: &[Stage], found: u64) -> Vec<u64> {
    let mut given = vec![found];
    for stage in stages.iter().rev() {
        let input = given.last().copied().unwrap_or_default();
        given.push(match stage {
            Stage::Limit(limit) => input.min(*limit),
            Stage::Skip(skip) => input.saturating_sub(*skip),
            Stage::Projection { .. } | Stage::Lookup { .. } => input,
            Stage::Group { returned } => returned.unwrap_or(input),
            Stage::Sort { limit, .. } => limit.map_or(input, |limit| input.min(limit)),
            Stage::Count { .. } => 0,
            Stage::Update { returns, .. } | Stage::Delete { returns } => {
                if *returns {
                    input
                } else {
                    0
                }
            }
        });
    }
    given.reverse();
    given
}

fn write_from(stages: &[Stage], given: &[u64], outcome: Option<Outcome>, plan: Doc<'_>, writer: &mut DocWriter<'_>) {
    let Some((stage, below)) = stages.split_first() else {
        return plan.elements().for_each(|element| writer.append_element(element));
    };
    let input = given.get(1).copied().unwrap_or_default();
    let name = stage.name_over(plan.get("stage").and_then(Value::as_str).unwrap_or_default());
    let fast = name == FAST_COUNT;
    writer.append("stage", name);
    if let Some(outcome) = outcome {
        append_count("nReturned", given.first().copied().unwrap_or_default(), writer);
        writer.append("executionTimeMillisEstimate", outcome.milliseconds);
    }
    let has_run = outcome.is_some();
    match stage {
        Stage::Limit(limit) => append_count("limitAmount", *limit, writer),
        Stage::Skip(skip) => append_count("skipAmount", *skip, writer),
        Stage::Projection { transform, .. } => writer.append("transformBy", transform),
        Stage::Sort { pattern, limit } => {
            writer.append("sortPattern", pattern);
            writer.append("memLimit", crate::read::BLOCKING_BYTES_MAX as i32);
            if let Some(limit) = limit {
                append_count("limitAmount", *limit, writer);
            }
            writer.append("type", "simple");
        }
        Stage::Count { skip, limit } if has_run => {
            let counted = input.saturating_sub(*skip);
            append_count("nCounted", limit.map_or(counted, |limit| counted.min(limit)), writer);
            append_count("nSkipped", input.min(*skip), writer);
        }
        Stage::Update { upserts, .. } if has_run => {
            append_count("nMatched", input, writer);
            append_count("nWouldModify", input, writer);
            append_count("nWouldUpsert", u64::from(*upserts && input == 0), writer);
        }
        Stage::Delete { .. } if has_run => append_count("nWouldDelete", input, writer),
        Stage::Lookup { shown } => shown.as_doc().elements().for_each(|field| writer.append_element(field)),
        Stage::Count { .. } | Stage::Update { .. } | Stage::Delete { .. } | Stage::Group { .. } => {}
    }
    if !fast {
        write_from(below, &given[1..], outcome, plan, &mut writer.document("inputStage"));
    }
}

impl Stage {
    /// Returns the stage's name above a plan that begins with a stage of this name.
    fn name_over(&self, plan: &str) -> &'static str {
        match self {
            Stage::Count { .. } if plan == FAST_COUNT => FAST_COUNT,
            // The plan fetched no documents.
            Stage::Projection { name: SIMPLE_PROJECTION, .. } if plan == "IXSCAN" => "PROJECTION_COVERED",
            Stage::Limit(_) => "LIMIT",
            Stage::Skip(_) => "SKIP",
            Stage::Projection { name, .. } => name,
            Stage::Sort { .. } => "SORT",
            Stage::Count { .. } => "COUNT",
            Stage::Update { .. } => "UPDATE",
            Stage::Delete { .. } => "DELETE",
            Stage::Group { .. } => "GROUP",
            Stage::Lookup { .. } => "EQ_LOOKUP",
        }
    }
}

/// Records the number of groups.
pub fn note_groups(stages: &mut [Stage], groups: u64) {
    // Of several groups, those below the outermost are not counted.
    if let Some(Stage::Group { returned }) = stages.iter_mut().find(|stage| matches!(stage, Stage::Group { .. })) {
        *returned = Some(groups);
    }
}

/// Returns the number of documents that all stages return.
pub fn returned(stages: &[Stage], found: u64) -> u64 {
    given(stages, found).first().copied().unwrap_or_default()
}
