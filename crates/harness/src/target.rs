//! A server to measure: its name in the report, its address, and its processes.

use crate::address::Address;
use crate::process::{Pid, listening_pid};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// The options that name running servers.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct TargetArgs {
    /// A server: `mongodb://host:port`, `mongodb://%2Fpath%2Fto.sock` or `name=mongodb://…`; the
    /// others are compared with the first. `?tls=true&tlsCAFile=FILE` connects by TLS
    #[arg(long = "uri", value_name = "[NAME=]URI")]
    pub uris: Vec<String>,

    /// Another process of the server with this name, such as the mariadbd behind a gateway
    #[arg(long = "pid", value_name = "NAME=PID")]
    pub pids: Vec<String>,

    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct Target {
    pub name: String,
    pub address: Address,
    /// The process that listens; `None` if it runs elsewhere or may not be inspected.
    pub server_pid: Option<Pid>,
    /// Processes of the servers behind it.
    pub backend_pids: Vec<Pid>,
}

impl TargetArgs {
    pub fn targets(&self) -> Result<Vec<Target>> {
        if self.uris.is_empty() {
            bail!("name a server, for example by --uri mongodb://127.0.0.1:27017");
        }
        let mut targets = self.uris.iter().map(|uri| Target::parse(uri)).collect::<Result<Vec<_>>>()?;
        for entry in &self.pids {
            let (name, pid) = entry.split_once('=').context("--pid takes NAME=PID")?;
            let pid = pid.parse().with_context(|| format!("--pid {entry}: not a process id"))?;
            match targets.iter_mut().find(|target| target.name == name) {
                Some(target) => target.backend_pids.push(pid),
                None => bail!("--pid {entry}: no --uri has the name {name:?}"),
            }
        }
        Ok(targets)
    }
}

impl Target {
    pub fn parse(text: &str) -> Result<Target> {
        let (name, uri) = match text.split_once('=') {
            Some((name, uri)) if !name.contains("://") => (Some(name), uri),
            _ => (None, text),
        };
        let address = parse_uri(uri).with_context(|| format!("--uri {text}"))?;
        let server_pid = listening_pid(&address);
        let name = name.map_or_else(|| address.to_string(), str::to_owned);
        Ok(Target { name, address, server_pid, backend_pids: Vec::new() })
    }
}

/// Parses the address in a `mongodb://` URI. Refuses options instead of ignoring them, except for
/// those of TLS.
fn parse_uri(uri: &str) -> Result<Address> {
    let rest = uri.strip_prefix("mongodb://").context("a URI begins with mongodb://")?;
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let ca = tls_ca(options)?;
    let host = rest.strip_suffix('/').unwrap_or(rest);
    if host.contains(['/', '?', '@', ',']) {
        bail!("only one host and port, without login or database");
    }
    let host = percent_decode(host);
    if host.starts_with('/') {
        return match ca {
            None => Ok(Address::Unix(host.into())),
            Some(_) => bail!("TLS is measured over TCP only"),
        };
    }
    if host.is_empty() {
        bail!("no host");
    }
    let host = if has_port(&host) { host } else { format!("{host}:27017") };
    Ok(match ca {
        None => Address::Tcp(host),
        Some(ca) => Address::Tls { host, ca },
    })
}

/// Returns the file of authorities that the options of a URI name; `None` without TLS.
fn tls_ca(options: &str) -> Result<Option<PathBuf>> {
    let (mut is_on, mut ca) = (false, None);
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("tls", "true")) => is_on = true,
            Some(("tlsCAFile", path)) => ca = Some(PathBuf::from(percent_decode(path))),
            _ => bail!("unknown option {option}; there are tls=true and tlsCAFile"),
        }
    }
    match (is_on, ca) {
        (false, None) => Ok(None),
        (true, Some(ca)) => Ok(Some(ca)),
        _ => bail!("tls=true needs tlsCAFile, and tlsCAFile needs tls=true"),
    }
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

pub fn percent_decode(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escape = tail.get(..2).filter(|_| *first == b'%');
        let decoded =
            escape.and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|s| u8::from_str_radix(s, 16).ok());
        match decoded {
            Some(byte) => {
                out.push(byte);
                rest = &tail[2..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        for (uri, expected) in [
            ("mongodb://localhost", "localhost:27017"),
            ("mongodb://127.0.0.1:1234/", "127.0.0.1:1234"),
            ("mongodb://[::1]:1234", "[::1]:1234"),
            ("mongodb://%2Ftmp%2Fa.sock", "/tmp/a.sock"),
        ] {
            assert_eq!(parse_uri(uri).unwrap().to_string(), expected, "{uri}");
        }
        let tls = parse_uri("mongodb://localhost:1/?tls=true&tlsCAFile=%2Fa%20b.pem").unwrap();
        assert_eq!(tls, Address::Tls { host: "localhost:1".into(), ca: "/a b.pem".into() });
        for wrong in ["mongodb://a/?tlsCAFile=b", "mongodb://%2Fa.sock/?tls=true&tlsCAFile=b", "mongodb://a/?x=1"] {
            assert!(parse_uri(wrong).is_err(), "{wrong}");
        }
        for wrong in ["localhost", "mongodb://", "mongodb://a:b@c", "mongodb://a,b", "mongodb://a/?tls=true"] {
            assert!(parse_uri(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names() {
        assert_eq!(Target::parse("mongod=mongodb://127.0.0.1:1").unwrap().name, "mongod");
        assert_eq!(Target::parse("mongodb://127.0.0.1:1").unwrap().name, "127.0.0.1:1");
    }
}
