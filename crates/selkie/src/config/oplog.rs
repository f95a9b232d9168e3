//! The log of changes: that of the embedded store, or MariaDB's binary log.

use super::defaults;
use super::setting::{ConfigError, value};
use super::store::Store;
use super::written::Written;
use server::Topology;
use std::time::Duration;
use store_mariadb::FeedStart;
use store_sqlite::OplogOptions;

/// The log from which change streams read changes.
#[derive(Clone, Copy, Debug)]
pub enum ChangeLog {
    None,
    Embedded(OplogOptions),
    BinaryLog(FeedStart),
}

/// Returns the log of changes.
pub fn resolve(written: &Written, store: &Store, topology: &Topology) -> Result<ChangeLog, ConfigError> {
    let is_replica_set = matches!(topology, Topology::ReplicaSet { .. });
    let is_on = value(written.oplog.clone()).unwrap_or(is_replica_set);
    let limits = [(&written.oplog_mb, "oplog-mb"), (&written.oplog_hours, "oplog-hours")];
    let limit = limits.into_iter().find_map(|(setting, name)| Some((setting.as_ref()?, name)));
    match store {
        Store::Embedded(_) if is_on => {
            let megabytes = value(written.oplog_mb.clone()).unwrap_or(defaults::OPLOG_MB);
            let age_max = value(written.oplog_hours.clone()).map(|hours| Duration::from_secs(hours * 3600));
            return Ok(ChangeLog::Embedded(OplogOptions { bytes_max: megabytes << 20, age_max }));
        }
        Store::MariaDb(_) | Store::Service(_) if is_on => {
            if let Some((setting, name)) = limit {
                let message = format!(
                    "{name} is for the embedded store's log; leave it out, and limit MariaDB's binary log with its \
                     binlog_expire_logs_seconds"
                );
                return Err(setting.refuse(message));
            }
            let start = if written.oplog.is_some() { FeedStart::AtOnce } else { FeedStart::OnDemand };
            return Ok(ChangeLog::BinaryLog(start));
        }
        Store::EmbeddedMariaDb(_) => {
            if let Some(setting) = written.oplog.as_ref().filter(|setting| setting.value) {
                return Err(setting.refuse("MariaDB in this process has no log of changes; leave oplog out"));
            }
        }
        _ => {}
    }
    match limit {
        Some((setting, name)) => {
            let message = format!("{name} has an effect only with a log of changes; add oplog = true, or leave it out");
            Err(setting.refuse(message))
        }
        None => Ok(ChangeLog::None),
    }
}
