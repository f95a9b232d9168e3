//! The receiver of what a follower reads.

use crate::changes::Transaction;
use crate::freshness::State;
use mariadb_wire::binlog::Gtid;

/// The receiver of a follower's transactions. Its functions run on the follower's thread, which
/// reads nothing more until they return.
pub trait Receiver: Send {
    /// Called with committed transactions, in order. Readers that start now see them. Once this
    /// function has returned, the receiver must not serve anything older. May be called with the
    /// same transaction more than once.
    fn changes(&mut self, transactions: &[Transaction]);

    /// Called when delivery starts after this position of this log. Earlier changes are unknown,
    /// but readers see them.
    fn started(&mut self, log: &str, position: &[Gtid]) {
        let _ = (log, position);
    }

    /// Called when everything up to this position has been delivered and is visible to readers.
    fn advanced(&mut self, position: &[Gtid]) {
        let _ = position;
    }

    /// Called when the stream has caught up, or was cut.
    fn state(&mut self, state: &State) {
        let _ = state;
    }
}
