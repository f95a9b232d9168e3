//! The account of MariaDB that executes statements on documents.

use super::choices::Protocol;
use super::choices::{BackendIdentity, CacheMode};
use super::listeners::Listener;
use super::security;
use super::setting::ConfigError;
use super::store::{MariaDb, Store};

/// The least connections of a worker: a shared one of each account, the one that serializes changes
/// of users, and one for statements.
const CONNECTIONS_MIN: usize = 4;

/// Returns the account of MariaDB that executes statements on documents. Fails if users cannot
/// have accounts, or if replies could be sent without asking MariaDB.
pub fn resolve(
    security: &security::Written,
    (store, mariadb): (&Store, &MariaDb),
    listeners: &[Listener],
) -> Result<BackendIdentity, ConfigError> {
    let Some(setting) = security.backend_identity.as_ref().filter(|it| it.value == BackendIdentity::User) else {
        return Ok(BackendIdentity::Gateway);
    };
    if !security.requires_login() {
        return Err(setting.refuse("an identity is known only if MongoDB clients log in; set auth = true"));
    }
    if !store.is_in_servers() {
        return Err(setting.refuse("users have accounts in a MariaDB server only; name one with mariadb"));
    }
    if mariadb.connections < CONNECTIONS_MIN {
        let message = format!("each worker needs {CONNECTIONS_MIN} mariadb-connections for two accounts");
        return Err(setting.refuse(message));
    }
    let caches = |it: &&Listener| it.protocol == Protocol::MongoDb && it.cache != CacheMode::Off;
    if let Some(listener) = listeners.iter().find(caches) {
        let message = format!(
            "the cache of {} would send replies without asking MariaDB whether the user may read them; set the cache of \
             MongoDB listeners to off",
            listener.address
        );
        return Err(setting.refuse(message));
    }
    Ok(BackendIdentity::User)
}
