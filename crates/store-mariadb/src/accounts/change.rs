//! Changes of accounts: the steps before a user is stored, and the one that makes accounts follow.
//!
//! Each step is recorded before it is taken. If a change is interrupted, the records and the stored
//! users determine the steps that are missing, and [`AccountChange::settle`] takes them.

use super::grants::{Grants, SqlPrivileges};
use super::record::{self, AccountRecord, LoginState};
use super::{AccountSettings, account_name};
use crate::accounts::grants::GrantTarget;
use crate::catalog::lasting_lock::LastingLock;
use crate::catalog::own_schema;
use crate::store::MariaDbStore;
use ::store::{AccountChange, AccountUser, NewPassword};
use error::{Code, Error};
use futures_util::future::LocalBoxFuture;
use mariadb_client::{Connection, Event, Failure, Lease, Result, named_lock, quote, server_error};
use mariadb_wire::Param;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

/// Held by a change. If it is dropped, the connection is closed, which ends the lock.
const LOCK: &str = "selkie accounts";

/// How long a change waits for another one.
const LOCK_SECONDS: u32 = 60;
const LOCK_TIMEOUT: Duration = Duration::from_secs(LOCK_SECONDS as u64 + 5);

/// A code of MongoDB: the user exists.
const USER_EXISTS: Code = Code(51003);

/// A change of accounts. It holds the lock until it is settled or dropped.
pub(crate) struct MariaDbAccountChange {
    lease: Lease,
    /// The lock on the other nodes, on a Galera cluster.
    on_all_nodes: Option<LastingLock>,
    /// Changes of one worker wait for each other without holding a connection, which the first one
    /// needs.
    _turn: OwnedMutexGuard<()>,
    settings: AccountSettings,
    ignores_case: bool,
}

impl MariaDbAccountChange {
    pub async fn begin(store: &MariaDbStore, settings: AccountSettings) -> Result<Self> {
        let turn = store.definitions.of(LOCK).lock_owned().await;
        let mut lease = store.pool.lease().await?;
        let ignores_case = store.catalog.ignores_case();
        lease.locks += 1;
        let taking = async {
            if !named_lock::take(&mut lease, LOCK, LOCK_SECONDS).await? {
                return Ok(None);
            }
            let Some(cluster) = &store.catalog.cluster_locks else { return Ok(Some(None)) };
            LastingLock::take(cluster, &mut lease, LOCK).await.map(|lock| Some(Some(lock)))
        };
        match timeout(LOCK_TIMEOUT, taking).await {
            Ok(Ok(Some(on_all_nodes))) => {
                Ok(MariaDbAccountChange { lease, on_all_nodes, _turn: turn, settings, ignores_case })
            }
            Ok(Err(failure)) => Err(failure),
            Ok(Ok(None)) | Err(_) => {
                Err(Error::new(Code::LOCK_TIMEOUT, "another change of users takes too long").into())
            }
        }
    }

    async fn prepare_password(&mut self, password: NewPassword<'_>) -> Result<()> {
        let NewPassword { name, password, credentials } = password;
        account_name::check(name)?;
        let connection = &mut *self.lease;
        let known = record::load(connection).await?.remove(name);
        let (is_new, before) = (known.is_none(), known.unwrap_or_default());
        let identified = self.settings.plugin.identified(password);
        let next_password = Some((identified.clone(), credentials));
        if before.login == LoginState::Present {
            return lock(connection, name, AccountRecord { next_password, ..before }).await;
        }
        check_is_free(connection, name, is_new, before.login == LoginState::None).await?;
        let record = AccountRecord { login: LoginState::Begun, is_locked: true, next_password, ..before.clone() };
        record::save(connection, name, &record).await?;
        match create(connection, name, &identified).await {
            Err(failure) if !failure.is_lost() => {
                execute(connection, &format!("DROP USER IF EXISTS {}", account_name::account(name))).await?;
                match is_new {
                    true => drop_role(connection, name).await?,
                    false => {
                        let record = AccountRecord { login: LoginState::None, ..before };
                        record::save(connection, name, &record).await?;
                    }
                }
                Err(failure)
            }
            outcome => outcome,
        }
    }

