//! The stages that `explain` shows for a store's plan, in MongoDB's terms.

use crate::duplicate::{write_document, write_value};
use crate::{Examined, IndexSpec};
use document::{ArrayWriter, Doc, DocBuf, DocWriter, Value};
use fulltext::TextSearch;
use query::Predicate;
use std::sync::Arc;

/// Bytes past which an index's bounds are left out, and the stages below the current one.
const STAGES_BYTES_MAX: usize = 10 << 20;

/// The context in which the stages of a plan are shown.
#[derive(Clone, Copy, Default)]
pub struct ExplainContext<'a> {
    /// The plan's filter, parsed and as sent. Without it, no stage shows a filter.
    pub predicate: Option<(&'a Predicate, Doc<'a>)>,
    /// The plan was counted ([`crate::DocumentStore::count`]), not scanned.
    pub counted: bool,
    /// Statistics of the execution, if the plan has been executed.
    pub ran: Option<ExecutionStats>,
}

/// A plan in one line: `IXSCAN { a: 1 }`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PlanSummary {
    #[default]
    None,
    Name(&'static str),
    Text(Arc<str>),
}

impl PlanSummary {
    /// Derives the summary from the stages of a plan.
    pub fn of(stages: Doc<'_>) -> PlanSummary {
        let mut parts = Vec::new();
        summarize(stages, &mut parts);
        match parts.is_empty() {
            true => PlanSummary::None,
            false => PlanSummary::Text(parts.join(", ").into()),
        }
    }

    /// Returns the summary of an index scan.
    pub fn of_index(stage: &str, key: Doc<'_>) -> PlanSummary {
        PlanSummary::Text(by_index(stage, key).into())
    }

    /// Returns the summary of several scans in sequence.
    pub fn joined(parts: impl Iterator<Item = PlanSummary>) -> PlanSummary {
        let mut text = String::new();
        for part in parts {
            text += if text.is_empty() { "" } else { ", " };
            text += part.as_str().unwrap_or_default();
        }
        PlanSummary::Text(text.into())
    }

    /// Returns whether the plan reads by an index with this key.
    pub fn reads_by(&self, key: Doc<'_>) -> bool {
        let mut text = String::from(" ");
        write_document(key, &mut text);
        let by_id = || key.get("_id").is_some() && key.elements().nth(1).is_none();
        self.as_str().is_some_and(|plan| plan.contains(&text) || (plan == "IDHACK" && by_id()))
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            PlanSummary::None => None,
            PlanSummary::Name(name) => Some(name),
            PlanSummary::Text(text) => Some(text),
        }
    }
}

fn by_index(stage: &str, key: Doc<'_>) -> String {
    let mut text = format!("{stage} ");
    write_document(key, &mut text);
    text
}

fn summarize(stage: Doc<'_>, parts: &mut Vec<String>) {
    let name = stage.get("stage").and_then(Value::as_str).unwrap_or_default();
    let key = stage.get("keyPattern").and_then(Value::as_document);
    if let Some(key) = key {
        parts.push(by_index(name, key));
    } else if matches!(name, "COLLSCAN" | "IDHACK" | "EOF" | "RECORD_STORE_FAST_COUNT") {
        parts.push(name.to_owned());
    } else if let Some(Value::Array(inputs)) = stage.get("inputStages") {
        inputs.values().filter_map(Value::as_document).for_each(|input| summarize(input, parts));
    } else if let Some(Value::Document(input)) = stage.get("inputStage") {
        summarize(input, parts);
    }
}

/// Statistics of a plan's execution.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExecutionStats {
    /// Documents that matched the whole filter.
    pub found: u64,
    pub milliseconds: i32,
}

