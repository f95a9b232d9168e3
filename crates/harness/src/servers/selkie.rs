//! Starts Selkie.

use super::mariadb::Mariadb;
use super::server_process::ServerProcess;
use super::started_server::{Sockets, StartedServer};
use anyhow::Result;
use std::ffi::OsStr;
use std::path::Path;

/// Starts `selkie serve` on `mariadb`, or else on its embedded store, with `options`.
pub fn selkie(
    name: &str,
    program: &Path,
    folder: &Path,
    mariadb: Option<&Mariadb>,
    sockets: Sockets,
    options: &[&str],
) -> Result<StartedServer> {
    let data = folder.join(format!("data of {name}"));
    // Selkie forwards SQL clients over TCP only.
    let url = mariadb.map(|mariadb| match options.contains(&"--sql-listen") {
        true => mariadb.tcp_url(),
        false => mariadb.url(),
    });
    let store = match &url {
        Some(url) => [OsStr::new("--mariadb"), OsStr::new(url)],
        None => [OsStr::new("--data"), data.as_os_str()],
    };
    // A private MariaDB has no other writers.
    let sole_writer = mariadb.is_some() && options.contains(&"--cache") && !options.contains(&"--external-writes");
    let sole_writer: &[&str] = if sole_writer { &["--external-writes", "none"] } else { &[] };
    let options: Vec<&OsStr> = options.iter().chain(sole_writer).map(OsStr::new).collect();
    let mut server = serve(name, program, folder, sockets, &[&store[..], &options].concat())?;
    server.target.backend_pids.extend(mariadb.map(Mariadb::pid));
    Ok(server)
}

/// Starts `selkie serve` on a MariaDB within its process.
pub fn selkie_on_embedded_mariadb(name: &str, program: &Path, folder: &Path) -> Result<StartedServer> {
    let data = folder.join(format!("data of {name}"));
    serve(name, program, folder, Sockets::Tcp, &[OsStr::new("--embedded-mariadb"), data.as_os_str()])
}

fn serve(name: &str, program: &Path, folder: &Path, sockets: Sockets, options: &[&OsStr]) -> Result<StartedServer> {
    let address = sockets.address(folder, name)?;
    let listen = address.to_string();
    let arguments = [&["serve", "--listen", &listen].map(OsStr::new)[..], options].concat();
    let process = ServerProcess::spawn(name, program, &arguments, folder)?;
    StartedServer::when_ready(name, process, address)
}
