//! The queries by which a monitor observes a server.

use crate::gtid::{GtidPosition, GtidState};
use crate::observation::{Facts, GaleraFacts, IoThread, KindFacts, NodeState, ReplicationFacts, Source};
use crate::reachability::Outcome;
use crate::role::ClusterKind;
use crate::statement::literal;
use mariadb_client::{Failure, NamedRow, Result, ServerUrl, TextConnection, TextValues};
use std::collections::HashMap;
use std::time::Duration;

/// Statements with SHOW are answered by a Galera node in every state.
const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
     ('version', 'server_id', 'read_only', 'gtid_binlog_pos', 'gtid_current_pos', 'gtid_slave_pos', \
     'gtid_binlog_state', 'log_bin', 'log_slave_updates', 'rpl_semi_sync_master_enabled')";
const SEMI_SYNC: &str = "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_master_clients'";
const SOURCES: &str = "SHOW ALL SLAVES STATUS";
const GALERA: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_cluster_state_uuid', 'wsrep_cluster_status', \
     'wsrep_cluster_size', 'wsrep_ready', 'wsrep_local_state')";

/// `wsrep_cluster_status` of the part with the majority.
const PRIMARY_COMPONENT: &str = "Primary";

/// A monitor's connection to a server, which is opened when it is needed.
pub struct Poller {
    target: ServerUrl,
    kind: ClusterKind,
    timeout: Duration,
    connection: Option<TextConnection>,
    /// The lock by which gateways agree which of them may change the servers.
    lock: String,
    /// Whether the connection holds the lock. The server releases it when the connection ends.
    holds_lock: bool,
}

impl Poller {
    pub fn new(target: ServerUrl, kind: ClusterKind, timeout: Duration, lock: String) -> Poller {
        Poller { target, kind, timeout, connection: None, lock, holds_lock: false }
    }

    pub fn holds_lock(&self) -> bool {
        self.holds_lock && self.connection.is_some()
    }

    /// Takes the lock on the server, if no other gateway holds it. `idle_max`: the server ends the
    /// connection, and so releases the lock, if the gateway is silent for so long.
    pub async fn take_lock(&mut self, idle_max: Duration) -> Result<bool> {
        if self.holds_lock() {
            return Ok(true);
        }
        let sql = format!("SET SESSION wait_timeout = {}", idle_max.as_secs().max(1));
        self.run(&sql).await?;
        let sql = format!("SELECT GET_LOCK({}, 0)", literal(&self.lock));
        self.holds_lock = self.run(&sql).await?.is_some_and(|answer| answer == "1");
        Ok(self.holds_lock)
    }

    /// Asks the server whether this connection still holds the lock.
    pub async fn confirm_lock(&mut self) -> bool {
        let sql = format!("SELECT IS_USED_LOCK({}) = CONNECTION_ID()", literal(&self.lock));
        self.holds_lock() && self.run(&sql).await.is_ok_and(|answer| answer.is_some_and(|answer| answer == "1"))
    }

    pub async fn release_lock(&mut self) {
        if self.holds_lock() {
            // If that fails, the connection is closed, which releases the lock too.
            let _ = self.run(&format!("DO RELEASE_LOCK({})", literal(&self.lock))).await;
            self.holds_lock = false;
        }
    }

    /// Executes a statement on the monitor's connection; returns the first value of its first row.
    /// Fails if the connection is not open, for then its locks are lost.
    pub async fn run(&mut self, sql: &str) -> Result<Option<String>> {
        let rows = self.rows(sql).await?;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
    }

    /// As [`Poller::run`]; returns all rows.
    pub async fn rows(&mut self, sql: &str) -> Result<Vec<TextValues>> {
        let lost = || Failure::Lost("the monitor is not connected to the server".into());
        let outcome = self.connection.as_mut().ok_or_else(lost)?.slow_rows(sql).await;
        if outcome.as_ref().is_err_and(Failure::is_lost) {
            self.disconnect();
        }
        outcome
    }

    fn disconnect(&mut self) {
        self.connection = None;
        self.holds_lock = false;
    }

    /// Polls the server once.
    pub async fn poll(&mut self) -> Outcome {
        match self.try_poll().await {
            Ok(facts) => Outcome::Answered(facts),
            Err(failure) => {
                self.disconnect();
                match failure {
                    Failure::Full(message) => Outcome::Full(message),
                    other => Outcome::Failed(other.to_string()),
                }
            }
        }
    }

