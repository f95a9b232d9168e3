//! SELECTs of single rows by their key, like sysbench's read-only test: to MariaDB directly, and
//! through Selkie with and without its cache of result sets, over a growing number of connections.
//! With `--routers`, also through the routers of services, and through HAProxy for comparison.

use crate::round_robin::order_of_turn;
use anyhow::{Context, Result, anyhow, bail};
use harness::address::Address;
use harness::random::SplitMix;
use harness::report::{Report, Row, Samples, Stopwatch};
use harness::servers::{GatewayArgs, Mariadb, Sandbox, ServerProcess, StartedServer, free_port};
use harness::sql_connection::{SqlConnection, SqlTarget};
use harness::target::Target;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
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

    /// Also measure the routers of services
    #[arg(long)]
    pub routers: bool,

    /// Also measure HAProxy: the path of its program
    #[arg(long, value_name = "FILE")]
    pub haproxy: Option<PathBuf>,

    /// Worker threads of Selkie and HAProxy, with --routers or --haproxy
    #[arg(long, default_value_t = 1)]
    pub threads: usize,

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
    if args.routers {
        for router in ["connections", "read-write-split"] {
            let (mut gateway, sql) = start_router(&sandbox, &servers[0].sql, router, args.threads)?;
            gateway.target.backend_pids.push(mariadb.pid());
            servers.push(SqlServer { target: gateway.target.clone(), sql });
            gateways.push(gateway);
        }
    }
    let haproxy = args.haproxy.as_ref().map(|program| start_haproxy(&sandbox, program, &servers[0].sql, args.threads));
    // Held until the end, likewise.
    let _haproxy = match haproxy.transpose()? {
        Some((process, server)) => {
            servers.push(server);
            Some(process)
        }
        None => None,
    };
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

/// Starts Selkie with a service of one MariaDB server. Returns how to reach its SQL listener.
fn start_router(
    sandbox: &Sandbox,
    mariadb: &SqlTarget,
    router: &str,
    threads: usize,
) -> Result<(StartedServer, SqlTarget)> {
    let (server, listen) = (mariadb.address(), format!("127.0.0.1:{}", free_port()?));
    let text = format!(
        "[server.db1]\naddress = \"{server}\"\n\
         [monitor.main]\nkind = \"replication\"\nservers = [\"db1\"]\nuser = \"root\"\n\
         [service.app]\nmonitor = \"main\"\nrouter = \"{router}\"\n\
         [listener.sql]\nprotocol = \"mariadb\"\naddress = \"{listen}\"\nservice = \"app\"\n"
    );
    let file = sandbox.folder().join(format!("{router}.toml"));
    std::fs::write(&file, text)?;
    let file = file.to_str().context("the path of a temporary folder is not UTF-8")?;
    let threads = threads.to_string();
    let options = ["--config", file, "--threads", &threads];
    let gateway = sandbox.start(&format!("router {router}"), None, &options)?;
    let sql = SqlTarget::parse(&format!("mysql://root@{listen}"))?;
    // The first poll of the monitor.
    let deadline = Instant::now() + ROUTER_TIMEOUT;
    while SqlConnection::open(&sql).is_err() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((gateway, sql))
}

/// How long a router may take until it knows its server.
const ROUTER_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts HAProxy, which forwards the bytes of TCP connections.
fn start_haproxy(
    sandbox: &Sandbox,
    program: &Path,
    mariadb: &SqlTarget,
    threads: usize,
) -> Result<(ServerProcess, SqlServer)> {
    let (server, listen) = (mariadb.address(), format!("127.0.0.1:{}", free_port()?));
    let text = format!(
        "global\n  maxconn 4000\n  nbthread {threads}\n\
         defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n\
         listen sql\n  bind {listen}\n  server db1 {server}\n"
    );
    let file = sandbox.folder().join("haproxy.cfg");
    std::fs::write(&file, text)?;
    let process =
        ServerProcess::spawn("haproxy", program, &["-db".as_ref(), "-f".as_ref(), file.as_os_str()], sandbox.folder())?;
    let process = process.wait_until(|| TcpStream::connect(&listen).is_ok())?;
    let sql = SqlTarget::parse(&format!("mysql://root@{listen}"))?;
    let target = Target {
        name: "through HAProxy".into(),
        address: Address::Tcp(listen),
        server_pid: Some(process.pid()),
        backend_pids: sandbox.mariadb.iter().map(Mariadb::pid).collect(),
    };
    Ok((process, SqlServer { target, sql }))
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
