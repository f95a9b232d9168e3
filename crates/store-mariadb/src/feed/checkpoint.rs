//! Positions of the log by GTID.

use ::store::FeedPosition;
use mariadb_binlog::Gtid;

/// The end of a transaction, from which the log can be read on.
#[derive(Clone, Debug)]
pub(super) struct Checkpoint {
    /// The position of the last row or statement.
    pub position: FeedPosition,
    pub gtids: Vec<Gtid>,
}

/// Returns whether a position has every transaction of another.
pub(super) fn covers(position: &[Gtid], end: &[Gtid]) -> bool {
    end.iter().all(|end| position.iter().any(|gtid| gtid.domain == end.domain && gtid.sequence >= end.sequence))
}