    async fn try_poll(&mut self) -> Result<Facts> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(TextConnection::connect(&self.target, self.timeout).await?),
        };
        let variables = pairs(connection, VARIABLES).await?;
        let text = |name: &str| variables.get(name).map(String::as_str).unwrap_or_default();
        let kind = match self.kind {
            ClusterKind::Replication => {
                let waits = text("rpl_semi_sync_master_enabled") == "ON";
                KindFacts::Replication(replication(connection, waits).await?)
            }
            ClusterKind::Galera => KindFacts::Galera(galera(&pairs(connection, GALERA).await?)),
        };
        let position = |name: &str| GtidPosition::parse(text(name)).unwrap_or_default();
        Ok(Facts {
            version: text("version").to_owned(),
            server_id: number(text("server_id")),
            // MariaDB 12 has several levels of read-only beside OFF.
            is_read_only: !matches!(text("read_only"), "OFF" | "0"),
            binlog: position("gtid_binlog_pos"),
            current: position("gtid_current_pos"),
            replicated: position("gtid_slave_pos"),
            binlog_state: GtidState::parse(text("gtid_binlog_state")),
            logs_everything: text("log_bin") == "ON" && text("log_slave_updates") == "ON",
            kind,
        })
    }
}

/// Returns rows of a name and a value. Names are in lower case.
async fn pairs(connection: &mut TextConnection, sql: &str) -> Result<HashMap<String, String>> {
    let rows = connection.rows(sql).await?.into_iter();
    let pair = |mut row: Vec<Option<String>>| {
        let value = row.pop().flatten().unwrap_or_default();
        Some((row.pop().flatten()?.to_lowercase(), value))
    };
    Ok(rows.filter_map(pair).collect())
}

async fn replication(connection: &mut TextConnection, waits_for_replicas: bool) -> Result<ReplicationFacts> {
    let rows = connection.named_rows(SOURCES).await.map_err(explain)?;
    let semi_sync_replicas = match waits_for_replicas {
        true => pairs(connection, SEMI_SYNC).await?.into_values().next().map(|clients| number(&clients)),
        false => None,
    };
    Ok(ReplicationFacts { sources: rows.iter().map(source).collect(), semi_sync_replicas })
}

fn explain(failure: Failure) -> Failure {
    match failure {
        Failure::Sql { code, message } if code == mariadb_client::server_error::PRIVILEGE_MISSING => {
            Failure::Sql { code, message: format!("{message}; grant REPLICA MONITOR to the monitor's user") }
        }
        other => other,
    }
}

fn source(row: &NamedRow) -> Source {
    let text = |name: &str| row.get(name).unwrap_or_default();
    let errors = [text("Last_IO_Error"), text("Last_SQL_Error")];
    Source {
        connection: text("Connection_name").to_owned(),
        host: text("Master_Host").to_owned(),
        port: number(text("Master_Port")),
        server_id: number(text("Master_Server_Id")),
        io: match text("Slave_IO_Running") {
            "Yes" => IoThread::Running,
            "No" | "" => IoThread::Stopped,
            // "Connecting", "Preparing".
            _ => IoThread::Connecting,
        },
        is_sql_running: text("Slave_SQL_Running") == "Yes",
        uses_gtid: !matches!(text("Using_Gtid"), "No" | ""),
        received: GtidPosition::parse(text("Gtid_IO_Pos")).unwrap_or_default(),
        lag_seconds: row.get("Seconds_Behind_Master").and_then(|seconds| seconds.parse().ok()),
        error: errors.into_iter().find(|error| !error.is_empty()).unwrap_or_default().to_owned(),
    }
}

fn galera(status: &HashMap<String, String>) -> GaleraFacts {
    let text = |name: &str| status.get(name).map(String::as_str).unwrap_or_default();
    GaleraFacts {
        cluster: text("wsrep_cluster_state_uuid").to_owned(),
        is_in_primary_component: text("wsrep_cluster_status") == PRIMARY_COMPONENT,
        cluster_size: number(text("wsrep_cluster_size")),
        is_ready: text("wsrep_ready") == "ON",
        state: NodeState::from_number(number(text("wsrep_local_state"))),
    }
}

/// Parses a number; 0 if it is none.
fn number<N: std::str::FromStr + Default>(text: &str) -> N {
    text.parse().unwrap_or_default()
}
