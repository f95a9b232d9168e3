//! Stages that read or write other collections. They are described here and executed by the caller,
//! who has the stores.
//!
//! [`Lookup`]: for each input document, [`Lookup::query`] returns the query for
//! [`Lookup::collection`], and [`Lookup::join`] adds its results to the document. [`UnionWith`]:
//! the input is followed by the results of another pipeline. [`Out`] and [`Merge`]: the input is
//! written to a collection.

mod graph_lookup;
mod join_table;
mod join_values;
mod lookup;
mod write;

use crate::{Pipeline, optimize, source_metadata};
use document::{ArrayWriter, Doc, DocBuf, Value};
use error::{Code, Error, Result};
use query::metadata::{Meta, Needs};
use query::{Context, Expression};
use steps::Counted;

pub use graph_lookup::{GraphLookup, GraphSearch};
pub use join_table::JoinTable;
pub use lookup::{Lookup, MATCHES_BYTES_MAX};
pub use write::{Merge, Out, WhenMatched, WhenNotMatched};

/// Parses the name of the collection in `from`.
pub(super) fn parse_source<'v>(stage: &str, from: Value<'v>) -> Result<&'v str> {
    match from {
        Value::String(collection) => Ok(collection),
        Value::Document(spec) => {
            let [mut database, mut collection] = [""; 2];
            for (name, value) in spec.iter() {
                let wrong = || {
                    let kind = value.kind().alias();
                    let message =
                        format!("BSON field 'from.{name}' is the wrong type '{kind}', expected type 'string'");
                    Error::type_mismatch(message)
                };
                match name {
                    "db" => database = value.as_str().ok_or_else(wrong)?,
                    "coll" => collection = value.as_str().ok_or_else(wrong)?,
                    _ => {
                        let message = format!("BSON field 'from.{name}' is an unknown field.");
                        return Err(Error::new(Code(40415), message));
                    }
                }
            }
            Err(Error::failed_to_parse(format!(
                "{stage} with syntax {{from: {{db:<>, coll:<>}},..}} is not supported for db: {database} and coll: \
                 {collection}"
            )))
        }
        other => {
            let kind = other.kind().alias();
            Err(Error::failed_to_parse(format!("{stage} 'from' field must be a string, but found {kind}")))
        }
    }
}

#[derive(Debug)]
pub enum Foreign {
    Lookup(Lookup),
    GraphLookup(GraphLookup),
    UnionWith(UnionWith),
    Out(Out),
    Merge(Merge),
}

/// `$unionWith`.
#[derive(Clone, Debug)]
pub struct UnionWith {
    /// The collection, in the same database.
    pub collection: String,
    /// Documents that replace the collection as the pipeline's input (`$documents`).
    pub documents: Option<Vec<DocBuf>>,
    /// The pipeline over the documents.
    pub pipeline: Pipeline,
    /// The metadata that the pipeline computes for its documents.
    produced: Needs,
    /// The metadata that the following stages read and the pipeline's documents do not have.
    pub missing_metadata: Option<Meta>,
}

impl Foreign {
    /// Returns the stage's name, including `$`.
    pub fn name(&self) -> &'static str {
        match self {
            Foreign::Lookup(_) => "$lookup",
            Foreign::GraphLookup(_) => "$graphLookup",
            Foreign::UnionWith(_) => "$unionWith",
            Foreign::Out(_) => "$out",
            Foreign::Merge(_) => "$merge",
        }
    }

    /// Returns whether the stage writes its input, and returns nothing.
    pub fn writes(&self) -> bool {
        matches!(self, Foreign::Out(_) | Foreign::Merge(_))
    }

    pub(super) fn parse(name: &str, spec: Value<'_>, context: &Context) -> Result<Foreign> {
        match name {
            "$lookup" => Lookup::parse(spec, context).map(Foreign::Lookup),
            "$graphLookup" => GraphLookup::parse(spec, context).map(Foreign::GraphLookup),
            "$unionWith" => UnionWith::parse(spec, context).map(Foreign::UnionWith),
            "$out" => Out::parse(spec).map(Foreign::Out),
            _ => Merge::parse(spec, context).map(Foreign::Merge),
        }
    }
}

impl UnionWith {
    /// Records the metadata read by a following stage, which is executed within the other pipeline,
    /// too.
    pub(super) fn request_metadata(&mut self, requested: Needs) {
        self.missing_metadata = self.missing_metadata.or_else(|| requested.lacking(self.produced));
        self.pipeline.needs = self.pipeline.needs.and(requested);
        optimize::record_metadata(&mut self.pipeline.stages, requested);
    }

