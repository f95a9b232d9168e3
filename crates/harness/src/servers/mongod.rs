//! Starts MongoDB, with default settings.

use super::names::MONGODB;
use super::server_process::{START_TIMEOUT, ServerProcess};
use super::started_server::{Sockets, StartedServer};
use crate::address::Address;
use crate::connection::Connection;
use crate::servers::port::free_port;
use anyhow::{Result, bail};
use document::{Value, array, doc};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Starts a standalone mongod.
pub fn mongod(program: &Path, folder: &Path, sockets: Sockets) -> Result<StartedServer> {
    mongod_with(program, folder, sockets, &[])
}

/// Starts mongod as a replica set of one member, because transactions need a replica set.
pub fn mongod_replica_set(program: &Path, folder: &Path) -> Result<StartedServer> {
    let server = mongod_with(program, folder, Sockets::Tcp, &["--replSet", "alone"])?;
    let mut connection = Connection::open_with_handshake(&server.target.address)?;
    let member = doc! { "_id": 0i32, "host": server.target.address.to_string().as_str() };
    let config = doc! { "_id": "alone", "members": &array![&member] };
    connection.run_on("admin", doc! { "replSetInitiate": &config })?;
    let deadline = Instant::now() + START_TIMEOUT;
    while connection.run_on("admin", doc! { "hello": 1i32 })?.get("isWritablePrimary") != Some(Value::Boolean(true)) {
        if Instant::now() > deadline {
            bail!("the replica set of one mongod has no primary after {START_TIMEOUT:?}");
        }
        sleep(Duration::from_millis(50));
    }
    Ok(server)
}

/// Starts a mongod with options.
pub fn mongod_with(program: &Path, folder: &Path, sockets: Sockets, options: &[&str]) -> Result<StartedServer> {
    let data = folder.join("mongod");
    fs::create_dir(&data)?;
    let port = free_port()?;
    let port_option = port.to_string();
    let arguments = ["--bind_ip", "127.0.0.1", "--port", &port_option, "--unixSocketPrefix"].map(OsStr::new);
    let folders = [folder.as_os_str(), OsStr::new("--dbpath"), data.as_os_str()];
    let options: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
    let process = ServerProcess::spawn("mongod", program, &[&arguments[..], &folders, &options].concat(), folder)?;
    let address = match sockets {
        Sockets::Tcp => Address::Tcp(format!("127.0.0.1:{port}")),
        Sockets::Unix => Address::Unix(folder.join(format!("mongodb-{port}.sock"))),
    };
    StartedServer::when_ready(MONGODB, process, address)
}
