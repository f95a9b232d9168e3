//! All experiments on MongoDB, Selkie on its embedded store and Selkie on MariaDB, which are
//! started for it: the source of the README's numbers.

use crate::aggregate;
use crate::cars::measure::{self as cars, Repetitions};
use crate::load::{self, LoadArgs, Work};
use crate::memory;
use crate::round_robin::RoundRobinArgs;
use anyhow::{Context, Result, bail};
use harness::report::{Report, Row, markdown, table, three_digits};
use harness::servers::{Certificates, EMBEDDED, MARIADB, MONGODB, Sandbox, ServerArgs};
use harness::target::{Target, TargetArgs};
use std::path::PathBuf;

#[derive(clap::Args, Debug, Clone)]
pub struct CompareArgs {
    #[command(flatten)]
    pub servers: ServerArgs,

    /// A tenth of the work, to try it out
    #[arg(long)]
    pub quick: bool,

    /// Instead, compare plain connections with TLS: one document and 10,000 documents read,
    /// inserts and updates, on each server
    #[arg(long)]
    pub tls: bool,

    /// Instead, compare servers without logins with servers that require them: what the check of
    /// privileges costs a read, an insert and an update
    #[arg(long, conflicts_with = "tls")]
    pub auth: bool,

    /// Skip the collection of a million documents and the idle connections
    #[arg(long)]
    pub no_large: bool,

    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

pub fn run(args: &CompareArgs) -> Result<()> {
    let sandbox = Sandbox::prepare(&args.servers.gateway)?;
    if args.tls {
        return compare_tls(args, &sandbox);
    }
    if args.auth {
        return compare_logins(args, &sandbox);
    }
    let servers = sandbox.start_all(args.servers.mongod.as_ref())?;
    let targets: Vec<Target> = servers.iter().map(|server| server.target.clone()).collect();
    let mut report = Report::default();
    let measured = measure(args, &targets, &mut report);
    println!("{}", table(&report.rows));
    println!("{}", markdown(&goals(&report)));
    println!("{}", report.machine);
    report.write_json(args.json.as_deref())?;
    measured
}

/// Measures each server by plain connections and by TLS, in turns.
fn compare_tls(args: &CompareArgs, sandbox: &Sandbox) -> Result<()> {
    let certificates = Certificates::create(sandbox.folder())?;
    let servers = sandbox.start_all_with_tls(args.servers.mongod.as_ref(), &certificates)?;
    let pairs = servers.iter().map(|server| [server.target.clone(), server.tls_target(&certificates)]);
    let targets: Vec<Target> = pairs.flatten().collect();
    let mut report = measure_loads(args, &targets)?;
    let repetitions = Repetitions { iterations: args.scale(100), round_robin: RoundRobinArgs::default() };
    report.extend(cars::measure(&targets, repetitions, args.scale(10)).context("cars")?);
    report.publish(args.json.as_deref())
}

/// Measures each kind of server without and with logins, in turns. Both have a store of their own.
fn compare_logins(args: &CompareArgs, sandbox: &Sandbox) -> Result<()> {
    let secured_sandbox = Sandbox::prepare(&args.servers.gateway)?;
    let open = sandbox.start_all(args.servers.mongod.as_ref())?;
    let secured = secured_sandbox.start_all_with_logins(args.servers.mongod.as_ref())?;
    let mut targets = Vec::new();
    for (open, secured) in open.iter().zip(&secured) {
        targets.extend([open.target.clone(), secured.login_target()?]);
    }
    measure_loads(args, &targets)?.publish(args.json.as_deref())
}

fn measure_loads(args: &CompareArgs, targets: &[Target]) -> Result<Report> {
    let mut report = Report::default();
    for (work, connections) in PAIRED_LOADS {
        report.extend(load::measure(targets, &load_args(args.seconds()), work, connections)?);
    }
    Ok(report)
}

/// The loads of pairs of servers: the work, and the number of connections.
const PAIRED_LOADS: [(Work, usize); 6] = [
    (Work::Point, 1),
    (Work::Point, 16),
    (Work::Insert, 1),
    (Work::Insert, 16),
    (Work::InsertMany, 1),
    (Work::Update, 16),
];

impl CompareArgs {
    fn scale(&self, number: u64) -> u64 {
        if self.quick { number / 10 } else { number }
    }

