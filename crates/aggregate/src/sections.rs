//! A run: documents pass the stages one by one; each stage passes them to the next as borrowed
//! bytes.

use super::Execution;
use super::bucket_auto::BucketAutoInput;
use super::densify::DensifyInput;
use super::flow::{BlockingStage, Demand, DocumentSource, LEVELS_MAX, Pace, Pacer, too_deep};
use super::group::GroupInput;
use super::sample::Sampler;
use super::stage::Stage;
use super::unpack_bucket::UnpackBucket;
use super::unwind::Unwind;
use super::window::WindowInput;
use super::{add_fields::AddFields, redact::Redact, reshape};
use document::{Doc, DocBuf, DocWriter, Kind, Value};
use error::{Code, Error, Result};
use query::Predicate;
use query::metadata::{Item, ItemBuf, Meta, MetadataBuf};
use query::sort::Sorter;
use std::collections::VecDeque;
use std::sync::Arc;
use values::spill::Budget;

/// Stages call each other, so the stack is as deep as the section is long; a longer pipeline copies
/// documents into a queue in between.
const SECTION_STEPS_MAX: usize = 50;

/// Maximal size of the document of a `$facet`.
const FACET_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Consecutive stages of a run.
pub(super) struct Section {
    steps: Vec<StageState>,
    /// Results on their way to the next section.
    queue: VecDeque<ItemBuf>,
}

