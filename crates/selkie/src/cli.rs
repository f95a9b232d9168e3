//! The command line. Its flags are parsed by the table of parameters, as the file's keys are.

use crate::config::parameter;
use crate::config::value::Raw;
use crate::config::{ConfigError, Origin, Written};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// The version, with the optional features of the build.
const VERSION: &str = if cfg!(feature = "embedded-mariadb") {
    concat!(env!("CARGO_PKG_VERSION"), " (with embedded MariaDB)")
} else {
    env!("CARGO_PKG_VERSION")
};

/// A document database compatible with the MongoDB wire protocol, on an embedded store or on
/// MariaDB.
#[derive(Debug, Parser)]
#[command(name = "selkie", version = VERSION, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve MongoDB clients
    Serve(ServeArgs),
    /// Check a configuration without starting anything
    Check(ServeArgs),
    /// Read a whole data directory that no server uses, and report damage
    Verify(VerifyArgs),
    /// Work with audit logs
    #[command(subcommand)]
    Audit(AuditCommand),
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Find the first line of an audit log that was changed, removed, inserted or moved
    Verify(AuditVerifyArgs),
}

#[derive(Args, Debug)]
pub struct AuditVerifyArgs {
    /// The files of one log, in any order
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The file with the key of the hashes
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// The number of the first entry, if earlier files were deleted
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub from: u64,
    /// A hash that an earlier run of this command has printed: the log must still contain its entry
    #[arg(long, value_name = "HASH")]
    pub contains: Option<String>,
}

#[derive(Args, Clone, Debug, Default)]
pub struct ServeArgs {
    /// The configuration file; flags take precedence over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// An address for MongoDB clients: host:port, or the path of a Unix socket; may be repeated
    /// [default: 127.0.0.1:27017]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// The embedded store's directory [default: ./selkie-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    /// Start although a damaged write-ahead log has lost acknowledged writes; the log is copied
    /// first
    #[arg(long)]
    pub accept_lost_writes: bool,
    /// Store documents in this MariaDB server: mysql://user:password@host:3306
    #[arg(long, value_name = "URL")]
    pub mariadb: Option<String>,
    /// The name of this gateway on the MariaDB server [default: the host's name and the addresses
    /// of --listen]
    #[arg(long, value_name = "NAME")]
    pub gateway_name: Option<String>,
    /// Store documents in a MariaDB within this process, with its data in this directory (if built
    /// in)
    #[arg(long, value_name = "DIR")]
    pub embedded_mariadb: Option<String>,
    /// An address for SQL clients, which are forwarded to MariaDB: host:port, or the path of a Unix
    /// socket; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub sql_listen: Vec<String>,
    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<i64>,
    /// Require MongoDB clients to log in
    #[arg(long)]
    pub auth: bool,
    /// Allow addresses of --listen that other machines can reach, although clients need no login
    #[arg(long)]
    pub insecure_without_auth: bool,
    /// Allow addresses of --sql-listen that other machines can reach
    #[arg(long)]
    pub allow_remote: bool,
    /// How the server presents itself: router, standalone or replica-set [default: router]
    #[arg(long, value_name = "KIND")]
    pub topology: Option<String>,
    /// The replica set's name, with --topology replica-set [default: selkie]
    #[arg(long, value_name = "NAME")]
    pub replica_set: Option<String>,
    /// The address that drivers connect to, with --topology replica-set
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// Know commands that make other commands fail, for tests of drivers
    #[arg(long)]
    pub test_commands: bool,
    /// The log level on standard error: error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
    /// Log operations that take longer than this many milliseconds, and profile them at level 1
    /// [default: 100]
    #[arg(long, value_name = "MS")]
    pub slow_ms: Option<i64>,
    /// The memory of the process in MB [default: half of the machine's memory]
    #[arg(long, value_name = "MB")]
    pub memory_mb: Option<i64>,
    /// The kinds of replies to cache: off, results, documents or both [default: off]
    #[arg(long, value_name = "MODE")]
    pub cache: Option<String>,
    /// The memory of the caches in bytes [default: 268435456]
    #[arg(long, value_name = "BYTES")]
    pub cache_bytes: Option<i64>,
    /// How writes of other programs in MariaDB are noticed: follow, strict or none [default:
    /// follow]
    #[arg(long, value_name = "METHOD")]
    pub external_writes: Option<String>,
    /// Whether SELECTs are checked before their results are cached: verify or assume-cacheable
    /// [default: verify]
    #[arg(long, value_name = "METHOD")]
    pub selects: Option<String>,
    /// The file of the audit log, or syslog
    #[arg(long, value_name = "FILE")]
    pub audit_log: Option<String>,
    /// How many milliseconds cached replies are returned while MariaDB's log cannot be followed
    /// [default: none]
    #[arg(long, value_name = "MS")]
    pub stale_ms: Option<i64>,
    /// What a write invalidates: precise or, for comparison, collection [default: precise]
    #[arg(long, value_name = "METHOD")]
    pub invalidation: Option<String>,
    /// Give each worker a cache of its own
    #[arg(long)]
    pub cache_per_worker: bool,
    /// A Redis server by which gateways share replies: redis://user:password@host:6379/0
    #[arg(long, value_name = "URL")]
    pub cache_storage: Option<String>,
    /// Whether MongoDB clients use TLS: off, allow, prefer or require [default: off]
    #[arg(long, value_name = "MODE")]
    pub tls: Option<String>,
    /// The server's certificate, and possibly its key (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_certificate: Option<String>,
    /// The certificate's key (PEM), if it has a file of its own
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<String>,
    /// The authorities that sign clients' certificates (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<String>,
    /// The lists of clients' certificates that were revoked (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_crl: Option<String>,
    /// The lowest version of TLS: 1.2 or 1.3 [default: 1.2]
    #[arg(long, value_name = "VERSION")]
    pub tls_min_version: Option<String>,
    /// Whether clients present certificates: none, optional or required [default: required with
    /// --tls-ca, otherwise none]
    #[arg(long, value_name = "RULE")]
    pub tls_client_certificates: Option<String>,
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The embedded store's directory
    #[arg(long, value_name = "DIR", default_value = "selkie-data")]
    pub data: PathBuf,
    /// Rewrite a file of an earlier version with checksums
    #[arg(long)]
    pub add_checksums: bool,
}

