//! Runs a scenario on each server, one after the other.

use crate::args::SimulateArgs;
use crate::outcome::{Outcome, Server};
use crate::processes::{self, Job};
use crate::scenario::{Run, Scenario};
use crate::{plot, shipped, stage};
use anyhow::{Context, Result, anyhow, bail};
use harness::report::{Machine, Stopwatch};
use harness::servers::{Sandbox, Sockets, StartedServer, mongod, mongod_replica_set};
use harness::target::Target;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The file that `--json` names.
#[derive(Serialize)]
struct JsonReport<'o> {
    #[serde(flatten)]
    outcome: &'o Outcome,
    warnings: Vec<String>,
    /// The pages and images that were written.
    plots: &'o [PathBuf],
}

pub fn run(args: &SimulateArgs) -> Result<()> {
    if args.as_process {
        return processes::run_as_process();
    }
    if args.list {
        return list();
    }
    if let Some(name) = &args.print {
        print!(
            "{}",
            shipped_text(name).with_context(|| format!("no included scenario has the name {name:?}; see --list"))?
        );
        return Ok(());
    }
    let outcome = Simulation::read(args)?.on_servers(args)?;
    println!("{}", outcome.text());
    let plots = args.plot.as_ref().map_or_else(|| Ok(Vec::new()), |folder| plot::write(&outcome, folder))?;
    if let Some(path) = &args.target.json {
        let report = JsonReport { warnings: outcome.warnings().collect(), plots: &plots, outcome: &outcome };
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
    }
    for path in &plots {
        println!("{}", path.display());
    }
    if !outcome.holds() {
        bail!("a check does not hold; the table shows which");
    }
    Ok(())
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

/// A scenario with the options of its run.
struct Simulation {
    name: String,
    text: String,
    set: Vec<(String, String)>,
    scenario: Scenario,
    run: Run,
    seed: u64,
    keep: bool,
}

impl Simulation {
    fn read(args: &SimulateArgs) -> Result<Simulation> {
        let name = args.scenario.as_deref().context("no scenario is named")?;
        let text = match shipped_text(name) {
            Some(text) => text,
            None => std::fs::read_to_string(name)
                .with_context(|| format!("the scenario {name} is neither included (see --list) nor a readable file"))?,
        };
        let set = args.set.iter().map(|set| {
            let (name, value) = set.split_once('=').with_context(|| format!("--set {set}: NAME=VALUE is expected"))?;
            Ok((name.to_owned(), value.to_owned()))
        });
        let set = set.collect::<Result<Vec<_>>>()?;
        let scenario = Scenario::read(&text, &set).map_err(|refusal| anyhow!("{name}:{refusal}"))?;
        let run = overridden(&scenario.run, args);
        let name = Path::new(name).file_stem().map_or(name.to_owned(), |stem| stem.to_string_lossy().into_owned());
        Ok(Simulation { name, text, set, scenario, run, seed: args.seed, keep: args.keep })
    }

    /// Runs on the servers that are named, or on servers that it starts.
    fn on_servers(&self, args: &SimulateArgs) -> Result<Outcome> {
        if !args.target.uris.is_empty() {
            return self.on(&args.target.targets()?);
        }
        let sandbox = Sandbox::prepare(&args.servers.gateway)?;
        let servers = self.start(args, &sandbox)?;
        let targets: Vec<Target> = servers.iter().map(|server| server.target.clone()).collect();
        self.on(&targets)
    }

    fn start(&self, args: &SimulateArgs, sandbox: &Sandbox) -> Result<Vec<StartedServer>> {
        let mut servers = Vec::new();
        if let Some(program) = &args.servers.mongod {
            servers.push(match self.scenario.needs_transactions {
                true => mongod_replica_set(program, sandbox.folder())?,
                false => mongod(program, sandbox.folder(), Sockets::Tcp)?,
            });
        }
        let options = args.cache.as_ref().map_or(Vec::new(), |mode| vec!["--cache", mode]);
        for (store, mariadb) in sandbox.stores() {
            servers.push(sandbox.start(&format!("Selkie, {store}"), mariadb, &options)?);
        }
        Ok(servers)
    }

    /// Runs on each server, one after the other.
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
            if let Some(reason) = self.unsupported_reason(target)? {
                outcome.left_out.push(reason);
                continue;
            }
            eprintln!("{}: {} on {} …", self.name, seconds(&self.run), target.name);
            outcome.servers.push(self.on_one(target).with_context(|| target.name.clone())?);
        }
        Ok(outcome)
    }

    /// Returns the reason if a server does not support the scenario.
    fn unsupported_reason(&self, target: &Target) -> Result<Option<String>> {
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
        let started = Stopwatch::start(target);
        let measurements = processes::run(self.run.processes, |process| Job {
            scenario: self.text.clone(),
            set: self.set.clone(),
            run: self.run.clone(),
            process,
            address: target.address.clone(),
            seed: self.seed,
            sequences: sequences.clone(),
        })?;
        let cpu = started.spent(target);
        let checks = stage::check(&self.scenario, &target.address, &measurements.done())?;
        if !self.keep {
            stage::clear(&target.address)?;
        }
        Ok(Server::new(&target.name, &self.scenario, &self.run, &measurements, checks, cpu))
    }
}

fn seconds(run: &Run) -> String {
    if run.iterations == 1 { "a second".to_owned() } else { format!("{} seconds", run.iterations) }
}

/// Returns the scenario's parameters, overridden by the options.
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
