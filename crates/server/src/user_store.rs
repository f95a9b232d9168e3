//! Reads users and roles from the store, where they are documents of the database `admin`.

use auth::{Role, RoleName, User, UserName, builtin_roles};
use document::json::json_to_bson;
use document::{Doc, DocBuf, doc};
use error::{Error, Result};
use hashbrown::HashMap;
use query::{Context, Predicate};
use sha2::{Digest, Sha256};
use store::{AccountUser, CredentialsDigest, DocumentStore, Flow, Namespace, Query, Sink, StoredDoc};

pub const DATABASE: &str = "admin";
const USERS: &str = "system.users";
const ROLES: &str = "system.roles";

/// The stored roles that others inherit from, by their names.
pub type StoredRoles = HashMap<RoleName, DocBuf, ahash::RandomState>;

/// Returns the collection of users.
pub fn users() -> Namespace {
    Namespace::new(DATABASE, USERS)
}

/// Returns the collection of roles.
pub fn roles() -> Namespace {
    Namespace::new(DATABASE, ROLES)
}

/// Returns the collection with the version of their format.
pub fn versions() -> Namespace {
    Namespace::new(DATABASE, "system.version")
}

/// Returns whether a collection, or an empty name for all of a database or of the server, has users
/// or roles.
pub fn concerns(namespace: &Namespace) -> bool {
    match (&*namespace.database, &*namespace.collection) {
        ("", _) => true,
        (DATABASE, collection) => matches!(collection, "" | USERS | ROLES),
        _ => false,
    }
}

/// Returns the matching documents of a collection, as they are stored now.
pub async fn find(store: &dyn DocumentStore, namespace: &Namespace, filter: Doc<'_>) -> Result<Vec<DocBuf>> {
    let predicate = Predicate::parse(filter, &Context::at(0))?;
    read(store, namespace, &predicate, usize::MAX).await
}

/// Returns the first matching documents, `limit` at most.
async fn read(
    store: &dyn DocumentStore,
    namespace: &Namespace,
    predicate: &Predicate,
    limit: usize,
) -> Result<Vec<DocBuf>> {
    let plan = store.plan(namespace, Query::of(predicate)).await?;
    plan.bypass_caches();
    let residual = (!plan.facts().exact).then_some(predicate);
    let mut sink = Collector { residual, limit, scratch: Vec::new(), documents: Vec::new() };
    store.scan(&*plan, None, limit, &mut sink).await?;
    Ok(sink.documents)
}

/// Returns whether a collection has a matching document.
pub async fn exists(store: &dyn DocumentStore, namespace: &Namespace, filter: Doc<'_>) -> Result<bool> {
    let predicate = Predicate::parse(filter, &Context::at(0))?;
    Ok(!read(store, namespace, &predicate, 1).await?.is_empty())
}

/// Returns the document of a user.
pub async fn user(store: &dyn DocumentStore, name: &UserName) -> Result<Option<DocBuf>> {
    let filter = doc! { "user": &*name.user, "db": &*name.db };
    Ok(find(store, &users(), filter.as_doc()).await?.into_iter().next())
}

/// Returns the document of a role that is not built in.
pub async fn role(store: &dyn DocumentStore, name: &RoleName) -> Result<Option<DocBuf>> {
    let filter = doc! { "role": &*name.role, "db": &*name.db };
    Ok(find(store, &roles(), filter.as_doc()).await?.into_iter().next())
}

/// Returns whether a role is built in or stored.
pub async fn role_exists(store: &dyn DocumentStore, name: &RoleName) -> Result<bool> {
    Ok(builtin_roles::exists(name) || role(store, name).await?.is_some())
}

/// Returns the name of a user's account in a store that keeps accounts.
pub fn account_name(user: &UserName) -> String {
    user.to_string()
}

/// Returns the digest by which accounts identify a user's password.
pub fn credentials_digest(credentials: Doc<'_>) -> CredentialsDigest {
    Sha256::digest(credentials.as_bytes()).into()
}

/// Returns all users, as accounts follow them. Malformed ones, which cannot log in, are left out.
pub async fn account_users(store: &dyn DocumentStore) -> Result<Vec<AccountUser>> {
    let documents = find(store, &users(), Doc::EMPTY).await?;
    let mut all_roles = Vec::new();
    let mut parsed = Vec::new();
    for document in &documents {
        let document = document.as_doc();
        let (Ok(user), Some(credentials)) = (User::from_document(document), document.get("credentials")) else {
            continue;
        };
        let credentials = credentials_digest(credentials.as_document().unwrap_or(Doc::EMPTY));
        all_roles.extend(user.roles.iter().cloned());
        parsed.push((user, credentials));
    }
    let stored = inherited(store, &all_roles).await?;
    let users = parsed.into_iter().map(|(user, credentials)| AccountUser {
        name: account_name(&user.name),
        credentials,
        privileges: auth::roles::resolve(&user.roles, |name| read_role(stored.get(name)?.as_doc())).privileges,
    });
    Ok(users.collect())
}

/// Returns these roles and all that they inherit from, except built-in roles and those that do not
/// exist.
pub async fn inherited(store: &dyn DocumentStore, names: &[RoleName]) -> Result<StoredRoles> {
    let mut found = StoredRoles::default();
    let mut pending = names.to_vec();
    let mut at = 0;
    while let Some(name) = pending.get(at).cloned() {
        at += 1;
        if builtin_roles::exists(&name) {
            continue;
        }
        let Some(document) = role(store, &name).await? else { continue };
        for next in role_names(document.as_doc()) {
            if !pending.contains(&next) {
                pending.push(next);
            }
        }
        found.insert(name, document);
    }
    Ok(found)
}

/// Returns the names in the field `roles` of a user or role; malformed ones are left out.
pub fn role_names(document: Doc<'_>) -> Vec<RoleName> {
    let names = document.get("roles").and_then(|roles| roles.as_array()).unwrap_or(Doc::EMPTY);
    names.values().filter_map(|name| RoleName::from_document(name.as_document()?)).collect()
}

/// Reads a stored role. A malformed one grants nothing, and the log says so.
pub fn read_role(document: Doc<'_>) -> Option<Role> {
    let role = Role::from_document(document);
    if let Err(error) = &role {
        let id = document.get("_id").and_then(|id| id.as_str()).unwrap_or_default();
        tracing::warn!(role = id, %error, "a stored role is malformed and grants nothing");
    }
    role.ok()
}

struct Collector<'p> {
    residual: Option<&'p Predicate>,
    limit: usize,
    scratch: Vec<u8>,
    documents: Vec<DocBuf>,
}

impl Sink for Collector<'_> {
    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow> {
        let document = match document {
            StoredDoc::Bson(document) => document,
            StoredDoc::Json(json) => {
                self.scratch.clear();
                let unreadable = |problem| Error::internal(format!("a stored document cannot be read: {problem}"));
                json_to_bson(json, &mut self.scratch).map_err(unreadable)?;
                Doc::from_bytes(&self.scratch).unwrap_or(Doc::EMPTY)
            }
        };
        if self.residual.map_or(Ok(true), |predicate| predicate.matches(document))? {
            self.documents.push(document.to_owned());
        }
        Ok(if self.documents.len() >= self.limit { Flow::StopAfter } else { Flow::Continue })
    }
}