impl ServeArgs {
    /// Parses the flags.
    pub fn written(self) -> Result<Written, ConfigError> {
        let list =
            |items: Vec<String>| (!items.is_empty()).then(|| Raw::List(items.into_iter().map(Raw::Text).collect()));
        let given = [
            ("--listen", list(self.listen)),
            ("--sql-listen", list(self.sql_listen)),
            ("--allow-remote", self.allow_remote.then_some(Raw::Boolean(true))),
            ("--auth", self.auth.then_some(Raw::Boolean(true))),
            ("--insecure-without-auth", self.insecure_without_auth.then_some(Raw::Boolean(true))),
            ("--threads", self.threads.map(Raw::Integer)),
            ("--log", self.log.map(Raw::Text)),
            ("--slow-ms", self.slow_ms.map(Raw::Integer)),
            ("--memory-mb", self.memory_mb.map(Raw::Integer)),
            ("--audit-log", self.audit_log.map(Raw::Text)),
            ("--cache", self.cache.map(Raw::Text)),
            ("--cache-bytes", self.cache_bytes.map(Raw::Integer)),
            ("--external-writes", self.external_writes.map(Raw::Text)),
            ("--selects", self.selects.map(Raw::Text)),
            ("--stale-ms", self.stale_ms.map(Raw::Integer)),
            ("--invalidation", self.invalidation.map(Raw::Text)),
            ("--cache-per-worker", self.cache_per_worker.then_some(Raw::Boolean(true))),
            ("--cache-storage", self.cache_storage.map(Raw::Text)),
            ("--data", self.data.map(Raw::Text)),
            ("--accept-lost-writes", self.accept_lost_writes.then_some(Raw::Boolean(true))),
            ("--mariadb", self.mariadb.map(Raw::Text)),
            ("--gateway-name", self.gateway_name.map(Raw::Text)),
            ("--embedded-mariadb", self.embedded_mariadb.map(Raw::Text)),
            ("--topology", self.topology.map(Raw::Text)),
            ("--replica-set", self.replica_set.map(Raw::Text)),
            ("--advertise", self.advertise.map(Raw::Text)),
            ("--test-commands", self.test_commands.then_some(Raw::Boolean(true))),
            ("--tls", self.tls.map(Raw::Text)),
            ("--tls-certificate", self.tls_certificate.map(Raw::Text)),
            ("--tls-key", self.tls_key.map(Raw::Text)),
            ("--tls-ca", self.tls_ca.map(Raw::Text)),
            ("--tls-crl", self.tls_crl.map(Raw::Text)),
            ("--tls-min-version", self.tls_min_version.map(Raw::Text)),
            ("--tls-client-certificates", self.tls_client_certificates.map(Raw::Text)),
        ];
        let mut written = Written::default();
        for (flag, raw) in given {
            let (Some(raw), Some(parameter)) = (raw, parameter::by_flag(flag)) else { continue };
            let origin = Origin::Flag(flag);
            let read = parameter.read(&mut written, raw, origin.clone());
            read.map_err(|message| ConfigError { origin: Some(origin), message })?;
        }
        Ok(written)
    }
}

/// Returns the command line as shown to clients, without the passwords of URLs.
pub fn presentable_arguments() -> Vec<String> {
    std::env::args_os().map(|argument| hide_password(&argument.to_string_lossy())).collect()
}

fn hide_password(argument: &str) -> String {
    let Some((scheme, rest)) = argument.split_once("://") else { return argument.to_owned() };
    match rest.rsplit_once('@') {
        Some((credentials, host)) => match credentials.split_once(':') {
            Some((user, _)) => format!("{scheme}://{user}:***@{host}"),
            // A Redis URL may have a password alone.
            None if scheme.ends_with("redis") || scheme.ends_with("rediss") => format!("{scheme}://***@{host}"),
            None => argument.to_owned(),
        },
        None => argument.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn flags_and_parameters_agree() {
        Cli::command().debug_assert();
        let command = Cli::command();
        let serve = command.find_subcommand("serve").unwrap();
        let flags: Vec<String> = serve.get_arguments().filter_map(|a| a.get_long().map(|l| format!("--{l}"))).collect();
        for flag in flags.iter().filter(|flag| *flag != "--config" && *flag != "--help") {
            assert!(parameter::by_flag(flag).is_some(), "{flag} is not in the table of parameters");
        }
        for flag in parameter::all().filter_map(|parameter| parameter.flag) {
            assert!(flags.iter().any(|known| known == flag), "{flag} is not a flag of serve");
        }
    }

    #[test]
    fn passwords_are_hidden() {
        assert_eq!(hide_password("--mariadb=mysql://joe:s@cret@host:1/"), "--mariadb=mysql://joe:***@host:1/");
        assert_eq!(hide_password("mysql://joe@host"), "mysql://joe@host");
        assert_eq!(hide_password("--data"), "--data");
        assert_eq!(hide_password("redis://s@cret@host:1/0"), "redis://***@host:1/0");
        assert_eq!(hide_password("--cache-storage=rediss://:secret@host"), "--cache-storage=rediss://:***@host");
    }
}
