//! What the stages of pipelines require.

use super::asked::{Asked, Grants, NO_COLLECTION, values};
use auth::{Action, ActionSet, Resource, UserName};
use document::{Doc, Element, Value};

const FIND: ActionSet = ActionSet::of(&[Action::Find]);
const INSERT: ActionSet = ActionSet::of(&[Action::Insert]);
const UPDATE: ActionSet = ActionSet::of(&[Action::Update]);
const BYPASS: ActionSet = ActionSet::of(&[Action::BypassDocumentValidation]);

/// System collections of all databases: only privileges on those of any database cover a database
/// without a name.
const OF_ANY_DATABASE: [Resource<'static>; 2] =
    [Resource::Collection("", "system.js"), Resource::Collection("", "system.buckets.")];

/// All that a pipeline may require.
pub const ACTIONS: &[Action] = &[
    Action::Find,
    Action::Insert,
    Action::Remove,
    Action::Update,
    Action::BypassDocumentValidation,
    Action::ChangeStream,
    Action::CollStats,
    Action::IndexStats,
    Action::Inprog,
    Action::ListCollections,
    Action::ListDatabases,
    Action::ListIndexes,
    Action::ListSessions,
    Action::OperationMetrics,
    Action::PlanCacheRead,
    Action::ShardedDataDistribution,
];

/// The collection that a pipeline reads, whether its writes bypass validation, and its user.
#[derive(Clone, Copy)]
struct Source<'a> {
    database: &'a str,
    collection: &'a str,
    bypasses_validation: bool,
    user: Option<&'a UserName>,
}

/// `aggregate`.
pub fn aggregate(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let collection = asked.collection().unwrap_or(NO_COLLECTION);
    let bypasses_validation = asked.is_set("bypassDocumentValidation");
    let source = Source { database: asked.database, collection, bypasses_validation, user: asked.user };
    let mut pipelines = asked.values("pipeline").filter_map(Value::as_array).peekable();
    if pipelines.peek().is_none() {
        return grants.allow(source.resource(), &FIND);
    }
    pipelines.all(|stages| is_allowed(source, stages, grants))
}

/// Returns whether a user may read a collection through a pipeline, as a view does.
pub fn is_view_allowed(asked: &Asked<'_>, view_on: &str, stages: Doc<'_>, grants: &mut dyn Grants) -> bool {
    let Asked { database, user, .. } = *asked;
    is_allowed(Source { database, collection: view_on, bypasses_validation: false, user }, stages, grants)
}

/// `mapReduce`: it reads its collection, and writes to the one in `out`.
pub fn map_reduce(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let replace = ActionSet::of(&[Action::Insert, Action::Remove]);
    let merge = ActionSet::of(&[Action::Insert, Action::Update]);
    let bypasses = asked.is_set("bypassDocumentValidation");
    let mut writes = |database: &str, collection: &str, actions: &ActionSet| {
        let target = Resource::Collection(database, collection);
        grants.allow(target, actions) && (!bypasses || grants.allow(target, &BYPASS))
    };
    let allowed = asked.values("out").all(|out| match out {
        Value::String(collection) => writes(asked.database, collection, &replace),
        Value::Document(out) => out.elements().all(|field| match (field.key(), field.value()) {
            ("replace" | "normal", Value::String(collection)) => {
                databases(out, asked.database).all(|database| writes(database, collection, &replace))
            }
            ("merge" | "reduce", Value::String(collection)) => {
                databases(out, asked.database).all(|database| writes(database, collection, &merge))
            }
            _ => true,
        }),
        _ => true,
    });
    allowed && grants.allow(asked.target(), &FIND)
}

impl<'a> Source<'a> {
    fn resource(&self) -> Resource<'a> {
        Resource::Collection(self.database, self.collection)
    }

    fn on(self, collection: &'a str) -> Source<'a> {
        Source { collection, ..self }
    }
}

