//! The command line.

/// Reads and writes at random over many connections, and fails if a reply is stale or was never
/// written
#[derive(clap::Parser, Debug, Clone)]
#[command(name = "truth", version, arg_required_else_help = true)]
pub struct TruthArgs {
    /// The server: `mongodb://host:port` or `mongodb://%2Fpath%2Fto.sock`; several must be gateways
    /// to the same data
    #[arg(long = "uri", value_name = "URI", required = true)]
    pub uris: Vec<String>,

    /// Number of operations
    #[arg(long, default_value_t = 1_000_000)]
    pub operations: u64,

    /// Time limit in seconds
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Connections, each with one request in flight
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub connections: u64,

    /// Threads that the connections are divided into
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub threads: u64,

    /// Seed of the random choices; the same seed repeats them to the extent that timing allows
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Documents in the main collection, rounded up to whole partitions of 64
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..=1_000_000))]
    pub documents: u32,

    /// Bytes of padding per document
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=4096))]
    pub pad: u32,

    /// Percentage of operations that are reads
    #[arg(long, default_value_t = 85, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub reads: u64,

    /// Interval in milliseconds at which a collection is renamed, dropped or created; 0 disables it
    #[arg(long, default_value_t = 100, value_name = "MS")]
    pub rename_ms: u64,

    /// Interval in milliseconds at which an index is created or dropped, or a validator set; 0
    /// disables it
    #[arg(long, default_value_t = 2000, value_name = "MS")]
    pub definition_ms: u64,

    /// Time for which writes by SQL, or through another gateway, may stay invisible
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub staleness_ms: u64,

    /// Require a version from all reads once its write is acknowledged, not once another read has
    /// returned it: for a cache that learns of writes by SQL before their commit returns, but maybe
    /// after others see them
    #[arg(long)]
    pub acknowledged_only: bool,

    /// Also write by SQL to the MariaDB behind the gateways: `mysql://user:password@host:port`
    #[arg(long, value_name = "URL")]
    pub sql: Option<String>,

    /// Connections that write by SQL
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub sql_connections: u64,

    /// Pause between two of their writes, in microseconds
    #[arg(long, default_value_t = 500, value_name = "US")]
    pub sql_pause_us: u64,

    /// Interval in milliseconds at which readers of MariaDB's binary log are disconnected, with
    /// --sql; 0 disables it
    #[arg(long, default_value_t = 0, value_name = "MS", requires = "sql")]
    pub disconnect_ms: u64,

    /// Time in seconds to reconnect when the server is gone, instead of failing
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub reconnect_seconds: u64,
}
