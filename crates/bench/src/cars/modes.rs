//! The published table: the five queries on MongoDB, and on Selkie with each mode of its cache, on
//! each of its stores. All servers are started for it. The last column is the cost of the socket
//! alone.

use super::measure::{Repetitions, measure_with_replay};
use anyhow::{Result, bail};
use harness::report::{Report, Row, markdown, three_digits};
use harness::servers::{MONGODB, Sandbox, ServerArgs, Sockets, StartedServer, mongod};
use harness::target::Target;
use std::path::Path;

#[derive(clap::Args, Debug, Clone, Default)]
pub struct ModesArgs {
    /// Start MongoDB (if --mongod is given) and a Selkie for each of these modes on each store,
    /// instead of measuring servers that run
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "uris")]
    pub modes: Vec<Mode>,

    #[command(flatten)]
    pub servers: ServerArgs,

    /// Connect to all of them by Unix sockets instead of TCP
    #[arg(long, requires = "modes")]
    pub unix_sockets: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// No cache
    None,
    /// Result sets of MariaDB
    Results,
    /// Replies
    Documents,
    /// Result sets and replies
    Both,
    /// None, results and documents, as published
    All,
}

const PUBLISHED: [Mode; 3] = [Mode::None, Mode::Results, Mode::Documents];

impl ModesArgs {
    pub fn is_given(&self) -> bool {
        !self.modes.is_empty()
    }

    fn sockets(&self) -> Sockets {
        if self.unix_sockets { Sockets::Unix } else { Sockets::Tcp }
    }

    fn expanded_modes(&self) -> Vec<Mode> {
        if self.modes.contains(&Mode::All) { PUBLISHED.to_vec() } else { self.modes.clone() }
    }
}

impl Mode {
    /// Returns the value of `--cache`.
    fn option(self) -> &'static str {
        match self {
            Mode::None | Mode::All => "off",
            Mode::Results => "results",
            Mode::Documents => "documents",
            Mode::Both => "both",
        }
    }

    fn name(self) -> &'static str {
        if self == Mode::None { "none" } else { self.option() }
    }
}

/// Measures the servers and prints the table.
pub fn run(args: &ModesArgs, repetitions: Repetitions, json: Option<&Path>) -> Result<()> {
    let report = measure(args, repetitions)?;
    let (iterations, turn) = (repetitions.iterations, repetitions.round_robin.requests);
    println!(
        "Milliseconds, mean of {iterations} runs over one connection, {turn} in a row; in brackets the ratio to the first column.\n"
    );
    println!("{}", markdown(&table(&report.rows)));
    println!("{}", report.machine);
    report.write_json(json)
}

/// Starts the servers and measures them. A server's name is its store and its mode, as in
/// `embedded, none`.
pub fn measure(args: &ModesArgs, repetitions: Repetitions) -> Result<Report> {
    let sandbox = Sandbox::prepare(&args.servers.gateway)?;
    let servers = start(args, &sandbox)?;
    if servers.is_empty() {
        bail!("none of the servers starts");
    }
    // The gateways on MariaDB share its tables, so each server has a collection of its own.
    let collections: Vec<String> = (0..servers.len()).map(|number| format!("cars_{number}")).collect();
    let targets = servers.iter().zip(&collections).map(|(server, collection)| (&server.target, collection.as_str()));
    let targets: Vec<(&Target, &str)> = targets.collect();
    let mut report = Report::default();
    report.extend(measure_with_replay(&targets, repetitions)?);
    Ok(report)
}

fn start(args: &ModesArgs, sandbox: &Sandbox) -> Result<Vec<StartedServer>> {
    let mut servers = Vec::new();
    if let Some(program) = &args.servers.mongod {
        servers.push(mongod(program, sandbox.folder(), args.sockets())?);
    }
    for (store, mariadb) in sandbox.stores() {
        for mode in args.expanded_modes() {
            // There are no result sets without MariaDB.
            if mode == Mode::Results && mariadb.is_none() {
                continue;
            }
            let name = format!("{store}, {}", mode.name());
            match sandbox.start_on(&name, mariadb, args.sockets(), &["--cache", mode.option()]) {
                Ok(server) => servers.push(server),
                Err(error) => eprintln!("skipped: {error:#}"),
            }
        }
    }
    Ok(servers)
}

/// Returns a line per query and a column per server.
fn table(rows: &[Row]) -> Vec<Vec<String>> {
    let (mut measures, mut targets) = (Vec::new(), Vec::new());
    for row in rows {
        if !measures.contains(&row.measure) {
            measures.push(row.measure.clone());
        }
        if !targets.contains(&row.target) {
            targets.push(row.target.clone());
        }
    }
    let cell = |measure: &str, target: &str| {
        let row = rows.iter().find(|row| row.measure == measure && row.target == target);
        match row.and_then(|row| Some((row.mean_ms?, row.ratio?))) {
            Some((mean, _)) if target == MONGODB => three_digits(mean),
            Some((mean, ratio)) => format!("{} ({})", three_digits(mean), three_digits(ratio)),
            None => String::new(),
        }
    };
    let head = std::iter::once("query".to_owned()).chain(targets.iter().cloned()).collect();
    let lines = measures.iter().map(|measure| {
        std::iter::once(measure.clone()).chain(targets.iter().map(|target| cell(measure, target))).collect()
    });
    std::iter::once(head).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_per_query_and_a_column_per_server() {
        let row = |measure: &str, target: &str, mean| Row {
            measure: measure.into(),
            target: target.into(),
            mean_ms: Some(mean),
            ..Row::default()
        };
        let mut report = Report::default();
        report.extend(vec![row("_id", MONGODB, 0.5), row("_id", "x", 0.1), row("all", MONGODB, 20.0)]);
        assert_eq!(
            table(&report.rows),
            [["query", MONGODB, "x"], ["_id", "0.500", "0.100 (0.200)"], ["all", "20", ""]]
        );
    }
}
