//! The state of a server, as `serverStatus` and the log show it.

use crate::backend::Backend;
use crate::condition::Mode;
use crate::observation::Facts;
use mariadb_client::Address;

/// The state of a server.
#[derive(Clone, Debug)]
pub struct BackendReport {
    pub name: String,
    pub address: Address,
    /// The name of its monitor; `None`: nothing observes it.
    pub monitor: Option<String>,
    /// `up`, `down` or `unknown`.
    pub state: &'static str,
    /// `primary`, `replica` or `none`.
    pub role: &'static str,
    /// Why it has no role; empty if it has one.
    pub reason: &'static str,
    pub mode: Mode,
    /// When state, role or mode last changed, in milliseconds since 1970.
    pub changed_ms: i64,
    /// Why the last poll failed; empty if it has not.
    pub error: String,
    /// The facts of the last poll that succeeded.
    pub facts: Option<Facts>,
    pub weight: u32,
    pub connections: usize,
    pub connections_max: Option<usize>,
    /// Sessions that wait for a connection.
    pub queued: usize,
}

impl BackendReport {
    pub fn of(backend: &Backend) -> BackendReport {
        let (settings, condition, details) = (backend.settings(), backend.condition(), backend.details().clone());
        BackendReport {
            name: settings.name.clone(),
            address: settings.address(),
            monitor: details.monitor,
            state: condition.reached.name(),
            role: condition.role().name(),
            reason: condition.standing.reason,
            mode: condition.mode,
            changed_ms: backend.changed_ms(),
            error: details.error,
            facts: details.facts,
            weight: settings.weight,
            connections: backend.slots.used(),
            connections_max: settings.connections_max,
            queued: backend.slots.queued(),
        }
    }
}
