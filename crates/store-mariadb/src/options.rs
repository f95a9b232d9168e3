//! How a process uses MariaDB as its document store.

use crate::read::result_set::ResultSet;
use crate::read_servers::ReadServers;
use cache::Cache;
use mariadb_client::PoolOptions;
use std::sync::Arc;

/// Options of the store.
#[derive(Clone, Default)]
pub struct Options {
    /// Limits of each worker's connections.
    pub pool: PoolOptions,
    /// The result-set cache, if there is one.
    pub results: Option<Arc<Cache<ResultSet>>>,
    /// The servers beside the primary, if there are some for reads.
    pub read_servers: Option<Arc<dyn ReadServers>>,
    /// The gateway's name, unique on the server and the same after a restart. Without a name,
    /// sessions of a process that was killed are not ended.
    pub gateway: Option<String>,
    /// The most transactions that may be open; `None`: the default.
    pub transactions_max: Option<usize>,
    /// The process also serves SQL clients: a server unsuited to documents is refused at the first
    /// write of a document, not at the start.
    pub has_sql_clients: bool,
    /// When changes are read from the binary log for change streams, if they are.
    pub feed: Option<FeedStart>,
    /// Statements on documents are executed under accounts that are kept beside users.
    pub keeps_accounts: bool,
    /// The servers over which collections are distributed, if they are.
    pub shards: Option<ShardNames>,
}

/// The servers over which collections are distributed.
#[derive(Clone, Debug)]
pub struct ShardNames {
    /// As `CREATE SERVER` has defined them.
    pub names: Vec<String>,
    /// The place of the setting, for errors.
    pub written_at: String,
}

/// When a process begins to read the binary log for change streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStart {
    /// At the start, which fails if the log is not suitable.
    AtOnce,
    /// When the first stream is opened.
    OnDemand,
}