fn is_allowed(source: Source<'_>, stages: Doc<'_>, grants: &mut dyn Grants) -> bool {
    let begins_with_source = first_of(stages).is_some_and(|stage| is_source(stage.key()));
    (begins_with_source || grants.allow(source.resource(), &FIND))
        && stages.values().filter_map(Value::as_document).flat_map(Doc::elements).all(|stage| {
            let required = |grants: &mut dyn Grants| is_stage_allowed(source, stage, grants);
            required(grants)
        })
}

fn first_of(stages: Doc<'_>) -> Option<Element<'_>> {
    stages.values().next()?.as_document()?.first()
}

/// Returns whether a first stage produces its documents without reading the collection.
fn is_source(stage: &str) -> bool {
    matches!(
        stage,
        "$changeStream"
            | "$collStats"
            | "$currentOp"
            | "$indexStats"
            | "$listCatalog"
            | "$listLocalSessions"
            | "$listSessions"
            | "$operationMetrics"
            | "$planCacheStats"
            | "$shardedDataDistribution"
    )
}

fn is_stage_allowed(source: Source<'_>, stage: Element<'_>, grants: &mut dyn Grants) -> bool {
    let spec = stage.value();
    match stage.key() {
        "$lookup" => is_nested_allowed(source, spec, "from", grants),
        "$unionWith" => match spec {
            Value::String(collection) => grants.allow(source.on(collection).resource(), &FIND),
            _ => is_nested_allowed(source, spec, "coll", grants),
        },
        "$graphLookup" => within(spec, "from").all(|from| match from {
            Value::String(collection) => grants.allow(source.on(collection).resource(), &FIND),
            _ => true,
        }),
        "$facet" => {
            let facets = spec.as_document().unwrap_or(Doc::EMPTY);
            let mut pipelines = facets.values().filter_map(Value::as_array);
            pipelines.all(|stages| are_stages_allowed(source, stages, grants))
        }
        "$out" => is_write_allowed(source, spec, &ActionSet::of(&[Action::Insert, Action::Remove]), grants),
        "$merge" => is_merge_allowed(source, spec, grants),
        "$changeStream" => is_change_stream_allowed(source, grants),
        "$collStats" => grants.allow(source.resource(), &ActionSet::of(&[Action::CollStats])),
        "$indexStats" => grants.allow(source.resource(), &ActionSet::of(&[Action::IndexStats])),
        "$planCacheStats" => grants.allow(source.resource(), &ActionSet::of(&[Action::PlanCacheRead])),
        "$listCatalog" => is_catalog_allowed(source, grants),
        "$currentOp" => {
            !has_true(spec, "allUsers") || grants.allow(Resource::Cluster, &ActionSet::of(&[Action::Inprog]))
        }
        "$listSessions" | "$listLocalSessions" => {
            lists_own_sessions(source, spec) || grants.allow(Resource::Cluster, &ActionSet::of(&[Action::ListSessions]))
        }
        "$operationMetrics" => grants.allow(Resource::Cluster, &ActionSet::of(&[Action::OperationMetrics])),
        "$shardedDataDistribution" => {
            grants.allow(Resource::Cluster, &ActionSet::of(&[Action::ShardedDataDistribution]))
        }
        _ => true,
    }
}

/// Checks stages whose source has been checked.
fn are_stages_allowed(source: Source<'_>, stages: Doc<'_>, grants: &mut dyn Grants) -> bool {
    let mut stages = stages.values().filter_map(Value::as_document).flat_map(Doc::elements);
    stages.all(|stage| is_stage_allowed(source, stage, grants))
}

fn within<'a>(spec: Value<'a>, name: &'static str) -> impl Iterator<Item = Value<'a>> {
    values(spec.as_document().unwrap_or(Doc::EMPTY), name)
}

fn has_true(spec: Value<'_>, name: &'static str) -> bool {
    within(spec, name).any(|value| value.is_truthy())
}

/// Returns whether `$listSessions` or `$listLocalSessions` asks for the user's own sessions only.
fn lists_own_sessions(source: Source<'_>, spec: Value<'_>) -> bool {
    let mut users = within(spec, "users").flat_map(|users| users.as_array().unwrap_or(Doc::EMPTY).values());
    let is_own = |user: Value<'_>| {
        source.user.is_some_and(|own| {
            let is_always = |name, own: &str| within(user, name).all(|value| value.as_str() == Some(own));
            is_always("user", &own.user) && is_always("db", &own.db)
        })
    };
    !has_true(spec, "allUsers") && users.all(is_own)
}

