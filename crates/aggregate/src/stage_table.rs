//! All stages of pipelines: their names, where they may be, and how they are parsed.

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
use super::unpack_bucket::{UNPACK_BUCKET, UnpackBucket};
use super::unwind::Unwind;
use super::window::SetWindowFields;
use super::{bucket, fill, geo_near};
use document::{Doc, Value};
use error::{Code, Error, Result};
use query::metadata::Meta;
use query::{Context, Predicate, Sort};
use std::borrow::Cow;
use std::sync::Arc;
use values::text;

/// A stage, as pipelines name it.
pub(super) struct StageEntry {
    pub name: &'static str,
    form: Form,
    pub position: Position,
    /// The stage is allowed within a `$facet`.
    pub in_facets: bool,
    /// The stage's documents are others than those of its input.
    pub makes_new_documents: bool,
}

/// How a stage is parsed from its argument.
enum Form {
    One(fn(&str, Value<'_>, &Context) -> Result<Stage>),
    /// Appends stages, which together are this one.
    Several(fn(Value<'_>, &Context, &mut Vec<Stage>) -> Result<()>),
    /// Only checks the argument.
    Nothing(fn(&str, Value<'_>) -> Result<()>),
    /// The stage does not run over the documents of a collection.
    Refused(fn(&str) -> Error),
}

/// The position of a stage in its pipeline.
#[derive(Clone, Copy)]
pub(super) enum Position {
    Anywhere,
    /// Only the first one; otherwise with this error.
    First(fn(&str) -> Error),
    Last,
}

/// All stages, by name.
const STAGES: &[StageEntry] = &[
    internal("$_addReshardingResumeId"),
    internal("$_internalBoundedSort"),
    internal("$_internalChangeStreamAddPostImage"),
    internal("$_internalChangeStreamAddPreImage"),
    internal("$_internalChangeStreamCheckInvalidate"),
    internal("$_internalChangeStreamCheckResumability"),
    internal("$_internalChangeStreamCheckTopologyChange"),
    internal("$_internalChangeStreamOplogMatch"),
    internal("$_internalChangeStreamTransform"),
    internal("$_internalChangeStreamUnwindTransaction"),
    internal("$_internalDensify"),
    internal("$_internalFindAndModifyImageLookup"),
    new("$_internalInhibitOptimization", Form::Nothing(check_marker)),
    internal("$_internalReshardingIterateTransaction"),
    internal("$_internalReshardingOwnershipMatch"),
    new("$_internalSplitPipeline", Form::Nothing(check_marker)),
    one(UNPACK_BUCKET, |_, spec, _| Ok(Stage::UnpackBucket(Arc::new(UnpackBucket::parse(spec)?)))),
    one("$addFields", parse_add_fields),
    several("$bucket", |spec, context, stages| {
        stages.extend(bucket::parse(spec, context)?);
        Ok(())
    })
    .making_new_documents(),
    one("$bucketAuto", |_, spec, context| Ok(Stage::BucketAuto(Arc::new(BucketAuto::parse(spec, context)?))))
        .making_new_documents(),
    refused("$changeStream", |_| no_change_streams()).first(),
    refused("$collStats", only_first).first().outside_facets(),
    one("$count", |_, spec, _| Ok(Stage::Count(count_name(spec)?.into()))).making_new_documents(),
    refused("$currentOp", |_| {
        let message = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
        Error::new(Code::INVALID_NAMESPACE, message)
    })
    .first(),
    one("$densify", |_, spec, context| Ok(Stage::Densify(Arc::new(Densify::parse(spec, context)?)))),
    refused("$documents", |_| Error::new(Code::INVALID_NAMESPACE, "'$documents' can only be run with {aggregate: 1}"))
        .first()
        .outside_facets(),
    one("$facet", |_, spec, context| Ok(Stage::Facet(Arc::new(parse_facets(spec, context)?))))
        .making_new_documents()
        .outside_facets(),
    several("$fill", |spec, context, stages| {
        stages.extend(fill::parse(spec, context)?);
        Ok(())
    }),
    StageEntry {
        position: Position::First(|_| {
            let message = "$geoNear is only valid as the first stage in an optimized pipeline";
            Error::new(Code(40603), message)
        }),
        ..several("$geoNear", geo_near::parse)
    }
    .outside_facets(),
    one("$graphLookup", parse_joining),
    one("$group", |_, spec, context| Ok(Stage::Group(Arc::new(Group::parse(spec, context)?)))).making_new_documents(),
    refused("$indexStats", only_first).first().outside_facets(),
    one("$limit", |name, spec, _| match parse_count(name, 5107201, spec)? {
        0 => Err(Error::new(Code(15958), "the limit must be positive")),
        limit => Ok(Stage::Limit(limit)),
    }),
    refused("$listCachedAndActiveUsers", |_| {
        Error::new(Code(224), "$listCachedAndActiveUsers is not allowed with the current configuration")
    }),
    refused("$listCatalog", only_first).first().outside_facets(),
    refused("$listLocalSessions", |_| Error::new(Code::INVALID_NAMESPACE, LOCAL_SESSIONS_NAMESPACE)).first(),
    refused("$listSessions", |_| Error::new(Code::INVALID_NAMESPACE, SESSIONS_NAMESPACE)).first(),
    one("$lookup", parse_joining),
    one("$match", |_, spec, context| match spec {
        Value::Document(filter) => Ok(Stage::Match(Arc::new(parse_filter(filter, context)?))),
        _ => Err(Error::new(Code(15959), "the match filter must be an expression in an object")),
    }),
    one("$merge", parse_joining).last().outside_facets(),
    refused("$operationMetrics", |_| {
        let message = "The aggregateOperationResourceConsumption server parameter is not set";
        Error::new(Code::COMMAND_NOT_SUPPORTED, message)
    }),
    one("$out", parse_joining).last().outside_facets(),
    refused("$planCacheStats", only_first).first().outside_facets(),
    one("$project", |_, spec, context| Ok(Stage::Project(Arc::new(Project::parse(spec, context)?)))),
    internal("$queue"),
    one("$redact", |_, spec, context| Ok(Stage::Redact(Arc::new(Redact::parse(spec, context)?)))),
    one("$replaceRoot", |_, spec, context| Ok(Stage::ReplaceRoot(Arc::new(ReplaceRoot::parse(spec, context)?)))),
    one("$replaceWith", |_, spec, context| Ok(Stage::ReplaceRoot(Arc::new(ReplaceRoot::parse_with(spec, context)?)))),
    one("$sample", |_, spec, _| Ok(Stage::Sample(Sample { size: sample::parse(spec)?, records_rand_val: false }))),
    one("$set", parse_add_fields),
    internal("$setVariableFromSubPipeline"),
    one("$setWindowFields", |_, spec, context| {
        Ok(Stage::SetWindowFields(Arc::new(SetWindowFields::parse(spec, context)?)))
    }),
    refused("$shardedDataDistribution", |_| {
        Error::new(Code(6789101), "The $shardedDataDistribution stage can only be run on mongoS")
    }),
    one("$skip", |name, spec, _| Ok(Stage::Skip(parse_count(name, 5107200, spec)?))),
    one("$sort", |_, spec, context| match spec {
        Value::Document(order) => Ok(Stage::Sort { sort: Sort::parse_stage(order, context)?, limit: None }),
        _ => Err(Error::new(Code(15973), "the $sort key specification must be an object")),
    }),
    several("$sortByCount", |spec, context, stages| {
        stages.extend(bucket::parse_sort_by_count(spec, context)?);
        Ok(())
    })
    .making_new_documents(),
    one("$unionWith", parse_joining),
    one("$unset", |_, spec, context| Ok(Stage::Project(Arc::new(Project::parse_unset(spec, context)?)))),
    one("$unwind", |_, spec, _| Ok(Stage::Unwind(Arc::new(Unwind::parse(spec)?)))),
];

const fn new(name: &'static str, form: Form) -> StageEntry {
    StageEntry { name, form, position: Position::Anywhere, in_facets: true, makes_new_documents: false }
}

const fn one(name: &'static str, parse: fn(&str, Value<'_>, &Context) -> Result<Stage>) -> StageEntry {
    new(name, Form::One(parse))
}

const fn several(name: &'static str, parse: fn(Value<'_>, &Context, &mut Vec<Stage>) -> Result<()>) -> StageEntry {
    new(name, Form::Several(parse))
}

const fn refused(name: &'static str, error: fn(&str) -> Error) -> StageEntry {
    new(name, Form::Refused(error))
}

/// Returns a stage that only a MongoDB server itself uses.
const fn internal(name: &'static str) -> StageEntry {
    refused(name, |name| Error::new(Code(5491300), format!("{name}' is not allowed in user requests")))
}

impl StageEntry {
    const fn first(self) -> StageEntry {
        StageEntry { position: Position::First(only_first), ..self }
    }

    const fn last(self) -> StageEntry {
        StageEntry { position: Position::Last, ..self }
    }

    const fn outside_facets(self) -> StageEntry {
        StageEntry { in_facets: false, ..self }
    }

    const fn making_new_documents(self) -> StageEntry {
        StageEntry { makes_new_documents: true, ..self }
    }

    /// Parses the stage's argument, and appends the stage.
    pub fn parse(&self, spec: Value<'_>, context: &Context, stages: &mut Vec<Stage>) -> Result<()> {
        match self.form {
            Form::One(parse) => parse(self.name, spec, context).map(|stage| stages.push(stage)),
            Form::Several(parse) => parse(spec, context, stages),
            Form::Nothing(check) => check(self.name, spec),
            Form::Refused(error) => Err(error(self.name)),
        }
    }
}

/// Returns the stage of this name, if it exists.
pub(super) fn find(name: &str) -> Option<&'static StageEntry> {
    STAGES.iter().find(|stage| stage.name == name)
}

/// The error for stages that list sessions in the wrong namespace.
pub const SESSIONS_NAMESPACE: &str = "$listSessions may only be run against config.system.sessions";
pub const LOCAL_SESSIONS_NAMESPACE: &str =
    "$listLocalSessions must be run against the database with {aggregate: 1}, not a collection";

/// Returns the error for change streams: there is no oplog to read changes from.
pub fn no_change_streams() -> Error {
    Error::new(Code(40573), "The $changeStream stage is only supported on replica sets")
}

/// Returns the error for a stage that does not exist.
pub(super) fn unknown_stage(name: &str) -> Error {
    Error::new(Code(40324), format!("Unrecognized pipeline stage name: '{name}'"))
}

fn only_first(name: &str) -> Error {
    Error::new(Code(40602), format!("{name} is only valid as the first stage in a pipeline"))
}

fn check_marker(name: &str, spec: Value<'_>) -> Result<()> {
    let found = || text::element(name, spec);
    let refuse = || Error::type_mismatch(format!("{name} must take a nested object but found: {}", found()));
    spec.as_document().map(drop).ok_or_else(refuse)
}

fn parse_add_fields(name: &str, spec: Value<'_>, context: &Context) -> Result<Stage> {
    Ok(Stage::AddFields(Arc::new(AddFields::parse(name, spec, context)?)))
}

fn parse_joining(name: &str, spec: Value<'_>, context: &Context) -> Result<Stage> {
    Ok(Stage::CrossCollection(Arc::new(CrossCollectionStage::parse(name, spec, context)?)))
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
            _ if find(name).is_some_and(|stage| !stage.in_facets) => Some(name),
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
