//! MariaDB's accounts and grants as a second barrier behind Selkie's own access control.
//!
//! Each user has a role of MariaDB of the same name, `db.user`, to which its privileges are granted
//! ([`grants`]), and an account of that name with the same password. An SQL client logs in with the
//! account. Statements of MongoDB clients on documents are executed by an account for all of them
//! ([`documents_account`]), which has no rights of its own on documents: it takes on the role of
//! the user ([`under_identity`]). Catalog reads, definitions and Selkie's own tables stay with the
//! gateway's account: they serve all users, and Selkie's own privileges decide about them.
//!
//! [`change`] keeps roles and accounts in line with users, and [`record`] remembers what Selkie has
//! granted: what an administrator revokes by SQL stays revoked.

pub(crate) mod account_name;
pub(crate) mod change;
pub(crate) mod documents_account;
pub(crate) mod grants;
pub(crate) mod new_schema;
pub(crate) mod record;
pub(crate) mod under_identity;

use std::sync::Arc;

/// How the store keeps accounts.
#[derive(Clone, Debug)]
pub(crate) struct AccountSettings {
    /// The quoted name of the account for statements on documents.
    pub documents_account: Arc<str>,
    /// How the server checks passwords of accounts.
    pub plugin: PasswordPlugin,
}

/// A plugin that checks passwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasswordPlugin {
    Ed25519,
    Native,
}

impl PasswordPlugin {
    /// Returns the clause of a statement that sets a password. It contains a hash, so that the
    /// password itself is neither sent nor logged.
    pub fn identified(self, password: &str) -> String {
        let password = password.as_bytes();
        match self {
            PasswordPlugin::Ed25519 => {
                format!("IDENTIFIED VIA ed25519 USING '{}'", mariadb_wire::auth::ed25519_hash(password))
            }
            PasswordPlugin::Native => {
                format!("IDENTIFIED VIA mysql_native_password USING '{}'", mariadb_wire::auth::native_hash(password))
            }
        }
    }
}
