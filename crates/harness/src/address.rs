//! The address of a server.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Address {
    /// `host:port`
    Tcp(String),
    Unix(PathBuf),
    /// `host:port`, by TLS.
    Tls {
        host: String,
        /// The file of the authority that has signed the server's certificate.
        ca: PathBuf,
    },
    /// `host:port`, whose connections log in.
    Login {
        host: String,
        login: Login,
    },
}

/// A user of the database `admin`. Its name has no `,` and no `=`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    pub user: String,
    pub password: String,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(host) | Address::Tls { host, .. } | Address::Login { host, .. } => f.write_str(host),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}
