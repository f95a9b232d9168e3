//! What a monitor has changed, and may change, as `serverStatus` shows it.

use crate::agreement::{MajorityOf, Votes};
use crate::backend::now_ms;
use crate::order::Outcome;
use crate::plan::Allowed;
use crate::role::ClusterKind;

/// The state of a monitor's changes of servers.
#[derive(Clone, Debug, Default)]
pub struct MonitorStatus {
    pub primary: Option<String>,
    pub votes: Votes,
    pub last: Option<LastAction>,
    /// Why there is no failover now, although there is no primary.
    pub refusal: Option<String>,
}

/// The last action of a monitor.
#[derive(Clone, Debug)]
pub struct LastAction {
    /// `failover to db2`.
    pub what: String,
    pub outcome: Outcome,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: i64,
}

/// The state of a monitor, with the settings that explain it.
#[derive(Clone, Debug)]
pub struct MonitorReport {
    pub name: String,
    pub kind: ClusterKind,
    pub allowed: Allowed,
    pub majority_of: MajorityOf,
    pub status: MonitorStatus,
}

impl LastAction {
    pub fn now(what: String, outcome: Outcome) -> LastAction {
        LastAction { what, outcome, ended_ms: now_ms() }
    }
}
