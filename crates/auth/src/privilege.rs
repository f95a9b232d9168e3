//! Privileges: actions on resources, and the set of all that a login has.

use crate::action::{Action, ActionSet};
use crate::resource::{Resource, ResourcePattern, is_ordinary, is_ordinary_database};
use document::{ArrayWriter, Doc, DocWriter};
use hashbrown::HashMap;

/// Actions that are allowed on resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    pub pattern: ResourcePattern,
    pub actions: ActionSet,
}

impl Privilege {
    pub fn new(pattern: ResourcePattern, actions: ActionSet) -> Privilege {
        Privilege { pattern, actions }
    }

    /// Reads a stored privilege; `None` if it is malformed. Actions that this version does not know
    /// are ignored.
    pub fn from_document(document: Doc<'_>) -> Option<Privilege> {
        let pattern = ResourcePattern::from_document(document.get("resource")?.as_document()?)?;
        let actions = document.get("actions")?.as_array()?;
        let actions = actions.values().filter_map(|name| Action::parse(name.as_str()?)).collect();
        Some(Privilege { pattern, actions })
    }

    /// Appends `resource` and `actions`.
    pub fn write(&self, document: &mut DocWriter<'_>) {
        self.pattern.write(&mut document.document("resource"));
        let mut actions = document.array("actions");
        self.actions.iter().for_each(|action| actions.push(action.name()));
    }
}

/// Appends privileges to an array.
pub fn write_all(privileges: &[Privilege], array: &mut ArrayWriter<'_>) {
    privileges.iter().for_each(|privilege| privilege.write(&mut array.document()));
}

/// Adds a privilege to a list in which each pattern occurs once.
pub fn add(list: &mut Vec<Privilege>, privilege: Privilege) {
    match list.iter_mut().find(|own| own.pattern == privilege.pattern) {
        Some(own) => own.actions = own.actions.union(privilege.actions),
        None => list.push(privilege),
    }
}

/// All privileges of a login, arranged for quick checks.
#[derive(Clone, Debug, Default)]
pub struct Privileges {
    granted: Vec<Privilege>,
    everything: ActionSet,
    cluster: ActionSet,
    /// Of patterns without a database.
    anywhere: Scope,
    databases: HashMap<Box<str>, Scope, ahash::RandomState>,
}

/// The privileges of patterns with the same database.
#[derive(Clone, Debug, Default)]
struct Scope {
    /// On all ordinary collections.
    ordinary: ActionSet,
    collections: HashMap<Box<str>, ActionSet, ahash::RandomState>,
    any_buckets: ActionSet,
    buckets: HashMap<Box<str>, ActionSet, ahash::RandomState>,
}

impl Privileges {
    pub fn new(privileges: impl IntoIterator<Item = Privilege>) -> Privileges {
        let mut all = Privileges::default();
        privileges.into_iter().for_each(|privilege| all.add(privilege));
        all
    }

    fn add(&mut self, privilege: Privilege) {
        let actions = privilege.actions;
        let granted = match &privilege.pattern {
            ResourcePattern::AnyResource => &mut self.everything,
            ResourcePattern::Cluster => &mut self.cluster,
            ResourcePattern::Collection { db, collection } => {
                let scope = scope(&mut self.anywhere, &mut self.databases, db);
                match collection.is_empty() {
                    true => &mut scope.ordinary,
                    false => scope.collections.entry(collection.clone()).or_default(),
                }
            }
            ResourcePattern::Buckets { db, collection } => {
                let scope = scope(&mut self.anywhere, &mut self.databases, db);
                match collection.is_empty() {
                    true => &mut scope.any_buckets,
                    false => scope.buckets.entry(collection.clone()).or_default(),
                }
            }
        };
        *granted = granted.union(actions);
        add(&mut self.granted, privilege);
    }

    /// Returns the privileges, each pattern once.
    pub fn list(&self) -> &[Privilege] {
        &self.granted
    }

    /// Returns whether an action on a resource is allowed.
    #[inline]
    pub fn allows(&self, resource: Resource<'_>, action: Action) -> bool {
        self.any_grant(resource, |granted| granted.contains(action))
    }

