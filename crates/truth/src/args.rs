//! The command line.

/// Reads and writes at random over many connections, and fails if an answer is stale or made up
#[derive(clap::Parser, Debug, Clone)]
#[command(name = "truth", version, arg_required_else_help = true)]
pub struct TruthArgs {
    /// The server, as `mongodb://host:port` or `mongodb://%2Fpath%2Fto.sock`; several are gateways to the same data
    #[arg(long = "uri", value_name = "URI", required = true)]
    pub uris: Vec<String>,

    /// End after so many operations
    #[arg(long, default_value_t = 1_000_000)]
    pub operations: u64,

    /// End after so long, if that is earlier
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Connections that each keep one request under way
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub connections: u64,

    /// Threads that drive them
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub threads: u64,

    /// The same seed makes the same choices, as far as the server's timing lets them be the same
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Documents in the main collection; they are rounded up to whole territories of 64
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..=1_000_000))]
    pub documents: u32,

    /// Bytes that each document carries along
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=4096))]
    pub pad: u32,

    /// Of a hundred operations, how many are reads
    #[arg(long, default_value_t = 85, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub reads: u64,

    /// A collection is renamed, dropped or made anew every so many milliseconds; 0 leaves that out
    #[arg(long, default_value_t = 100, value_name = "MS")]
    pub move_ms: u64,

    /// An index comes or goes, or a validator is set, every so many milliseconds; 0 leaves that out
    #[arg(long, default_value_t = 2000, value_name = "MS")]
    pub define_ms: u64,

    /// What is written by SQL, or by another of several gateways, may be unknown for so long
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub staleness_ms: u64,
    /// What a read has shown need not be known to all before its writer has been told: for a cache that notices writes by SQL before
    /// their commit returns, and not before others see them
    #[arg(long)]
    pub until_told: bool,

    /// Also write by SQL to the MariaDB behind the gateways: `mysql://user:password@host:port`
    #[arg(long, value_name = "URL")]
    pub sql: Option<String>,

    /// Connections that write by SQL
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub sql_connections: u64,

    /// How long each of them rests between two writes, in microseconds
    #[arg(long, default_value_t = 500, value_name = "US")]
    pub sql_pause_us: u64,

    /// Cut whoever reads MariaDB's log off it every so many milliseconds, with --sql; 0 leaves that out
    #[arg(long, default_value_t = 0, value_name = "MS", requires = "sql")]
    pub cut_ms: u64,

    /// Connect again for so long when the server goes away, instead of giving up
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub ride_out: u64,
}