    async fn lock_accounts(&mut self, names: &[String]) -> Result<()> {
        let mut records = record::load(&mut self.lease).await?;
        for name in names {
            if let Some(record) = records.remove(name).filter(|record| record.login == LoginState::Present) {
                lock(&mut self.lease, name, record).await?;
            }
        }
        Ok(())
    }

    async fn settle_all(&mut self, users: &[AccountUser]) -> Result<()> {
        let mut records = record::load(&mut self.lease).await?;
        let names: BTreeSet<&str> = users.iter().map(|user| user.name.as_str()).collect();
        let mut outcome = Ok(());
        for (name, record) in records.iter().filter(|(name, _)| !names.contains(name.as_str())) {
            let dropped = drop_account(&mut self.lease, name, record).await;
            keep_first(&mut outcome, name, dropped)?;
        }
        for user in users {
            if let Err(error) = account_name::check(&user.name) {
                tracing::debug!("{error}");
                continue;
            }
            let record = records.remove(&user.name);
            let settled = self.settle_one(user, record).await;
            keep_first(&mut outcome, &user.name, settled)?;
        }
        self.release_on_all_nodes();
        if named_lock::release(&mut self.lease, LOCK).await.is_ok() {
            self.lease.locks -= 1;
        }
        outcome
    }

    /// Releases the lock on the other nodes, unless MariaDB may still execute a statement.
    fn release_on_all_nodes(&mut self) {
        if let Some(lock) = self.on_all_nodes.take().filter(|_| self.lease.is_at_rest()) {
            lock.release();
        }
    }

    async fn settle_one(&mut self, user: &AccountUser, known: Option<AccountRecord>) -> Result<()> {
        let connection = &mut *self.lease;
        let name = &user.name;
        let mut record = match known {
            Some(known) => known,
            None => {
                check_is_free(connection, name, true, false).await?;
                record::save(connection, name, &AccountRecord::default()).await?;
                AccountRecord::default()
            }
        };
        let before = record.clone();
        if !record.is_ready {
            let role = quote(name);
            execute(connection, &format!("CREATE ROLE IF NOT EXISTS {role}")).await?;
            execute(connection, &format!("GRANT {role} TO {}", self.settings.documents_account)).await?;
            record.is_ready = true;
        }
        grant(connection, name, &mut record, &Grants::of(&user.privileges, self.ignores_case)).await?;
        settle_login(connection, user, &mut record).await?;
        if record != before {
            record::save(connection, name, &record).await?;
        }
        Ok(())
    }
}

impl Drop for MariaDbAccountChange {
    fn drop(&mut self) {
        self.release_on_all_nodes();
    }
}

impl AccountChange for MariaDbAccountChange {
    fn check_name(&self, name: &str) -> error::Result<()> {
        account_name::check(name)
    }

    fn prepare<'a>(&'a mut self, password: NewPassword<'a>) -> LocalBoxFuture<'a, error::Result<()>> {
        Box::pin(async move { self.prepare_password(password).await.map_err(Error::from) })
    }

    fn lock<'a>(&'a mut self, names: &'a [String]) -> LocalBoxFuture<'a, error::Result<()>> {
        Box::pin(async move { self.lock_accounts(names).await.map_err(Error::from) })
    }

    fn settle<'a>(&'a mut self, users: &'a [AccountUser]) -> LocalBoxFuture<'a, error::Result<()>> {
        Box::pin(async move { self.settle_all(users).await.map_err(Error::from) })
    }
}

/// Records the first failure; fails at once if the connection is lost.
fn keep_first(outcome: &mut Result<()>, name: &str, settled: Result<()>) -> Result<()> {
    match settled {
        Err(failure) if failure.is_lost() => return Err(failure),
        Err(failure) => {
            tracing::warn!(user = name, "the account in MariaDB does not follow the user: {failure}");
            if outcome.is_ok() {
                *outcome = Err(failure);
            }
        }
        Ok(()) => {}
    }
    Ok(())
}

