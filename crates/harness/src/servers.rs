//! Starts the servers that are compared, each with an empty data directory of its own, and ends them when it is dropped.

use crate::client::{Address, Connection};
use crate::process::Pid;
use crate::target::Target;
use anyhow::{Context, Result, bail};
use document::{Value, array, doc};
use rustix::process::{Pid as SignalPid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::TcpListener;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// What the servers are called where they are compared.
pub const MONGODB: &str = "MongoDB";
pub const EMBEDDED: &str = "Selkie, embedded";
pub const MARIADB: &str = "Selkie, MariaDB";

/// A process of ours; dropping it ends it with SIGTERM, and with SIGKILL where that does not help.
pub struct Server {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Server {
    /// `folder` takes the log; the process gets no standard input.
    fn spawn(name: &str, program: &Path, arguments: &[&OsStr], folder: &Path) -> Result<Server> {
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log)?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(Server { name: name.to_owned(), child, log })
    }

    pub fn pid(&self) -> Pid {
        self.child.id() as Pid
    }

    /// Waits until `ready` says yes; fails with the end of the log when the process ends before.
    fn wait_until(mut self, ready: impl Fn() -> bool) -> Result<Server> {
        let end = Instant::now() + START_TIMEOUT;
        while !ready() {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}:\n{}", self.name, self.end_of_log());
            }
            if Instant::now() > end {
                bail!("{} did not start in {START_TIMEOUT:?}:\n{}", self.name, self.end_of_log());
            }
            sleep(Duration::from_millis(50));
        }
        Ok(self)
    }

    fn end_of_log(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pid) = SignalPid::from_raw(self.pid()) {
            kill_process(pid, Signal::TERM).ok();
        }
        let end = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A server that speaks the MongoDB protocol, with the target that reaches it.
pub struct Contestant {
    pub target: Target,
    _server: Server,
}

/// The Selkie to start: the one that is named, else this program.
pub fn program(named: Option<&PathBuf>) -> Result<PathBuf> {
    match named {
        Some(program) => Ok(program.clone()),
        None => std::env::current_exe().context("finding this program"),
    }
}

/// The options of experiments that start Selkie themselves.
#[derive(clap::Args, Debug, Clone)]
pub struct StartArgs {
    /// The Selkie to measure; this program if not given
    #[arg(long, value_name = "PROGRAM")]
    pub selkie: Option<PathBuf>,

    /// Measure Selkie on MariaDB as well, on this mariadbd
    #[arg(long, value_name = "PROGRAM")]
    pub mariadbd: Option<PathBuf>,
}

/// What a server's clients come by.
#[derive(Clone, Copy, Debug)]
pub enum Sockets {
    Tcp,
    Unix,
}

/// A folder for servers that are started, with the MariaDB that some of them need. What is in it goes away with it, so it has to outlive them.
pub struct Ground {
    selkie: PathBuf,
    pub mariadb: Option<Mariadb>,
    folder: TempDir,
}

impl Ground {
    pub fn prepare(args: &StartArgs) -> Result<Ground> {
        let folder = tempfile::Builder::new().prefix("selkie-bench-").tempdir()?;
        let mariadb = args.mariadbd.as_ref().map(|program| Mariadb::start(program, folder.path())).transpose()?;
        Ok(Ground { selkie: program(args.selkie.as_ref())?, mariadb, folder })
    }

