//! Servers that an experiment starts, each with an empty data directory, and stops when they are
//! dropped.

mod args;
mod certificates;
mod mariadb;
mod mongod;
mod names;
mod port;
mod selkie;
mod server_process;
mod started_server;

pub use args::{GatewayArgs, ServerArgs};
pub use certificates::Certificates;
pub use mariadb::Mariadb;
use mongod::mongod_with;
pub use mongod::{mongod, mongod_replica_set};
pub use names::{EMBEDDED, MARIADB, MONGODB};
pub use port::free_port;
pub use server_process::ServerProcess;
pub use started_server::{Sockets, StartedServer};

use anyhow::Result;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A temporary folder for the data of started servers, and the MariaDB that some of them need.
/// Removes the data when it is dropped, so it must outlive the servers.
pub struct Sandbox {
    selkie: PathBuf,
    pub mariadb: Option<Mariadb>,
    folder: TempDir,
}

impl Sandbox {
    /// Starts MariaDB if `args` names its program.
    pub fn prepare(args: &GatewayArgs) -> Result<Sandbox> {
        Sandbox::prepare_with(args, &[])
    }

    /// As [`Sandbox::prepare`]. MariaDB has a binary log, as change streams need it.
    pub fn prepare_with_log(args: &GatewayArgs) -> Result<Sandbox> {
        Sandbox::prepare_with(args, &["--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=1"])
    }

    fn prepare_with(args: &GatewayArgs, options: &[&str]) -> Result<Sandbox> {
        let folder = tempfile::Builder::new().prefix("selkie-bench-").tempdir()?;
        let start = |program: &PathBuf| Mariadb::start(program, folder.path(), options);
        let mariadb = args.mariadbd.as_ref().map(start).transpose()?;
        Ok(Sandbox { selkie: args.selkie_program()?, mariadb, folder })
    }

    /// Returns the stores to measure, each with its name: the embedded one, and MariaDB if it runs.
    pub fn stores(&self) -> Vec<(&'static str, Option<&Mariadb>)> {
        let mariadb = self.mariadb.as_ref().map(|mariadb| ("MariaDB", Some(mariadb)));
        [("embedded", None)].into_iter().chain(mariadb).collect()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts `selkie serve` with `options`, on `mariadb` or else on its embedded store.
    pub fn start(&self, name: &str, mariadb: Option<&Mariadb>, options: &[&str]) -> Result<StartedServer> {
        self.start_on(name, mariadb, Sockets::Tcp, options)
    }

    /// Like [`Sandbox::start`], listening on `sockets`.
    pub fn start_on(
        &self,
        name: &str,
        mariadb: Option<&Mariadb>,
        sockets: Sockets,
        options: &[&str],
    ) -> Result<StartedServer> {
        selkie::selkie(name, &self.selkie, self.folder(), mariadb, sockets, options)
    }

    /// Starts `selkie serve` on a MariaDB within its process; fails unless that was built in.
    pub fn start_on_embedded_mariadb(&self, name: &str) -> Result<StartedServer> {
        selkie::selkie_on_embedded_mariadb(name, &self.selkie, self.folder())
    }

    /// Starts MongoDB if `mongod` is given, Selkie on its embedded store, and Selkie on MariaDB if
    /// that runs.
    pub fn start_all(&self, mongod_program: Option<&PathBuf>) -> Result<Vec<StartedServer>> {
        self.start_all_with(mongod_program, &[], &[])
    }

    /// As [`Sandbox::start_all`]. All servers offer TLS on the same ports.
    pub fn start_all_with_tls(
        &self,
        mongod_program: Option<&PathBuf>,
        certificates: &Certificates,
    ) -> Result<Vec<StartedServer>> {
        self.start_all_with(mongod_program, &certificates.mongod_options(), &certificates.selkie_options())
    }

    /// As [`Sandbox::start_all`]. All servers require logins.
    pub fn start_all_with_logins(&self, mongod_program: Option<&PathBuf>) -> Result<Vec<StartedServer>> {
        self.start_all_with(mongod_program, &["--auth"], &["--auth"])
    }

    fn start_all_with(
        &self,
        mongod_program: Option<&PathBuf>,
        mongod_options: &[&str],
        options: &[&str],
    ) -> Result<Vec<StartedServer>> {
        let mut servers = Vec::new();
        if let Some(program) = mongod_program {
            servers.push(mongod_with(program, self.folder(), Sockets::Tcp, mongod_options)?);
        }
        servers.push(self.start(EMBEDDED, None, options)?);
        if let Some(mariadb) = &self.mariadb {
            servers.push(self.start(MARIADB, Some(mariadb), options)?);
        }
        Ok(servers)
    }
}
