//! What a poll finds on a server.

use crate::gtid::{GtidPosition, GtidState};
use mariadb_client::Address;

/// The facts of one poll of a server that has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `10.11.19-MariaDB`.
    pub version: String,
    pub server_id: u32,
    pub is_read_only: bool,
    /// The position of the binary log.
    pub binlog: GtidPosition,
    /// The position of everything that was written or applied.
    pub current: GtidPosition,
    /// The position of everything that was replicated.
    pub replicated: GtidPosition,
    pub binlog_state: GtidState,
    /// Whether it logs its own writes and those it replicates, so that others can follow it.
    pub logs_everything: bool,
    pub kind: KindFacts,
}

/// The facts that depend on the kind of cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindFacts {
    Replication(ReplicationFacts),
    Galera(GaleraFacts),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicationFacts {
    /// The servers that this one replicates from: an entry for each of its replication connections.
    pub sources: Vec<Source>,
    /// The semi-synchronous replicas that are connected; `None`: the server does not wait for any.
    pub semi_sync_replicas: Option<u64>,
}

/// A replication connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name of the connection; empty: the default.
    pub connection: String,
    pub host: String,
    pub port: u16,
    /// The server id of the source; 0 until it was connected.
    pub server_id: u32,
    pub io: IoThread,
    pub is_sql_running: bool,
    /// Whether the position is one of global transaction ids.
    pub uses_gtid: bool,
    /// The position of everything that was received, applied or not.
    pub received: GtidPosition,
    /// How far the server is behind this source; `None`: unknown, as the replication has stopped.
    pub lag_seconds: Option<u64>,
    /// The last error of the replication.
    pub error: String,
}

/// The state of the thread that receives the source's binary log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoThread {
    Running,
    /// It tries to connect to the source.
    Connecting,
    Stopped,
}

/// The state of a Galera node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GaleraFacts {
    /// The identity of the cluster's state; clusters that have diverged differ in it.
    pub cluster: String,
    /// Whether the node's part of the cluster has the majority (`wsrep_cluster_status`).
    pub is_in_primary_component: bool,
    /// The number of nodes that this node sees.
    pub cluster_size: u64,
    pub is_ready: bool,
    pub state: NodeState,
}

/// `wsrep_local_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeState {
    #[default]
    Disconnected,
    Joining,
    /// It sends its state to a node that joins, or was desynchronized by the administrator.
    Donor,
    Joined,
    Synced,
}

impl NodeState {
    /// Returns the state with a number of `wsrep_local_state`.
    pub fn from_number(number: u64) -> NodeState {
        match number {
            1 => NodeState::Joining,
            2 => NodeState::Donor,
            3 => NodeState::Joined,
            4 => NodeState::Synced,
            _ => NodeState::Disconnected,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            NodeState::Disconnected => "disconnected",
            NodeState::Joining => "joining",
            NodeState::Donor => "donor or desynchronized",
            NodeState::Joined => "joined",
            NodeState::Synced => "synced",
        }
    }
}

impl Source {
    /// Returns whether this connection is to the server with an id and an address.
    pub fn is(&self, server_id: Option<u32>, address: &Address) -> bool {
        // An id is unique in a replication topology. Until the source was connected, only its
        // address is known, which may be another name of the same machine.
        if let (Some(server_id), 1..) = (server_id, self.server_id) {
            return self.server_id == server_id;
        }
        matches!(address, Address::Tcp { host, port } if *port == self.port && host.eq_ignore_ascii_case(&self.host))
    }

    /// Returns whether the connection is in use. It remains defined after STOP SLAVE.
    pub fn is_started(&self) -> bool {
        self.is_sql_running || self.io != IoThread::Stopped
    }

    /// Returns whether the server applies what it has received, and receives or tries to.
    pub fn is_working(&self) -> bool {
        self.is_sql_running && self.io != IoThread::Stopped
    }
}

impl Facts {
    pub fn replication(&self) -> Option<&ReplicationFacts> {
        match &self.kind {
            KindFacts::Replication(facts) => Some(facts),
            KindFacts::Galera(_) => None,
        }
    }

    pub fn galera(&self) -> Option<&GaleraFacts> {
        match &self.kind {
            KindFacts::Galera(facts) => Some(facts),
            KindFacts::Replication(_) => None,
        }
    }

    /// Returns the replication connections; none on a node of a Galera cluster.
    pub fn sources(&self) -> &[Source] {
        self.replication().map_or(&[], |facts| &facts.sources)
    }

    /// Returns the position of everything that the server has received, applied or not.
    pub fn received(&self) -> GtidPosition {
        let mut received = self.current.clone();
        self.sources().iter().for_each(|source| received.extend(&source.received));
        received
    }

    /// Returns how far a replica is behind: the most of its replication connections. `None`: it is
    /// unknown, or the server is no replica.
    pub fn lag_seconds(&self) -> Option<u64> {
        let sources = &self.replication()?.sources;
        sources.iter().map(|source| source.lag_seconds).collect::<Option<Vec<u64>>>()?.into_iter().max()
    }
}
