//! The settings of servers, monitors, filters and services.

use crate::agreement::MajorityOf;
use crate::plan::Allowed;
use crate::role::{ClusterKind, WantedRole};
use mariadb_client::{Address, ServerUrl, TlsSettings};
use sql_filter::FilterSettings;
use std::fmt;
use std::time::Duration;

/// All settings, consistent: names are unique, and every reference names something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub servers: Vec<ServerSettings>,
    pub monitors: Vec<MonitorSettings>,
    pub services: Vec<ServiceSettings>,
    pub filters: Vec<FilterSettings>,
}

/// A MariaDB server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    pub name: String,
    pub host: String,
    pub port: u16,
    pub tls: TlsSettings,
    /// Its share of the sessions, relative to other servers.
    pub weight: u32,
    /// The most sessions; `None`: no limit.
    pub connections_max: Option<usize>,
    /// By which reads of documents choose it: names and values.
    pub tags: Vec<(String, String)>,
}

/// A group of servers that replicate, and how it is observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorSettings {
    pub name: String,
    pub kind: ClusterKind,
    pub servers: Vec<String>,
    pub user: String,
    pub password: Secret,
    /// The pause between two polls of a server.
    pub interval: Duration,
    /// How long connecting to a server, and each of its answers, may take.
    pub timeout: Duration,
    /// After so many failed polls in a row, a server counts as down.
    pub failures_max: u32,
    /// What the monitor changes by itself.
    pub allowed: Allowed,
    /// With this account servers follow each other.
    pub replication_account: Account,
    pub majority_of: MajorityOf,
    /// How long a change of the primary waits for transactions, and for locks.
    pub change_timeout: Duration,
}

/// A service: its router, and the servers it chooses from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSettings {
    pub name: String,
    pub servers: Vec<String>,
    /// The role that sessions need. Without a monitor, servers have none: `Any`.
    pub role: WantedRole,
    /// The account that ends sessions on a server; `None`: nothing ends them.
    pub account: Option<Account>,
    pub router: Router,
    /// The most sessions of a user; `None`: no limit.
    pub connections_per_user: Option<usize>,
    /// The names of its filters, in the order in which statements pass them.
    pub filters: Vec<String>,
}

/// How a service uses its servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Router {
    /// A session gets one server, when it logs in.
    #[default]
    Connections,
    /// Each statement gets a server.
    ReadWriteSplit(SplitSettings),
}

impl Router {
    /// Returns whether sessions share connections.
    pub fn shares_connections(&self) -> bool {
        matches!(self, Router::ReadWriteSplit(settings) if settings.multiplexes)
    }
}

/// The settings of the router `read-write-split`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitSettings {
    pub causal_reads: CausalReads,
    /// Replicas that are further behind get no reads; `None`: no limit.
    pub lag_max_seconds: Option<u64>,
    /// How long a statement waits for a primary.
    pub primary_wait: Duration,
    /// Transactions are executed again after conflicts and losses of their server.
    pub replays_transactions: bool,
    /// The outcome of a COMMIT is found out if its server is lost.
    pub keeps_commit_outcomes: bool,
    /// Sessions share connections: an idle one has none.
    pub multiplexes: bool,
}

impl Default for SplitSettings {
    fn default() -> SplitSettings {
        SplitSettings {
            causal_reads: CausalReads::default(),
            lag_max_seconds: None,
            primary_wait: Duration::from_secs(10),
            replays_transactions: false,
            keeps_commit_outcomes: false,
            multiplexes: false,
        }
    }
}

/// The writes that a read on a replica sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CausalReads {
    /// Those that have arrived.
    #[default]
    Off,
    /// Those of its own session.
    Session,
    /// All that were acknowledged before it.
    All,
}

/// An account on the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub user: String,
    pub password: Secret,
}

/// A text that is not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl MonitorSettings {
    /// Returns the name of the lock by which gateways agree.
    pub fn lock_name(&self) -> String {
        format!("selkie.monitor.{}", self.name)
    }

    /// Returns whether the monitor changes servers by itself.
    pub fn is_active(&self) -> bool {
        self.allowed != Allowed::default()
    }

    /// Returns the servers of which a majority is needed. `is_ordered`: the administrator has
    /// ordered the change, which must be possible while most servers are lost.
    pub fn majority_for(&self, is_ordered: bool) -> MajorityOf {
        if is_ordered { MajorityOf::Running } else { self.majority_of }
    }
}

impl ServerSettings {
    pub fn address(&self) -> Address {
        Address::Tcp { host: self.host.clone(), port: self.port }
    }

    /// Returns whether connections to `other` lead to the same place, protected in the same way.
    pub fn leads_to_same(&self, other: &ServerSettings) -> bool {
        (&self.host, self.port, &self.tls) == (&other.host, other.port, &other.tls)
    }

    /// Returns how an account connects to the server.
    pub fn url(&self, user: &str, password: &Secret) -> ServerUrl {
        let (user, password) = (user.to_owned(), password.0.clone());
        ServerUrl { address: self.address(), user, password, tls: self.tls.clone() }
    }
}