/// The state of a stage in a run.
enum StageState {
    Match(Arc<Predicate>),
    Limit {
        remaining: u64,
    },
    Skip {
        remaining: u64,
    },
    AddFields(Arc<AddFields>, Vec<u8>),
    Project(Arc<reshape::Project>, Vec<u8>),
    ReplaceRoot(Arc<reshape::ReplaceRoot>),
    Unwind(Arc<Unwind>, Vec<u8>),
    UnpackBucket(Arc<UnpackBucket>, Vec<u8>),
    Redact(Arc<Redact>, Vec<u8>),
    Count {
        name: Arc<str>,
        count: u64,
    },
    Facet(Vec<Facet>),
    /// Consumes all its input before it returns documents.
    Blocking(Box<dyn BlockingStage>),
    /// Returns the documents of a stage that consumed its input.
    Emitting(Box<dyn DocumentSource>),
    /// A stage that does not run here.
    Unsupported(&'static str),
}

struct Facet {
    name: Box<str>,
    execution: Execution,
    results: VecDeque<DocBuf>,
    bytes: usize,
    is_done: bool,
    /// Its failure. Failures of the stages before all facets come first, then those of one facet
    /// after the other.
    failure: Option<Error>,
}

pub(super) fn sections(stages: &[Stage], budget: &Budget) -> Vec<Section> {
    stages
        .chunks(SECTION_STEPS_MAX)
        .map(|stages| Section {
            steps: stages.iter().map(|stage| StageState::begin(stage, budget)).collect(),
            queue: VecDeque::new(),
        })
        .collect()
}

impl StageState {
    fn begin(stage: &Stage, budget: &Budget) -> StageState {
        match stage {
            Stage::Match(predicate) => StageState::Match(predicate.clone()),
            Stage::Sort { sort, limit } => {
                let limit = limit.and_then(|limit| usize::try_from(limit).ok());
                StageState::Blocking(Box::new(Sorter::new(sort.clone(), limit, budget.clone())))
            }
            Stage::Limit(left) => StageState::Limit { remaining: *left },
            Stage::Skip(left) => StageState::Skip { remaining: *left },
            Stage::AddFields(fields) => StageState::AddFields(fields.clone(), Vec::new()),
            Stage::Project(project) => StageState::Project(project.clone(), Vec::new()),
            Stage::ReplaceRoot(replace) => StageState::ReplaceRoot(replace.clone()),
            Stage::Unwind(unwind) => StageState::Unwind(unwind.clone(), Vec::new()),
            Stage::UnpackBucket(unpack) => StageState::UnpackBucket(unpack.clone(), Vec::new()),
            Stage::Group(group) => StageState::Blocking(Box::new(GroupInput::new(group.clone(), budget.clone()))),
            Stage::Count(name) => StageState::Count { name: name.clone(), count: 0 },
            Stage::BucketAuto(spec) => {
                StageState::Blocking(Box::new(BucketAutoInput::new(spec.clone(), budget.clone())))
            }
            Stage::Sample(sample) => StageState::Blocking(Box::new(Sampler::new(*sample, budget.clone()))),
            Stage::Densify(stage) => StageState::Blocking(Box::new(DensifyInput::new(stage.clone(), budget.clone()))),
            Stage::SetWindowFields(stage) => {
                StageState::Blocking(Box::new(WindowInput::new(stage.clone(), budget.clone())))
            }
            Stage::Redact(redact) => StageState::Redact(redact.clone(), Vec::new()),
            Stage::Facet(facets) => StageState::Facet(
                facets
                    .iter()
                    .map(|(name, pipeline)| Facet {
                        name: name.clone(),
                        execution: pipeline.start(budget.clone()),
                        results: VecDeque::new(),
                        bytes: 0,
                        is_done: false,
                        failure: None,
                    })
                    .collect(),
            ),
            Stage::CrossCollection(joining) => StageState::Unsupported(joining.name()),
            Stage::GeoNear(_) => StageState::Unsupported("$geoNear"),
        }
    }
}

/// Returns whether only the number of pushed documents matters.
pub(super) fn needs_count_only(sections: &[Section]) -> bool {
    match sections.first().and_then(|section| section.steps.first()) {
        Some(StageState::Count { .. }) => true,
        Some(StageState::Blocking(holder)) => holder.needs_count_only(),
        _ => false,
    }
}

/// Returns how many documents are drawn at random before anything else is done.
pub(super) fn sample_size(sections: &[Section]) -> Option<usize> {
    match sections.first()?.steps.first()? {
        StageState::Blocking(holder) => holder.sample_size(),
        _ => None,
    }
}

/// Pushes this many documents, if only their number matters.
pub(super) fn push_count(sections: &mut [Section], number: u64) -> Result<()> {
    match sections.first_mut().and_then(|section| section.steps.first_mut()) {
        Some(StageState::Count { count, .. }) => *count += number,
        Some(StageState::Blocking(holder)) => holder.push_count(number)?,
        _ => {}
    }
    Ok(())
}

/// Pushes a document through all sections.
pub(super) fn push(sections: &mut [Section], item: Item<'_>, ready: &mut VecDeque<ItemBuf>) -> Result<Demand> {
    let Some((first, rest)) = sections.split_first_mut() else {
        ready.push_back(item.to_owned());
        return Ok(Demand::More);
    };
    if rest.is_empty() {
        return push_through(&mut first.steps, item, ready);
    }
    let demand = push_through(&mut first.steps, item, &mut first.queue)?;
    Ok(match drain_queues(sections, ready)? {
        Demand::More => demand,
        Demand::Enough => Demand::Enough,
    })
}

/// Empties the queues between the sections.
fn drain_queues(sections: &mut [Section], ready: &mut VecDeque<ItemBuf>) -> Result<Demand> {
    let mut demand = Demand::More;
    for index in 1..sections.len() {
        let (before, following) = sections.split_at_mut(index);
        let last = following.len() == 1;
        let (Some(from), Some(section)) = (before.last_mut(), following.first_mut()) else { break };
        let out = if last { &mut *ready } else { &mut section.queue };
        while let Some(item) = from.queue.pop_front() {
            ::steps::step();
            if push_through(&mut section.steps, item.as_item(), out)? == Demand::Enough {
                from.queue.clear();
                demand = Demand::Enough;
            }
        }
    }
    Ok(demand)
}

/// The progress of ending the input: the stage that currently returns the documents it holds.
#[derive(Debug, Default)]
pub(super) struct EndProgress {
    section: usize,
    step: usize,
}

/// Ends the input: the stages return the documents they hold, one stage after the other, until
/// `wanted` results are ready or `pace` requests a pause. Returns true once all are returned.
pub(super) fn advance(
    sections: &mut [Section],
    ending: &mut EndProgress,
    ready: &mut VecDeque<ItemBuf>,
    wanted: usize,
    pace: &mut Pacer<'_>,
) -> Result<bool> {
    loop {
        if pace()? == Pace::Pause {
            return Ok(false);
        }
        drain_queues(sections, ready)?;
        let last = ending.section + 1 == sections.len();
        let Some(section) = sections.get_mut(ending.section) else { return Ok(true) };
        let out = if last { &mut *ready } else { &mut section.queue };
        // Documents on their way to the next section count too, so that they do not pile up there.
        if out.len() >= wanted {
            return Ok(false);
        }
        match section.steps.get_mut(ending.step..).and_then(<[StageState]>::split_first_mut) {
            Some((step, rest)) => {
                if !emit_one(step, rest, out, pace)? {
                    ending.step += 1;
                }
            }
            None => *ending = EndProgress { section: ending.section + 1, step: 0 },
        }
    }
}

/// Passes a document to the first of `steps`, and its results to the following ones.
fn push_through(steps: &mut [StageState], item: Item<'_>, out: &mut VecDeque<ItemBuf>) -> Result<Demand> {
    ::steps::step();
    let Some((step, rest)) = steps.split_first_mut() else {
        ::steps::bytes(item.document.size());
        out.push_back(item.to_owned());
        return Ok(Demand::More);
    };
    match step {
        StageState::Match(predicate) => match predicate.matches(item.document)? {
            true => push_through(rest, item, out),
            false => Ok(Demand::More),
        },
        StageState::Blocking(holder) => holder.push(item),
        StageState::Count { count, .. } => {
            *count += 1;
            Ok(Demand::More)
        }
        StageState::Skip { remaining: left } if *left > 0 => {
            *left -= 1;
            Ok(Demand::More)
        }
        StageState::Skip { .. } => push_through(rest, item, out),
        StageState::Limit { remaining: left } => push_limited(left, rest, item, out),
        StageState::AddFields(fields, scratch) => {
            scratch.clear();
            fields.apply(item, scratch)?;
            push_through(rest, item.with(parse_written(scratch)?), out)
        }
        StageState::Project(project, scratch) => {
            scratch.clear();
            project.apply(item, scratch)?;
            let item = item.with(parse_written(scratch)?);
            if item.metadata.get(Meta::RecordId).is_none() {
                return push_through(rest, item, out);
            }
            // Only the projection in front of all stages sees the record's number.
            let mut metadata = MetadataBuf::default();
            metadata.begin(item.metadata);
            metadata.remove(Meta::RecordId);
            push_through(rest, Item { metadata: metadata.as_metadata(), ..item }, out)
        }
        StageState::Redact(redact, scratch) => {
            scratch.clear();
            match redact.apply(item, scratch)? {
                true => push_through(rest, item.with(parse_written(scratch)?), out),
                false => Ok(Demand::More),
            }
        }
        StageState::ReplaceRoot(replace) => push_replaced(replace, rest, item, out),
        StageState::Unwind(unwind, scratch) => {
            unwind.for_each(item.document, scratch, &mut |document| push_through(rest, item.with(document), out))
        }
        StageState::UnpackBucket(unpack, scratch) => {
            unpack.for_each(item.document, scratch, &mut |document| push_through(rest, item.with(document), out))
        }
        StageState::Facet(facets) => push_facets(facets, item),
        StageState::Emitting(_) => Ok(Demand::Enough),
        StageState::Unsupported(name) => {
            Err(Error::new(Code::ILLEGAL_OPERATION, format!("{name} cannot be carried out in this place")))
        }
    }
}

/// Returns the document that a stage has written. Fails with 10334 if it is too large even between
/// stages.
fn parse_written(scratch: &[u8]) -> Result<Doc<'_>> {
    query::check_size_between_stages(scratch.len())?;
    let document = Doc::from_bytes(scratch).unwrap_or(Doc::EMPTY);
    check_depth(document)?;
    Ok(document)
}

