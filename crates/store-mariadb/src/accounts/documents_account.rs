//! The account that executes statements on documents.
//!
//! It has the name of the gateway's account and a suffix, and a password that is derived from the
//! gateway's: nothing needs to be stored, and gateways with the same account share it. Its own
//! rights are those that a statement on documents needs beside those on the documents: on the
//! records of retryable writes, and on the tables beside a collection's, which hold keys.

use super::{AccountSettings, PasswordPlugin, account_name};
use crate::catalog::own_schema;
use crate::index::{element_table, side_index::side_table};
use error::{Code, Error};
use mariadb_client::{Connection, Event, Failure, Result, ServerLocation, ServerUrl, quote, server_error};
use sha2::{Digest, Sha256};

/// The end of its name.
const SUFFIX: &str = ":documents";

/// Distinguishes its password from other hashes of the gateway's.
const PASSWORD_LABEL: &str = "selkie account for documents";

/// What Selkie grants to roles of users.
const GRANTED: &str = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER";

/// Returns where the account logs in. Fails with 72 if its password cannot be derived.
pub(crate) fn target(gateway: &ServerLocation) -> error::Result<ServerUrl> {
    let refuse = |why: &str| Err(Error::new(Code::INVALID_OPTIONS, format!("backend-identity = \"user\" {why}")));
    match gateway {
        ServerLocation::Server(url) if url.password.is_empty() => {
            refuse("needs a password of the gateway's account in the URL of MariaDB")
        }
        ServerLocation::Server(url) => {
            let hash = Sha256::digest([PASSWORD_LABEL, &url.user, &url.password].join("\0"));
            let password = hash.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
            let user = format!("{}{SUFFIX}", url.user);
            Ok(ServerUrl { user, password, ..url.clone() })
        }
        #[cfg(feature = "embedded")]
        ServerLocation::Embedded(_) => refuse("needs a MariaDB server: within the process there are no accounts"),
    }
}

/// Creates the account if it is missing, checks that the gateway may keep accounts, and grants the
/// account its own rights. Fails with 72 if the gateway lacks a privilege.
pub(crate) async fn set_up(connection: &mut Connection, target: &ServerUrl) -> Result<AccountSettings> {
    own_schema::create(connection).await.map_err(explained)?;
    let plugin = plugin(connection).await?;
    let account = account_name::account(&target.user);
    let identified = plugin.identified(&target.password);
    // Roles of users are granted to it again, in case it was dropped.
    let probe = quote(&format!("selkie:probe:{:016x}", rand::random::<u64>()));
    let statements = [
        format!("CREATE USER IF NOT EXISTS {account} {identified} ACCOUNT LOCK"),
        format!("ALTER USER {account} {identified} ACCOUNT UNLOCK"),
        format!("SET DEFAULT ROLE NONE FOR {account}"),
        "SELECT 1 FROM mysql.global_priv LIMIT 1".to_owned(),
        format!("CREATE ROLE {probe}"),
        format!("GRANT {GRANTED} ON {probe}.* TO {probe}"),
        format!("GRANT {probe} TO {account}"),
        format!("DROP ROLE IF EXISTS {probe}"),
        format!("GRANT SELECT, INSERT, UPDATE ON selkie.retryable_writes TO {account}"),
        "UPDATE selkie.accounts SET is_ready = 0".to_owned(),
    ];
    let mut outcome = Ok(());
    for statement in &statements {
        // The rest is executed after a failure too: it drops the role again.
        connection.queue_query(statement);
        match connection.finish().await {
            Err(failure) if failure.is_lost() => return Err(failure),
            answer => outcome = outcome.and(answer.map(drop)),
        }
    }
    outcome.map_err(explained)?;
    for (schema, table) in tables_beside(connection).await? {
        grant_on(connection, &account, &schema, &table).await?;
    }
    Ok(AccountSettings { documents_account: account.into(), plugin })
}

fn explained(failure: Failure) -> Failure {
    if failure.is_lost() {
        return failure;
    }
    let message = format!(
        "backend-identity = \"user\": the gateway's account cannot keep accounts in MariaDB: {failure}. Grant it SELECT, INSERT, \
         UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, TRIGGER and CREATE USER on *.* WITH GRANT OPTION"
    );
    Error::new(Code::INVALID_OPTIONS, message).into()
}

async fn plugin(connection: &mut Connection) -> Result<PasswordPlugin> {
    let sql = "SELECT 1 FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'ed25519' AND PLUGIN_STATUS = 'ACTIVE'";
    connection.queue_execute(&sql.into(), &[]);
    let mut plugin = PasswordPlugin::Native;
    while let Event::Row(_) = connection.next().await? {
        plugin = PasswordPlugin::Ed25519;
    }
    Ok(plugin)
}

/// Returns the tables that Selkie has created beside those of collections.
async fn tables_beside(connection: &mut Connection) -> Result<Vec<(String, String)>> {
    let sql = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_NAME LIKE '~%'";
    connection.queue_execute(&sql.into(), &[]);
    let mut tables = Vec::new();
    while let Event::Row(range) = connection.next().await? {
        let mut row = connection.row(range)?;
        let schema = own_schema::text(row.next_bytes()?.unwrap_or_default())?;
        let table = own_schema::text(row.next_bytes()?.unwrap_or_default())?;
        if element_table::is_name(&table) || side_table::is_name(&table) {
            tables.push((schema, table));
        }
    }
    Ok(tables)
}

/// Grants the account for documents its rights on a table that the connection has created beside a
/// collection's, if there is such an account.
pub(crate) async fn grant_on_table_beside(connection: &mut Connection, schema: &str, table: &str) -> Result<()> {
    match connection.documents_account.clone() {
        Some(account) => grant_on(connection, &account, schema, table).await,
        None => Ok(()),
    }
}

async fn grant_on(connection: &mut Connection, account: &str, schema: &str, table: &str) -> Result<()> {
    let (schema, table) = (quote(schema), quote(table));
    connection.queue_query(&format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.{table} TO {account}"));
    match connection.finish().await {
        // It was dropped meanwhile.
        Err(failure) if failure.sql_code() == Some(server_error::NO_SUCH_TABLE) => Ok(()),
        outcome => outcome.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_derived_from_the_gateways() {
        let of = |url: &str| {
            let target = target(&ServerLocation::Server(ServerUrl::parse(url).unwrap()));
            target.map(|url| (url.user, url.password)).map_err(|error| error.code())
        };
        let (user, password) = of("mysql://selkie:secret@h").unwrap();
        assert_eq!((user.as_str(), password.len()), ("selkie:documents", 64));
        assert_eq!(of("mysql://selkie:secret@other").unwrap().1, password);
        assert_ne!(of("mysql://selkie:other@h").unwrap().1, password);
        assert_eq!(of("mysql://selkie@h"), Err(Code::INVALID_OPTIONS));
    }
}
