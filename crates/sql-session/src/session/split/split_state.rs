//! The state of a session of this router, and what its statements do to it.

use super::carried::{Carried, PreparedIds, SCHEMA, StateChange};
use super::command::{Command, Need};
use super::commit_marker::CommitMarker;
use super::further_connection::FurtherConnection;
use super::prepared_statement::SplitPrepared;
use super::route::{Destination, Situation};
use super::sharing_state::Sharing;
use super::transaction_log::{Step, TransactionLog};
use crate::login::elsewhere::Identity;
use crate::reply_tracker::{AUTOCOMMIT, IN_TRANSACTION};
use crate::running_command::RunningAt;
use ahash::AHashMap;
use service::gtid::GtidPosition;
use service::{Assignment, SplitSettings};
use sql_classify::{Class, PrimaryReason};
use std::sync::Arc;

/// The state of a session of this router.
pub struct Split {
    pub settings: SplitSettings,
    /// The account under which further connections log in, or why they cannot.
    pub identity: Result<Arc<Identity>, String>,
    /// Connections to replicas.
    pub replicas: Vec<FurtherConnection>,
    /// The connection whose transaction is open, and only reads.
    pub reading: Option<Box<FurtherConnection>>,
    pub carried: Carried,
    /// The prepared statements of the session's own connection.
    pub home_prepared: PreparedIds,
    pub prepared: AHashMap<u32, SplitPrepared>,
    pub last_prepared: u32,
    /// Why all statements belong on the session's own connection.
    pub bound: Option<&'static str>,
    /// Why the session cannot get another connection to a primary.
    pub pinned: Option<&'static str>,
    pub has_table_locks: bool,
    pub has_next_transaction: bool,
    /// The status flags of the session's own connection, as last reported.
    pub status: u16,
    pub last_insert_id: u64,
    /// Why the session has no connection of its own at the moment.
    pub detached: Option<String>,
    /// Why its transaction was lost. The client does not know it yet.
    pub lost_transaction: Option<String>,
    /// The statements of the open transaction, with `transaction-replay`.
    pub log: TransactionLog,
    /// The open transaction may have written.
    pub writes: bool,
    /// With `commit-outcomes`: the marks of its transactions.
    pub marker: CommitMarker,
    /// Its connection was lost: it must be executed again before the next statement.
    pub must_replay: bool,
    /// It may have written since [`Split::position`] was read.
    pub has_written: bool,
    /// It may have done so through a connection that was lost, which alone knew the position.
    pub has_written_elsewhere: bool,
    /// What it has written.
    pub position: GtidPosition,
    /// The last statement was executed by the replica of this name.
    pub last_replica: Option<String>,
    pub running: RunningAt,
    /// With `multiplex`: what the session has of connections that it shares.
    pub sharing: Option<Sharing>,
    /// Observes the server of the session's own connection.
    pub assignment: Assignment,
    /// The id of the session's own connection on its server.
    pub home_id: u64,
}

impl Split {
    pub fn is_in_transaction(&self) -> bool {
        self.status & IN_TRANSACTION != 0
    }

    /// Returns whether the session has no connection of its own because others may use it.
    pub fn is_parked(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| sharing.is_parked)
    }

    /// Returns whether the session can go over to another primary. `has_lost`: the open transaction
    /// does not matter any more.
    pub fn can_move(&self, has_lost: bool) -> bool {
        self.identity.is_ok()
            && self.bound.is_none()
            && self.pinned.is_none()
            && !self.has_table_locks
            && (has_lost || !self.is_in_transaction() && !self.has_next_transaction)
    }

    /// Returns whether the open transaction can be executed again, `on_another` connection or on
    /// the same.
    pub fn can_replay(&self, on_another: bool) -> bool {
        self.log.is_complete()
            && self.bound.is_none()
            && !self.has_table_locks
            && (!on_another || self.identity.is_ok() && self.pinned.is_none())
    }

    /// Returns what a statement has done to the transaction.
    ///
    /// `status`: the status flags after it.
    pub fn step(&self, command: &Command<'_>, status: u16, was_in_transaction: bool) -> Step {
        let effect = command.effect;
        match () {
            () if status & IN_TRANSACTION == 0 => Step::Outside,
            () if !command.is_repeatable || self.has_next_transaction => Step::Unrepeatable,
            () if effect.begins || !was_in_transaction => Step::Begins,
            () if effect.commits || effect.rolls_back || effect.commits_implicitly => Step::Unrepeatable,
            () => Step::Continues,
        }
    }

    /// Forgets a transaction that was lost with its server and not executed again.
    pub fn forget_lost_transaction(&mut self) {
        if self.must_replay || self.lost_transaction.is_some() {
            self.log.clear();
            (self.must_replay, self.lost_transaction) = (false, None);
        }
    }

    /// Returns what a statement needs of the session's own connection.
    pub fn need(&self, class: &Class) -> Need {
        let facts = class.facts();
        let begins = facts.transaction.begins || self.status & AUTOCOMMIT == 0;
        let changes = facts.primary.is_some_and(|reason| reason != PrimaryReason::ConnectionId);
        if changes || begins { Need::Primary } else { Need::Any }
    }

    pub fn situation(&self) -> Situation {
        let bound = match (&self.identity, self.has_table_locks) {
            (Err(_), _) => Some("Selkie cannot log in elsewhere for it"),
            (_, true) => Some("it holds locks of LOCK TABLES"),
            _ => self.bound,
        };
        Situation {
            bound,
            is_in_transaction: self.is_in_transaction() || self.must_replay,
            begins_by_itself: self.status & AUTOCOMMIT == 0,
            has_next_transaction: self.has_next_transaction,
            is_reading: self.reading.is_some(),
            is_detached: self.detached.is_some() && !self.is_parked(),
        }
    }
}

impl Split {
    /// Returns whether nothing is open or lost that a cached result would ignore.
    pub fn may_use_cache(&self) -> bool {
        self.reading.is_none() && !self.must_replay && self.lost_transaction.is_none()
    }

    /// Returns whether a statement with this destination is executed by a replica, if one can.
    pub fn leaves(&self, destination: &Destination) -> bool {
        match destination {
            Destination::Primary => false,
            Destination::Last => self.last_replica.is_some(),
            _ => true,
        }
    }

    /// Records what a statement has done to the state of the session.
    pub fn note_change(&mut self, change: &StateChange, packet: &[u8]) {
        match change {
            StateChange::None => {}
            StateChange::Carry { keys, is_for_primary } => self.carried.add(keys.clone(), packet, *is_for_primary),
            StateChange::Pin(reason) => self.pinned = Some(reason),
            StateChange::Bind(reason) => self.bound = Some(reason),
            StateChange::LocksTables => self.has_table_locks = true,
            StateChange::UnlocksTables => self.has_table_locks = false,
        }
    }

    /// Forgets what COM_RESET_CONNECTION has reset. The schema stays.
    pub fn reset(&mut self) {
        self.replicas.clear();
        self.reading = None;
        self.carried.keep_only(SCHEMA);
        self.home_prepared.clear();
        self.prepared.clear();
        (self.bound, self.pinned) = (None, None);
        (self.has_table_locks, self.has_next_transaction) = (false, false);
        self.last_insert_id = 0;
        if let Some(sharing) = &mut self.sharing {
            sharing.cursors.clear();
            (sharing.is_insert_id_unsure, sharing.remains) = (false, None);
        }
        self.log.clear();
        (self.must_replay, self.lost_transaction) = (false, None);
    }
}
