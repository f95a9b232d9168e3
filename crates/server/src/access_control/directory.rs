//! The users and roles of the server, as they are stored.

use crate::clock;
use auth::roles::{self, Resolved};
use auth::{Role, RoleName, User, UserName, builtin_roles};
use document::json::json_to_bson;
use document::{Doc, DocBuf, doc};
use error::{Error, Result};
use query::{Context, Predicate};
use std::sync::atomic::{AtomicU64, Ordering};
use store::{DocumentStore, Flow, Namespace, Query, Sink, StoredDoc};

/// The users and roles. Its generation rises with each change of them.
#[derive(Debug, Default)]
pub struct UserDirectory {
    generation: AtomicU64,
}

impl UserDirectory {
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Announces that users or roles have changed: logins computed before are outdated.
    pub fn announce_change(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns a user; `None` if there is none of this name.
    pub async fn user(&self, store: &dyn DocumentStore, name: &UserName) -> Result<Option<User>> {
        let filter = doc! { "user": &*name.user, "db": &*name.db };
        let found = find(store, "system.users", filter.as_doc()).await?;
        found.map(|user| User::from_document(user.as_doc())).transpose()
    }

    /// Returns the privileges of roles, with those of all roles that they inherit from.
    pub async fn resolve(&self, store: &dyn DocumentStore, names: &[RoleName]) -> Result<Resolved> {
        let mut found: Vec<Role> = Vec::new();
        let mut pending = names.to_vec();
        let mut at = 0;
        while let Some(name) = pending.get(at).cloned() {
            at += 1;
            if builtin_roles::exists(&name) {
                continue;
            }
            let filter = doc! { "role": &*name.role, "db": &*name.db };
            let Some(role) = find(store, "system.roles", filter.as_doc()).await? else { continue };
            let role = Role::from_document(role.as_doc())?;
            let new = role.roles.iter().filter(|inherited| !pending.contains(inherited));
            let new: Vec<_> = new.cloned().collect();
            pending.extend(new);
            found.push(role);
        }
        Ok(roles::resolve(names, |name| found.iter().find(|role| role.name == *name).cloned()))
    }

    /// Returns whether there is neither a user nor a role.
    pub async fn is_empty(&self, store: &dyn DocumentStore) -> Result<bool> {
        let user = find(store, "system.users", Doc::EMPTY).await?;
        Ok(user.is_none() && find(store, "system.roles", Doc::EMPTY).await?.is_none())
    }
}

/// Returns a document of `admin` that matches, as it is stored now.
async fn find(store: &dyn DocumentStore, collection: &str, filter: Doc<'_>) -> Result<Option<DocBuf>> {
    let predicate = Predicate::parse(filter, &Context::at(clock::now_ms()))?;
    let namespace = Namespace::new("admin", collection);
    let plan = store.plan(&namespace, Query::of(&predicate)).await?;
    plan.bypass_caches();
    let mut first = First { predicate: &predicate, found: None };
    store.scan(&*plan, None, 1, &mut first).await?;
    Ok(first.found)
}

struct First<'a> {
    predicate: &'a Predicate,
    found: Option<DocBuf>,
}

impl Sink for First<'_> {
    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow> {
        let mut decoded = Vec::new();
        let document = match document {
            StoredDoc::Bson(document) => document,
            StoredDoc::Json(json) => {
                let unreadable = |problem| Error::internal(format!("a stored document cannot be read: {problem}"));
                json_to_bson(json, &mut decoded).map_err(unreadable)?;
                Doc::from_bytes(&decoded).unwrap_or(Doc::EMPTY)
            }
        };
        if !self.predicate.matches(document)? {
            return Ok(Flow::Continue);
        }
        self.found = Some(document.to_owned());
        Ok(Flow::StopAfter)
    }
}
