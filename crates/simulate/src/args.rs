//! The command line.

use harness::servers::ServerArgs;
use harness::target::TargetArgs;
use std::path::PathBuf;

/// Runs scenarios in which users arrive at a fixed rate: latency, load, and whether the data is
/// right at the end
#[derive(clap::Parser, Debug, Clone)]
#[command(name = "simulate", version, arg_required_else_help = true)]
pub struct SimulateArgs {
    /// The scenario: a file, or the name of one that is shipped (see --list)
    #[arg(value_name = "SCENARIO", required_unless_present_any = ["list", "print", "as_process"])]
    pub scenario: Option<String>,

    /// List the scenarios that are shipped
    #[arg(long)]
    pub list: bool,

    /// Print a scenario that is shipped, to begin one's own with
    #[arg(long, value_name = "NAME")]
    pub print: Option<String>,

    #[command(flatten)]
    pub target: TargetArgs,

    #[command(flatten)]
    pub servers: ServerArgs,

    /// What `--cache` is given to the Selkies that are started
    #[arg(long, value_name = "MODE", conflicts_with = "uris")]
    pub cache: Option<String>,

    /// Another value for one of the scenario's [values]; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,

    /// Users per second, instead of what the scenario says
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

    /// Milliseconds of the slices in which the users of a second begin
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub slice_ms: Option<u32>,

    /// Write plots into this folder: a page of HTML, and a PNG for each operation
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,

    /// Two iterations of a hundred users in two processes with five connections, for trying it out
    #[arg(long)]
    pub quick: bool,

    /// Where chance begins: the same number draws the same values
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Leave the database `selkie_simulate` behind
    #[arg(long)]
    pub keep: bool,

    #[arg(long = "as-process", hide = true)]
    pub as_process: bool,
}
