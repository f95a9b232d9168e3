//! A simulator of schemas: users come at a rate that does not depend on how fast they are served, and do what a scenario says.
//!
//! The idea is that of the schema simulator with which the array slice cache was published: several processes with a pool of connections
//! each, users spread over every second, and times in milliseconds at the end. A user's time runs from when it should have begun.
//!
//! In reading order: [`scenario`] with its [`template`]s of documents, which are made of [`generator`]s that [`expression`]s name; [`stage`] (before
//! and after); [`processes`], in each of which a [`worker`] takes the [`user`]s that its [`schedule`] gives; [`figures`] and the [`outcome`]
//! they make, with its [`mod@plot`]; the scenarios that are [`shipped`].

mod expression;
mod figures;
mod generator;
mod outcome;
#[cfg(feature = "plot")]
mod plot;
mod processes;
mod scenario;
mod schedule;
mod shipped;
mod stage;
mod template;
mod user;
mod worker;

use crate::report::{Machine, Samples};
use crate::servers::{self, Contestant, Ground, StartArgs};
use crate::target::{Target, TargetArgs};
use anyhow::{Context, Result, anyhow, bail};
use outcome::Server;
use processes::Job;
use scenario::{Run, Scenario};
use std::path::{Path, PathBuf};

pub use outcome::Outcome;

#[derive(clap::Args, Debug, Clone)]
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
    pub start: StartArgs,

    /// Start this mongod as well, and compare with it
    #[arg(long, value_name = "PROGRAM", conflicts_with = "uris")]
    pub mongod: Option<PathBuf>,

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
    #[cfg(feature = "plot")]
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

pub fn run(args: &SimulateArgs) -> Result<()> {
    if args.as_process {
        return processes::be_one();
    }
    if args.list {
        return list();
    }
    if let Some(name) = &args.print {
        print!(
            "{}",
            shipped_text(name).with_context(|| format!("no scenario of the name {name:?} is shipped; see --list"))?
        );
        return Ok(());
    }
    let outcome = perform(args)?;
    println!("{}", outcome.text());
    if let Some(path) = &args.target.json {
        let text = serde_json::to_string_pretty(&outcome)?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
    }
    for path in draw(args, &outcome)? {
        println!("{}", path.display());
    }
    if !outcome.holds() {
        bail!("something does not hold that has to; the table says what");
    }
    Ok(())
}

/// Runs the scenario on every server.
pub fn perform(args: &SimulateArgs) -> Result<Outcome> {
    Play::read(args)?.on_servers(args)
}

/// Draws the plots that are wanted. Gives their paths, the page first.
#[cfg(feature = "plot")]
pub fn draw(args: &SimulateArgs, outcome: &Outcome) -> Result<Vec<PathBuf>> {
    args.plot.as_ref().map_or_else(|| Ok(Vec::new()), |folder| plot::write(outcome, folder))
}

#[cfg(not(feature = "plot"))]
pub fn draw(_: &SimulateArgs, _: &Outcome) -> Result<Vec<PathBuf>> {
    Ok(Vec::new())
}

fn list() -> Result<()> {
    for shipped in &shipped::SHIPPED {
        let scenario = Scenario::read(&shipped.text(), &[]).map_err(|refusal| anyhow!("{}:{refusal}", shipped.name))?;
        let transactions = if scenario.needs_transactions { " (needs transactions)" } else { "" };
        println!("{:28} {}{transactions}", shipped.name, scenario.about);
    }
    Ok(())
}

fn shipped_text(name: &str) -> Option<String> {
    shipped::find(name).map(shipped::Shipped::text)
}

/// A scenario as it is to be run.
struct Play {
    name: String,
    text: String,
    set: Vec<(String, String)>,
    scenario: Scenario,
    run: Run,
    seed: u64,
    keep: bool,
}

impl Play {
    fn read(args: &SimulateArgs) -> Result<Play> {
        let name = args.scenario.as_deref().context("no scenario is named")?;
        let text = match shipped_text(name) {
            Some(text) => text,
            None => std::fs::read_to_string(name).with_context(|| {
                format!("the scenario {name} is neither one that is shipped (see --list) nor a file that can be read")
            })?,
        };
        let set = args.set.iter().map(|set| {
            let (name, value) = set.split_once('=').with_context(|| format!("--set {set}: NAME=VALUE is expected"))?;
            Ok((name.to_owned(), value.to_owned()))
        });
        let set = set.collect::<Result<Vec<_>>>()?;
        let scenario = Scenario::read(&text, &set).map_err(|refusal| anyhow!("{name}:{refusal}"))?;
        let run = overridden(&scenario.run, args);
        let name = Path::new(name).file_stem().map_or(name.to_owned(), |stem| stem.to_string_lossy().into_owned());
        Ok(Play { name, text, set, scenario, run, seed: args.seed, keep: args.keep })
    }

