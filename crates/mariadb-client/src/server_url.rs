//! The location of MariaDB: a `mysql://` URL, or this process.

use crate::tls_settings::TlsSettings;
use error::{Error, Result};
use std::fmt;
use std::path::PathBuf;
#[cfg(feature = "embedded")]
use std::sync::Arc;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp { host: String, port: u16 },
    Socket(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The location of MariaDB.
#[derive(Clone)]
pub enum ServerLocation {
    Server(ServerUrl),
    /// In this process.
    #[cfg(feature = "embedded")]
    Embedded(Arc<mariadb_embedded::Database>),
}

impl ServerLocation {
    /// Whether MariaDB runs in this process.
    pub fn is_embedded(&self) -> bool {
        !matches!(self, ServerLocation::Server(_))
    }
}

/// A server's address, and the account to log in with.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    pub address: Address,
    pub user: String,
    pub password: String,
    pub tls: TlsSettings,
}

/// Leaves the password out.
impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mysql://{}@{}", self.user, self.address)
    }
}

impl ServerUrl {
    /// Parses `mysql://user:password@host:3306`, `mysql://user:password@localhost/?socket=/path` or
    /// `mysql://user@%2Frun%2Fmysqld%2Fmysqld.sock`, with `?tls=verify-identity&tls-ca=/path` and
    /// the like. Fails with 9; messages never show the password.
    pub fn parse(url: &str) -> Result<ServerUrl> {
        let rest = ["mysql://", "mariadb://"].iter().find_map(|scheme| url.strip_prefix(scheme)).ok_or_else(|| {
            Error::failed_to_parse("the URL of MariaDB begins with mysql://, as in mysql://user:password@host:3306")
        })?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !path.is_empty() {
            return Err(Error::failed_to_parse(format!(
                "the URL of MariaDB names a database, '{path}': leave it out, every MongoDB database has a schema of its own"
            )));
        }
        let (credentials, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        let (user, password) = (percent_decode(user)?, percent_decode(password)?);
        let user = if user.is_empty() { "root".to_owned() } else { user };
        let (socket, tls) = parameters(query)?;
        let address = match socket {
            Some(path) => Address::Socket(path.into()),
            None => parse_host(host)?,
        };
        Ok(ServerUrl { address, user, password, tls })
    }
}

/// Parses the parameters after the `?`: the path of a socket, and the settings of TLS.
fn parameters(query: &str) -> Result<(Option<String>, TlsSettings)> {
    let (mut socket, mut tls, mut has_mode) = (None, TlsSettings::default(), false);
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = percent_decode(value)?;
        if name == "socket" {
            socket = Some(value);
        } else if tls.set(name, value)? {
            has_mode |= matches!(name, "tls" | "ssl-mode" | "sslMode");
        } else {
            return Err(Error::failed_to_parse(format!(
                "unknown parameter '{name}' in the URL of MariaDB; known: socket, tls, tls-ca, tls-crl, \
                 tls-certificate, tls-key"
            )));
        }
    }
    tls.resolve(has_mode)?;
    Ok((socket, tls))
}

fn parse_host(host: &str) -> Result<Address> {
    let decoded = percent_decode(host)?;
    if decoded.starts_with('/') {
        return Ok(Address::Socket(decoded.into()));
    }
    let (host, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port.strip_prefix(':')),
        None => host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        None => 3306,
        Some(port) => port
            .parse()
            .map_err(|_| Error::failed_to_parse(format!("'{port}' in the URL of MariaDB is not a port number")))?,
    };
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Ok(Address::Tcp { host: host.to_owned(), port })
}

fn percent_decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.ok_or_else(|| {
            Error::failed_to_parse("a '%' in the URL of MariaDB is not followed by two hexadecimal digits")
        })?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| Error::failed_to_parse("the URL of MariaDB is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls_settings::TlsMode;

    fn check(url: &str, user: &str, password: &str, address: &str) {
        let target = ServerUrl::parse(url).unwrap();
        assert_eq!((target.user.as_str(), target.password.as_str()), (user, password));
        assert_eq!(target.address.to_string(), address);
        assert!(password.is_empty() || !format!("{target:?}").contains(password));
    }

    #[test]
    fn urls_are_taken_apart() {
        check("mysql://joe:s%40f%2Fe@db.example:3307", "joe", "s@f/e", "db.example:3307");
        check("mysql://joe:a:b@db", "joe", "a:b", "db:3306");
        check("mariadb://[::1]:99/", "root", "", "[::1]:99");
        check("mysql://u:p@localhost/?socket=/run/m.sock", "u", "p", "/run/m.sock");
        check("mysql://u:p@%2Frun%2Fm.sock", "u", "p", "/run/m.sock");
    }

    #[test]
    fn tls_is_set_by_parameters() {
        let tls =
            ServerUrl::parse("mysql://u@h/?ssl-mode=VERIFY_CA&ssl-ca=%2Fca.pem&tls-certificate=me.pem").unwrap().tls;
        assert_eq!(tls.mode, TlsMode::VerifyCa);
        assert!(tls.config().unwrap_err().message().contains("/ca.pem"));
        assert_eq!(ServerUrl::parse("mysql://u@h").unwrap().tls.mode, TlsMode::Disabled);
    }

    #[test]
    fn wrong_urls_say_what_is_wrong() {
        for (url, part) in [
            ("http://x", "mysql://"),
            ("mysql://x:y@z:port", "'port'"),
            ("mysql://z/db", "'db'"),
            ("mysql://z/?ssl=true", "known: socket, tls"),
            ("mysql://z/?tls=true", "verify-identity"),
            ("mysql://z/?tls=verify-ca", "tls-ca"),
            ("mysql://z/?sokcet=1", "sokcet"),
            ("mysql://a%zz@z", "hexadecimal"),
        ] {
            let message = ServerUrl::parse(url).unwrap_err().message().to_owned();
            assert!(message.contains(part), "{url}: {message}");
        }
    }
}
