//! Experiments: measures Selkie beside MongoDB and any other server that speaks the protocol.
//!
//! Most experiments take `mongodb://` URIs, print a table and optionally write a JSON file. Servers
//! are measured in turns within one run, so that a disturbance of the machine affects all of them.
//!
//! In reading order: [`dataset`] (the documents), [`round_robin`], [`closed_loop`] (the driver of
//! many connections), [`mod@idle`]; then one file per experiment: [`cars`], [`load`],
//! [`mod@aggregate`], [`memory`], [`indexes`], [`wekan`], and [`compare`], which runs all of these
//! on servers that it starts. For caches, [`hit_rate`] measures hit rates, [`invalidation_cost`]
//! the cost of a write, and [`hit_cost`] the cost of a hit, compared with a [`replay_server`].
//! [`mod@slice`] updates arrays, [`transfers`] measures transactions, and [`streams`] change
//! streams. [`mod@kv`] measures the cost of protocols, [`mod@sql`] sends SELECTs.
//! [`mod@published`] runs the published experiments and writes a report.

mod aggregate;
mod cars;
mod closed_loop;
mod compare;
mod dataset;
mod hit_cost;
mod hit_rate;
mod idle;
mod indexes;
mod invalidation_cost;
mod kv;
mod load;
mod memory;
mod published;
mod replay_server;
mod round_robin;
mod slice;
mod sql;
mod streams;
mod transfers;
mod wekan;

use clap::Parser;
use std::process::ExitCode;

/// The version, and the optional parts of this build.
const VERSION: &str = if cfg!(feature = "embedded-mariadb") {
    concat!(env!("CARGO_PKG_VERSION"), " (with embedded MariaDB)")
} else {
    env!("CARGO_PKG_VERSION")
};

/// Measures Selkie, or other servers that speak its protocols, from a client's side
#[derive(clap::Parser, Debug)]
#[command(name = "bench", version = VERSION, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(clap::Subcommand, Debug)]
enum Experiment {
    /// Five reads of 10,000 cars, and loading them: mean, median and 99th percentile per server
    Cars(cars::CarsArgs),
    /// Point reads, inserts, updates or a mix of them over many connections: throughput and latency
    Load(load::LoadArgs),
    /// Groups, sorts and joins of a large collection
    Aggregate(aggregate::AggregateArgs),
    /// Resident memory idle, loaded, while iterating a large collection, and per idle connection
    Memory(memory::MemoryArgs),
    /// Queries, sorts, inserts and updates of a million cars with three indexes
    Indexes(indexes::IndexesArgs),
    /// Sessions that poll cards like WeKan: CPU time per query
    Wekan(wekan::WekanArgs),
    /// Starts mongod, Selkie on its embedded store and Selkie on a private MariaDB, and runs all
    /// experiments on them
    Compare(compare::CompareArgs),
    /// The hit rate of a cache with writes, compared with its hit rate without
    HitRate(hit_rate::HitRateArgs),
    /// The cost of a write with ten thousand cached filters
    InvalidationCost(invalidation_cost::InvalidationCostArgs),
    /// The cost of a cache hit, compared with ping and with replayed bytes
    HitCost(hit_cost::HitCostArgs),
    /// One row by its key, all rows in memory: through each protocol of MariaDB, in the process,
    /// and through Selkie
    Kv(kv::KvArgs),
    /// Counts the system calls of processes until standard input ends; started by `kv`
    #[command(hide = true)]
    CountCalls(kv::CountCallsArgs),
    /// Comments pushed to posts that keep the latest ten, each acknowledged from the disk:
    /// throughput and latency
    Slice(slice::SliceArgs),
    /// Transfers between two accounts, each a transaction of two updates: throughput, latency and
    /// conflicts
    Transfers(transfers::TransfersArgs),
    /// Change streams: the time until an event arrives, and the cost of many streams
    Streams(streams::StreamsArgs),
    /// SELECTs of single rows, directly and through Selkie with and without its cache, over a
    /// growing number of connections
    Sql(sql::SqlArgs),
    /// Runs the experiments published for the systems Selkie starts from, and writes a report
    /// beside the published numbers
    Report(published::PublishedArgs),
}

fn main() -> ExitCode {
    harness::exit_code("bench", run(Cli::parse().experiment))
}

/// Runs one experiment and prints its table.
fn run(experiment: Experiment) -> anyhow::Result<()> {
    match experiment {
        Experiment::Cars(args) => cars::run(&args),
        Experiment::Load(args) => load::run(&args),
        Experiment::Aggregate(args) => aggregate::run(&args),
        Experiment::Memory(args) => memory::run(&args),
        Experiment::Indexes(args) => indexes::run(&args),
        Experiment::Wekan(args) => wekan::run(&args),
        Experiment::Compare(args) => compare::run(&args),
        Experiment::HitRate(args) => hit_rate::run(&args),
        Experiment::InvalidationCost(args) => invalidation_cost::run(&args),
        Experiment::HitCost(args) => hit_cost::run(&args),
        Experiment::Kv(args) => kv::run(&args),
        Experiment::CountCalls(args) => kv::count_calls(&args),
        Experiment::Slice(args) => slice::run(&args),
        Experiment::Transfers(args) => transfers::run(&args),
        Experiment::Streams(args) => streams::run(&args),
        Experiment::Sql(args) => sql::run(&args),
        Experiment::Report(args) => published::run(&args),
    }
}
