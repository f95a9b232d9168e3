//! Pipelines of stages that map one document to one: the form of update that is a pipeline.

use super::stage::{Pipeline, Stage};
use document::{Doc, Value};
use error::{Code, Error, Result};
use query::Context;
use query::context::Folding;

const ALLOWED: &[&str] = &["$addFields", "$project", "$replaceRoot", "$replaceWith", "$set", "$unset"];

/// A pipeline that changes one document.
#[derive(Clone, Debug)]
pub struct Transformation {
    pipeline: Pipeline,
}

impl Transformation {
    /// Parses the pipeline. Fails like [`Pipeline::parse`], and with 72 for stages that do more
    /// than change a document.
    pub fn parse(stages: Doc<'_>, context: &Context) -> Result<Transformation> {
        let context = Context { folding: Folding::Never, ..context.clone() };
        let pipeline = Pipeline::parse_nested(stages, &context)?;
        let names = stages.values().filter_map(Value::as_document).filter_map(Doc::first);
        match names.map(|stage| stage.key()).find(|name| !ALLOWED.contains(name)) {
            Some(name) => {
                // The error names the first of the stages that it is translated into.
                let name = match name {
                    "$count" | "$sortByCount" | "$bucket" => "$group",
                    "$densify" | "$setWindowFields" => "$sort",
                    name => name,
                };
                let message = format!("{name} is not allowed to be used within an update");
                Err(Error::new(Code::INVALID_OPTIONS, message))
            }
            None => Ok(Transformation { pipeline }),
        }
    }

    /// Appends the changed document to `out`.
    pub fn apply(&self, document: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        let mut current = document.as_bytes().to_vec();
        let mut next = Vec::with_capacity(current.len() + 64);
        for stage in &self.pipeline.stages {
            steps::step();
            steps::bytes(current.len());
            let input = Doc::from_bytes(&current).unwrap_or(Doc::EMPTY);
            next.clear();
            match stage {
                Stage::AddFields(fields) => fields.apply(input, &mut next)?,
                Stage::Project(project) => project.apply(input, &mut next)?,
                Stage::ReplaceRoot(replace) => {
                    let root = replace.evaluate(input)?;
                    match root.value() {
                        Some(Value::Document(root)) => next.extend_from_slice(root.as_bytes()),
                        other => return Err(replace.invalid_root(other, input)),
                    }
                }
                _ => continue,
            }
            std::mem::swap(&mut current, &mut next);
        }
        out.extend_from_slice(&current);
        Ok(())
    }
}
