//! The users and roles of the server, as they are stored. The privileges of roles are cached until
//! users or roles change.

use super::cached::Cached;
use super::user_changes::UserChanges;
use crate::user_store;
use auth::{Privileges, Restrictions, RoleName, User, UserName, roles};
use document::Doc;
use error::Result;
use std::sync::Arc;
use store::DocumentStore;

/// The users and roles. Its generation rises with each change of them.
#[derive(Debug, Default)]
pub struct UserDirectory {
    changes: UserChanges,
    /// The privileges of lists of roles, which many users share.
    grants: Cached<Vec<RoleName>, Grants>,
}

/// The privileges of roles, with those of all roles that they inherit from.
#[derive(Debug)]
pub struct Grants {
    /// The roles, inherited ones as well, in their order.
    pub roles: Arc<[RoleName]>,
    pub privileges: Arc<Privileges>,
    /// Those of the roles; each of them must admit a connection.
    pub restrictions: Vec<Restrictions>,
}

impl UserDirectory {
    #[inline]
    pub fn generation(&self) -> u64 {
        self.changes.count()
    }

    /// Announces that users or roles have changed: logins computed before are outdated.
    pub fn announce_change(&self) {
        self.changes.add();
    }

    /// Returns the count of changes, for observers of the store.
    pub fn changes(&self) -> UserChanges {
        self.changes.clone()
    }

    /// Returns a user; `None` if there is none of this name. Reads the store each time, so that the
    /// time does not reveal which users exist.
    pub async fn user(&self, store: &dyn DocumentStore, name: &UserName) -> Result<Option<User>> {
        let found = user_store::user(store, name).await?;
        found.map(|user| User::from_document(user.as_doc())).transpose()
    }

    /// Returns the privileges of roles.
    pub async fn grants(&self, store: &dyn DocumentStore, names: &[RoleName]) -> Result<Arc<Grants>> {
        let generation = self.generation();
        if let Some(grants) = self.grants.get(names, generation) {
            return Ok(grants);
        }
        let found = user_store::inherited(store, names).await?;
        let mut resolved = roles::resolve(names, |name| user_store::read_role(found.get(name)?.as_doc()));
        resolved.roles.sort_unstable();
        let grants = Arc::new(Grants {
            roles: resolved.roles.into(),
            privileges: Arc::new(Privileges::new(resolved.privileges)),
            restrictions: resolved.restrictions,
        });
        self.grants.insert(names.to_vec(), generation, grants.clone());
        Ok(grants)
    }

    /// Returns whether there is neither a user nor a role.
    pub async fn is_empty(&self, store: &dyn DocumentStore) -> Result<bool> {
        Ok(!user_store::exists(store, &user_store::users(), Doc::EMPTY).await?
            && !user_store::exists(store, &user_store::roles(), Doc::EMPTY).await?)
    }
}