    /// Returns whether several actions on a resource are allowed.
    pub fn allows_all(&self, resource: Resource<'_>, actions: &ActionSet) -> bool {
        let mut missing = *actions;
        missing.is_empty()
            || self.any_grant(resource, |granted| {
                missing = missing.without(granted);
                missing.is_empty()
            })
    }

    /// Returns whether some action on a resource is allowed.
    pub fn allows_any(&self, resource: Resource<'_>) -> bool {
        self.any_grant(resource, |granted| !granted.is_empty())
    }

    /// Returns whether some action is allowed on a database, or on any collection in it.
    pub fn allows_any_on_database(&self, db: &str) -> bool {
        let anywhere = &self.anywhere;
        !self.everything.is_empty()
            || is_ordinary_database(db) && !anywhere.ordinary.is_empty()
            || anywhere.has_collections()
            || self.databases.get(db).is_some_and(|own| !own.ordinary.is_empty() || own.has_collections())
    }

    /// Returns whether each of the privileges is among these.
    pub fn includes(&self, privilege: &Privilege) -> bool {
        let actions = &privilege.actions;
        match &privilege.pattern {
            ResourcePattern::AnyResource => self.allows_all(Resource::Any, actions),
            ResourcePattern::Cluster => self.allows_all(Resource::Cluster, actions),
            ResourcePattern::Collection { db, collection } => match (&**db, &**collection) {
                ("", "") => self.allows_all(Resource::AnyOrdinary, actions),
                (db, "") => self.allows_all(Resource::Database(db), actions),
                (db, collection) => self.allows_all(Resource::Collection(db, collection), actions),
            },
            ResourcePattern::Buckets { .. } => {
                let own = self.granted.iter().find(|own| own.pattern == privilege.pattern);
                let own = own.map_or(ActionSet::EMPTY, |own| own.actions);
                own.union(self.everything).contains_all(actions)
            }
        }
    }

    /// Calls `enough` with the actions of each pattern that covers the resource, until it returns
    /// true.
    #[inline]
    fn any_grant(&self, resource: Resource<'_>, mut enough: impl FnMut(&ActionSet) -> bool) -> bool {
        if enough(&self.everything) {
            return true;
        }
        match resource {
            Resource::Any => false,
            Resource::Cluster => enough(&self.cluster),
            Resource::AnyOrdinary => enough(&self.anywhere.ordinary),
            Resource::Database(db) => {
                is_ordinary_database(db) && enough(&self.anywhere.ordinary)
                    || self.databases.get(db).is_some_and(|own| enough(&own.ordinary))
            }
            Resource::Collection(db, collection) => {
                let ordinary = is_ordinary(db, collection);
                ordinary && is_ordinary_database(db) && enough(&self.anywhere.ordinary)
                    || self.anywhere.grants(false, collection, &mut enough)
                    || self.databases.get(db).is_some_and(|own| own.grants(ordinary, collection, &mut enough))
            }
        }
    }
}

fn scope<'a>(
    anywhere: &'a mut Scope,
    databases: &'a mut HashMap<Box<str>, Scope, ahash::RandomState>,
    db: &str,
) -> &'a mut Scope {
    match db.is_empty() {
        true => anywhere,
        false => databases.entry(db.into()).or_default(),
    }
}

impl Scope {
    fn has_collections(&self) -> bool {
        !self.collections.is_empty() || !self.buckets.is_empty() || !self.any_buckets.is_empty()
    }

    /// As [`Privileges::any_grant`], for one collection. `ordinary`: whether the actions on all
    /// ordinary collections count.
    #[inline]
    fn grants(&self, ordinary: bool, collection: &str, enough: &mut impl FnMut(&ActionSet) -> bool) -> bool {
        let named = |named: &HashMap<Box<str>, ActionSet, ahash::RandomState>, name: &str| match named.is_empty() {
            true => None,
            false => named.get(name).copied(),
        };
        if ordinary && enough(&self.ordinary) || named(&self.collections, collection).is_some_and(|own| enough(&own)) {
            return true;
        }
        let Some(series) = collection.strip_prefix("system.buckets.") else { return false };
        enough(&self.any_buckets) || named(&self.buckets, series).is_some_and(|own| enough(&own))
    }
}

#[cfg(test)]
mod tests;
