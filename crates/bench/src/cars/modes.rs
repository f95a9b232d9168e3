//! The published table: the five queries against MongoDB, and against Selkie with each kind of caching, on each of its stores. Every
//! server is started for it. A last column tells what the socket alone costs of each answer.

use super::{CarsArgs, Reading, measure_beside_plain};
use crate::report::{Report, Row, figure, markdown};
use crate::servers::{self, Contestant, MONGODB, Mariadb, Sockets};
use crate::target::Target;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug, Clone, Default)]
pub struct ModesArgs {
    /// Start MongoDB (if --mongod is given) and a Selkie for each of these modes on each store, instead of asking servers that run
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "uris")]
    pub modes: Vec<Mode>,

    /// The mongod to compare with
    #[arg(long, value_name = "PROGRAM", requires = "modes")]
    pub mongod: Option<PathBuf>,

    /// The mariadbd behind half of them; `none` leaves these out
    #[arg(long, value_name = "PROGRAM", default_value = "mariadbd")]
    pub mariadbd: PathBuf,

    /// The Selkie to measure; this program if not given
    #[arg(long, value_name = "PROGRAM", requires = "modes")]
    pub selkie: Option<PathBuf>,

    /// Ask all of them over Unix sockets rather than TCP
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
    pub fn is_wanted(&self) -> bool {
        !self.modes.is_empty()
    }

    fn sockets(&self) -> Sockets {
        if self.unix_sockets { Sockets::Unix } else { Sockets::Tcp }
    }

    fn wanted(&self) -> Vec<Mode> {
        if self.modes.contains(&Mode::All) { PUBLISHED.to_vec() } else { self.modes.clone() }
    }
}

impl Mode {
    /// What `--cache` takes, which is its name as well.
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

pub fn run(args: &CarsArgs) -> Result<()> {
    let reading = args.mode_reading();
    let report = measure(&args.modes, reading)?;
    let (iterations, turn) = (reading.iterations, reading.turn.requests);
    println!(
        "Milliseconds, mean of {iterations} runs over one connection, {turn} in a row; in brackets as a multiple of the first column.\n"
    );
    println!("{}", markdown(&table(&report.rows)));
    let machine = &report.machine;
    println!("{} cores, {}, load average at the start {}", machine.cores, machine.cpu, machine.load_average);
    report.write_json(args.target.json.as_deref())
}

/// Starts the servers and asks them. A server's name is its store and its mode, as in `embedded, none`.
pub fn measure(args: &ModesArgs, reading: Reading) -> Result<Report> {
    let folder = tempfile::Builder::new().prefix("selkie-bench-").tempdir()?;
    let mariadb = match args.mariadbd.to_str() {
        Some("none") => None,
        _ => Some(Mariadb::start(&args.mariadbd, folder.path())?),
    };
    let contestants = start(args, folder.path(), mariadb.as_ref())?;
    if contestants.is_empty() {
        bail!("none of the servers starts");
    }
    // Those on MariaDB share its tables, and must not take one another's away.
    let collections: Vec<String> = (0..contestants.len()).map(|number| format!("cars_{number}")).collect();
    let targets = contestants.iter().zip(&collections).map(|(one, collection)| (&one.target, collection.as_str()));
    let targets: Vec<(&Target, &str)> = targets.collect();
    let mut report = Report::default();
    report.extend(measure_beside_plain(&targets, reading)?);
    Ok(report)
}

fn start(args: &ModesArgs, folder: &Path, mariadb: Option<&Mariadb>) -> Result<Vec<Contestant>> {
    let selkie = servers::program(args.selkie.as_ref())?;
    let mut contestants = Vec::new();
    if let Some(program) = &args.mongod {
        contestants.push(servers::mongod_by(program, folder, args.sockets())?);
    }
    let stores = [("embedded", None), ("MariaDB", mariadb)];
    for (store, mariadb) in stores.into_iter().filter(|(store, mariadb)| *store == "embedded" || mariadb.is_some()) {
        for mode in args.wanted() {
            // There are no result sets without MariaDB.
            if mode == Mode::Results && mariadb.is_none() {
                continue;
            }
            let name = format!("{store}, {}", mode.name());
            match servers::selkie_by(&name, &selkie, folder, mariadb, args.sockets(), &["--cache", mode.option()]) {
                Ok(contestant) => contestants.push(contestant),
                Err(error) => eprintln!("left out: {error:#}"),
            }
        }
    }
    Ok(contestants)
}

/// A line per query, a column per server.
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
            Some((mean, _)) if target == MONGODB => figure(mean),
            Some((mean, ratio)) => format!("{} ({})", figure(mean), figure(ratio)),
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
    fn a_line_per_query_and_a_column_per_server() {
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
