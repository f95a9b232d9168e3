//! Starts MariaDB.

use super::port::free_port;
use super::server_process::ServerProcess;
use crate::process::Pid;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A private MariaDB server, which listens on a Unix socket and on a port of this machine.
pub struct Mariadb {
    process: ServerProcess,
    socket: PathBuf,
    port: u16,
}

impl Mariadb {
    /// Creates a data directory with `mariadb-install-db` and starts `program` on it, with default
    /// settings except for the size of packets and `options`.
    pub fn start(program: &Path, folder: &Path, options: &[&str]) -> Result<Mariadb> {
        let data = folder.join("mariadb");
        let datadir = format!("--datadir={}", data.display());
        // mariadbd runs as root only with this option.
        let user = format!("--user={}", std::env::var("USER").unwrap_or_else(|_| "root".to_owned()));
        install(folder, &datadir, &user)?;
        let socket = folder.join("mariadb.sock");
        let socket_option = format!("--socket={}", socket.display());
        // As large as Selkie asks for, because of documents of 16 MiB.
        let packet = "--max-allowed-packet=128M";
        // Servers that share a directory for temporary tables remove each other's when they start.
        let tmpdir = format!("--tmpdir={}", folder.display());
        let port = free_port()?;
        let port_option = format!("--port={port}");
        let arguments = [
            "--no-defaults",
            packet,
            &user,
            &datadir,
            &tmpdir,
            &socket_option,
            "--bind-address=127.0.0.1",
            &port_option,
        ];
        let arguments: Vec<&OsStr> = arguments.iter().chain(options).map(OsStr::new).collect();
        let process = ServerProcess::spawn("mariadbd", program, &arguments, folder)?;
        let process = process.wait_until(|| UnixStream::connect(&socket).is_ok())?;
        Ok(Mariadb { process, socket, port })
    }

    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Returns the URL that `selkie serve --mariadb` takes, over TCP.
    pub fn tcp_url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}", self.port)
    }

    /// Returns the URL that `selkie serve --mariadb` takes, over the Unix socket.
    pub fn url(&self) -> String {
        let socket = self.socket.to_string_lossy().replace('/', "%2F");
        format!("mysql://root@localhost/?socket={socket}")
    }
}

fn install(folder: &Path, datadir: &str, user: &str) -> Result<()> {
    let log_path = folder.join("mariadb-install-db.log");
    let log = File::create(&log_path)?;
    let status = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--auth-root-authentication-method=normal", datadir, user])
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()
        .context("running mariadb-install-db (Debian package mariadb-server)")?;
    if !status.success() {
        bail!("mariadb-install-db failed:\n{}", fs::read_to_string(log_path)?);
    }
    Ok(())
}
