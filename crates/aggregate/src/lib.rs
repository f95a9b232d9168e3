//! Aggregation pipelines: parsed once, then fed with documents.
//!
//! Input is the stages as a client sends them, then documents as borrowed bytes; output is
//! documents. Stages that only read a document or drop it pass the borrowed bytes along: `$match` →
//! `$group` never copies a document.
//!
//! In reading order: `parse` (from BSON to [`Stage`]s), `optimize` (their order, and the part that
//! a store can execute), `steps` (a run: documents through the stages), one module per larger
//! stage. A stage that reads or writes another collection is a [`joins::CrossCollectionStage`], which the
//! caller executes between two runs ([`Pipeline::into_parts`]).
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/aggregation-pipeline/>; where it
//! is silent, the behavior of a 6.0 server.

mod accumulate;
mod add_fields;
mod boundaries;
mod bucket;
mod bucket_auto;
mod densify;
mod facets;
mod field_tree;
mod fill;
mod flow;
mod geo_near;
mod granularity;
mod group;
pub mod joins;
mod operand;
mod optimize;
mod parse;
mod precheck;
mod redact;
mod reshape;
mod sample;
mod second_engine;
mod sections;
mod stage;
mod stage_table;
mod transform;
mod unpack_bucket;
mod unwind;
mod window;

#[cfg(test)]
mod tests;

use document::{Doc, DocBuf};
use error::{Error, Result};
pub use flow::{Demand, Pace, Pacer};
use joins::CrossCollectionStage;
use joins::sources::source_metadata;
pub use precheck::precheck;
use query::metadata::{Item, ItemBuf, Meta, Needs};
use query::{Context, Predicate, ReadFields};
use sections::Section;
pub use sections::{check_facet_size, check_size, facet_document};
use stage::Stage;
pub use stage::{Facets, Pipeline, PipelineSource};
pub use stage_table::{LOCAL_SESSIONS_NAMESPACE, SESSIONS_NAMESPACE, no_change_streams};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
pub use transform::Transformation;
pub use unpack_bucket::UNPACK_BUCKET;
use values::spill::Budget;

/// A section of a pipeline.
#[derive(Clone, Debug)]
pub enum PipelinePart {
    /// Stages that need only their input.
    Local(Pipeline),
    /// A stage that needs other collections.
    CrossCollection(Arc<CrossCollectionStage>),
    /// A `$facet` whose pipelines need other collections; their results are combined into one
    /// document ([`facet_document`]).
    Facets(Facets),
}

impl Pipeline {
    /// Parses the command's `pipeline`, an array of stages.
    ///
    /// Fails with 40323 and 40324 for an invalid stage, 9 for more than 1,000 stages, 40601 and
    /// 40602 for stages in the wrong place, and like each stage.
    pub fn parse(stages: Doc<'_>, context: &Context) -> Result<Pipeline> {
        precheck::precheck(stages)?;
        Self::parse_whole(stages, context)
    }

    /// Parses a command's pipeline that [`precheck`] has checked.
    pub fn parse_checked(stages: Doc<'_>, context: &Context) -> Result<Pipeline> {
        let led = geo_near::without_idle_prefix(stages);
        Self::parse_whole(led.as_ref().map_or(stages, DocBuf::as_doc), context)
    }

    fn parse_whole(stages: Doc<'_>, context: &Context) -> Result<Pipeline> {
        let mut pipeline = Self::parse_stages(stages, context)?;
        pipeline.needs.check(source_metadata(stages))?;
        stage::record_metadata(&mut pipeline.stages, pipeline.needs);
        let asks_for_order = optimize::leading_inclusion(&pipeline.stages);
        if asks_for_order.is_some_and(|needs| needs.contains(Meta::SortKey)) {
            return Err(no_sort_key());
        }
        Ok(pipeline)
    }

    /// Parses a pipeline whose input is another's documents, or one document. It may read any
    /// metadata.
    fn parse_nested(stages: Doc<'_>, context: &Context) -> Result<Pipeline> {
        precheck::precheck(stages)?;
        Self::parse_stages(stages, context)
    }

    fn parse_stages(stages: Doc<'_>, context: &Context) -> Result<Pipeline> {
        let outer_requests = context.metadata_requests.take();
        let fields = ReadFields::of_pipeline(stages);
        let (mut stages, needs) = context.folding_later(|context| parse::parse_stages(stages, context))?;
        context.metadata_requests.add(outer_requests);
        optimize::reorder(&mut stages);
        Ok(Pipeline { stages, needs, fields })
    }

    /// Returns a pipeline without stages.
    pub fn empty() -> Pipeline {
        Pipeline { stages: Vec::new(), needs: Needs::NONE, fields: None }
    }

    /// Returns the pipeline with a `$match` in front of it.
    pub fn with_leading_match(mut self, predicate: Predicate) -> Pipeline {
        // The condition may read other fields.
        self.fields = None;
        let predicate = match self.stages.first_mut() {
            Some(Stage::GeoNear(source)) => {
                Arc::make_mut(source).add_condition(predicate);
                return self;
            }
            Some(Stage::Match(first)) => {
                let both = predicate.and(first.as_ref().clone());
                self.stages.remove(0);
                both
            }
            _ => predicate,
        };
        self.stages.insert(0, Stage::Match(Arc::new(predicate)));
        self
    }

