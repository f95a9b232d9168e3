//! Stages that read or write other collections. They are described here and executed by the caller,
//! which has the stores.
//!
//! [`Lookup`]: for each input document, [`Lookup::query`] returns the query for
//! [`Lookup::collection`], and [`Lookup::join`] adds its results to the document. [`UnionWith`]:
//! the input is followed by the results of another pipeline. [`Out`] and [`Merge`]: the input is
//! written to a collection.

mod graph_lookup;
mod join_table;
mod join_values;
mod lookup;
pub(crate) mod sources;
mod sub_pipeline;
mod write;

use crate::stage::{Pipeline, record_metadata};
use document::{Doc, DocBuf, Value};
use error::{Code, Error, Result};
use query::Context;
use query::metadata::{Meta, Needs};

pub use graph_lookup::{GraphLookup, GraphSearch};
pub use join_table::JoinTable;
pub use lookup::{Lookup, MATCHES_BYTES_MAX};
pub use sources::documents_of;
use sources::{missing_source, source_metadata, split_documents, unknown_field, wrong_type};
pub use sub_pipeline::check_nesting;
use sub_pipeline::parse_sub_pipeline;
pub use write::{Merge, Out, WhenMatched, WhenNotMatched};

#[derive(Debug)]
pub enum CrossCollectionStage {
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

impl CrossCollectionStage {
    /// Returns the stage's name, including `$`.
    pub fn name(&self) -> &'static str {
        match self {
            CrossCollectionStage::Lookup(_) => "$lookup",
            CrossCollectionStage::GraphLookup(_) => "$graphLookup",
            CrossCollectionStage::UnionWith(_) => "$unionWith",
            CrossCollectionStage::Out(_) => "$out",
            CrossCollectionStage::Merge(_) => "$merge",
        }
    }

    /// Returns whether the stage writes its input, and returns nothing.
    pub fn writes(&self) -> bool {
        matches!(self, CrossCollectionStage::Out(_) | CrossCollectionStage::Merge(_))
    }

    pub(super) fn parse(name: &str, spec: Value<'_>, context: &Context) -> Result<CrossCollectionStage> {
        match name {
            "$lookup" => Lookup::parse(spec, context).map(CrossCollectionStage::Lookup),
            "$graphLookup" => GraphLookup::parse(spec, context).map(CrossCollectionStage::GraphLookup),
            "$unionWith" => UnionWith::parse(spec, context).map(CrossCollectionStage::UnionWith),
            "$out" => Out::parse(spec).map(CrossCollectionStage::Out),
            _ => Merge::parse(spec, context).map(CrossCollectionStage::Merge),
        }
    }
}

impl UnionWith {
    /// Records the metadata read by a following stage, which is executed within the other pipeline,
    /// too.
    pub(super) fn request_metadata(&mut self, requested: Needs) {
        self.missing_metadata = self.missing_metadata.or_else(|| requested.lacking(self.produced));
        self.pipeline.needs = self.pipeline.needs.and(requested);
        record_metadata(&mut self.pipeline.stages, requested);
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