/// Fails with 15 for a document that is nested too deep for a client, or for recursion here.
fn check_depth(document: Doc<'_>) -> Result<()> {
    if !document::validate::is_deeper_than(document, LEVELS_MAX) {
        return Ok(());
    }
    Err(too_deep())
}

fn push_limited(
    left: &mut u64,
    rest: &mut [StageState],
    item: Item<'_>,
    out: &mut VecDeque<ItemBuf>,
) -> Result<Demand> {
    if *left == 0 {
        return Ok(Demand::Enough);
    }
    *left -= 1;
    let is_last = *left == 0;
    let demand = push_through(rest, item, out)?;
    Ok(if is_last { Demand::Enough } else { demand })
}

fn push_replaced(
    replace: &reshape::ReplaceRoot,
    rest: &mut [StageState],
    item: Item<'_>,
    out: &mut VecDeque<ItemBuf>,
) -> Result<Demand> {
    let root = replace.evaluate(item)?;
    match root.value() {
        Some(Value::Document(root)) => push_through(rest, item.with(root), out),
        other => Err(replace.invalid_root(other, item.document)),
    }
}

fn push_facets(facets: &mut [Facet], item: Item<'_>) -> Result<Demand> {
    // Once one has failed, those in front of it may still fail first.
    let failed = facets.iter().any(|facet| facet.failure.is_some());
    let mut demand = if failed { Demand::More } else { Demand::Enough };
    for facet in facets.iter_mut().filter(|facet| !facet.is_done) {
        ::steps::step();
        let outcome = facet.execution.push(item).and_then(|demand| facet.collect_results().map(|()| demand));
        match outcome {
            Ok(demand) => facet.is_done = demand == Demand::Enough,
            Err(failure) => {
                facet.failure = Some(failure);
                facet.is_done = true;
                // Later facets do not matter any more, earlier ones do.
                demand = Demand::More;
            }
        }
        if !facet.is_done {
            demand = Demand::More;
        }
    }
    Ok(demand)
}

