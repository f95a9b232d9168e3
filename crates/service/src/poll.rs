//! The queries by which a monitor observes a server.

use crate::gtid::GtidPosition;
use crate::observation::{Facts, GaleraFacts, IoThread, KindFacts, NodeState, ReplicationFacts, Source};
use crate::reachability::Outcome;
use crate::role::ClusterKind;
use mariadb_client::{Failure, NamedRow, Result, ServerUrl, TextConnection};
use std::collections::HashMap;
use std::time::Duration;

/// Statements with SHOW are answered by a Galera node in every state.
const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
     ('version', 'server_id', 'read_only', 'gtid_binlog_pos', 'gtid_current_pos', 'rpl_semi_sync_master_enabled')";
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
}

impl Poller {
    pub fn new(target: ServerUrl, kind: ClusterKind, timeout: Duration) -> Poller {
        Poller { target, kind, timeout, connection: None }
    }

    /// Polls the server once.
    pub async fn poll(&mut self) -> Outcome {
        match self.try_poll().await {
            Ok(facts) => Outcome::Answered(facts),
            Err(failure) => {
                self.connection = None;
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
