//! The login of a connection.

use super::directory::UserDirectory;
use crate::user_store;
use auth::{Privileges, RoleName, User, UserName};
use error::Result;
use std::net::IpAddr;
use std::sync::Arc;
use store::DocumentStore;

/// A user that has proved its identity, with its privileges.
#[derive(Debug)]
pub struct Login {
    pub name: UserName,
    /// The name of the user's account in a store that keeps accounts.
    pub account: Arc<str>,
    /// Distinguishes the user from a later one of the same name.
    pub user_id: Option<[u8; 16]>,
    /// All roles, inherited ones as well, in their order.
    pub roles: Arc<[RoleName]>,
    pub privileges: Arc<Privileges>,
    /// The generation of the directory from which this was computed.
    pub generation: u64,
}

/// The two ends of a connection; `None` for a Unix socket.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    pub client: Option<IpAddr>,
    pub server: Option<IpAddr>,
}

impl Login {
    /// Computes the privileges of a user. Returns `None` if its restrictions, or those of its
    /// roles, do not admit the connection.
    pub async fn of(
        directory: &UserDirectory,
        store: &dyn DocumentStore,
        user: User,
        addresses: Addresses,
    ) -> Result<Option<Login>> {
        // Read first, so that a change meanwhile makes the login outdated.
        let generation = directory.generation();
        let granted = directory.grants(store, &user.roles).await?;
        let mut restrictions = granted.restrictions.iter().chain([&user.restrictions]);
        if !restrictions.all(|restrictions| restrictions.admit(addresses.client, addresses.server)) {
            return Ok(None);
        }
        Ok(Some(Login {
            account: user_store::account_name(&user.name).into(),
            name: user.name,
            user_id: user.id,
            roles: granted.roles.clone(),
            privileges: granted.privileges.clone(),
            generation,
        }))
    }
}
