//! Load drivers and experiments: what `selkie bench` does.
//!
//! What comes in is a list of `mongodb://` URIs; what goes out is a table on standard output and, if wanted, a JSON file. All
//! targets are measured in one run, in turns, so that a disturbance of the machine hits all of them. The client is a few
//! system calls over prebuilt messages, because a driver's own cost would hide the server's; replies are read whole, and
//! looked into only as far as it takes to know that they are right.
//!
//! In reading order: [`target`] (where to), [`message`] and [`client`] (the protocol), [`dataset`] (what is stored),
//! [`process`] (what the server's process spent), [`turns`], [`mod@idle`], [`report`]; then one file per experiment: [`cars`], [`load`] with its
//! [`drive`]r, [`mod@aggregate`], [`memory`], [`indexes`], [`wekan`], and [`compare`], which starts the [`servers`] itself and runs all of
//! them. Of caches, [`warm`] measures hit rates, [`invalidation`] what writes pay, [`hits`] what answers cost, beside those of a [`plain`] sender; they start
//! their servers themselves, and ask for [`cache_figures`]; so do [`mod@slice`], which updates arrays, and [`mod@kv`], which tells what
//! protocols cost. [`mod@simulate`] runs scenarios over a schedule, [`sql_load`] asks in SQL, and [`mod@published`] puts what was published
//! elsewhere beside what they come to. [`mod@truth`] measures nothing, and looks for stale reads.

mod aggregate;
mod cache_figures;
mod cars;
mod client;
mod compare;
mod dataset;
mod drive;
mod hits;
mod idle;
mod indexes;
mod invalidation;
mod kv;
mod load;
mod memory;
mod message;
mod plain;
#[cfg(feature = "plot")]
mod plot;
mod process;
mod published;
mod report;
mod servers;
mod simulate;
mod slice;
mod sql;
mod sql_load;
mod target;
mod truth;
mod turns;
mod warm;
mod wekan;

/// `selkie bench …`
#[derive(clap::Subcommand, Debug)]
pub enum Bench {
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
    /// Sessions that poll cards as WeKan does: CPU time per query
    Wekan(wekan::WekanArgs),
    /// Starts mongod, Selkie on its own store and Selkie on a private MariaDB, and measures all of it side by side
    Compare(compare::CompareArgs),
    /// How often a cache has the answer while documents are written, against how often it has it while they are not
    Warm(warm::WarmArgs),
    /// What a write pays for ten thousand cached filters
    Invalidation(invalidation::InvalidationArgs),
    /// What a cached answer costs, against ping and against bytes that are merely sent
    Hits(hits::HitsArgs),
    /// One row by its key, all of them in memory: by each way into MariaDB, in the process, and through Selkie
    Kv(kv::KvArgs),
    /// Counts the system calls of processes until standard input ends, which `kv` has done beside it
    #[command(hide = true)]
    CountCalls(kv::CountCallsArgs),
    /// Users who come at a rate of their own and do what a scenario says: latency, load, and what has to hold at the end
    Simulate(Box<simulate::SimulateArgs>),
    /// Comments pushed to posts that keep the latest ten, each acknowledged from the disk: throughput and latency side by side
    Slice(slice::SliceArgs),
    /// SELECTs of single rows, directly and through Selkie with and without its cache, over more and more connections
    Sql(sql_load::SqlArgs),
    /// Runs the experiments that were published for the systems Selkie starts from, and writes a report beside their figures
    Report(published::PublishedArgs),
    /// Reads and writes at random over many connections, and looks for answers that are stale or made up; fails if there are any
    Truth(truth::TruthArgs),
}

/// Runs one experiment and prints its table.
pub fn run(bench: Bench) -> anyhow::Result<()> {
    match bench {
        Bench::Cars(args) => cars::run(&args),
        Bench::Load(args) => load::run(&args),
        Bench::Aggregate(args) => aggregate::run(&args),
        Bench::Memory(args) => memory::run(&args),
        Bench::Indexes(args) => indexes::run(&args),
        Bench::Wekan(args) => wekan::run(&args),
        Bench::Compare(args) => compare::run(&args),
        Bench::Warm(args) => warm::run(&args),
        Bench::Invalidation(args) => invalidation::run(&args),
        Bench::Hits(args) => hits::run(&args),
        Bench::Kv(args) => kv::run(&args),
        Bench::CountCalls(args) => kv::count_calls(&args),
        Bench::Simulate(args) => simulate::run(&args),
        Bench::Slice(args) => slice::run(&args),
        Bench::Sql(args) => sql_load::run(&args),
        Bench::Report(args) => published::run(&args),
        Bench::Truth(args) => truth::run(&args),
    }
}
