//! What a protocol costs: one row by its key, all of them in memory, over every way to it, one after the other in the same run.
//!
//! The rows are the same everywhere: a number and 100 bytes. By SQL they are asked for as text and as a prepared statement, over TCP, with
//! compression, over a Unix socket and, where libmariadbd is built in, within this process; of InnoDB, MEMORY and Aria. SQLite in this process,
//! Selkie on each store, and MongoDB are asked for the same rows. Clients are as bare as they can be: a thread each, which sends, waits and looks at the row.

mod calls;
mod readers;
mod way;

pub use calls::{CountCallsArgs, count_calls};

use crate::report::{Report, Row, figure, markdown};
use crate::servers::{self, Contestant, Mariadb};
use anyhow::{Context, Result};
use readers::{MARIADB_ENGINES, Statement, mongo, sql, sqlite};
use std::path::{Path, PathBuf};
use std::time::Duration;
use way::Way;

#[derive(clap::Args, Debug, Clone)]
pub struct KvArgs {
    /// Measure MongoDB as well, by this mongod
    #[arg(long, value_name = "PROGRAM")]
    pub mongod: Option<PathBuf>,

    /// The MariaDB server; `none` leaves it out
    #[arg(long, value_name = "PROGRAM", default_value = "mariadbd")]
    pub mariadbd: PathBuf,

    /// The Selkie to measure; this program if not given
    #[arg(long, value_name = "PROGRAM")]
    pub selkie: Option<PathBuf>,

    /// Connections, a thread each, that read at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub connections: u32,

    /// Rows that keys are drawn from at random
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rows: u64,

    /// How long each way is measured in all, in seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,

    /// In how many turns that time is given
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Also write the figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const MEASURE: &str = "row by key";

/// What the others are compared with.
const SOCKET: &str = "MariaDB, Unix socket, prepared";
const EMBEDDED: &str = "MariaDB, embedded, prepared";

/// The rows per second of the library over those of the socket that are aimed at.
const GOAL: f64 = 1.9;

pub fn run(args: &KvArgs) -> Result<()> {
    let mut report = Report::default();
    report.extend(measure(args)?);
    report.publish(args.json.as_deref())?;
    println!("{}", markdown(&ratios(&report.rows)));
    Ok(())
}

/// A row for each way. Starts the servers and ends them.
pub fn measure(args: &KvArgs) -> Result<Vec<Row>> {
    let folder = tempfile::Builder::new().prefix("selkie-bench-").tempdir()?;
    let started = Started::start(args, folder.path())?;
    let mut ways = started.ways(args, folder.path())?;
    let turn = Duration::from_secs_f64(args.seconds / f64::from(args.rounds));
    for way in &mut ways {
        way.open(args.connections as usize, args.rows).with_context(|| way.name.clone())?;
    }
    let count = ways.len();
    for round in 0..args.rounds as usize {
        for index in 0..count {
            let way = &mut ways[(round + index) % count];
            way.drive(turn).with_context(|| way.name.clone())?;
        }
    }
    let rows = ways.iter_mut().map(|way| way.row(MEASURE).with_context(|| way.name.clone())).collect();
    drop(ways);
    started.end();
    rows
}

/// The servers of a run, and what runs in this process.
struct Started {
    mariadb: Option<Mariadb>,
    #[cfg(feature = "embedded-mariadb")]
    embedded: std::sync::Arc<mariadb_embedded::Database>,
    mongo: Vec<Contestant>,
}

impl Started {
    fn start(args: &KvArgs, folder: &Path) -> Result<Started> {
        let mariadb = match args.mariadbd.to_str() {
            Some("none") => None,
            _ => Some(Mariadb::start_with_port(&args.mariadbd, folder)?),
        };
        let selkie = servers::program(args.selkie.as_ref())?;
        let mut mongo = vec![servers::selkie("Selkie on SQLite", &selkie, folder, None, &[])?];
        if let Some(mariadb) = &mariadb {
            mongo.push(servers::selkie("Selkie on MariaDB, Unix socket", &selkie, folder, Some(mariadb), &[])?);
        }
        #[cfg(feature = "embedded-mariadb")]
        mongo.push(servers::selkie_on_embedded_mariadb("Selkie on MariaDB, embedded", &selkie, folder)?);
        mongo.extend(args.mongod.as_ref().map(|program| servers::mongod(program, folder)).transpose()?);
        Ok(Started {
            mariadb,
            #[cfg(feature = "embedded-mariadb")]
            embedded: mariadb_embedded::Database::open(&folder.join("embedded")).map_err(anyhow::Error::msg)?,
            mongo,
        })
    }

