//! The replacement of the session's own connection by one to another server, with the state of the
//! session and its open transaction.

use super::carried;
use super::command::{Need, transaction_lost};
use super::exchange::Failure;
use super::remains::RemainsFound;
use super::replay::Replayed;
use super::split_state::Split;
use crate::login::error_packet;
use crate::result_rows::first_row;
use crate::session::state::Session;
use service::Role;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// ER_OPTION_PREVENTS_STATEMENT, by a server that is read-only: it has not executed anything.
pub const READ_ONLY: u16 = 1290;

/// How long connecting to a primary may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// The pause before a primary is looked for again.
pub const RETRY_PAUSE: Duration = Duration::from_millis(20);

impl Session {
    /// Makes the session's own connection one that a command needs, and waits for it where
    /// necessary. A transaction that was open on the one before is executed again. Returns false if
    /// that is not possible: then the client has got an error.
    pub(super) async fn reach_home(&mut self, split: &mut Split, need: Need) -> io::Result<bool> {
        if let Some(reason) = split.lost_transaction.take() {
            self.client.send(&transaction_lost(&reason)).await?;
            return Ok(false);
        }
        let deadline = Instant::now() + split.settings.primary_wait;
        loop {
            let must_replay = split.must_replay;
            let need = if must_replay { Need::Primary } else { need };
            let found = self.find_home(split, need, deadline).await;
            let reason = match found {
                Ok(()) if !must_replay => return Ok(true),
                Ok(()) => match self.replay(split, false).await? {
                    Replayed::Done => return Ok(true),
                    Replayed::Changed => return Ok(false),
                    Replayed::Again(_) if Instant::now() < deadline => {
                        sleep(RETRY_PAUSE).await;
                        continue;
                    }
                    Replayed::Again(reason) => reason,
                },
                Err(reason) => reason,
            };
            let error = match must_replay {
                true => transaction_lost(&reason),
                false => error_packet(1, READ_ONLY, "HY000", &format!("The statement was not executed: {reason}")),
            };
            split.forget_lost_transaction();
            self.end_writes_outside(split);
            self.client.send(&error).await?;
            return Ok(false);
        }
    }

    /// Finds a server as a command needs it. Fails with the reason why there is none until the
    /// deadline.
    pub(super) async fn find_home(&mut self, split: &mut Split, need: Need, deadline: Instant) -> Result<(), String> {
        let condition = self.lease.assignment.backend().condition();
        let suits = condition.role() == Role::Primary || need == Need::Any || !split.can_move(false);
        if split.detached.is_none() && suits {
            return Ok(());
        }
        loop {
            match self.try_home(split, need).await {
                Err(_) if Instant::now() < deadline => sleep(RETRY_PAUSE).await,
                outcome => return outcome,
            }
        }
    }

    /// Finds the remains of the session on the connection that it had. Returns whether it has this
    /// connection again.
    async fn find_remains(&mut self, split: &mut Split) -> bool {
        let Some(sharing) = &mut split.sharing else { return false };
        let Some(remains) = sharing.remains.take() else { return false };
        let found = match remains.find().await {
            RemainsFound::Kept => return true,
            RemainsFound::Idle => {
                // Its server is no longer the primary.
                let backend = self.lease.assignment.backend();
                if let Some(idle) = self.idle_connections.remove_own(backend, sharing.owner) {
                    idle.close().await;
                }
                remains.find().await
            }
            found => found,
        };
        if let RemainsFound::Reply(reply) = found {
            let row = first_row(&reply, self.login.deprecates_eof).unwrap_or_default();
            let mut fields = row.into_iter();
            if let Some(id) = fields.next().flatten().and_then(|id| id.parse().ok()) {
                split.last_insert_id = id;
            }
            sharing.is_insert_id_unsure = false;
        }
        false
    }

    /// Connects to the primary, or to a replica if that suffices. Fails with the reason why that is
    /// not possible now.
    pub(super) async fn try_home(&mut self, split: &mut Split, need: Need) -> Result<(), String> {
        let service = self.context.service.clone();
        let replica = || match need {
            Need::Primary => None,
            Need::Any => service.readers(split.settings.lag_max_seconds, |_| false).into_iter().next(),
        };
        let target = service.primary().or_else(replica).ok_or_else(|| service.why_no_primary())?;
        if split.detached.is_none() && Arc::ptr_eq(&target.backend, self.lease.assignment.backend()) {
            return Ok(());
        }
        if split.identity.is_err() {
            return Err("Selkie cannot log in for this session".into());
        }
        let was_parked = split.is_parked();
        let opening = self.connect_further(split, &target, (CONNECT_LIMIT, CONNECT_LIMIT)).await;
        let mut opened = opening.map_err(|error| error.to_string())?;
        let is_own = self.find_remains(split).await;
        let lost = |failure| match failure {
            Failure::Server(lost) => lost.reason,
            Failure::Client(error) => error.to_string(),
        };
        if !opened.catch_up(&split.carried, true).await.map_err(lost)? {
            return Err(format!("{} refuses a setting of the session", opened.lease.server.name));
        }
        if split.last_insert_id != 0 && !is_own {
            opened.run(&carried::last_insert_id_statement(split.last_insert_id)).await.map_err(lost)?;
        }
        self.adopt(split, opened);
        if !is_own && self.context.cache.is_some() {
            // This server may have other defaults, and the account had its privileges at the login.
            self.settings = None;
            self.privileges.note_reload();
        }
        if let Some(sharing) = &mut split.sharing {
            sharing.note_move(is_own);
        }
        if !was_parked {
            service.statistics.primary_changes.increment();
        }
        Ok(())
    }
}
