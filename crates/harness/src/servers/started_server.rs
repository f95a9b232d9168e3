//! A started server that speaks the MongoDB protocol.

use super::certificates::Certificates;
use super::port::free_port;
use super::server_process::ServerProcess;
use crate::address::{Address, Login};
use crate::connection::Connection;
use crate::target::Target;
use anyhow::Result;
use document::{array, doc};
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

    /// Creates the first user of a server that requires logins, and returns the target whose
    /// connections log in as this user.
    pub fn login_target(&self) -> Result<Target> {
        let (host, name) = (self.target.address.to_string(), format!("{}, login", self.target.name));
        let login = Login { user: "bench".into(), password: "bench".into() };
        let create = doc! {
            "createUser": login.user.as_str(), "pwd": login.password.as_str(), "roles": &array!["root"]
        };
        Connection::open_with_handshake(&self.target.address)?.run_on("admin", create)?;
        Ok(Target { name, address: Address::Login { host, login }, ..self.target.clone() })
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