/// Executes a statement whose rows, if any, are not needed.
async fn execute(connection: &mut Connection, sql: &str) -> Result<()> {
    connection.queue_query(sql);
    connection.finish().await.map(drop)
}

async fn set_locked(connection: &mut Connection, name: &str, is_locked: bool) -> Result<()> {
    let lock = if is_locked { "LOCK" } else { "UNLOCK" };
    execute(connection, &format!("ALTER USER IF EXISTS {} ACCOUNT {lock}", account_name::account(name))).await
}

/// Saves a record, and locks its account until the change is settled. An account that an
/// administrator has locked stays locked afterwards.
async fn lock(connection: &mut Connection, name: &str, mut record: AccountRecord) -> Result<()> {
    record.is_locked |= !is_locked(connection, name).await?;
    record::save(connection, name, &record).await?;
    match record.is_locked {
        true => set_locked(connection, name, true).await,
        false => Ok(()),
    }
}

async fn is_locked(connection: &mut Connection, name: &str) -> Result<bool> {
    let sql =
        "SELECT 1 FROM mysql.global_priv WHERE User = ? AND Host = '%' AND JSON_VALUE(Priv, '$.account_locked') = 1";
    connection.queue_execute(&sql.into(), &[Param::Text(name.as_bytes())]);
    let mut is_locked = false;
    while let Event::Row(_) = connection.next().await? {
        is_locked = true;
    }
    Ok(is_locked)
}

/// Fails with 51003 if a role (`role`) or an account (`account`) of this name exists, which Selkie
/// has not created.
async fn check_is_free(connection: &mut Connection, name: &str, role: bool, account: bool) -> Result<()> {
    let sql = "SELECT Host FROM mysql.global_priv WHERE User = ? AND Host IN ('', '%')";
    connection.queue_execute(&sql.into(), &[Param::Text(name.as_bytes())]);
    let mut is_taken = false;
    while let Event::Row(range) = connection.next().await? {
        let is_role = connection.row(range)?.next_bytes()?.unwrap_or_default().is_empty();
        is_taken |= if is_role { role } else { account };
    }
    match is_taken {
        true => {
            let message =
                format!("MariaDB has a role or an account '{name}' already, which does not belong to a user of Selkie");
            Err(Error::new(USER_EXISTS, message).into())
        }
        false => Ok(()),
    }
}

/// Creates a role and its account, which is locked.
async fn create(connection: &mut Connection, name: &str, identified: &str) -> Result<()> {
    let (role, account) = (quote(name), account_name::account(name));
    for sql in [
        format!("CREATE ROLE IF NOT EXISTS {role}"),
        format!("CREATE USER IF NOT EXISTS {account} {identified} ACCOUNT LOCK"),
        format!("GRANT {role} TO {account}"),
        format!("SET DEFAULT ROLE {role} FOR {account}"),
    ] {
        execute(connection, &sql).await?;
    }
    Ok(())
}

async fn drop_account(connection: &mut Connection, name: &str, record: &AccountRecord) -> Result<()> {
    if record.login != LoginState::None {
        execute(connection, &format!("DROP USER IF EXISTS {}", account_name::account(name))).await?;
    }
    drop_role(connection, name).await
}

/// Drops a role and its record.
async fn drop_role(connection: &mut Connection, name: &str) -> Result<()> {
    execute(connection, &format!("DROP ROLE IF EXISTS {}", quote(name))).await?;
    record::delete(connection, name).await
}

