//! The addresses of listeners.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// An address as written in the configuration: `127.0.0.1:27017`, `[::1]:27017`, `localhost:27017`,
/// `/run/selkie.sock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

const DEFAULT_PORT: u16 = 27017;

impl ListenAddress {
    /// Returns whether only this machine can reach the address.
    pub fn is_local(&self) -> bool {
        match self {
            ListenAddress::Tcp(address) => address.ip().is_loopback(),
            ListenAddress::Unix(_) => true,
        }
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(ListenAddress::Unix(PathBuf::from(text)));
        }
        if let Ok(address) = text.parse() {
            return Ok(ListenAddress::Tcp(address));
        }
        if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse() {
            return Ok(ListenAddress::Tcp(SocketAddr::new(ip, DEFAULT_PORT)));
        }
        let with_port = if text.contains(':') { text.to_owned() } else { format!("{text}:{DEFAULT_PORT}") };
        let mut found = with_port.to_socket_addrs().map_err(|_| expected(text))?;
        found.next().map(ListenAddress::Tcp).ok_or_else(|| expected(text))
    }
}

fn expected(text: &str) -> String {
    format!(
        "{text:?} is not an address; write host:port such as 127.0.0.1:27017, or a socket's path such as /run/selkie.sock"
    )
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => address.fmt(f),
            ListenAddress::Unix(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, shown: &str, local: bool) {
        let address: ListenAddress = text.parse().unwrap();
        assert_eq!((address.to_string().as_str(), address.is_local()), (shown, local));
    }

    #[test]
    fn addresses() {
        check("127.0.0.1:1", "127.0.0.1:1", true);
        check("127.0.0.1", "127.0.0.1:27017", true);
        check("0.0.0.0:27018", "0.0.0.0:27018", false);
        check("[::1]:5", "[::1]:5", true);
        check("::", "[::]:27017", false);
        check("/tmp/selkie.sock", "/tmp/selkie.sock", true);
        for wrong in ["", "27017:27017:1", "host:port", "127.0.0.1:70000", "selkie.sock"] {
            assert!(wrong.parse::<ListenAddress>().is_err_and(|message| message.contains("host:port")), "{wrong}");
        }
    }
}
