//! From the `pipeline` array to stages.

use super::add_fields::AddFields;
use super::bucket_auto::BucketAuto;
use super::densify::Densify;
use super::facets::facet_pipelines;
use super::group::Group;
use super::joins::CrossCollectionStage;
use super::redact::Redact;
use super::reshape::{Project, ReplaceRoot};
use super::sample::{self, Sample};
use super::stage::{Pipeline, Stage};
use super::stage_names::{FIRST_ONLY, unsupported_stage};
use super::unpack_bucket::{UNPACK_BUCKET, UnpackBucket};
use super::unwind::Unwind;
use super::window::SetWindowFields;
use super::{bucket, fill, geo_near};
use document::{Doc, Value};
use error::{Code, Error, Result};
use query::metadata::{Meta, Needs};
use query::{Context, Predicate, Sort};
use std::borrow::Cow;
use std::sync::Arc;
use steps::Counted;
use values::text;

/// Maximal number of stages in a pipeline.
const STAGES_MAX: usize = 1000;

/// Stages that are allowed only as the last one.
const LAST_ONLY: &[&str] = &["$out", "$merge"];

/// Parses the stages, and determines the metadata that they read of the input documents.
pub(super) fn parse_stages(pipeline: Doc<'_>, context: &Context) -> Result<(Vec<Stage>, Needs)> {
    let count = pipeline.elements().counted().count();
    if count > STAGES_MAX {
        let message = format!("Pipeline length must be no longer than {STAGES_MAX} stages");
        return Err(Error::failed_to_parse(message));
    }
    let mut stages = Vec::with_capacity(count);
    let mut names = Vec::with_capacity(count);
    let (mut needs, mut anew) = (Needs::NONE, false);
    for operator in pipeline.values().counted().filter_map(Value::as_document).filter_map(Doc::first) {
        let parsed = parse_stage(operator.key(), operator.value(), context, &mut stages);
        match (operator.key(), &parsed, stages.last()) {
            ("$match", Err(error), _) if error.code() == Code::INDEX_NOT_FOUND && !names.is_empty() => {
                return Err(text_not_first());
            }
            ("$match", Ok(()), Some(Stage::Match(filter))) if filter.text_search().is_some() && !names.is_empty() => {
                return Err(text_not_first());
            }
            _ => parsed?,
        }
        // After a stage that makes new documents, only metadata that need no request are available.
        let requested = context.metadata_requests.take();
        needs = needs.and(if anew { requested.of_searches() } else { requested });
        request_from_union(&mut stages, requested);
        anew |= makes_new_documents(operator.key());
        names.push(operator.key());
    }
    check_positions(&names)?;
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

/// Returns whether the stage's documents are others than those of its input.
fn makes_new_documents(name: &str) -> bool {
    matches!(name, "$group" | "$bucket" | "$bucketAuto" | "$sortByCount" | "$count" | "$facet")
}

fn check_positions(names: &[&str]) -> Result<()> {
    for (index, name) in names.iter().enumerate() {
        if index > 0 && *name == "$geoNear" {
            let message = "$geoNear is only valid as the first stage in an optimized pipeline";
            return Err(Error::new(Code(40603), message));
        }
        if index > 0 && FIRST_ONLY.contains(name) {
            let message = format!("{name} is only valid as the first stage in a pipeline");
            return Err(Error::new(Code(40602), message));
        }
        if index + 1 < names.len() && LAST_ONLY.contains(name) {
            return Err(Error::new(Code(40601), format!("{name} can only be the final stage in the pipeline")));
        }
    }
    Ok(())
}

fn parse_stage(name: &str, spec: Value<'_>, context: &Context, stages: &mut Vec<Stage>) -> Result<()> {
    stages.push(match name {
        "$match" => match spec {
            Value::Document(filter) => Stage::Match(Arc::new(parse_filter(filter, context)?)),
            _ => return Err(Error::new(Code(15959), "the match filter must be an expression in an object")),
        },
        "$sort" => match spec {
            Value::Document(order) => Stage::Sort { sort: Sort::parse_stage(order, context)?, limit: None },
            _ => return Err(Error::new(Code(15973), "the $sort key specification must be an object")),
        },
        "$limit" => match parse_count(name, 5107201, spec)? {
            0 => return Err(Error::new(Code(15958), "the limit must be positive")),
            limit => Stage::Limit(limit),
        },
        "$skip" => Stage::Skip(parse_count(name, 5107200, spec)?),
        "$project" => Stage::Project(Arc::new(Project::parse(spec, context)?)),
        "$unset" => Stage::Project(Arc::new(Project::parse_unset(spec, context)?)),
        "$addFields" | "$set" => Stage::AddFields(Arc::new(AddFields::parse(name, spec, context)?)),
        "$replaceRoot" => Stage::ReplaceRoot(Arc::new(ReplaceRoot::parse(spec, context)?)),
        "$replaceWith" => Stage::ReplaceRoot(Arc::new(ReplaceRoot::parse_with(spec, context)?)),
        "$unwind" => Stage::Unwind(Arc::new(Unwind::parse(spec)?)),
        UNPACK_BUCKET => Stage::UnpackBucket(Arc::new(UnpackBucket::parse(spec)?)),
        "$group" => Stage::Group(Arc::new(Group::parse(spec, context)?)),
        "$count" => Stage::Count(count_name(spec)?.into()),
        "$sortByCount" => {
            stages.extend(bucket::parse_sort_by_count(spec, context)?);
            return Ok(());
        }
        "$bucket" => {
            stages.extend(bucket::parse(spec, context)?);
            return Ok(());
        }
        "$bucketAuto" => Stage::BucketAuto(Arc::new(BucketAuto::parse(spec, context)?)),
        "$sample" => Stage::Sample(Sample { size: sample::parse(spec)?, records_rand_val: false }),
        "$densify" => Stage::Densify(Arc::new(Densify::parse(spec, context)?)),
        "$fill" => {
            stages.extend(fill::parse(spec, context)?);
            return Ok(());
        }
        "$setWindowFields" => Stage::SetWindowFields(Arc::new(SetWindowFields::parse(spec, context)?)),
        "$redact" => Stage::Redact(Arc::new(Redact::parse(spec, context)?)),
        "$facet" => Stage::Facet(Arc::new(parse_facets(spec, context)?)),
        "$geoNear" => return geo_near::parse(spec, context, stages),
        "$_internalInhibitOptimization" | "$_internalSplitPipeline" => {
            let found = || text::element(name, spec);
            let refuse = || Error::type_mismatch(format!("{name} must take a nested object but found: {}", found()));
            return spec.as_document().map(drop).ok_or_else(refuse);
        }
        "$lookup" | "$graphLookup" | "$unionWith" | "$out" | "$merge" => {
            Stage::CrossCollection(Arc::new(CrossCollectionStage::parse(name, spec, context)?))
        }
        _ => return Err(unsupported_stage(name)),
    });
    Ok(())
}

/// Parses the filter of a `$match`, which cannot read metadata.
fn parse_filter(filter: Doc<'_>, context: &Context) -> Result<Predicate> {
    let outer_requests = context.metadata_requests.take();
    let predicate = Predicate::parse_as_written(filter, context)?;
    context.metadata_requests.take().check_in_match(filter)?;
    context.metadata_requests.add(outer_requests);
    Ok(predicate)
}

/// Parses the argument of `$limit` and `$skip`.
fn parse_count(name: &str, code: i32, spec: Value<'_>) -> Result<u64> {
    let refuse = |expected: &str| {
        let found = text::element(name, spec);
        Error::new(Code(code), format!("invalid argument to {name} stage: Expected {expected}: {found}"))
    };
    if !spec.kind().is_number() {
        return Err(refuse("a number in"));
    }
    let number = values::integer::as_i64_exact(spec).ok_or_else(|| refuse("an integer"))?;
    u64::try_from(number).map_err(|_| refuse("a non-negative number in"))
}

fn count_name(spec: Value<'_>) -> Result<Cow<'_, str>> {
    let empty = "the count field must be a non-empty string";
    let Some(name) = spec.as_name() else {
        return Err(Error::new(Code(40156), empty));
    };
    if name.is_empty() {
        return Err(Error::new(Code(40157), empty));
    }
    if name.starts_with('$') {
        return Err(Error::new(Code(40158), "the count field cannot be a $-prefixed path"));
    }
    if name.contains('\0') {
        return Err(Error::new(Code(40159), "the count field cannot contain a null byte"));
    }
    if name == "_id" {
        return Err(Error::new(Code(15948), "a group's _id may only be specified once"));
    }
    if name.contains('.') {
        return Err(Error::new(Code(40160), "the count field cannot contain '.'"));
    }
    Ok(name)
}

/// Stages that are not allowed in a facet.
const NOT_IN_FACETS: &[&str] = &[
    "$facet",
    "$out",
    "$merge",
    "$geoNear",
    "$collStats",
    "$indexStats",
    "$listCatalog",
    "$documents",
    "$planCacheStats",
];

fn parse_facets(spec: Value<'_>, context: &Context) -> Result<Vec<(Box<str>, Pipeline)>> {
    let parse = |(name, stages)| Ok((Box::from(name), parse_facet(stages, context)?));
    facet_pipelines(spec)?.into_iter().map(parse).collect()
}

fn parse_facet(stages: Doc<'_>, context: &Context) -> Result<Pipeline> {
    let first = stages.values().next().and_then(Value::as_document).and_then(Doc::first);
    let misplaced = misplaced_in_facet(stages)
        .map(|name| Error::new(Code(40600), format!("{name} is not allowed to be used within a $facet stage")));
    let pipeline = match (Pipeline::parse_nested(stages, context), misplaced) {
        // Errors of a stage itself are reported before its wrong position.
        (Ok(_), Some(misplaced)) => return Err(misplaced),
        (Err(error), Some(misplaced)) if is_position_error(&error) => return Err(misplaced),
        (Err(error), _) if error.code() == Code::INDEX_NOT_FOUND && first.is_some_and(|it| it.key() == "$match") => {
            return Err(Meta::TextScore.unavailable());
        }
        (pipeline, _) => pipeline?,
    };
    if let Some(Stage::Match(filter)) = pipeline.stages.first()
        && filter.text_search().is_some()
    {
        return Err(Meta::TextScore.unavailable());
    }
    context.metadata_requests.add(pipeline.needs.of_searches());
    Ok(pipeline)
}

/// Returns the first stage that is not allowed in a facet, or whose own pipeline has one.
fn misplaced_in_facet(stages: Doc<'_>) -> Option<&str> {
    stages
        .values()
        .filter_map(Value::as_document)
        .filter_map(Doc::first)
        .map(|stage| (stage.key(), stage.value()))
        .find_map(|(name, spec)| match (name, spec) {
            _ if NOT_IN_FACETS.contains(&name) => Some(name),
            ("$lookup" | "$unionWith", Value::Document(spec)) => {
                let inner = spec.get("pipeline").and_then(Value::as_array)?;
                misplaced_in_facet(inner).map(|_| name)
            }
            _ => None,
        })
}

fn is_position_error(error: &Error) -> bool {
    matches!(error.code(), Code(40601..=40603) | Code::INVALID_NAMESPACE)
}