impl Facet {
    /// Moves the results; a facet's results become one array in one document.
    fn collect_results(&mut self) -> Result<()> {
        while let Some(document) = self.execution.pop() {
            ::steps::step();
            self.bytes += document.as_bytes().len();
            check_facet_size(self.bytes)?;
            self.results.push_back(document);
        }
        Ok(())
    }
}

/// Makes a stage return one of the documents it holds; returns false if nothing is left, or no more
/// are needed.
fn emit_one(
    step: &mut StageState,
    rest: &mut [StageState],
    out: &mut VecDeque<ItemBuf>,
    pace: &mut Pacer<'_>,
) -> Result<bool> {
    if matches!(step, StageState::Blocking(_)) {
        let holder = std::mem::replace(step, StageState::Limit { remaining: 0 });
        if let StageState::Blocking(holder) = holder {
            *step = StageState::Emitting(holder.finish()?);
        }
    }
    match step {
        StageState::Emitting(giver) => {
            let demand = giver.emit_next(&mut |item| push_through(rest, item, out), pace)?;
            if demand == Some(Demand::More) {
                return Ok(true);
            }
            // Frees the documents that it held.
            *step = StageState::Limit { remaining: 0 };
        }
        StageState::Count { name, count } if *count > 0 => {
            let total = std::mem::take(count);
            let document = DocBuf::build(|writer| match i32::try_from(total) {
                Ok(small) => writer.append(name, small),
                Err(_) => writer.append(name, i64::try_from(total).unwrap_or(i64::MAX)),
            });
            push_through(rest, document.as_doc().into(), out)?;
        }
        StageState::Facet(facets) => {
            let Some(document) = finish_facets(facets, pace)? else { return Ok(true) };
            push_through(rest, document.as_doc().into(), out)?;
        }
        _ => {}
    }
    Ok(false)
}

/// Ends the facets' input; returns `None` if `pace` requests a pause before all are finished.
fn finish_facets(facets: &mut [Facet], pace: &mut Pacer<'_>) -> Result<Option<DocBuf>> {
    for facet in facets.iter_mut() {
        if let Some(failure) = facet.failure.take() {
            return Err(failure);
        }
        let is_finished = facet.execution.advance(usize::MAX, pace)?;
        facet.collect_results()?;
        if !is_finished {
            return Ok(None);
        }
    }
    let results: Vec<(&str, Vec<DocBuf>)> =
        facets.iter_mut().map(|facet| (&*facet.name, facet.results.drain(..).collect())).collect();
    facet_document(&results).map(Some)
}

/// Fails with 4031700 if a facet's results are too large for one document.
pub fn check_facet_size(bytes: usize) -> Result<()> {
    if bytes <= FACET_BYTES_MAX {
        return Ok(());
    }
    let message =
        format!("document constructed by $facet is {bytes} bytes, which exceeds the limit of {FACET_BYTES_MAX} bytes");
    Err(Error::new(Code(4031700), message))
}

/// Returns the document of a `$facet`: each pipeline's results under its name.
pub fn facet_document(results: &[(&str, Vec<DocBuf>)]) -> Result<DocBuf> {
    let document = DocBuf::build(|writer: &mut DocWriter<'_>| {
        for (name, documents) in results {
            let mut array = writer.array(name);
            for document in documents {
                ::steps::step();
                ::steps::bytes(document.as_bytes().len());
                array.push_raw(Kind::Document, document.as_bytes());
            }
        }
    });
    check_facet_size(document.as_bytes().len())?;
    check_depth(document.as_doc())?;
    Ok(document)
}

/// Fails with 10334 or 15 for a result that no reply could contain.
pub fn check_size(document: Doc<'_>) -> Result<()> {
    check_depth(document)?;
    if document.size() > document::DOCUMENT_BYTES_MAX_INTERNAL { Err(too_large(document)) } else { Ok(()) }
}

fn too_large(document: Doc<'_>) -> Error {
    let size = document.size();
    let first = document
        .first()
        .map_or_else(|| "EOO".to_owned(), |first| values::text::element(first.key(), first.value()).to_string());
    Error::new(
        Code::BSON_OBJECT_TOO_LARGE,
        format!(
            "BSONObj size: {size} (0x{size:X}) is invalid. Size must be between 0 and {}(16MB) First element: {first}",
            document::DOCUMENT_BYTES_MAX_INTERNAL
        ),
    )
}
