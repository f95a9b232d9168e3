//! Counters of SQL clients, shared by all workers: a connection changes each of them a few times in
//! its life.

use service::SharedCounter;

/// The counters of the process.
#[derive(Debug, Default)]
pub struct SqlStatistics {
    /// Connections open now.
    pub connections_current: SharedCounter,
    /// Connections accepted since the start.
    pub connections_created: SharedCounter,
    /// Connections refused because of a limit; of these, those because of the rate.
    pub connections_rejected: SharedCounter,
    pub connections_rejected_by_rate: SharedCounter,
    /// Connections closed because the client was idle, or paused within a packet or a reply.
    pub idle: SharedCounter,
    pub stalled: SharedCounter,
    /// Connections that were not forwarded, since too many others had not logged in yet.
    pub logins_not_admitted: SharedCounter,
    /// Logins without TLS where that is required.
    pub logins_without_tls: SharedCounter,
    /// Logins that took too long.
    pub logins_timed_out: SharedCounter,
    /// Logins for which MariaDB could not be reached.
    pub logins_without_backend: SharedCounter,
    /// Logins that MariaDB refused because of the name or the password.
    pub logins_failed: SharedCounter,
    /// Logins that were not checked, because too many before had failed.
    pub logins_throttled: SharedCounter,
}
