//! The users and roles of the server, as they are stored.

use crate::user_store;
use auth::roles::{self, Resolved};
use auth::{RoleName, User, UserName};
use document::Doc;
use error::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use store::DocumentStore;

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

    /// Returns a user; `None` if there is none of this name. Reads the store each time, so that the
    /// time does not reveal which users exist.
    pub async fn user(&self, store: &dyn DocumentStore, name: &UserName) -> Result<Option<User>> {
        let found = user_store::user(store, name).await?;
        found.map(|user| User::from_document(user.as_doc())).transpose()
    }

    /// Returns the privileges of roles, with those of all roles that they inherit from.
    pub async fn resolve(&self, store: &dyn DocumentStore, names: &[RoleName]) -> Result<Resolved> {
        let found = user_store::inherited(store, names).await?;
        Ok(roles::resolve(names, |name| user_store::read_role(found.get(name)?.as_doc())))
    }

    /// Returns whether there is neither a user nor a role.
    pub async fn is_empty(&self, store: &dyn DocumentStore) -> Result<bool> {
        for namespace in [user_store::users(), user_store::roles()] {
            if !user_store::find(store, &namespace, Doc::EMPTY).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
