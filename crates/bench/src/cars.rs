//! Five reads of a collection of 10,000 cars, and loading it, on any number of servers.
//!
//! The experiment is the one that MariaDB published for MaxScale's document cache: the collection
//! is dropped and loaded, each query is run to warm up and its result checked, then every query is
//! timed many times over one connection.

pub mod measure;
pub mod modes;

use crate::round_robin::RoundRobinArgs;
use anyhow::Result;
use harness::report::Report;
use harness::target::TargetArgs;
use measure::Repetitions;
use modes::ModesArgs;

#[derive(clap::Args, Debug, Clone)]
pub struct CarsArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// Number of times that each query is timed on each server [default: 500, with --modes 100]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,

    /// Number of times that the collection is dropped and loaded; 0 skips that
    #[arg(long, default_value_t = 10)]
    pub loads: u64,

    #[command(flatten)]
    pub round_robin: RoundRobinArgs,

    #[command(flatten)]
    pub modes: ModesArgs,
}

/// Number of times that each query is timed in the published experiment.
const PUBLISHED_ITERATIONS: u64 = 100;

pub fn run(args: &CarsArgs) -> Result<()> {
    if args.modes.is_given() {
        return modes::run(&args.modes, args.mode_repetitions(), args.target.json.as_deref());
    }
    let mut report = Report::default();
    let repetitions = Repetitions { iterations: args.iterations.unwrap_or(500), round_robin: args.round_robin };
    report.extend(measure::measure(&args.target.targets()?, repetitions, args.loads)?);
    report.publish(args.target.json.as_deref())
}

impl CarsArgs {
    pub fn mode_repetitions(&self) -> Repetitions {
        Repetitions { iterations: self.iterations.unwrap_or(PUBLISHED_ITERATIONS), round_robin: self.round_robin }
    }
}
