//! What Selkie has done for each account: rows of `selkie.accounts`.

use super::grants::{self, GrantTarget, SqlPrivileges};
use crate::catalog::own_schema;
use mariadb_client::{Connection, Result};
use mariadb_wire::Param;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::CredentialsDigest;

pub(crate) const DEFINITION: &str = "CREATE TABLE IF NOT EXISTS selkie.accounts (\
     name VARCHAR(128) NOT NULL PRIMARY KEY, login TINYINT UNSIGNED NOT NULL, is_locked BOOL NOT NULL, \
     identified VARCHAR(200), credentials BINARY(32), any_privileges TINYINT UNSIGNED NOT NULL, granted LONGBLOB NOT NULL, \
     is_ready BOOL NOT NULL) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin";

/// Whether a user has an account beside its role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LoginState {
    #[default]
    None,
    /// It is being created; its password is not the user's before the user is stored.
    Begun,
    Present,
}

/// The record of an account.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AccountRecord {
    pub login: LoginState,
    /// Selkie has locked the account while it changes.
    pub is_locked: bool,
    /// The password that the account gets as soon as the user is stored with these credentials.
    pub next_password: Option<(String, CredentialsDigest)>,
    /// The grants on each database.
    pub any: SqlPrivileges,
    pub granted: BTreeMap<GrantTarget, SqlPrivileges>,
    /// The role exists, and the account for documents may take it on.
    pub is_ready: bool,
}

/// Reads all records.
pub(crate) async fn load(connection: &mut Connection) -> Result<BTreeMap<String, AccountRecord>> {
    let sql = "SELECT name, CAST(login AS CHAR), CAST(is_locked AS CHAR), identified, credentials, \
               CAST(any_privileges AS CHAR), granted, CAST(is_ready AS CHAR) FROM selkie.accounts";
    let mut records = BTreeMap::new();
    own_schema::query(connection, &sql.into(), &[], |row| {
        let [Some(name), Some(login), Some(is_locked), identified, credentials, Some(any), Some(granted), Some(ready)] =
            row
        else {
            return Ok(());
        };
        let credentials = credentials.as_deref().and_then(|digest| digest.try_into().ok());
        let identified = identified.clone().map(own_schema::text_of).transpose()?;
        let login = match login.as_slice() {
            b"1" => LoginState::Begun,
            b"2" => LoginState::Present,
            _ => LoginState::None,
        };
        let any = own_schema::text(any)?.parse().unwrap_or_default();
        records.insert(
            own_schema::text(name)?,
            AccountRecord {
                login,
                is_locked: is_locked == b"1",
                next_password: identified.zip(credentials),
                any: SqlPrivileges::from_bits(any),
                granted: grants::decode(granted),
                is_ready: ready == b"1",
            },
        );
        Ok(())
    })
    .await?;
    Ok(records)
}

/// Writes a record.
pub(crate) async fn save(connection: &mut Connection, name: &str, record: &AccountRecord) -> Result<()> {
    let sql = "REPLACE INTO selkie.accounts (name, login, is_locked, identified, credentials, any_privileges, granted, \
               is_ready) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    let granted = grants::encode(&record.granted);
    let (identified, credentials) = match &record.next_password {
        Some((identified, credentials)) => (Param::Text(identified.as_bytes()), Param::Bytes(credentials)),
        None => (Param::Null, Param::Null),
    };
    let params = [
        Param::Text(name.as_bytes()),
        Param::Unsigned(record.login as u64),
        Param::Unsigned(u64::from(record.is_locked)),
        identified,
        credentials,
        Param::Unsigned(u64::from(record.any.bits())),
        Param::Bytes(&granted),
        Param::Unsigned(u64::from(record.is_ready)),
    ];
    own_schema::execute(connection, &sql.into(), &params).await.map(drop)
}

pub(crate) async fn delete(connection: &mut Connection, name: &str) -> Result<()> {
    let sql: Arc<str> = "DELETE FROM selkie.accounts WHERE name = ?".into();
    own_schema::execute(connection, &sql, &[Param::Text(name.as_bytes())]).await.map(drop)
}

/// Adds a grant to a record, beside a change that may be running.
pub(crate) async fn add_granted(
    connection: &mut Connection,
    name: &str,
    target: GrantTarget,
    privileges: SqlPrivileges,
) -> Result<()> {
    let sql = "UPDATE selkie.accounts SET granted = CONCAT(granted, ?) WHERE name = ?";
    let added = grants::encode(&BTreeMap::from([(target, privileges)]));
    own_schema::execute(connection, &sql.into(), &[Param::Bytes(&added), Param::Text(name.as_bytes())]).await.map(drop)
}
