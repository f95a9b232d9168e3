//! Writes from elsewhere, as caches hear of them: what the binary log says, announced as changes of collections.

use crate::catalog::names;
use crate::encoding;
use crate::index::element_table;
use crate::index::side_index::side_table;
use ::store::change_observer::LogPosition;
use ::store::{ChangeObserver, Changes, Namespace};
use document::Doc;
use mariadb_binlog::{self as binlog, FollowOptions, Follower, Receiver, State, TableName, Transaction};
use mariadb_client::OwnWrites;
use mariadb_wire::binlog::Gtid;
use std::sync::Arc;
use std::time::Duration;

/// Follows the binary log until dropped.
pub struct ForeignWrites {
    follower: Follower,
}

/// Told whether writes from elsewhere are noticed, and why not.
pub type Tell = Box<dyn Fn(Result<(), &str>) + Send>;

impl ForeignWrites {
    /// Has `observer` told of what others write in the MariaDB server at `url`. `strict`: the server lets them wait until it has been.
    ///
    /// Errors say in one sentence what to configure (72), or that the server is not to be had (6, 18).
    pub fn follow(
        url: &str,
        strict: bool,
        observer: Arc<dyn ChangeObserver>,
        own_writes: Arc<OwnWrites>,
        tell: Tell,
    ) -> error::Result<ForeignWrites> {
        let options = FollowOptions { semi_sync: strict, ..FollowOptions::default() };
        let receiver = Announcer { observer, own_writes, tell, strict };
        Ok(ForeignWrites { follower: Follower::start(url, options, Box::new(receiver))? })
    }

    /// For others to ask how old the knowledge is: everything that was committed longer ago has been told. `None`: nothing is known yet.
    pub fn behind(&self) -> impl Fn() -> Option<Duration> + Send + Sync + 'static {
        let freshness = self.follower.freshness();
        move || freshness.behind()
    }
}

struct Announcer {
    observer: Arc<dyn ChangeObserver>,
    own_writes: Arc<OwnWrites>,
    tell: Tell,
    /// It is not enough to be told: writers have to wait until we are.
    strict: bool,
}

impl Receiver for Announcer {
    fn changes(&mut self, transactions: &[Transaction]) {
        for transaction in transactions {
            let mut changes = Changes::default();
            changes.set_read_from_log(transaction.gtid.as_ref().map(place));
            let id = transaction.gtid.map(|gtid| (gtid.domain, gtid.server, gtid.sequence));
            // What this process wrote was announced before it was written; here comes what the server has made of it (triggers), and
            // whoever has asked since has seen that.
            if let Some(acknowledged) = id.and_then(|id| self.own_writes.take(id)) {
                changes.set_visible_since(acknowledged);
            }
            transaction.changes.iter().for_each(|change| self.note(change, &mut changes));
            if !changes.is_empty() {
                // Everybody sees them already, so that they are settled as soon as they are announced.
                drop(self.observer.begin_write(changes));
            }
        }
    }

    fn begins(&mut self, log: &str, position: &[Gtid]) {
        self.observer.log_started(log, &places(position));
    }

    fn reached(&mut self, position: &[Gtid]) {
        self.observer.log_advanced(&places(position));
    }

    fn state(&mut self, state: &State) {
        match state {
            State::Following { strict: false } if self.strict => (self.tell)(Err(
                "MariaDB does not wait for this replica: its semi-synchronous replication is off, or has timed out, or begins with the next write",
            )),
            State::Following { .. } => (self.tell)(Ok(())),
            State::Cut { why, .. } => (self.tell)(Err(why)),
        }
    }
}

impl Announcer {
    fn note(&self, change: &binlog::Change, changes: &mut Changes) {
        match change {
            binlog::Change::Row(row) if names::is_hidden(&row.table.database) => {}
            // What is written there is written beside a document, in the same transaction.
            binlog::Change::Row(row) if is_beside_documents(&row.table.table) => {}
            binlog::Change::Table(table) if is_beside_documents(&table.table) => {}
            binlog::Change::Row(row) => {
                let namespace = namespace(&row.table);
                if changes.covers(&namespace) {
                    return;
                }
                let (mut before, mut after) = (Vec::new(), Vec::new());
                let known = self.observer.wants_images(&namespace)
                    && read(row.before.as_ref(), &mut before)
                    && read(row.after.as_ref(), &mut after);
                match known {
                    true => changes.add_document(&namespace, Doc::from_bytes(&before), Doc::from_bytes(&after)),
                    false => changes.add_unspecified(&namespace),
                }
            }
            binlog::Change::Table(table) => self.note_definition(&namespace(table), changes),
            binlog::Change::Database(database) => self.note_definition(&Namespace::new(database, ""), changes),
            binlog::Change::Everything => self.note_definition(&Namespace::new("", ""), changes),
        }
    }
}

impl Announcer {
    /// Notes a change that may be one of a definition.
    fn note_definition(&self, namespace: &Namespace, changes: &mut Changes) {
        self.observer.definition_changed(namespace);
        changes.add_unspecified(namespace);
    }
}

/// Whether a table is one that is kept beside documents, for an index.
fn is_beside_documents(table: &str) -> bool {
    element_table::is_name(table) || side_table::is_name(table)
}

fn place(gtid: &Gtid) -> LogPosition {
    LogPosition { domain: gtid.domain, sequence: gtid.sequence }
}

fn places(position: &[Gtid]) -> Vec<LogPosition> {
    position.iter().map(place).collect()
}

/// The collection that a table holds; the whole database, where the table's name does not say which.
fn namespace(table: &TableName) -> Namespace {
    match names::is_made_up(&table.table) {
        true => Namespace::new(&table.database, ""),
        false => Namespace::new(&table.database, &table.table),
    }
}

/// Reads one side of a change, if there is one; false where it cannot be read.
fn read(image: Option<&binlog::Image>, bson: &mut Vec<u8>) -> bool {
    match image.map(|image| &image.doc) {
        None => true,
        Some(binlog::Doc::Text(json)) => encoding::read(json, bson).is_ok(),
        Some(binlog::Doc::Absent | binlog::Doc::Null | binlog::Doc::Unknown) => false,
    }
}
