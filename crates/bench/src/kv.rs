//! The cost of a protocol: reads of one row by its key, with all rows in memory, by each method, in
//! turns within one run.
//!
//! The rows are the same everywhere: a number and 100 bytes. SQL reads use text and prepared
//! statements, over TCP, with compression, over a Unix socket and, if libmariadbd is built in,
//! within this process, on InnoDB, MEMORY and Aria. The same rows are read from SQLite in this
//! process, from Selkie on each store, and from MongoDB. Clients are minimal: a thread each, which
//! sends, waits and checks the row.

mod calls;
mod read_method;
mod readers;

pub use calls::{CountCallsArgs, count_calls};

use crate::round_robin::order_of_turn;
use anyhow::{Context, Result};
use harness::report::{Report, Row, markdown, three_digits};
use harness::servers::{Mariadb, Sandbox, ServerArgs, Sockets, StartedServer, mongod};
use read_method::ReadMethod;
use readers::{EMBEDDED, MARIADB_ENGINES, Statement, mongo, sql, sqlite};
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args, Debug, Clone)]
pub struct KvArgs {
    #[command(flatten)]
    pub servers: ServerArgs,

    /// Connections, a thread each, that read at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub connections: u32,

    /// Rows, read by random keys
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rows: u64,

    /// Total time of each method, in seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,

    /// Turns that the time is divided into
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const MEASURE: &str = "row by key";

/// The method that others are compared with.
const SOCKET: &str = "MariaDB, Unix socket, prepared";

/// The goal for rows per second of the library, as a multiple of those over the socket.
const GOAL: f64 = 1.9;

pub fn run(args: &KvArgs) -> Result<()> {
    let mut report = Report::default();
    report.extend(measure(args)?);
    report.publish(args.json.as_deref())?;
    println!("{}", markdown(&ratios(&report.rows)));
    Ok(())
}

/// Measures each method, on servers that it starts and stops.
pub fn measure(args: &KvArgs) -> Result<Vec<Row>> {
    let sandbox = Sandbox::prepare(&args.servers.gateway)?;
    let started = Databases::start(args, &sandbox)?;
    let mut methods = started.methods(args, &sandbox)?;
    let turn = Duration::from_secs_f64(args.seconds / f64::from(args.rounds));
    for method in &mut methods {
        method.open(args.connections as usize, args.rows).with_context(|| method.name.clone())?;
    }
    for round in 0..args.rounds as usize {
        for index in order_of_turn(round, methods.len()) {
            let method = &mut methods[index];
            method.run(turn).with_context(|| method.name.clone())?;
        }
    }
    let rows = methods.iter_mut().map(|method| method.row(MEASURE).with_context(|| method.name.clone())).collect();
    drop(methods);
    started.close();
    rows
}

/// The databases of a run: servers, and libmariadbd in this process.
struct Databases {
    #[cfg(feature = "embedded-mariadb")]
    embedded: std::sync::Arc<mariadb_embedded::Database>,
    servers: Vec<StartedServer>,
}

impl Databases {
    fn start(args: &KvArgs, sandbox: &Sandbox) -> Result<Databases> {
        let mut servers = vec![sandbox.start("Selkie on SQLite", None, &[])?];
        if let Some(mariadb) = &sandbox.mariadb {
            servers.push(sandbox.start("Selkie on MariaDB, Unix socket", Some(mariadb), &[])?);
        }
        #[cfg(feature = "embedded-mariadb")]
        servers.push(sandbox.start_on_embedded_mariadb("Selkie on MariaDB, embedded")?);
        if let Some(program) = &args.servers.mongod {
            servers.push(mongod(program, sandbox.folder(), Sockets::Tcp)?);
        }
        Ok(Databases {
            #[cfg(feature = "embedded-mariadb")]
            embedded: mariadb_embedded::Database::open(&sandbox.folder().join("embedded"))
                .map_err(anyhow::Error::msg)?,
            servers,
        })
    }

    /// Closes the database in this process, once nothing reads from it.
    fn close(&self) {
        #[cfg(feature = "embedded-mariadb")]
        self.embedded.close();
    }

    fn methods(&self, args: &KvArgs, sandbox: &Sandbox) -> Result<Vec<ReadMethod>> {
        let mut methods = Vec::new();
        if let Some(mariadb) = &sandbox.mariadb {
            methods.extend(mariadb_methods(mariadb, args.rows)?);
        }
        #[cfg(feature = "embedded-mariadb")]
        methods.extend(readers::embedded(&self.embedded, args.rows)?);
        methods.push(sqlite(sandbox.folder(), args.rows)?);
        for server in &self.servers {
            methods.push(mongo(&server.target, args.rows).with_context(|| server.target.name.clone())?);
        }
        Ok(methods)
    }
}

/// Returns all methods to read from MariaDB's server. Others are compared with the first one.
fn mariadb_methods(mariadb: &Mariadb, rows: u64) -> Result<Vec<ReadMethod>> {
    let (socket, tcp, pid) = (mariadb.url(), mariadb.tcp_url(), mariadb.pid());
    readers::fill_server(&socket, rows)?;
    let method = |name: &str, url: &str, compressed, engine, statement| {
        sql(name, url, compressed, engine, statement).map(|method| method.with_server(pid))
    };
    let innodb = MARIADB_ENGINES[0];
    let mut methods = vec![
        method(SOCKET, &socket, false, innodb, Statement::Prepared)?,
        method("MariaDB, Unix socket, text", &socket, false, innodb, Statement::Text)?,
        method("MariaDB, TCP, prepared", &tcp, false, innodb, Statement::Prepared)?,
        method("MariaDB, TCP, text", &tcp, false, innodb, Statement::Text)?,
        method("MariaDB, TCP compressed, prepared", &tcp, true, innodb, Statement::Prepared)?,
        method("MariaDB, TCP compressed, text", &tcp, true, innodb, Statement::Text)?,
    ];
    for engine in &MARIADB_ENGINES[1..] {
        let name = format!("MariaDB, Unix socket, prepared, {engine}");
        methods.push(method(&name, &socket, false, engine, Statement::Prepared)?);
    }
    Ok(methods)
}

/// Returns ratios between pairs of methods: by rows per second, and by the median time of a read,
/// which other work of the machine disturbs less.
fn ratios(rows: &[Row]) -> Vec<Vec<String>> {
    let find = |name: &str| rows.iter().find(|row| row.target == name);
    let mut lines = vec![["ratio of", "to", "rows per second", "median read", "goal"].map(str::to_owned).to_vec()];
    for (one, other, goal) in [
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
        let times =
            |over: Option<f64>, under: Option<f64>| over.zip(under).map(|(over, under)| three_digits(over / under));
        let by_rows = times(it.per_second, base.per_second).unwrap_or_default();
        let by_median = times(base.p50_ms, it.p50_ms).unwrap_or_default();
        let goal = goal.map(|goal| format!("at least {goal}")).unwrap_or_default();
        lines.push(vec![one.to_owned(), other.to_owned(), by_rows, by_median, goal]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_by_rows_and_by_median() {
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
