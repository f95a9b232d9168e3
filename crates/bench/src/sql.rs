//! SELECTs of single rows by their key, as sysbench's read-only test makes them: to MariaDB directly, and through Selkie with and without
//! its cache of result sets, over more and more connections.

use crate::client::Address;
use crate::dataset::SplitMix;
use crate::report::{Report, Row, Samples};
use crate::servers::{self, Contestant, Mariadb, free_port};
use crate::sql::{SqlConnection, SqlTarget};
use crate::target::Target;
use anyhow::{Context, Result, anyhow, bail};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug, Clone)]
pub struct SqlArgs {
    /// The Selkie to measure; this program if not given
    #[arg(long, value_name = "PROGRAM")]
    pub selkie: Option<PathBuf>,

    /// The mariadbd behind it
    #[arg(long, value_name = "PROGRAM", default_value = "mariadbd")]
    pub mariadbd: PathBuf,

    /// Connections that each keep one SELECT under way; several numbers are measured one after the other
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64])]
    pub connections: Vec<usize>,

    /// How long each way is driven in all, in seconds, per number of connections
    #[arg(long, default_value_t = 6.0)]
    pub seconds: f64,

    /// In how many turns that time is given
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Rows in the table
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: u64,

    /// Also write the figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

pub const DIRECT: &str = "MariaDB, directly";
pub const THROUGH: &str = "through Selkie";
pub const CACHED: &str = "through Selkie, cached";

/// Rows per statement when the table is filled.
const BATCH: u64 = 1000;

/// A way to the rows.
struct Way {
    target: Target,
    sql: SqlTarget,
}

pub fn run(args: &SqlArgs) -> Result<()> {
    let mut report = Report::default();
    report.extend(measure(args)?);
    report.publish(args.json.as_deref())
}

pub fn measure(args: &SqlArgs) -> Result<Vec<Row>> {
    let folder = tempfile::Builder::new().prefix("selkie-bench-").tempdir()?;
    let selkie = servers::program(args.selkie.as_ref())?;
    let mariadb = Mariadb::start_with_port(&args.mariadbd, folder.path())?;
    let url = mariadb.tcp_url().context("MariaDB has no port")?;
    let direct = Target {
        name: DIRECT.into(),
        address: Address::Tcp(url.clone()),
        server: Some(mariadb.pid()),
        behind: Vec::new(),
    };
    let mut ways = vec![Way { target: direct, sql: SqlTarget::parse(&url)? }];
    // They run for as long as they are held.
    let mut gateways: Vec<Contestant> = Vec::new();
    for (name, mode) in [(THROUGH, "off"), (CACHED, "results")] {
        let listen = format!("127.0.0.1:{}", free_port()?);
        let options = ["--sql-listen", &listen, "--cache", mode];
        let gateway = servers::selkie(name, &selkie, folder.path(), Some(&mariadb), &options)?;
        ways.push(Way { target: gateway.target.clone(), sql: SqlTarget::parse(&format!("mysql://root@{listen}"))? });
        gateways.push(gateway);
    }
    fill(&ways[0].sql, args.rows)?;
    for way in &ways {
        warm_up(&way.sql, args.rows).with_context(|| way.target.name.clone())?;
    }
    let mut rows = Vec::new();
    for &connections in &args.connections {
        rows.extend(measure_over(args, &ways, connections)?);
    }
    Ok(rows)
}

/// Sysbench's table, with as many rows as are wanted.
fn fill(target: &SqlTarget, rows: u64) -> Result<()> {
    let mut connection = SqlConnection::open(target)?;
    connection.query("CREATE DATABASE IF NOT EXISTS sbtest")?;
    connection.query(
        "CREATE TABLE sbtest.sbtest1 (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k_1 (k))",
    )?;
    let mut random = SplitMix(1);
    let mut next = 1;
    while next <= rows {
        let end = rows.min(next + BATCH - 1);
        let values = (next..=end).map(|id| {
            let (k, c, pad) = (random.below(rows), random.next(), random.next());
            format!("({id},{k},'{}','{}')", c.to_string().repeat(6), pad.to_string().repeat(3))
        });
        // Numbers and their digits alone: nothing in it comes from outside.
        let values = values.collect::<Vec<_>>().join(",");
        connection.query(&format!("INSERT INTO sbtest.sbtest1 VALUES {values}"))?;
        next = end + 1;
    }
    Ok(())
}

fn select(id: u64) -> String {
    format!("SELECT c FROM sbtest.sbtest1 WHERE id={id}")
}

/// Asks for every row once.
fn warm_up(target: &SqlTarget, rows: u64) -> Result<()> {
    let mut connection = SqlConnection::open(target)?;
    (1..=rows).try_for_each(|id| ask(&mut connection, id))
}

fn ask(connection: &mut SqlConnection, id: u64) -> Result<()> {
    match connection.select(&select(id))? {
        1 => Ok(()),
        rows => bail!("{rows} rows instead of one"),
    }
}

fn measure_over(args: &SqlArgs, ways: &[Way], connections: usize) -> Result<Vec<Row>> {
    let turn = Duration::from_secs_f64(args.seconds / f64::from(args.rounds));
    let mut samples = ways.iter().map(|_| Samples::new()).collect::<Result<Vec<_>>>()?;
    for round in 0..args.rounds as usize {
        for index in 0..ways.len() {
            let number = (round + index) % ways.len();
            let way = &ways[number];
            drive(way, args, connections, turn, &mut samples[number]).with_context(|| way.target.name.clone())?;
        }
    }
    let plural = if connections == 1 { "" } else { "s" };
    let name = format!("SELECT by key, {connections} connection{plural}");
    Ok(ways.iter().zip(&samples).map(|(way, samples)| samples.row(&name, &way.target, true)).collect())
}

/// A thread per connection, as sysbench has.
fn drive(way: &Way, args: &SqlArgs, connections: usize, turn: Duration, samples: &mut Samples) -> Result<()> {
    let opened = (0..connections).map(|_| SqlConnection::open(&way.sql)).collect::<Result<Vec<_>>>()?;
    let started = Samples::start(&way.target);
    let end = Instant::now() + turn;
    let threads = opened.into_iter().enumerate().map(|(number, mut connection)| {
        let (rows, mut random) = (args.rows, SplitMix(number as u64));
        std::thread::spawn(move || {
            let mut own = Samples::new()?;
            while Instant::now() < end {
                let before = Instant::now();
                ask(&mut connection, 1 + random.below(rows))?;
                own.record(before.elapsed());
            }
            Ok::<_, anyhow::Error>(own)
        })
    });
    let threads: Vec<_> = threads.collect();
    let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
    samples.stop(&way.target, started);
    for outcome in outcomes {
        samples.absorb(&outcome.map_err(|_| anyhow!("a connection's thread panicked"))??)?;
    }
    Ok(())
}
