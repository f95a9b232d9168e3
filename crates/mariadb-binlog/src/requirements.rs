//! The settings that a server must have so that its binary log has every change, and the messages
//! if it has not.

use error::{Code, Error};
use mariadb_client::{Failure, Result, TextConnection, server_error};
use mariadb_wire::binlog::Checksum;

/// The server's settings that following depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    pub server_id: u64,
    /// Seconds since it started.
    pub uptime: u64,
    /// A committed transaction is on disk in the log.
    pub is_durable: bool,
    /// The checksum of events.
    pub checksum: Checksum,
}

const SETTINGS: &str = "SELECT @@global.log_bin, @@global.binlog_format, @@global.binlog_row_image, @@global.binlog_checksum, \
     @@global.binlog_optimize_thread_scheduling, @@global.log_slave_updates, @@global.wsrep_on, @@global.server_id, \
     @@global.sync_binlog, @@global.rpl_semi_sync_master_enabled, @@global.rpl_semi_sync_master_wait_point, CURRENT_USER()";

/// Reads and checks the server's settings. Fails with 72 and one sentence on what to configure.
pub async fn check(queries: &mut TextConnection, semi_sync: bool) -> Result<ServerSettings> {
    let rows = queries.rows(SETTINGS).await?;
    let values: Vec<&str> = rows.iter().flatten().map(|text| text.as_deref().unwrap_or_default()).collect();
    let [log, format, image, checksum, ordered, updates, galera, server_id, sync, semi, wait_point, user] = values[..]
    else {
        return Err(Failure::Lost("MariaDB did not return its settings".into()));
    };
    let is_on = |value: &str| matches!(value, "1" | "ON");
    if !is_on(log) {
        return wrong(
            "MariaDB keeps no binary log: add log_bin, binlog_format=ROW and server_id=1 to the [mariadbd] section of its configuration and restart it",
        );
    }
    if format != "ROW" {
        return wrong(format!(
            "MariaDB's binlog_format is {format}, which does not record the rows that statements change: set binlog_format=ROW in the [mariadbd] \
             section of its configuration, and run SET GLOBAL binlog_format = ROW (sessions that are open keep theirs)"
        ));
    }
    if !image.starts_with("FULL") {
        return wrong(format!(
            "MariaDB's binlog_row_image is {image}, which omits documents from the binary log: set binlog_row_image=FULL in the \
             [mariadbd] section of its configuration, and run SET GLOBAL binlog_row_image = FULL"
        ));
    }
    let Some(checksum) = Checksum::parse(checksum) else {
        return wrong(format!("MariaDB's binlog_checksum is {checksum}: CRC32 and NONE are supported"));
    };
    if !is_on(ordered) {
        return wrong(
            "MariaDB runs with binlog_optimize_thread_scheduling=OFF, so that the moment a logged change becomes visible is unknown: remove that option",
        );
    }
    let logs_all = is_on(updates);
    if !logs_all && is_on(galera) {
        return wrong(
            "this node of a Galera cluster does not log what other nodes write: set log_slave_updates=ON in the [mariadbd] section of its configuration and restart it",
        );
    }
    if !logs_all && status(queries, "Slaves_running").await?.is_some_and(|running| running != "0") {
        return wrong(
            "MariaDB is a replica and does not log what it receives: set log_slave_updates=ON in the [mariadbd] section of its configuration and restart it",
        );
    }
    if semi_sync && !is_on(semi) {
        return wrong(
            "semi-synchronous mode is configured and MariaDB's rpl_semi_sync_master_enabled is OFF: set rpl_semi_sync_master_enabled=ON in the [mariadbd] section of its configuration, and run SET GLOBAL rpl_semi_sync_master_enabled = ON",
        );
    }
    if semi_sync && wait_point != "AFTER_COMMIT" {
        return wrong(
            "semi-synchronous mode needs the server to wait when a change is visible: set rpl_semi_sync_master_wait_point=AFTER_COMMIT in the [mariadbd] section of its configuration, and run SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_COMMIT",
        );
    }
    check_log(queries, user).await?;
    let uptime = status(queries, "Uptime").await?.and_then(|text| text.parse().ok()).unwrap_or(0);
    Ok(ServerSettings { server_id: server_id.parse().unwrap_or(0), uptime, is_durable: sync == "1", checksum })
}

/// Fails with 72 if the nodes of a Galera cluster log a transaction under different GTIDs. Then a
/// position in the log of one node means nothing on another.
pub async fn check_gtids(queries: &mut TextConnection) -> Result<()> {
    let rows = queries.rows("SELECT @@global.wsrep_on, @@global.wsrep_gtid_mode").await?;
    let is_on = |at: usize| matches!(rows.first().and_then(|row| row.get(at)?.as_deref()), Some("1" | "ON"));
    if is_on(0) && !is_on(1) {
        return wrong(
            "the nodes of this Galera cluster log a transaction under GTIDs of their own: set wsrep_gtid_mode=ON, one wsrep_gtid_domain_id, and on each node another gtid_domain_id in the [mariadbd] sections of their configurations and restart them",
        );
    }
    Ok(())
}

/// Fails with 72 if the log omits databases, or if the user may not read its state.
async fn check_log(queries: &mut TextConnection, user: &str) -> Result<()> {
    let rows = queries.rows("SHOW MASTER STATUS").await.map_err(|failure| explain(failure, user))?;
    let text = |at: usize| rows.first().and_then(|row| row.get(at).cloned().flatten()).unwrap_or_default();
    let (only, but) = (text(2), text(3));
    if !only.is_empty() || !but.is_empty() {
        return wrong(format!(
            "MariaDB's binary log omits databases (binlog_do_db='{only}', binlog_ignore_db='{but}'): remove these options from its configuration and restart it"
        ));
    }
    Ok(())
}

/// Returns a failure for missing privileges that says which to grant; other failures as they are.
pub fn explain(failure: Failure, user: &str) -> Failure {
    match failure {
        Failure::Sql { code: server_error::PRIVILEGE_MISSING | server_error::ACCESS_DENIED, message } => {
            settings(format!(
                "MariaDB user {} has no privilege to follow the binary log ({message}): run GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO {}",
                account(user),
                account(user)
            ))
        }
        other => other,
    }
}

/// Returns `joe@%` as GRANT takes it.
fn account(user: &str) -> String {
    let (name, host) = user.rsplit_once('@').unwrap_or((user, "%"));
    format!("'{name}'@'{host}'")
}

/// Returns a status variable; `None` if the server has none of this name.
pub async fn status(queries: &mut TextConnection, name: &str) -> Result<Option<String>> {
    let rows = queries.rows(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).await?;
    Ok(rows.first().and_then(|row| row.get(1).cloned().flatten()))
}

fn wrong<T>(message: impl Into<String>) -> Result<T> {
    Err(settings(message.into()))
}

fn settings(message: String) -> Failure {
    Failure::Other(Error::new(Code::INVALID_OPTIONS, message))
}
