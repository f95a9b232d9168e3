//! A started server that speaks the MongoDB protocol.

use super::certificates::Certificates;
use super::port::free_port;
use super::server_process::ServerProcess;
use crate::address::Address;
use crate::connection::Connection;
use crate::target::Target;
use anyhow::Result;
use std::path::Path;

/// The kind of sockets that a server listens on.
#[derive(Clone, Copy, Debug)]
pub enum Sockets {
    Tcp,
    Unix,
}

impl Sockets {
    /// Returns an address to listen on: a free port, or `name`.sock in `folder`.
    pub fn address(self, folder: &Path, name: &str) -> Result<Address> {
        Ok(match self {
            Sockets::Tcp => Address::Tcp(format!("127.0.0.1:{}", free_port()?)),
            Sockets::Unix => Address::Unix(folder.join(format!("{name}.sock"))),
        })
    }
}

/// A running server, and the target that reaches it. Dropping it stops the server.
pub struct StartedServer {
    pub target: Target,
    _process: ServerProcess,
}

impl StartedServer {
    /// Returns the target that reaches the server by TLS, as on the same port.
    pub fn tls_target(&self, certificates: &Certificates) -> Target {
        let (host, ca) = (self.target.address.to_string(), certificates.ca.clone());
        let name = format!("{}, TLS", self.target.name);
        Target { name, address: Address::Tls { host, ca }, ..self.target.clone() }
    }

    /// Waits until the server answers at `address`.
    pub fn when_ready(name: &str, process: ServerProcess, address: Address) -> Result<StartedServer> {
        let answers = || Connection::open_with_handshake(&address).is_ok();
        let process = process.wait_until(answers)?;
        let target =
            Target { name: name.to_owned(), address, server_pid: Some(process.pid()), backend_pids: Vec::new() };
        Ok(StartedServer { target, _process: process })
    }
}
