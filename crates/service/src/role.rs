//! The roles of servers, and the types by which they are decided.

use crate::observation::Facts;
use mariadb_client::Address;

/// The use of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Nothing: it cannot be reached, or its data may be wrong or old without bound.
    #[default]
    None,
    /// The one server for writes.
    Primary,
    /// Reads.
    Replica,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::None => "none",
            Role::Primary => "primary",
            Role::Replica => "replica",
        }
    }
}

/// A server of a monitor, as the decision sees it.
#[derive(Clone, Copy, Debug)]
pub struct Member<'m> {
    pub address: &'m Address,
    /// The server id, as it was last observed.
    pub server_id: Option<u32>,
    /// `None`: the server is down, or was never reached.
    pub facts: Option<&'m Facts>,
}

/// The role of a server, and why it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub role: Role,
    /// Empty if there is nothing to explain.
    pub reason: &'static str,
}

impl Standing {
    pub(crate) const PRIMARY: Standing = Standing { role: Role::Primary, reason: "" };
    pub(crate) const REPLICA: Standing = Standing { role: Role::Replica, reason: "" };
    pub(crate) const UNREACHED: Standing = Standing::none("it cannot be reached");

    pub(crate) const fn none(reason: &'static str) -> Standing {
        Standing { role: Role::None, reason }
    }
}

/// The kind of a cluster, which decides about roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterKind {
    Replication,
    Galera,
}

impl ClusterKind {
    pub fn name(self) -> &'static str {
        match self {
            ClusterKind::Replication => "replication",
            ClusterKind::Galera => "galera",
        }
    }
}

/// The role that the sessions of a service need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WantedRole {
    Primary,
    /// A replica; the primary if there is none.
    Replica,
    #[default]
    Any,
    /// The primary; a replica while there is none. Sessions stay if it becomes a replica.
    PrimaryFirst,
}

impl WantedRole {
    pub fn name(self) -> &'static str {
        match self {
            WantedRole::Primary => "primary",
            WantedRole::Replica => "replica",
            WantedRole::Any => "any",
            WantedRole::PrimaryFirst => "primary first",
        }
    }
}