/// Makes an account follow its user's password, and unlocks it.
async fn settle_login(connection: &mut Connection, user: &AccountUser, record: &mut AccountRecord) -> Result<()> {
    if !record.is_locked && record.next_password.is_none() && record.login != LoginState::Begun {
        return Ok(());
    }
    let account = account_name::account(&user.name);
    let next = record.next_password.take().filter(|(_, credentials)| *credentials == user.credentials);
    match (next, record.login) {
        (Some((identified, _)), _) => {
            create(connection, &user.name, &identified).await?;
            execute(connection, &format!("ALTER USER {account} {identified}")).await?;
            record.login = LoginState::Present;
        }
        // The user was not stored with the password that the account has.
        (None, LoginState::Begun) => {
            execute(connection, &format!("DROP USER IF EXISTS {account}")).await?;
            record.login = LoginState::None;
        }
        (None, _) => {}
    }
    match std::mem::take(&mut record.is_locked) {
        true => set_locked(connection, &user.name, false).await,
        false => Ok(()),
    }
}

/// Grants a role what it lacks, and revokes what it has too much, by what Selkie has granted
/// before. What an administrator has granted or revoked meanwhile is left as it is.
async fn grant(connection: &mut Connection, name: &str, record: &mut AccountRecord, wanted: &Grants) -> Result<()> {
    if record.any != wanted.any {
        // Recorded before the schemas are listed, so that one that is created meanwhile is not
        // missed (see `new_schema`).
        let both = AccountRecord { any: record.any.with(wanted.any), ..record.clone() };
        record::save(connection, name, &both).await?;
    }
    let needs_schemas = !record.any.is_empty() || !wanted.any.is_empty();
    let schemas = if needs_schemas { schemas(connection).await? } else { Vec::new() };
    let after = wanted.on(&schemas);
    // Grants on a new schema may not be recorded yet.
    let known = Grants { any: record.any, own: BTreeMap::new() };
    let mut before = record.granted.clone();
    for (target, privileges) in known.on(&schemas) {
        let all = before.entry(target).or_default();
        *all = all.with(privileges);
    }
    for (target, had) in &before {
        let revoked = had.without(after.get(target).copied().unwrap_or_default());
        if !revoked.is_empty() {
            revoke(connection, name, target, revoked).await?;
        }
    }
    for (target, privileges) in &after {
        let granted = privileges.without(record.granted.get(target).copied().unwrap_or_default());
        if !granted.is_empty() {
            grant_on(connection, name, target, granted).await?;
        }
    }
    (record.any, record.granted) = (wanted.any, after);
    Ok(())
}

async fn grant_on(connection: &mut Connection, name: &str, target: &GrantTarget, granted: SqlPrivileges) -> Result<()> {
    let role = quote(name);
    match execute(connection, &format!("GRANT {granted} ON {target} TO {role}")).await {
        // A grant on a table that does not exist yet must include CREATE.
        Err(failure) if failure.is_missing_table() => {
            let with_create = granted.with(SqlPrivileges::CREATE);
            execute(connection, &format!("GRANT {with_create} ON {target} TO {role}")).await?;
            match granted.contains(SqlPrivileges::CREATE) {
                true => Ok(()),
                false => revoke(connection, name, target, SqlPrivileges::CREATE).await,
            }
        }
        outcome => outcome,
    }
}

/// Revokes privileges, one by one: an administrator may have revoked some.
async fn revoke(connection: &mut Connection, name: &str, target: &GrantTarget, revoked: SqlPrivileges) -> Result<()> {
    for one in revoked.each() {
        match execute(connection, &format!("REVOKE {one} ON {target} FROM {}", quote(name))).await {
            Err(Failure::Sql { code: server_error::NO_SUCH_GRANT | server_error::NO_SUCH_TABLE_GRANT, .. }) => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

async fn schemas(connection: &mut Connection) -> Result<Vec<String>> {
    connection.queue_execute(&"SELECT SCHEMA_NAME FROM information_schema.SCHEMATA".into(), &[]);
    let mut schemas = Vec::new();
    while let Event::Row(range) = connection.next().await? {
        schemas.push(own_schema::text(connection.row(range)?.next_bytes()?.unwrap_or_default())?);
    }
    Ok(schemas)
}