    fn parse(spec: Value<'_>, context: &Context) -> Result<UnionWith> {
        let spec = match spec {
            Value::String(collection) => return UnionWith::new(collection, None, Doc::EMPTY, context),
            Value::Document(spec) => spec,
            other => {
                return Err(Error::failed_to_parse(format!(
                    "the $unionWith stage specification must be an object or string, but found {}",
                    other.kind().alias()
                )));
            }
        };
        let (mut collection, mut stages) = (None, None);
        for (name, value) in spec.iter() {
            match (name, value) {
                ("coll", Value::String(text)) => collection = Some(text),
                ("pipeline", Value::Array(array)) => stages = Some(array),
                ("coll", Value::Null) => {}
                ("pipeline", Value::Null) => {
                    let message = "invalid parameter: expected an object (pipeline)";
                    return Err(Error::new(Code(10065), message));
                }
                ("coll" | "pipeline", other) => {
                    let expected = if name == "coll" { "string" } else { "array" };
                    return Err(wrong_type("$unionWith", name, other, expected));
                }
                _ => return Err(unknown_field("$unionWith", name)),
            }
        }
        let (documents, rest) = split_documents(stages.unwrap_or(Doc::EMPTY));
        let documents = documents.map(|documents| documents_of(documents, context)).transpose()?;
        let collection =
            collection.or_else(|| documents.as_ref().map(|_| "")).ok_or_else(|| missing_source("$unionWith"))?;
        UnionWith::new(collection, documents, rest.as_doc(), context)
    }

    fn new(collection: &str, documents: Option<Vec<DocBuf>>, stages: Doc<'_>, context: &Context) -> Result<UnionWith> {
        if collection.is_empty() && documents.is_none() {
            return Err(Error::new(Code::INVALID_NAMESPACE, "Namespace is not a valid collection name"));
        }
        let (collection, stages) = context.views.resolve(collection, stages);
        let context = Context { text_indexes: context.text_indexes.for_collection(collection), ..context.clone() };
        let pipeline = parse_sub_pipeline("$unionWith", stages.as_doc(), &context)?;
        let pipeline = if documents.is_none() { pipeline.with_second_engine() } else { pipeline };
        let gives = source_metadata(stages.as_doc());
        Ok(UnionWith {
            collection: collection.to_owned(),
            documents,
            pipeline,
            produced: gives,
            missing_metadata: None,
        })
    }
}

/// Returns the operand of a leading `$documents`, and the stages after it.
fn split_documents<'v>(stages: Doc<'v>) -> (Option<Value<'v>>, DocBuf) {
    let first = stages.values().next().and_then(Value::as_document).and_then(Doc::first);
    let documents = first.filter(|first| first.key() == "$documents").map(|first| first.value());
    let mut bytes = Vec::new();
    let mut rest = ArrayWriter::begin(&mut bytes);
    stages.values().counted().skip(usize::from(documents.is_some())).for_each(|stage| rest.push(stage));
    drop(rest);
    (documents, DocBuf::from_vec(bytes).unwrap_or_default())
}

/// Evaluates the operand of `$documents`. Fails with 5858203 if the result is no array, and with
/// 40228 for elements that are no documents.
pub fn documents_of(operand: Value<'_>, context: &Context) -> Result<Vec<DocBuf>> {
    let expression = Expression::parse(operand, context)?;
    let evaluated = expression.evaluate(Doc::EMPTY)?;
    let Some(Value::Array(array)) = evaluated.value() else {
        return Err(Error::new(Code(5858203), "an array is expected"));
    };
    array
        .values()
        .counted()
        .map(|element| match element {
            Value::Document(document) => Ok(document.to_owned()),
            other => {
                let (found, kind) = (values::text::display(other), other.kind().alias());
                let message = format!(
                    "elements within the array passed to $documents must evaluate to an object, but resulting value was: \
                     {found}. Type of resulting value: '{kind}'."
                );
                Err(Error::new(Code(40228), message))
            }
        })
        .collect()
}

/// Parses the pipeline of a stage, which may not write.
fn parse_sub_pipeline(stage: &str, stages: Doc<'_>, context: &Context) -> Result<Pipeline> {
    for inner in stages.values().counted() {
        let name = inner.as_document().and_then(Doc::first).map_or("", |first| first.key());
        if matches!(name, "$out" | "$merge") {
            let message = format!("{name} is not allowed within a {stage}'s sub-pipeline");
            let code = if stage == "$unionWith" { 31441 } else { 51047 };
            return Err(Error::new(error::Code(code), message));
        }
    }
    let context = Context { pipelines_around: context.pipelines_around + 1, ..context.clone() };
    check_nesting(context.pipelines_around)?;
    Pipeline::parse(stages, &context)
}

/// Maximal depth of nested pipelines.
const NESTED_PIPELINES_MAX: usize = 20;

/// Fails with 232 for a pipeline inside too many others.
pub fn check_nesting(pipelines_around: usize) -> Result<()> {
    if pipelines_around <= NESTED_PIPELINES_MAX {
        return Ok(());
    }
    let message = format!("Maximum number of nested sub-pipelines exceeded. Limit is {NESTED_PIPELINES_MAX}");
    Err(Error::new(Code(232), message))
}

/// Returns the error for a stage that names no collection and whose pipeline has no `$documents`.
pub(super) fn missing_source(stage: &str) -> Error {
    let message =
        format!("{stage} stage without explicit collection must have a pipeline with $documents as first stage");
    Error::failed_to_parse(message)
}

pub(super) fn wrong_type(stage: &str, name: &str, found: Value<'_>, expected: &str) -> Error {
    let kind = found.kind().alias();
    Error::type_mismatch(format!("BSON field '{stage}.{name}' is the wrong type '{kind}', expected type '{expected}'"))
}

fn unknown_field(stage: &str, name: &str) -> Error {
    Error::new(error::Code(40415), format!("BSON field '{stage}.{name}' is an unknown field."))
}
