//! Counters of the router `read-write-split`, of one service.

use sql_filter::SharedCounter;

/// The counters of a service.
#[derive(Debug, Default)]
pub struct SplitStatistics {
    /// Statements that the primary has executed.
    pub to_primary: SharedCounter,
    /// Statements that replicas have executed.
    pub to_replicas: SharedCounter,
    /// Reads that were repeated on another server, because theirs was lost.
    pub reads_retried: SharedCounter,
    /// Reads that waited on a replica for writes before them.
    pub causal_waits: SharedCounter,
    /// Of these, those that waited too long, and went to the primary.
    pub causal_timeouts: SharedCounter,
    /// Connections of sessions that went over to another primary.
    pub primary_changes: SharedCounter,
    /// Transactions that were executed again, and those whose replies were not the same then.
    pub transactions_replayed: SharedCounter,
    pub replays_failed: SharedCounter,
    /// COMMITs whose server was lost: those that had taken effect, and those that had not.
    pub commits_found: SharedCounter,
    pub commits_lost: SharedCounter,
    /// Connections that a session has taken over from another.
    pub connections_taken: SharedCounter,
    /// Sessions that use the primary alone, because Selkie cannot log in elsewhere for them.
    pub sessions_on_primary: SharedCounter,
}