impl ExplainContext<'_> {
    /// Writes the number of documents or keys that a stage returned, and the time. `returned`
    /// computes the number where it differs from the documents found.
    pub fn write_execution_stats(&self, returned: impl FnOnce(ExecutionStats) -> u64, writer: &mut DocWriter<'_>) {
        let Some(ran) = self.ran else { return };
        append_count("nReturned", returned(ran), writer);
        writer.append("executionTimeMillisEstimate", ran.milliseconds);
    }

    /// Writes a count if the plan has been executed.
    pub fn write_count(&self, key: &str, count: u64, writer: &mut DocWriter<'_>) {
        if self.ran.is_some() {
            append_count(key, count, writer);
        }
    }

    /// Writes a text search: the documents that its terms lead to are checked again. `term` writes
    /// the index scan of one term; the first has the statistics of all.
    pub fn write_text_match(
        &self,
        index: Option<&IndexSpec>,
        search: &TextSearch,
        looked: Examined,
        term: impl Fn(Examined, &mut DocWriter<'_>),
        writer: &mut DocWriter<'_>,
    ) {
        writer.append("stage", "TEXT_MATCH");
        self.write_execution_stats(|ran| ran.found, writer);
        writer.append("indexPrefix", Doc::EMPTY);
        if let Some(index) = index {
            writer.append("indexName", index.name.as_str());
        }
        search.describe(&mut writer.document("parsedTextQuery"));
        writer.append("textIndexVersion", search.index.version as i32);
        if let Some(ran) = self.ran {
            self.write_count("docsRejected", looked.documents.saturating_sub(ran.found), writer);
        }
        let mut fetch = writer.document("inputStage");
        fetch.append("stage", "FETCH");
        self.write_execution_stats(|_| looked.documents, &mut fetch);
        self.write_count("docsExamined", looked.documents, &mut fetch);
        self.write_count("alreadyHasObj", 0, &mut fetch);
        let mut input = fetch.document("inputStage");
        match search.terms.len() {
            0 => input.append("stage", "EOF"),
            1 => term(looked, &mut input),
            terms => {
                input.append("stage", "OR");
                self.write_execution_stats(|_| looked.entries, &mut input);
                let mut stages = input.array("inputStages");
                (0..terms).for_each(|at| {
                    let looked = if at == 0 { looked } else { Examined::default() };
                    term(looked, &mut stages.document());
                });
            }
        }
    }

    /// Writes the conditions that this stage checks: those that are not met already.
    pub fn write_filter(&self, met: impl Fn(&str, &query::predicate::Test) -> bool, writer: &mut DocWriter<'_>) {
        let Some((predicate, written)) = self.predicate else { return };
        let rest = predicate.describe_rest(written, met);
        if !rest.as_doc().is_empty() {
            writer.append("filter", &rest);
        }
    }
}

/// Formats a range of values as in `indexBounds`: `[1, 5)`. Each end comes with whether it is
/// included.
pub fn range_text(from: (Value<'_>, bool), to: (Value<'_>, bool)) -> String {
    let mut text = String::from(if from.1 { "[" } else { "(" });
    write_value(from.0, &mut text);
    text.push_str(", ");
    write_value(to.0, &mut text);
    text.push(if to.1 { ']' } else { ')' });
    text
}

/// Writes the ranges of one field's bounds, up to the size that [`bounded`] allows.
pub fn append_ranges(texts: impl Iterator<Item = String>, array: &mut ArrayWriter<'_>) {
    for text in texts {
        steps::step();
        array.push(text.as_str());
        if array.size() > STAGES_BYTES_MAX {
            return;
        }
    }
}

/// Leaves out parts that would make a plan's stages too large, as MongoDB does: the bounds of
/// indexes, and the stages behind those that fill the space.
pub fn bounded(stages: DocBuf) -> DocBuf {
    if stages.as_bytes().len() <= STAGES_BYTES_MAX {
        return stages;
    }
    let mut written = 0;
    DocBuf::build(|writer| write_bounded(stages.as_doc(), &mut written, writer))
}

/// `written`: the bytes written so far.
fn write_bounded(stage: Doc<'_>, written: &mut usize, writer: &mut DocWriter<'_>) {
    if *written > STAGES_BYTES_MAX {
        return writer.append("warning", "stats tree exceeded BSON size limit for explain");
    }
    for element in stage.elements() {
        steps::step();
        match (element.key(), element.value()) {
            ("indexBounds", _) if *written + element.raw_value().len() > STAGES_BYTES_MAX => {
                writer.append("warning", "index bounds omitted due to BSON size limit for explain");
            }
            (name @ "inputStage", Value::Document(inner)) => write_bounded(inner, written, &mut writer.document(name)),
            (name @ ("inputStages" | "shards"), Value::Array(inner)) => {
                let mut array = writer.array(name);
                for stage in inner.values().filter_map(Value::as_document) {
                    write_bounded(stage, written, &mut array.document());
                }
            }
            _ => {
                *written += element.raw_value().len();
                writer.append_element(element);
            }
        }
    }
}

/// Writes `multiKeyPaths`: for each field of an index, the path prefixes at which documents have
/// arrays. `is_array` receives a field and a component of its path, both counted from zero.
pub fn append_multikey_paths(key: Doc<'_>, is_array: impl Fn(usize, usize) -> bool, writer: &mut DocWriter<'_>) {
    let mut paths = writer.document("multiKeyPaths");
    for (field, (path, _)) in key.iter().enumerate() {
        let mut met = paths.array(path);
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        for (_, end) in ends.enumerate().filter(|(component, _)| is_array(field, *component)) {
            met.push(&path[..end]);
        }
    }
}

/// Appends a count as MongoDB does: an int32 if it fits.
pub fn append_count(key: &str, count: u64, writer: &mut DocWriter<'_>) {
    match i32::try_from(count) {
        Ok(count) => writer.append(key, count),
        Err(_) => writer.append(key, count as i64),
    }
}