    /// Ends what runs in this process, when nobody reads any more.
    fn end(&self) {
        #[cfg(feature = "embedded-mariadb")]
        self.embedded.close();
    }

    fn ways(&self, args: &KvArgs, folder: &Path) -> Result<Vec<Way>> {
        let mut ways = Vec::new();
        if let Some(mariadb) = &self.mariadb {
            ways.extend(of_server(mariadb, args.rows)?);
        }
        #[cfg(feature = "embedded-mariadb")]
        ways.extend(readers::embedded(&self.embedded, args.rows)?);
        ways.push(sqlite(folder, args.rows)?);
        for contestant in &self.mongo {
            ways.push(mongo(&contestant.target, args.rows).with_context(|| contestant.target.name.clone())?);
        }
        Ok(ways)
    }
}

/// Every way into a server; the first one is what all are compared with.
fn of_server(mariadb: &Mariadb, rows: u64) -> Result<Vec<Way>> {
    let (socket, pid) = (mariadb.url(), mariadb.pid());
    readers::fill_server(&socket, rows)?;
    let tcp = mariadb.tcp_url().context("MariaDB has no port")?;
    let way = |name: &str, url: &str, compressed, engine, statement| {
        sql(name, url, compressed, engine, statement).map(|way| way.of_process(pid))
    };
    let innodb = MARIADB_ENGINES[0];
    let mut ways = vec![
        way(SOCKET, &socket, false, innodb, Statement::Prepared)?,
        way("MariaDB, Unix socket, text", &socket, false, innodb, Statement::Text)?,
        way("MariaDB, TCP, prepared", &tcp, false, innodb, Statement::Prepared)?,
        way("MariaDB, TCP, text", &tcp, false, innodb, Statement::Text)?,
        way("MariaDB, TCP compressed, prepared", &tcp, true, innodb, Statement::Prepared)?,
        way("MariaDB, TCP compressed, text", &tcp, true, innodb, Statement::Text)?,
    ];
    for engine in &MARIADB_ENGINES[1..] {
        let name = format!("MariaDB, Unix socket, prepared, {engine}");
        ways.push(way(&name, &socket, false, engine, Statement::Prepared)?);
    }
    Ok(ways)
}

/// What is worth a sentence: one way over another, by rows per second, and by the time of the median read, which is less disturbed by what
/// else the machine does.
fn ratios(rows: &[Row]) -> Vec<Vec<String>> {
    let find = |name: &str| rows.iter().find(|row| row.target == name);
    let mut lines =
        vec![["how many times as fast", "as", "rows per second", "median read", "aim"].map(str::to_owned).to_vec()];
    for (one, other, aim) in [
        (EMBEDDED, SOCKET, Some(GOAL)),
        ("MariaDB, embedded, text", "MariaDB, Unix socket, text", None),
        (EMBEDDED, "MariaDB, embedded, text", None),
        (SOCKET, "MariaDB, TCP, prepared", None),
        ("MariaDB, TCP compressed, prepared", "MariaDB, TCP, prepared", None),
        ("Selkie on MariaDB, embedded", "Selkie on MariaDB, Unix socket", None),
        ("Selkie on SQLite", "MongoDB", None),
        ("Selkie on MariaDB, embedded", "MongoDB", None),
    ] {
        let (Some(it), Some(base)) = (find(one), find(other)) else { continue };
        let times = |over: Option<f64>, under: Option<f64>| over.zip(under).map(|(over, under)| figure(over / under));
        let by_rows = times(it.per_second, base.per_second).unwrap_or_default();
        let by_median = times(base.p50_ms, it.p50_ms).unwrap_or_default();
        let aim = aim.map(|aim| format!("at least {aim}")).unwrap_or_default();
        lines.push(vec![one.to_owned(), other.to_owned(), by_rows, by_median, aim]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_what_was_measured() {
        let row = |target: &str, per_second, p50_ms| Row {
            measure: MEASURE.into(),
            target: target.into(),
            per_second: Some(per_second),
            p50_ms: Some(p50_ms),
            ..Row::default()
        };
        let lines = ratios(&[row(SOCKET, 20_000.0, 0.03), row(EMBEDDED, 40_000.0, 0.01)]);
        assert_eq!(lines[1..], [[EMBEDDED, SOCKET, "2.00", "3.00", "at least 1.9"].map(str::to_owned).to_vec()]);
    }
}
