//! From the `pipeline` array to stages.

use super::joins::CrossCollectionStage;
use super::stage::Stage;
use super::stage_table::{Position, StageEntry, find, unknown_stage};
use document::{Doc, Value};
use error::{Code, Error, Result};
use query::Context;
use query::metadata::Needs;
use std::sync::Arc;
use steps::Counted;

/// Maximal number of stages in a pipeline.
const STAGES_MAX: usize = 1000;

/// Parses the stages, and determines the metadata that they read of the input documents.
pub(super) fn parse_stages(pipeline: Doc<'_>, context: &Context) -> Result<(Vec<Stage>, Needs)> {
    let count = pipeline.elements().counted().count();
    if count > STAGES_MAX {
        let message = format!("Pipeline length must be no longer than {STAGES_MAX} stages");
        return Err(Error::failed_to_parse(message));
    }
    let mut stages = Vec::with_capacity(count);
    let mut entries = Vec::with_capacity(count);
    let (mut needs, mut anew) = (Needs::NONE, false);
    for operator in pipeline.values().counted().filter_map(Value::as_document).filter_map(Doc::first) {
        let entry = find(operator.key());
        let parsed = match entry {
            Some(entry) => entry.parse(operator.value(), context, &mut stages),
            None => Err(unknown_stage(operator.key())),
        };
        match (operator.key(), &parsed, stages.last()) {
            ("$match", Err(error), _) if error.code() == Code::INDEX_NOT_FOUND && !entries.is_empty() => {
                return Err(text_not_first());
            }
            ("$match", Ok(()), Some(Stage::Match(filter))) if filter.text_search().is_some() && !entries.is_empty() => {
                return Err(text_not_first());
            }
            _ => parsed?,
        }
        // After a stage that makes new documents, only metadata that need no request are available.
        let requested = context.metadata_requests.take();
        needs = needs.and(if anew { requested.of_searches() } else { requested });
        request_from_union(&mut stages, requested);
        anew |= entry.is_some_and(|entry| entry.makes_new_documents);
        entries.extend(entry);
    }
    check_positions(&entries)?;
    Ok((stages, needs))
}

/// Passes requests for metadata to a `$unionWith`: stages that map one document to one are executed
/// on both its sides.
fn request_from_union(stages: &mut [Stage], requested: Needs) {
    let [before @ .., last] = stages else { return };
    if !last.is_one_to_one() || requested.is_empty() {
        return;
    }
    let moves = |stage: &Stage| stage.is_one_to_one() || matches!(stage, Stage::Match(_));
    if let Some(Stage::CrossCollection(joining)) = before.iter_mut().rev().find(|stage| !moves(stage))
        && let Some(CrossCollectionStage::UnionWith(union)) = Arc::get_mut(joining)
    {
        union.request_metadata(requested);
    }
}

/// Returns the error for a text search that is not first: it requires an index, which contains only
/// documents of a collection.
fn text_not_first() -> Error {
    Error::new(Code(17313), "$match with $text is only allowed as the first pipeline stage")
}

fn check_positions(stages: &[&StageEntry]) -> Result<()> {
    for (index, stage) in stages.iter().enumerate() {
        match stage.position {
            Position::First(misplaced) if index > 0 => return Err(misplaced(stage.name)),
            Position::Last if index + 1 < stages.len() => {
                return Err(Error::new(
                    Code(40601),
                    format!("{} can only be the final stage in the pipeline", stage.name),
                ));
            }
            _ => {}
        }
    }
    Ok(())
}