    /// Returns the time of each server and kind of load.
    fn seconds(&self) -> f64 {
        if self.quick { 0.05 } else { 5.0 }
    }
}

/// Runs all experiments. If one fails, the report keeps the results of the others.
fn measure(args: &CompareArgs, targets: &[Target], report: &mut Report) -> Result<()> {
    let scale = |number: u64| args.scale(number);
    // Memory first, before the servers have done anything else.
    let idle = targets.iter().map(|target| memory::resident("resident, idle", target)).collect::<Result<_>>()?;
    report.extend(idle);
    report.extend(each(targets, |target| memory::loaded(target, scale(100_000)))?);
    let repetitions = Repetitions { iterations: scale(500), round_robin: RoundRobinArgs::default() };
    report.extend(cars::measure(targets, repetitions, scale(20)).context("cars")?);
    let mut failures = Vec::new();
    for (work, connections) in [
        (Work::Point, 1),
        (Work::Point, 16),
        (Work::Insert, 1),
        (Work::Insert, 16),
        (Work::InsertMany, 1),
        (Work::Update, 1),
        (Work::Update, 16),
        (Work::Mixed, 16),
    ] {
        let load = load_args(args.seconds());
        match load::measure(targets, &load, work, connections) {
            Ok(rows) => report.extend(rows),
            Err(error) => failures.push(format!("{work:?}: {error:#}")),
        }
    }
    if !args.no_large {
        report.extend(aggregate::measure(targets, scale(1_000_000), scale(10_000), 3).context("aggregate")?);
        report.extend(each(targets, |target| memory::idle_connections(target, scale(5000)))?);
        report.extend(memory::first_batches(targets, scale(1_000_000))?);
        report.extend(each(targets, memory::iterate)?);
    }
    if failures.is_empty() { Ok(()) } else { bail!("{}", failures.join("\n")) }
}

fn each(targets: &[Target], measure: impl Fn(&Target) -> Result<Row>) -> Result<Vec<Row>> {
    targets.iter().map(|target| measure(target).with_context(|| target.name.clone())).collect()
}

fn load_args(seconds: f64) -> LoadArgs {
    LoadArgs {
        target: TargetArgs::default(),
        work: Vec::new(),
        connections: Vec::new(),
        seconds,
        rounds: 5,
        documents: 10_000,
        reads: 95,
        batch: 1000,
    }
}

/// A goal of the project, as a multiple of MongoDB's value.
struct Goal {
    /// The name of the measurement, or its beginning.
    measure: &'static str,
    value: fn(&Row) -> Option<f64>,
    unit: &'static str,
    /// Bounds for the embedded store and for MariaDB: minimums of throughput, else maximums.
    embedded: f64,
    mariadb: f64,
}

const fn goal(measure: &'static str, value: fn(&Row) -> Option<f64>, unit: &'static str, bounds: [f64; 2]) -> Goal {
    Goal { measure, value, unit, embedded: bounds[0], mariadb: bounds[1] }
}

const MORE_IS_BETTER: &str = "/s";

const GOALS: [Goal; 9] = [
    goal("point read, 1 conn", |row| row.mean_ms, "ms", [0.35, 1.0]),
    goal("point read, 1 conn", |row| row.cpu_us, "cpu µs", [0.25, 0.35]),
    goal("point read, 16 conn", |row| row.per_second, MORE_IS_BETTER, [2.5, 0.8]),
    goal("first 101", |row| row.mean_ms, "ms", [0.5, 1.2]),
    goal("all 10,000", |row| row.mean_ms, "ms", [0.5, 1.6]),
    goal("Make = Toyota", |row| row.mean_ms, "ms", [0.6, 1.3]),
    goal("insertMany of 10,000", |row| row.per_second, MORE_IS_BETTER, [1.5, 0.5]),
    goal("resident, idle", |row| row.mebibytes, "MiB", [0.25, 0.25]),
    goal("resident, 1", |row| row.mebibytes, "MiB", [0.4, 0.25]),
];

/// Returns the table of the goals, with whether each is reached.
fn goals(report: &Report) -> Vec<Vec<String>> {
    let heads = ["measure", "", MONGODB, EMBEDDED, "ratio", "goal", "reached", MARIADB, "ratio", "goal", "reached"];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for goal in &GOALS {
        let value = |target: &str| {
            let row = report.rows.iter().find(|row| row.measure.starts_with(goal.measure) && row.target == target);
            row.and_then(goal.value)
        };
        let Some(base) = value(MONGODB) else { continue };
        let mut line = vec![goal.measure.to_owned(), goal.unit.to_owned(), three_digits(base)];
        for (target, bound) in [(EMBEDDED, goal.embedded), (MARIADB, goal.mariadb)] {
            let Some(value) = value(target) else { continue };
            let ratio = value / base;
            let more = goal.unit == MORE_IS_BETTER;
            let reached = if more { ratio >= bound } else { ratio <= bound };
            let sign = if more { "≥" } else { "≤" };
            line.extend([
                three_digits(value),
                three_digits(ratio),
                format!("{sign} {bound}"),
                if reached { "yes" } else { "no" }.into(),
            ]);
        }
        lines.push(line);
    }
    lines
}
