//! External writes: reports the transactions of the binary log as changes of collections, for
//! caches.

use crate::catalog::names;
use crate::encoding;
use crate::index::element_table;
use crate::index::side_index::side_table;
use ::store::change_observer::LogPosition;
use ::store::{ChangeObserver, Changes, Namespace};
use document::Doc;
use mariadb_binlog::{self as binlog, FollowOptions, Follower, Receiver, State, TableName, Transaction};
use mariadb_client::{OwnWrites, PrimarySource};
use mariadb_wire::binlog::Gtid;
use std::sync::Arc;
use std::time::Duration;

/// Follows the binary log until dropped.
pub struct ExternalWrites {
    follower: Follower,
}

/// Called with whether external writes are noticed, and if not, why.
pub type ReportFollowing = Box<dyn Fn(Result<(), &str>) + Send>;

impl ExternalWrites {
    /// Reports external writes on the server at `url` to `observer`. `strict`: the server makes
    /// writers wait until their changes were reported.
    ///
    /// Fails with 72 and one sentence on what to configure, or with 6 or 18 if the server is not
    /// reachable.
    pub fn follow(
        url: &str,
        strict: bool,
        observer: Arc<dyn ChangeObserver>,
        own_writes: Arc<OwnWrites>,
        report_following: ReportFollowing,
    ) -> error::Result<ExternalWrites> {
        let options = FollowOptions { semi_sync: strict, ..FollowOptions::default() };
        let receiver = ChangeReporter { observer, own_writes, report_following, strict };
        Ok(ExternalWrites { follower: Follower::start(url, options, Box::new(receiver))? })
    }

    /// As [`ExternalWrites::follow`], on the primary of servers that replicate. Another primary is
    /// followed from the same position on. If it may lack transactions of the one before, all
    /// collections are reported as changed.
    pub fn follow_primary(
        primary: PrimarySource,
        observer: Arc<dyn ChangeObserver>,
        own_writes: Arc<OwnWrites>,
        report_following: ReportFollowing,
    ) -> error::Result<ExternalWrites> {
        let receiver = ChangeReporter { observer, own_writes, report_following, strict: false };
        let follower = Follower::start_at_primary(primary, FollowOptions::default(), Box::new(receiver))?;
        Ok(ExternalWrites { follower })
    }

    /// Returns a function that returns the age of the follower's knowledge: everything committed
    /// longer ago was reported. It returns `None` while nothing is known.
    pub fn behind(&self) -> impl Fn() -> Option<Duration> + Send + Sync + 'static {
        let freshness = self.follower.freshness();
        move || freshness.behind()
    }
}

struct ChangeReporter {
    observer: Arc<dyn ChangeObserver>,
    own_writes: Arc<OwnWrites>,
    report_following: ReportFollowing,
    /// Writers must wait until their changes were reported.
    strict: bool,
}

impl Receiver for ChangeReporter {
    fn changes(&mut self, transactions: &[Transaction]) {
        for transaction in transactions {
            let mut changes = Changes::default();
            changes.set_read_from_log(transaction.gtid.as_ref().map(log_position));
            let id = transaction.gtid.map(|gtid| (gtid.domain, gtid.server, gtid.sequence));
            // A write of this process was reported before it was executed. This is its effect on
            // the server (triggers included), which readers since then have seen.
            if let Some(acknowledged) = id.and_then(|id| self.own_writes.take(id)) {
                changes.set_visible_since(acknowledged);
            }
            transaction.changes.iter().for_each(|change| self.add(change, &mut changes));
            if !changes.is_empty() {
                // Readers see them already, so the write ends as soon as it is reported.
                drop(self.observer.begin_write(changes));
            }
        }
    }

    fn started(&mut self, log: &str, position: &[Gtid]) {
        self.observer.log_started(log, &log_positions(position));
    }

    fn advanced(&mut self, position: &[Gtid]) {
        self.observer.log_advanced(&log_positions(position));
    }

    fn state(&mut self, state: &State) {
        match state {
            State::Following { strict: false } if self.strict => (self.report_following)(Err(
                "MariaDB does not wait for this replica: its semi-synchronous replication is off, or has timed out, or begins with the next write",
            )),
            State::Following { .. } => (self.report_following)(Ok(())),
            State::Cut { why, .. } => (self.report_following)(Err(why)),
        }
    }
}

impl ChangeReporter {
    fn add(&self, change: &binlog::Change, changes: &mut Changes) {
        match change {
            // Rows of these tables are written with a document, in the same transaction.
            binlog::Change::Row(row) if is_index_table(&row.table.table) => {}
            binlog::Change::Table(table) if is_index_table(&table.table) => {}
            binlog::Change::Row(row) => {
                let Some(namespace) = namespace(&row.table) else { return };
                if changes.covers(&namespace) {
                    return;
                }
                let (mut before, mut after) = (Vec::new(), Vec::new());
                let known = self.observer.wants_images(&namespace)
                    && decode_image(row.before.as_ref(), &mut before)
                    && decode_image(row.after.as_ref(), &mut after);
                match known {
                    true => changes.add_document(&namespace, Doc::from_bytes(&before), Doc::from_bytes(&after)),
                    false => changes.add_unspecified(&namespace),
                }
            }
            binlog::Change::Table(table) => {
                let other = || Namespace::new(&table.database, &table.table);
                self.add_definition(&namespace(table).unwrap_or_else(other), changes);
            }
            binlog::Change::Database(database) => self.add_definition(&Namespace::new(database, ""), changes),
            binlog::Change::Everything => self.add_definition(&Namespace::new("", ""), changes),
        }
    }
}

impl ChangeReporter {
    /// Adds a change that may be one of a definition.
    fn add_definition(&self, namespace: &Namespace, changes: &mut Changes) {
        self.observer.definition_changed(namespace);
        changes.add_unspecified(namespace);
    }
}

/// Returns whether a table belongs to an index of a collection.
fn is_index_table(table: &str) -> bool {
    element_table::is_name(table) || side_table::is_name(table)
}

fn log_position(gtid: &Gtid) -> LogPosition {
    LogPosition { domain: gtid.domain, sequence: gtid.sequence }
}

fn log_positions(position: &[Gtid]) -> Vec<LogPosition> {
    position.iter().map(log_position).collect()
}

/// Returns the collection that a table holds, if it holds one.
fn namespace(table: &TableName) -> Option<Namespace> {
    names::namespace(&table.database, &table.table)
}

/// Decodes one side of a change, if there is one; returns false if it cannot be decoded.
fn decode_image(image: Option<&binlog::Image>, bson: &mut Vec<u8>) -> bool {
    match image.map(|image| &image.doc) {
        None => true,
        Some(binlog::Doc::Text(json)) => encoding::decode(json, bson).is_ok(),
        Some(binlog::Doc::Absent | binlog::Doc::Null | binlog::Doc::Unknown) => false,
    }
}
