//! What commands about databases, collections and views require.

use super::asked::{Asked, Grants};
use super::pipelines;
use auth::{Action, ActionSet, Resource};
use document::{Doc, Value};

/// `create`: a collection needs less than a view, which must not show what its creator cannot read.
pub fn create(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let target = asked.target();
    if asked.is_set("capped") && !grants.allow(target, &ActionSet::of(&[Action::ConvertToCapped])) {
        return false;
    }
    let may_create = grants.allow(target, &ActionSet::of(&[Action::CreateCollection]));
    match asked.values("viewOn").next() {
        Some(_) => may_create && is_view_allowed(asked, grants),
        None => may_create || grants.allow(target, &ActionSet::of(&[Action::Insert])),
    }
}

/// `collMod`: as `create` for a view.
pub fn coll_mod(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    grants.allow(asked.target(), &ActionSet::of(&[Action::CollMod])) && is_view_allowed(asked, grants)
}

/// Returns whether a view may be defined: it must not show to its creator what they cannot read
/// without it.
fn is_view_allowed(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let mut sources = asked.values("viewOn").filter_map(Value::as_str).peekable();
    if sources.peek().is_none() || !grants.allow(asked.target(), &ActionSet::of(&[Action::Find])) {
        return true;
    }
    sources.all(|view_on| {
        let mut pipelines = asked.values("pipeline").filter_map(Value::as_array).peekable();
        match pipelines.peek() {
            None => pipelines::is_view_allowed(asked, view_on, Doc::EMPTY, grants),
            Some(_) => pipelines.all(|stages| pipelines::is_view_allowed(asked, view_on, stages, grants)),
        }
    })
}

/// `listCollections`: the names of those that a user may access need no privilege of their own.
pub fn list_collections(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let authorized = asked.is_always_set("nameOnly") && asked.is_always_set("authorizedCollections");
    authorized && grants.allow_any_on_database(asked.database)
        || grants.allow(Resource::Database(asked.database), &ActionSet::of(&[Action::ListCollections]))
}

/// All that `renameCollection` may require.
pub const ACTIONS_OF_RENAME: &[Action] =
    &[Action::RenameCollectionSameDb, Action::Find, Action::Insert, Action::CreateIndex, Action::DropCollection];

/// `renameCollection`: within a database it is an action of its own. Otherwise, and for system
/// collections, it is a copy that drops its source.
pub fn rename_collection(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let drops = asked.is_set("dropTarget");
    let sources = || asked.collection().into_iter();
    sources().all(|source| {
        let mut targets = asked.values("to").filter_map(Value::as_str);
        targets.all(|target| {
            let (source, target) = (full_name(source), full_name(target));
            is_rename_allowed(source, target, drops, grants) || is_move_allowed(source, target, drops, grants)
        })
    })
}

type FullName<'a> = (&'a str, &'a str);

fn full_name(name: &str) -> FullName<'_> {
    name.split_once('.').unwrap_or((name, ""))
}

fn is_rename_allowed(source: FullName<'_>, target: FullName<'_>, drops: bool, grants: &mut dyn Grants) -> bool {
    let is_system = |(_, collection): FullName<'_>| collection.starts_with("system.");
    if source.0 != target.0 || is_system(source) || is_system(target) {
        return false;
    }
    let find = ActionSet::of(&[Action::Find]);
    let mut may_read =
        |(database, collection): FullName<'_>| grants.allow(Resource::Collection(database, collection), &find);
    // The rename must not make the documents readable.
    let stays_hidden = may_read(source) || !may_read(target);
    let dropped = Resource::Collection(target.0, target.1);
    grants.allow(Resource::Database(source.0), &ActionSet::of(&[Action::RenameCollectionSameDb]))
        && (!drops || grants.allow(dropped, &ActionSet::of(&[Action::DropCollection])))
        && stays_hidden
}

fn is_move_allowed(source: FullName<'_>, target: FullName<'_>, drops: bool, grants: &mut dyn Grants) -> bool {
    let taken = ActionSet::of(&[Action::Find, Action::DropCollection]);
    let made = [Action::Insert, Action::CreateIndex, Action::DropCollection];
    let made = ActionSet::of(if drops { &made } else { &made[..2] });
    grants.allow(Resource::Collection(source.0, source.1), &taken)
        && grants.allow(Resource::Collection(target.0, target.1), &made)
}

/// `cloneCollectionAsCapped`: it reads one collection, and makes another.
pub fn clone_as_capped(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let made = ActionSet::of(&[Action::Insert, Action::CreateIndex, Action::ConvertToCapped]);
    grants.allow(asked.target(), &ActionSet::of(&[Action::Find]))
        && asked
            .values("toCollection")
            .filter_map(Value::as_str)
            .all(|target| grants.allow(Resource::Collection(asked.database, target), &made))
}

/// `filemd5`: it reads the chunks of a file.
pub fn file_md5(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let mut roots = asked.values("root").filter_map(Value::as_str);
    let first = roots.next().unwrap_or("fs");
    std::iter::once(first).chain(roots).all(|root| {
        let chunks = format!("{root}.chunks");
        grants.allow(Resource::Collection(asked.database, &chunks), &ActionSet::of(&[Action::Find]))
    })
}

/// `profile`: to read the settings, it is enough to read the profile.
pub fn profile(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let changes = ["slowms", "sampleRate", "filter"].into_iter().any(|name| asked.values(name).next().is_some());
    let reads = !changes && asked.first.value().to_i64() == Some(-1);
    let profile = Resource::Collection(asked.database, "system.profile");
    reads && grants.allow(profile, &ActionSet::of(&[Action::Find]))
        || grants.allow(Resource::Database(asked.database), &ActionSet::of(&[Action::EnableProfiler]))
}

/// `validateDBMetadata`: of one database, or of all.
pub fn validate_metadata(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let validate = ActionSet::of(&[Action::Validate]);
    let mut databases = asked.values("db").filter_map(Value::as_str).peekable();
    match databases.peek() {
        None => grants.allow(Resource::AnyOrdinary, &validate),
        Some(_) => databases.all(|database| grants.allow(Resource::Database(database), &validate)),
    }
}

/// `getDiagnosticData`: the statistics of the server, of its replication, and of its oplog.
pub fn diagnostic_data(_asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let server = ActionSet::of(&[Action::ServerStatus, Action::ReplSetGetStatus]);
    grants.allow(Resource::Cluster, &server)
        && grants.allow(Resource::Collection("local", "oplog.rs"), &ActionSet::of(&[Action::CollStats]))
}
