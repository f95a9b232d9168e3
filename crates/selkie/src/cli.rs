//! The command line. Its flags go the same way as the file's keys: through the table of parameters.

use crate::config::parameter;
use crate::config::value::Raw;
use crate::config::{ConfigError, Origin, Written};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Says what was built in that need not be.
const VERSION: &str = if cfg!(feature = "embedded-mariadb") {
    concat!(env!("CARGO_PKG_VERSION"), " (with embedded MariaDB)")
} else {
    env!("CARGO_PKG_VERSION")
};

/// A document database compatible with the MongoDB wire protocol, on an embedded store or on MariaDB.
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
    /// Say whether a configuration is right, without starting anything
    Check(ServeArgs),
    /// Read everything in a data directory that no server uses, and say what is damaged
    Verify(VerifyArgs),
}

#[derive(Args, Debug, Default)]
pub struct ServeArgs {
    /// The configuration file; what flags say goes before it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where clients connect: host:port, or the path of a Unix socket; may be repeated [default: 127.0.0.1:27017]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// The embedded store's directory [default: ./selkie-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    /// Start although a damaged write-ahead log has lost acknowledged writes; it is copied first
    #[arg(long)]
    pub accept_lost_writes: bool,
    /// Keep documents in this MariaDB server: mysql://user:password@host:3306
    #[arg(long, value_name = "URL")]
    pub mariadb: Option<String>,
    /// What this gateway is called on the MariaDB server [default: the host's name and the
    /// addresses of --listen]
    #[arg(long, value_name = "NAME")]
    pub gateway_name: Option<String>,
    /// Keep documents in a MariaDB within this process, whose data is in this directory (if it was built in)
    #[arg(long, value_name = "DIR")]
    pub embedded_mariadb: Option<String>,
    /// Where SQL clients connect, to be passed on to MariaDB: host:port, or a Unix socket's path; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub sql_listen: Vec<String>,
    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<i64>,
    /// Allow addresses that other machines can reach, although there is no authentication yet
    #[arg(long)]
    pub allow_remote: bool,
    /// How the server presents itself: router, standalone or replica-set [default: router]
    #[arg(long, value_name = "KIND")]
    pub topology: Option<String>,
    /// The replica set's name, with --topology replica-set [default: selkie]
    #[arg(long, value_name = "NAME")]
    pub replica_set: Option<String>,
    /// The address drivers are told to connect to, with --topology replica-set
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// What is logged to standard error: error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
    /// Operations that take longer, in milliseconds, are logged, and profiled at level 1 [default: 100]
    #[arg(long, value_name = "MS")]
    pub slow_ms: Option<i64>,
    /// What the process may hold in memory, in MB [default: half of the machine's memory]
    #[arg(long, value_name = "MB")]
    pub memory_mb: Option<i64>,
    /// Which answers are kept and given again: off, results, documents or both [default: off]
    #[arg(long, value_name = "MODE")]
    pub cache: Option<String>,
    /// The memory that kept answers take [default: 268435456]
    #[arg(long, value_name = "BYTES")]
    pub cache_bytes: Option<i64>,
    /// How writes that others make in MariaDB are noticed: follow, strict or none [default: follow]
    #[arg(long, value_name = "WAY")]
    pub foreign_writes: Option<String>,
    /// Whether SELECTs are looked into before their answers are kept: verify or assume-cacheable [default: verify]
    #[arg(long, value_name = "WAY")]
    pub selects: Option<String>,
    /// How long answers are given while MariaDB's log cannot be followed [default: not at all]
    #[arg(long, value_name = "MS")]
    pub stale_ms: Option<i64>,
    /// Which answers a change takes away: precise or, for comparison, collection [default: precise]
    #[arg(long, value_name = "WAY")]
    pub invalidation: Option<String>,
    /// Each worker keeps answers of its own
    #[arg(long)]
    pub cache_per_worker: bool,
    /// A Redis server by which gateways share replies: redis://user:password@host:6379/0
    #[arg(long, value_name = "URL")]
    pub cache_storage: Option<String>,
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The embedded store's directory
    #[arg(long, value_name = "DIR", default_value = "selkie-data")]
    pub data: PathBuf,
    /// Write a file that an earlier version made anew, with checksums
    #[arg(long)]
    pub add_checksums: bool,
}

impl ServeArgs {
    /// The settings that flags make.
    pub fn written(self) -> Result<Written, ConfigError> {
        let list =
            |items: Vec<String>| (!items.is_empty()).then(|| Raw::List(items.into_iter().map(Raw::Text).collect()));
        let given = [
            ("--listen", list(self.listen)),
            ("--sql-listen", list(self.sql_listen)),
            ("--allow-remote", self.allow_remote.then_some(Raw::Boolean(true))),
            ("--threads", self.threads.map(Raw::Integer)),
            ("--log", self.log.map(Raw::Text)),
            ("--slow-ms", self.slow_ms.map(Raw::Integer)),
            ("--memory-mb", self.memory_mb.map(Raw::Integer)),
            ("--cache", self.cache.map(Raw::Text)),
            ("--cache-bytes", self.cache_bytes.map(Raw::Integer)),
            ("--foreign-writes", self.foreign_writes.map(Raw::Text)),
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

/// The command line as it may be shown to clients: passwords in URLs are left out.
pub fn presentable_arguments() -> Vec<String> {
    std::env::args_os().map(|argument| hide_password(&argument.to_string_lossy())).collect()
}

fn hide_password(argument: &str) -> String {
    let Some((scheme, rest)) = argument.split_once("://") else { return argument.to_owned() };
    match rest.rsplit_once('@') {
        Some((credentials, host)) => match credentials.split_once(':') {
            Some((user, _)) => format!("{scheme}://{user}:***@{host}"),
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
    fn every_flag_is_a_parameter_and_the_other_way_round() {
        Cli::command().debug_assert();
        let command = Cli::command();
        let serve = command.find_subcommand("serve").unwrap();
        let flags: Vec<String> = serve.get_arguments().filter_map(|a| a.get_long().map(|l| format!("--{l}"))).collect();
        for flag in flags.iter().filter(|flag| *flag != "--config" && *flag != "--help") {
            assert!(parameter::by_flag(flag).is_some(), "{flag} is not in the table of parameters");
        }
        for flag in parameter::PARAMETERS.iter().filter_map(|parameter| parameter.flag) {
            assert!(flags.iter().any(|known| known == flag), "{flag} is no flag of serve");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(hide_password("--mariadb=mysql://joe:s@cret@host:1/"), "--mariadb=mysql://joe:***@host:1/");
        assert_eq!(hide_password("mysql://joe@host"), "mysql://joe@host");
        assert_eq!(hide_password("--data"), "--data");
    }
}