    /// The stores that are wanted: the embedded one, and MariaDB if there is one.
    pub fn stores(&self) -> Vec<(&'static str, Option<&Mariadb>)> {
        let mariadb = self.mariadb.as_ref().map(|mariadb| ("MariaDB", Some(mariadb)));
        [("embedded", None)].into_iter().chain(mariadb).collect()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn start(&self, name: &str, mariadb: Option<&Mariadb>, options: &[&str]) -> Result<Contestant> {
        selkie(name, &self.selkie, self.folder.path(), mariadb, options)
    }
}

/// Starts MongoDB where a program is given, Selkie on its own store, and Selkie on `mariadb`.
pub fn all(
    mongod_program: Option<&PathBuf>,
    selkie_program: Option<&PathBuf>,
    folder: &Path,
    mariadb: Option<&Mariadb>,
) -> Result<Vec<Contestant>> {
    let program = program(selkie_program)?;
    let mut contestants = Vec::new();
    if let Some(program) = mongod_program {
        contestants.push(mongod(program, folder)?);
    }
    contestants.push(selkie(EMBEDDED, &program, folder, None, &[])?);
    if let Some(mariadb) = mariadb {
        contestants.push(selkie(MARIADB, &program, folder, Some(mariadb), &[])?);
    }
    Ok(contestants)
}

/// Starts mongod, standalone, with default settings.
pub fn mongod(program: &Path, folder: &Path) -> Result<Contestant> {
    mongod_with(program, folder, Sockets::Tcp, &[])
}

/// As [`mongod`], reached by these sockets.
pub fn mongod_by(program: &Path, folder: &Path, sockets: Sockets) -> Result<Contestant> {
    mongod_with(program, folder, sockets, &[])
}

fn mongod_with(program: &Path, folder: &Path, sockets: Sockets, options: &[&str]) -> Result<Contestant> {
    let data = folder.join("mongod");
    fs::create_dir(&data)?;
    let port = free_port()?;
    let port_option = port.to_string();
    let arguments = ["--bind_ip", "127.0.0.1", "--port", &port_option, "--unixSocketPrefix"].map(OsStr::new);
    let folders = [folder.as_os_str(), OsStr::new("--dbpath"), data.as_os_str()];
    let options: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
    let server = Server::spawn("mongod", program, &[&arguments[..], &folders, &options].concat(), folder)?;
    let address = match sockets {
        Sockets::Tcp => Address::Tcp(format!("127.0.0.1:{port}")),
        Sockets::Unix => Address::Unix(folder.join(format!("mongodb-{port}.sock"))),
    };
    contestant(MONGODB, server, address)
}

/// Starts mongod as a replica set of one member, which is what it takes for transactions.
pub fn mongod_replica_set(program: &Path, folder: &Path) -> Result<Contestant> {
    let one = mongod_with(program, folder, Sockets::Tcp, &["--replSet", "alone"])?;
    let mut connection = Connection::open(&one.target.address)?;
    connection.handshake()?;
    let member = doc! { "_id": 0i32, "host": one.target.address.to_string().as_str() };
    let config = doc! { "_id": "alone", "members": &array![&member] };
    connection.run_on("admin", doc! { "replSetInitiate": &config })?;
    let end = Instant::now() + START_TIMEOUT;
    while connection.run_on("admin", doc! { "hello": 1i32 })?.get("isWritablePrimary") != Some(Value::Boolean(true)) {
        if Instant::now() > end {
            bail!("the replica set of one mongod has no primary after {START_TIMEOUT:?}");
        }
        sleep(Duration::from_millis(50));
    }
    Ok(one)
}

/// Starts `selkie serve` on its own store, or on the MariaDB that `mariadb` names, with these options.
pub fn selkie(
    name: &str,
    program: &Path,
    folder: &Path,
    mariadb: Option<&Mariadb>,
    options: &[&str],
) -> Result<Contestant> {
    selkie_by(name, program, folder, mariadb, Sockets::Tcp, options)
}

/// As [`selkie`], reached by these sockets.
pub fn selkie_by(
    name: &str,
    program: &Path,
    folder: &Path,
    mariadb: Option<&Mariadb>,
    sockets: Sockets,
    options: &[&str],
) -> Result<Contestant> {
    let data = folder.join(format!("data of {name}"));
    // SQL clients are passed on over TCP alone.
    let tcp = mariadb.filter(|_| options.contains(&"--sql-listen")).and_then(Mariadb::tcp_url);
    let url = tcp.or_else(|| mariadb.map(Mariadb::url));
    let store = match &url {
        Some(url) => [OsStr::new("--mariadb"), OsStr::new(url)],
        None => [OsStr::new("--data"), data.as_os_str()],
    };
    // A private MariaDB has no other writers.
    let alone = mariadb.is_some() && options.contains(&"--cache") && !options.contains(&"--foreign-writes");
    let alone: &[&str] = if alone { &["--foreign-writes", "none"] } else { &[] };
    let options: Vec<&OsStr> = options.iter().chain(alone).map(OsStr::new).collect();
    let mut contestant = serve(name, program, folder, sockets, &[&store[..], &options].concat())?;
    contestant.target.behind.extend(mariadb.map(|mariadb| mariadb.server.pid()));
    Ok(contestant)
}

/// Starts `selkie serve` on a MariaDB within its process, if it was built in.
#[cfg(feature = "embedded-mariadb")]
pub fn selkie_on_embedded_mariadb(name: &str, program: &Path, folder: &Path) -> Result<Contestant> {
    let data = folder.join(format!("data of {name}"));
    serve(name, program, folder, Sockets::Tcp, &[OsStr::new("--embedded-mariadb"), data.as_os_str()])
}

fn serve(name: &str, program: &Path, folder: &Path, sockets: Sockets, options: &[&OsStr]) -> Result<Contestant> {
    let address = match sockets {
        Sockets::Tcp => Address::Tcp(format!("127.0.0.1:{}", free_port()?)),
        Sockets::Unix => Address::Unix(folder.join(format!("{name}.sock"))),
    };
    let listen = address.to_string();
    let arguments = [&["serve", "--listen", &listen].map(OsStr::new)[..], options].concat();
    contestant(name, Server::spawn(name, program, &arguments, folder)?, address)
}

fn contestant(name: &str, server: Server, address: Address) -> Result<Contestant> {
    let server = server.wait_until(|| Connection::open(&address).and_then(|mut one| one.handshake()).is_ok())?;
    let target = Target { name: name.to_owned(), address, server: Some(server.pid()), behind: Vec::new() };
    Ok(Contestant { target, _server: server })
}

/// A private MariaDB server, reached by its Unix socket, and by TCP where that is wanted.
pub struct Mariadb {
    server: Server,
    socket: PathBuf,
    port: Option<u16>,
}

impl Mariadb {
    /// Makes a data directory with `mariadb-install-db` and starts `program` on it, with default settings
    /// but for the size of packets.
    pub fn start(program: &Path, folder: &Path) -> Result<Mariadb> {
        Self::start_on(program, folder, None)
    }