    /// Removes a leading `$match` and returns its condition.
    fn remove_leading_match(&mut self) -> Option<Predicate> {
        let Some(Stage::Match(first)) = self.stages.first() else { return None };
        let first = first.as_ref().clone();
        self.stages.remove(0);
        // The condition may read other fields.
        self.fields = None;
        Some(first)
    }

    /// Returns whether the pipeline begins with a `$geoNear` that does not name the field of the
    /// locations.
    pub fn lacks_geo_field(&self) -> bool {
        matches!(self.stages.first(), Some(Stage::GeoNear(source)) if source.lacks_geo_field())
    }

    /// Sets the field in which a leading `$geoNear` reads locations.
    pub fn set_geo_field(&mut self, path: &str) {
        if let Some(Stage::GeoNear(source)) = self.stages.first_mut() {
            Arc::make_mut(source).set_geo_field(path);
        }
    }

    /// Splits off the front that a store can execute.
    pub fn into_source(self) -> (PipelineSource, Pipeline) {
        optimize::split_source(self)
    }

    /// Returns the condition of a leading `$match`: a document that does not meet it has no result.
    pub fn leading_match(&self) -> Option<&Arc<Predicate>> {
        match self.stages.first() {
            Some(Stage::Match(predicate)) => Some(predicate),
            _ => None,
        }
    }

    /// Returns whether no stages are left: documents pass through unchanged, and the caller may
    /// skip the pipeline altogether.
    pub fn is_identity(&self) -> bool {
        self.stages.is_empty()
    }

    /// Returns whether a stage needs other collections; [`Pipeline::into_parts`] then splits the
    /// pipeline around such stages.
    pub fn has_cross_collection_stages(&self) -> bool {
        self.stages.iter().any(|stage| match stage {
            Stage::CrossCollection(_) => true,
            Stage::Facet(facets) => facets.iter().any(|(_, pipeline)| pipeline.has_cross_collection_stages()),
            _ => false,
        })
    }

    /// Splits the pipeline into parts that run by themselves, and the stages in between that do
    /// not. Two cross-collection stages may be adjacent; a local part is never empty.
    pub fn into_parts(self) -> Vec<PipelinePart> {
        let mut parts = Vec::new();
        for stage in self.stages {
            match (stage, parts.last_mut()) {
                (Stage::CrossCollection(joining), _) => parts.push(PipelinePart::CrossCollection(joining)),
                (Stage::Facet(facets), _)
                    if facets.iter().any(|(_, pipeline)| pipeline.has_cross_collection_stages()) =>
                {
                    parts.push(PipelinePart::Facets(facets));
                }
                (stage, Some(PipelinePart::Local(pipeline))) => pipeline.stages.push(stage),
                (stage, _) => {
                    parts.push(PipelinePart::Local(Pipeline { stages: vec![stage], needs: self.needs, fields: None }))
                }
            }
        }
        parts
    }

    /// Begins a run. Past the budget's memory, blocking stages continue on disk, or fail with 292.
    pub fn start(&self, budget: impl Into<Budget>) -> Execution {
        let sections = sections::sections(&self.stages, &budget.into());
        Execution { sections, ending: sections::EndProgress::default(), ready: VecDeque::new() }
    }
}

/// Returns error 2: the sort key was requested where nothing is sorted.
pub fn no_sort_key() -> Error {
    Error::bad_value("cannot use sortKey $meta projection without a sort")
}

/// A run of a pipeline: documents are pushed in, results are queued until they are popped.
pub struct Execution {
    sections: Vec<Section>,
    ending: sections::EndProgress,
    ready: VecDeque<ItemBuf>,
}

impl Execution {
    pub fn push<'d>(&mut self, item: impl Into<Item<'d>>) -> Result<Demand> {
        sections::push(&mut self.sections, item.into(), &mut self.ready)
    }

    /// Returns whether only the number of documents matters.
    pub fn needs_count_only(&self) -> bool {
        sections::needs_count_only(&self.sections)
    }

    /// Pushes this many documents, if only their number matters.
    pub fn push_count(&mut self, number: u64) -> Result<()> {
        sections::push_count(&mut self.sections, number)
    }

    /// Returns how many documents the run draws at random before it does anything else with them.
    pub fn sample_size(&self) -> Option<usize> {
        sections::sample_size(&self.sections)
    }

    /// Ends the input: blocking stages return the documents they hold, until `wanted` results are
    /// ready or `pace` requests a pause. Returns true once all are returned.
    pub fn advance(&mut self, wanted: usize, pace: &mut Pacer<'_>) -> Result<bool> {
        sections::advance(&mut self.sections, &mut self.ending, &mut self.ready, wanted, pace)
    }

    /// Ends the input: blocking stages return all documents they hold.
    pub fn finish(&mut self) -> Result<()> {
        self.advance(usize::MAX, &mut || Ok(Pace::Continue)).map(drop)
    }

    /// Returns the next result, if one is ready.
    pub fn pop(&mut self) -> Option<DocBuf> {
        self.pop_item().map(ItemBuf::into_document)
    }

    /// Returns the next result with its metadata, if one is ready.
    pub fn pop_item(&mut self) -> Option<ItemBuf> {
        self.ready.pop_front()
    }

    /// Returns the number of results that are ready.
    pub fn ready_count(&self) -> usize {
        self.ready.len()
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("ready", &self.ready.len()).finish_non_exhaustive()
    }
}
