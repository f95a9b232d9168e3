//! Facts about servers, for tests.

use crate::gtid::{GtidPosition, GtidState};
use crate::observation::{Facts, GaleraFacts, IoThread, KindFacts, NodeState, ReplicationFacts, Source};

/// Returns the facts of a writable server without replicas.
pub fn facts(server_id: u32) -> Facts {
    Facts {
        version: "10.11.19-MariaDB".into(),
        server_id,
        is_read_only: false,
        binlog: GtidPosition::default(),
        current: GtidPosition::default(),
        replicated: GtidPosition::default(),
        binlog_state: GtidState::default(),
        logs_everything: true,
        kind: KindFacts::Replication(ReplicationFacts::default()),
    }
}

/// Returns the facts of a read-only replica of a server.
pub fn replica(server_id: u32, of: u32) -> Facts {
    let sources = vec![source(of)];
    let kind = KindFacts::Replication(ReplicationFacts { sources, semi_sync_replicas: None });
    Facts { is_read_only: true, kind, ..facts(server_id) }
}

/// Returns a working replication connection.
pub fn source(server_id: u32) -> Source {
    Source {
        connection: String::new(),
        host: format!("db{server_id}"),
        port: 3306,
        server_id,
        io: IoThread::Running,
        is_sql_running: true,
        uses_gtid: true,
        received: GtidPosition::default(),
        lag_seconds: Some(0),
        error: String::new(),
    }
}

/// Returns the facts of a node of a cluster of three.
pub fn node(state: NodeState) -> Facts {
    let kind = KindFacts::Galera(GaleraFacts {
        cluster: "a".into(),
        is_in_primary_component: true,
        cluster_size: 3,
        is_ready: true,
        state,
    });
    Facts { kind, ..facts(1) }
}
