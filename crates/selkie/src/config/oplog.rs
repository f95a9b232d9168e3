//! The log of changes of the embedded store.

use super::defaults;
use super::setting::{ConfigError, value};
use super::store::Store;
use super::written::Written;
use server::Topology;
use std::time::Duration;
use store_sqlite::OplogOptions;

/// Returns the limits of the log, if there is one.
pub fn resolve(written: &Written, store: &Store, topology: &Topology) -> Result<Option<OplogOptions>, ConfigError> {
    let is_replica_set = matches!(topology, Topology::ReplicaSet { .. });
    let is_embedded = matches!(store, Store::Embedded(_));
    if let Some(setting) = written.oplog.as_ref().filter(|setting| setting.value && !is_embedded) {
        return Err(setting.refuse("only the embedded store logs changes; leave oplog out, or mariadb"));
    }
    let is_on = value(written.oplog.clone()).unwrap_or(is_replica_set) && is_embedded;
    if !is_on {
        for (setting, name) in [(&written.oplog_mb, "oplog-mb"), (&written.oplog_hours, "oplog-hours")] {
            if let Some(setting) = setting {
                let message =
                    format!("{name} has an effect only with a log of changes; add oplog = true, or leave it out");
                return Err(setting.refuse(message));
            }
        }
        return Ok(None);
    }
    let megabytes = value(written.oplog_mb.clone()).unwrap_or(defaults::OPLOG_MB);
    let age_max = value(written.oplog_hours.clone()).map(|hours| Duration::from_secs(hours * 3600));
    Ok(Some(OplogOptions { bytes_max: megabytes << 20, age_max }))
}
