//! Pipelines within stages that read other collections.

use crate::stage::Pipeline;
use document::Doc;
use error::{Code, Error, Result};
use query::Context;
use steps::Counted;

/// Parses the pipeline of a stage, which may not write.
pub(super) fn parse_sub_pipeline(stage: &str, stages: Doc<'_>, context: &Context) -> Result<Pipeline> {
    for inner in stages.values().counted() {
        let name = inner.as_document().and_then(Doc::first).map_or("", |first| first.key());
        if matches!(name, "$out" | "$merge") {
            let message = format!("{name} is not allowed within a {stage}'s sub-pipeline");
            let code = if stage == "$unionWith" { 31441 } else { 51047 };
            return Err(Error::new(Code(code), message));
        }
    }
    let context = Context { enclosing_pipelines: context.enclosing_pipelines + 1, ..context.clone() };
    check_nesting(context.enclosing_pipelines)?;
    Pipeline::parse(stages, &context)
}

/// Maximal depth of nested pipelines.
const NESTED_PIPELINES_MAX: usize = 20;

/// Fails with 232 for a pipeline inside too many others.
pub fn check_nesting(enclosing_pipelines: usize) -> Result<()> {
    if enclosing_pipelines <= NESTED_PIPELINES_MAX {
        return Ok(());
    }
    let message = format!("Maximum number of nested sub-pipelines exceeded. Limit is {NESTED_PIPELINES_MAX}");
    Err(Error::new(Code(232), message))
}
