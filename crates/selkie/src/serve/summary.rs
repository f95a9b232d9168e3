//! The summary on standard output: addresses, store, and a command to try.

use crate::config::{Config, Protocol, Store};
use selkie_runtime::ListenAddress;
use server::tls::TlsMode;
use std::fmt;
use std::io::Write;

/// Prints the summary. Ignores a closed standard output, which is no reason to stop.
pub fn print(config: &Config, engine: &str) {
    let mut out = std::io::stdout().lock();
    let engine = if config.stores_documents() { format!(" on {engine}") } else { String::new() };
    let _ = write!(out, "Selkie {}{engine}\n{}{}", env!("CARGO_PKG_VERSION"), Summary(config), TryIt(config));
    let _ = out.flush();
}

/// The listeners and the store, a line each.
pub struct Summary<'c>(pub &'c Config);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for address in self.0.addresses(Protocol::MongoDb) {
            writeln!(f, "  listening on  {address}")?;
        }
        if let Some(tls) = &self.0.tls {
            writeln!(f, "  TLS           {}, {} or later", tls.mode.name(), tls.files.min_version.name())?;
        }
        for listener in self.0.listeners.iter().filter(|listener| listener.protocol == Protocol::MariaDb) {
            let service = listener.service.as_ref().filter(|_| listener.name.is_some());
            let service = service.map_or_else(String::new, |service| format!(", service {service}"));
            writeln!(f, "  SQL clients   {}{service}", listener.address)?;
        }
        if !self.0.stores_documents() {
            return Ok(());
        }
        match &self.0.store {
            Store::Embedded(path) | Store::EmbeddedMariaDb(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                writeln!(f, "  data in       {}", path.display())
            }
            Store::Service(service) => writeln!(f, "  data in       MariaDB, service {}", service.name),
            Store::MariaDb(url) => {
                writeln!(f, "  data in       MariaDB at {}", url.rsplit('@').next().unwrap_or_default())
            }
        }
    }
}

/// A command that inserts a first document.
struct TryIt<'c>(&'c Config);

impl fmt::Display for TryIt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uri = match self.0.addresses(Protocol::MongoDb).next() {
            Some(ListenAddress::Tcp(address)) if address.ip().is_unspecified() => {
                format!("mongodb://127.0.0.1:{}", address.port())
            }
            Some(ListenAddress::Tcp(address)) => format!("mongodb://{address}"),
            Some(ListenAddress::Unix(path)) => {
                format!("mongodb://{}", path.to_string_lossy().replace('%', "%25").replace('/', "%2F"))
            }
            None => return Ok(()),
        };
        let tls = if self.0.tls.as_ref().is_some_and(|tls| tls.mode == TlsMode::Require) { "--tls " } else { "" };
        writeln!(f, "  try           mongosh {tls}{uri} --eval 'db.cars.insertOne({{Make: \"Toyota\"}})'")
    }
}