    /// Runs on the servers that are named, or on those that are started for it.
    fn on_servers(&self, args: &SimulateArgs) -> Result<Outcome> {
        if !args.target.uris.is_empty() {
            return self.on(&args.target.targets()?);
        }
        let ground = Ground::prepare(&args.start)?;
        let contestants = self.start(args, &ground)?;
        let targets: Vec<Target> = contestants.iter().map(|one| one.target.clone()).collect();
        self.on(&targets)
    }

    fn start(&self, args: &SimulateArgs, ground: &Ground) -> Result<Vec<Contestant>> {
        let mut contestants = Vec::new();
        if let Some(program) = &args.mongod {
            let start = if self.scenario.needs_transactions { servers::mongod_replica_set } else { servers::mongod };
            contestants.push(start(program, ground.folder())?);
        }
        let options = args.cache.as_ref().map_or(Vec::new(), |mode| vec!["--cache", mode]);
        for (store, mariadb) in ground.stores() {
            contestants.push(ground.start(&format!("Selkie, {store}"), mariadb, &options)?);
        }
        Ok(contestants)
    }

    /// Runs on one server after the other.
    fn on(&self, targets: &[Target]) -> Result<Outcome> {
        let mut outcome = Outcome {
            machine: Machine::default(),
            scenario: self.name.clone(),
            about: self.scenario.about.clone(),
            run: self.run.clone(),
            servers: Vec::new(),
            left_out: Vec::new(),
        };
        for target in targets {
            if let Some(reason) = self.unfit(target)? {
                outcome.left_out.push(reason);
                continue;
            }
            eprintln!("{}: {} on {} …", self.name, seconds(&self.run), target.name);
            outcome.servers.push(self.on_one(target).with_context(|| target.name.clone())?);
        }
        Ok(outcome)
    }

    /// Why a server cannot take part, if it cannot.
    fn unfit(&self, target: &Target) -> Result<Option<String>> {
        if !self.scenario.needs_transactions {
            return Ok(None);
        }
        let tried = stage::try_transaction(&target.address);
        stage::clear(&target.address).with_context(|| target.name.clone())?;
        Ok(tried
            .err()
            .map(|error| format!("{} has no transactions, which this scenario needs: {error:#}", target.name)))
    }

    fn on_one(&self, target: &Target) -> Result<Server> {
        let sequences = stage::set_up(&self.scenario, &target.address, self.seed)?;
        let started = Samples::start(target);
        let figures = processes::run(self.run.processes, |process| Job {
            scenario: self.text.clone(),
            set: self.set.clone(),
            run: self.run.clone(),
            process,
            address: target.address.clone(),
            seed: self.seed,
            sequences: sequences.clone(),
        })?;
        let cpu = started.spent_until_now(target);
        let checks = stage::check(&self.scenario, &target.address, &figures.done())?;
        if !self.keep {
            stage::clear(&target.address)?;
        }
        Ok(Server::new(&target.name, &self.scenario, &self.run, &figures, checks, cpu))
    }
}

fn seconds(run: &Run) -> String {
    if run.iterations == 1 { "a second".to_owned() } else { format!("{} seconds", run.iterations) }
}

/// What the scenario says, and before that the options.
fn overridden(run: &Run, args: &SimulateArgs) -> Run {
    let quick = |number: u32| args.quick.then_some(number);
    let few = |given: Option<u32>, quick: Option<u32>, own: u32| given.or(quick.map(|few| few.min(own))).unwrap_or(own);
    Run {
        processes: few(args.processes, quick(2), run.processes),
        pool: few(args.pool, quick(5), run.pool),
        iterations: few(args.iterations, quick(2), run.iterations),
        users_per_second: few(args.users, quick(100), run.users_per_second),
        slice_ms: args.slice_ms.unwrap_or(run.slice_ms),
        overtime_seconds: run.overtime_seconds,
    }
}
