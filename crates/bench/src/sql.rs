//! SELECTs of single rows by their key, like sysbench's read-only test: to MariaDB directly, and
//! through Selkie with and without its cache of result sets, over a growing number of connections.

use crate::round_robin::order_of_turn;
use anyhow::{Context, Result, anyhow, bail};
use harness::address::Address;
use harness::random::SplitMix;
use harness::report::{Report, Row, Samples, Stopwatch};
use harness::servers::{GatewayArgs, Sandbox, StartedServer, free_port};
use harness::sql_connection::{SqlConnection, SqlTarget};
use harness::target::Target;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug, Clone)]
pub struct SqlArgs {
    #[command(flatten)]
    pub gateway: GatewayArgs,

    /// Connections, each with one SELECT in flight; several numbers are measured one after the
    /// other
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64])]
    pub connections: Vec<usize>,

    /// Total time of each server, in seconds, per number of connections
    #[arg(long, default_value_t = 6.0)]
    pub seconds: f64,

    /// Turns that the time is divided into
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Rows in the table
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: u64,

    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

pub const DIRECT: &str = "MariaDB, directly";
pub const THROUGH: &str = "through Selkie";
pub const CACHED: &str = "through Selkie, cached";

/// Rows per statement when the table is filled.
const BATCH: u64 = 1000;

/// A server that runs the SELECTs.
struct SqlServer {
    target: Target,
    sql: SqlTarget,
}

pub fn run(args: &SqlArgs) -> Result<()> {
    let mut report = Report::default();
    report.extend(measure(args)?);
    report.publish(args.json.as_deref())
}

pub fn measure(args: &SqlArgs) -> Result<Vec<Row>> {
    args.gateway.mariadbd_program()?;
    let sandbox = Sandbox::prepare(&args.gateway)?;
    let mariadb = sandbox.mariadb.as_ref().context("MariaDB does not run")?;
    let url = mariadb.tcp_url();
    let direct = Target {
        name: DIRECT.into(),
        address: Address::Tcp(url.clone()),
        server_pid: Some(mariadb.pid()),
        backend_pids: Vec::new(),
    };
    let mut servers = vec![SqlServer { target: direct, sql: SqlTarget::parse(&url)? }];
    // Held until the end, because dropping a gateway stops it.
    let mut gateways: Vec<StartedServer> = Vec::new();
    for (name, mode) in [(THROUGH, "off"), (CACHED, "results")] {
        let listen = format!("127.0.0.1:{}", free_port()?);
        let gateway = sandbox.start(name, Some(mariadb), &["--sql-listen", &listen, "--cache", mode])?;
        let sql = SqlTarget::parse(&format!("mysql://root@{listen}"))?;
        servers.push(SqlServer { target: gateway.target.clone(), sql });
        gateways.push(gateway);
    }
    fill(&servers[0].sql, args.rows)?;
    for server in &servers {
        warm_up(&server.sql, args.rows).with_context(|| server.target.name.clone())?;
    }
    let mut rows = Vec::new();
    for &connections in &args.connections {
        rows.extend(measure_connections(args, &servers, connections)?);
    }
    Ok(rows)
}

/// Creates sysbench's table with `rows` rows.
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
        // Safe to splice: the values consist of digits.
        let values = values.collect::<Vec<_>>().join(",");
        connection.query(&format!("INSERT INTO sbtest.sbtest1 VALUES {values}"))?;
        next = end + 1;
    }
    Ok(())
}

fn select(id: u64) -> String {
    format!("SELECT c FROM sbtest.sbtest1 WHERE id={id}")
}

/// Selects every row once.
fn warm_up(target: &SqlTarget, rows: u64) -> Result<()> {
    let mut connection = SqlConnection::open(target)?;
    (1..=rows).try_for_each(|id| select_row(&mut connection, id))
}

fn select_row(connection: &mut SqlConnection, id: u64) -> Result<()> {
    match connection.count_rows(&select(id))? {
        1 => Ok(()),
        rows => bail!("{rows} rows instead of one"),
    }
}

fn measure_connections(args: &SqlArgs, servers: &[SqlServer], connections: usize) -> Result<Vec<Row>> {
    let turn = Duration::from_secs_f64(args.seconds / f64::from(args.rounds));
    let mut samples = servers.iter().map(|_| Samples::new()).collect::<Result<Vec<_>>>()?;
    for round in 0..args.rounds as usize {
        for index in order_of_turn(round, servers.len()) {
            let server = &servers[index];
            let done = run_turn(server, args, connections, turn, &mut samples[index]);
            done.with_context(|| server.target.name.clone())?;
        }
    }
    let plural = if connections == 1 { "" } else { "s" };
    let name = format!("SELECT by key, {connections} connection{plural}");
    Ok(servers.iter().zip(&samples).map(|(server, samples)| samples.row(&name, &server.target, true)).collect())
}

/// Runs SELECTs on a thread per connection, like sysbench.
fn run_turn(
    server: &SqlServer,
    args: &SqlArgs,
    connections: usize,
    turn: Duration,
    samples: &mut Samples,
) -> Result<()> {
    let opened = (0..connections).map(|_| SqlConnection::open(&server.sql)).collect::<Result<Vec<_>>>()?;
    let started = Stopwatch::start(&server.target);
    let end = Instant::now() + turn;
    let threads = opened.into_iter().enumerate().map(|(number, mut connection)| {
        let (rows, mut random) = (args.rows, SplitMix(number as u64));
        std::thread::spawn(move || {
            let mut own = Samples::new()?;
            while Instant::now() < end {
                let before = Instant::now();
                select_row(&mut connection, 1 + random.below(rows))?;
                own.record(before.elapsed());
            }
            Ok::<_, anyhow::Error>(own)
        })
    });
    let threads: Vec<_> = threads.collect();
    let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
    samples.stop(&server.target, started);
    for outcome in outcomes {
        samples.add_times(&outcome.map_err(|_| anyhow!("a connection's thread panicked"))??)?;
    }
    Ok(())
}