    /// As [`Mariadb::start`], listening on a port of this machine as well.
    pub fn start_with_port(program: &Path, folder: &Path) -> Result<Mariadb> {
        Self::start_on(program, folder, Some(free_port()?))
    }

    fn start_on(program: &Path, folder: &Path, port: Option<u16>) -> Result<Mariadb> {
        let data = folder.join("mariadb");
        let datadir = format!("--datadir={}", data.display());
        // As root, mariadbd insists on being told so.
        let user = format!("--user={}", std::env::var("USER").unwrap_or_else(|_| "root".to_owned()));
        let log = File::create(folder.join("mariadb-install-db.log"))?;
        let installed = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", &datadir, &user])
            .env("TMPDIR", folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .status()
            .context("running mariadb-install-db (Debian package mariadb-server)")?;
        if !installed.success() {
            bail!("mariadb-install-db failed:\n{}", fs::read_to_string(folder.join("mariadb-install-db.log"))?);
        }
        let socket = folder.join("mariadb.sock");
        let socket_option = format!("--socket={}", socket.display());
        // As large as Selkie asks for, with documents of 16 MiB in mind.
        let packet = "--max-allowed-packet=128M";
        // Servers that share a directory for temporary tables remove one another's when they start.
        let tmpdir = format!("--tmpdir={}", folder.display());
        let mut arguments = vec!["--no-defaults", packet, &user, &datadir, &tmpdir, &socket_option];
        let port_option = port.map(|port| format!("--port={port}"));
        match &port_option {
            Some(port) => arguments.extend(["--bind-address=127.0.0.1", port]),
            None => arguments.push("--skip-networking"),
        }
        let arguments: Vec<&OsStr> = arguments.into_iter().map(OsStr::new).collect();
        let server = Server::spawn("mariadbd", program, &arguments, folder)?;
        let server = server.wait_until(|| UnixStream::connect(&socket).is_ok())?;
        Ok(Mariadb { server, socket, port })
    }

    pub fn pid(&self) -> Pid {
        self.server.pid()
    }

    /// By TCP, if it listens.
    pub fn tcp_url(&self) -> Option<String> {
        self.port.map(|port| format!("mysql://root@127.0.0.1:{port}"))
    }

    /// What `selkie serve --mariadb` takes.
    pub fn url(&self) -> String {
        let socket = self.socket.to_string_lossy().replace('/', "%2F");
        format!("mysql://root@localhost/?socket={socket}")
    }
}

/// A port that nobody listens on. It is below those that systems give to outgoing connections (32768 and up, 49152 and up), of which one could
/// be given this one before the server that it is meant for has it.
pub fn free_port() -> Result<u16> {
    const PORTS: Range<u16> = 20_000..32_000;
    for _ in 0..100 {
        let random = RandomState::new().build_hasher().finish();
        let port = PORTS.start + (random % PORTS.len() as u64) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("all of a hundred ports of {PORTS:?} are in use")
}
