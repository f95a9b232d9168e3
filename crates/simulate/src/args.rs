//! The command line.

use harness::servers::ServerArgs;
use harness::target::TargetArgs;
use std::path::PathBuf;

/// Runs scenarios in which users arrive at a fixed rate: latency, load, and whether the data is
/// right at the end
#[derive(clap::Parser, Debug, Clone)]
#[command(name = "simulate", version, arg_required_else_help = true)]
pub struct SimulateArgs {
    /// The scenario: a file, or the name of an included one (see --list)
    #[arg(value_name = "SCENARIO", required_unless_present_any = ["list", "print", "as_process"])]
    pub scenario: Option<String>,

    /// List the included scenarios
    #[arg(long)]
    pub list: bool,

    /// Print an included scenario, to start your own from
    #[arg(long, value_name = "NAME")]
    pub print: Option<String>,

    #[command(flatten)]
    pub target: TargetArgs,

    #[command(flatten)]
    pub servers: ServerArgs,

    /// The value of `--cache` of the Selkies that are started
    #[arg(long, value_name = "MODE", conflicts_with = "uris")]
    pub cache: Option<String>,

    /// Replaces one of the scenario's [values]; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Users per second, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub users: Option<u32>,

    /// Iterations of a second each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub iterations: Option<u32>,

    /// Processes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub processes: Option<u32>,

    /// Connections of each process
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pool: Option<u32>,

    /// Milliseconds of the slices in which the users of a second start
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub slice_ms: Option<u32>,

    /// Write plots into this folder: an HTML page, and a PNG per operation
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,

    /// Two iterations of a hundred users in two processes with five connections, to try it out
    #[arg(long)]
    pub quick: bool,

    /// Seed of the random values; the same seed repeats them
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Keep the database `selkie_simulate`
    #[arg(long)]
    pub keep: bool,

    #[arg(long = "as-process", hide = true)]
    pub as_process: bool,
}