/// `$lookup` and `$unionWith`: a pipeline over the collection in the field `named`.
fn is_nested_allowed(source: Source<'_>, spec: Value<'_>, named: &'static str, grants: &mut dyn Grants) -> bool {
    let mut collections = within(spec, named).filter_map(|from| match from {
        Value::String(collection) => Some((source.database, collection)),
        Value::Document(from) => Some((from.get("db")?.as_str()?, from.get("coll")?.as_str()?)),
        _ => None,
    });
    let first = collections.next().unwrap_or((source.database, NO_COLLECTION));
    std::iter::once(first).chain(collections).all(|(database, collection)| {
        let source = Source { database, collection, ..source };
        let mut pipelines = within(spec, "pipeline").filter_map(Value::as_array).peekable();
        match pipelines.peek() {
            None => grants.allow(source.resource(), &FIND),
            Some(_) => pipelines.all(|stages| is_allowed(source, stages, grants)),
        }
    })
}

/// Returns the databases that a target names, or the command's own.
fn databases<'a>(target: Doc<'a>, own: &'a str) -> impl Iterator<Item = &'a str> {
    let mut named = values(target, "db").filter_map(Value::as_str);
    let first = named.next().unwrap_or(own);
    std::iter::once(first).chain(named)
}

/// Checks the target of a stage that writes: a name, or a document with database and collection.
fn is_write_allowed(source: Source<'_>, target: Value<'_>, actions: &ActionSet, grants: &mut dyn Grants) -> bool {
    let mut allows = |database: &str, collection: &str| {
        let target = Resource::Collection(database, collection);
        grants.allow(target, actions) && (!source.bypasses_validation || grants.allow(target, &BYPASS))
    };
    match target {
        Value::String(collection) => allows(source.database, collection),
        Value::Document(target) => values(target, "coll")
            .filter_map(Value::as_str)
            .all(|collection| databases(target, source.database).all(|database| allows(database, collection))),
        _ => true,
    }
}

fn is_merge_allowed(source: Source<'_>, spec: Value<'_>, grants: &mut dyn Grants) -> bool {
    let merges = |name: &'static str, unless: &[&str]| {
        let mut modes = within(spec, name).peekable();
        modes.peek().is_none() || modes.any(|mode| !mode.as_str().is_some_and(|mode| unless.contains(&mode)))
    };
    let mut actions = ActionSet::EMPTY;
    if merges("whenNotMatched", &["fail", "discard"]) {
        actions = actions.union(INSERT);
    }
    if merges("whenMatched", &["fail"]) {
        actions = actions.union(UPDATE);
    }
    match spec {
        Value::String(_) => is_write_allowed(source, spec, &actions, grants),
        _ => within(spec, "into").all(|into| is_write_allowed(source, into, &actions, grants)),
    }
}

/// A stream of the changes of one collection, of a database, or of all: that of `admin`.
fn is_change_stream_allowed(source: Source<'_>, grants: &mut dyn Grants) -> bool {
    let actions = ActionSet::of(&[Action::ChangeStream, Action::Find]);
    let resource = match (source.database, source.collection) {
        ("admin", NO_COLLECTION) => Resource::AnyOrdinary,
        (database, NO_COLLECTION) => Resource::Database(database),
        _ => source.resource(),
    };
    grants.allow(resource, &actions)
}

/// The catalog entry of a collection, or those of all.
fn is_catalog_allowed(source: Source<'_>, grants: &mut dyn Grants) -> bool {
    let lists = ActionSet::of(&[Action::ListCollections, Action::ListIndexes]);
    match source.collection {
        NO_COLLECTION => {
            grants.allow(Resource::Cluster, &ActionSet::of(&[Action::ListDatabases]))
                && grants.allow(Resource::AnyOrdinary, &lists)
                && OF_ANY_DATABASE.iter().all(|resource| grants.allow(*resource, &lists))
        }
        _ => grants.allow(source.resource(), &lists),
    }
}
