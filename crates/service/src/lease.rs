//! A session's place on a backend.

use crate::backend::Backend;
use crate::condition::Condition;
use crate::router::connections::{self, SessionEnd};
use crate::sessions::{Entry, Sessions};
use crate::settings::ServerSettings;
use crate::slots::Slot;
use crate::targets::{State, Target};
use mariadb_client::Killer;
use std::sync::Arc;
use tokio::sync::watch;

/// The place of a session on a backend, returned when it is dropped.
#[derive(Debug)]
pub struct Lease {
    pub backend: Arc<Backend>,
    /// The server as it was when the session connected.
    pub server: Arc<ServerSettings>,
    killer: Option<Arc<Killer>>,
    conditions: watch::Receiver<Condition>,
    service: watch::Receiver<Arc<State>>,
    entry: Option<Entry>,
    sessions: Arc<Sessions>,
    _slot: Slot,
}

impl Lease {
    pub fn new(target: &Target, slot: Slot, service: watch::Receiver<Arc<State>>, sessions: Arc<Sessions>) -> Lease {
        let Target { backend, killer } = target.clone();
        let (server, conditions) = (backend.settings(), backend.conditions());
        Lease { backend, server, killer, conditions, service, entry: None, sessions, _slot: slot }
    }

    /// Records the session's connection id on the server.
    pub fn set_session(&mut self, id: u64) {
        self.entry = Some(self.sessions.add(id, self.backend.clone()));
    }

    /// Records the account that has logged in.
    pub fn set_user(&mut self, user: &[u8]) {
        if let Some(entry) = &self.entry {
            self.sessions.set_user(entry, user);
        }
    }

    /// Returns whether and when the session must leave.
    pub fn end(&self) -> Option<SessionEnd> {
        let state = self.service.borrow();
        let end = connections::end(state.settings.role, &self.conditions.borrow());
        match end {
            Some(SessionEnd::Now(_)) => end,
            _ if !state.contains(&self.backend) => Some(SessionEnd::WhenIdle("the service no longer uses it")),
            end => end,
        }
    }

    /// Waits until [`Lease::end`] may return something else.
    pub async fn changed(&mut self) {
        // Without the senders, nothing changes any more.
        let ended = tokio::select! {
            changed = self.conditions.changed() => changed.is_err(),
            changed = self.service.changed() => changed.is_err(),
        };
        if ended {
            std::future::pending::<()>().await;
        }
    }

    /// Ends the session on the server, whatever it is doing.
    pub fn kill(&self, id: u64) {
        if let Some(killer) = &self.killer {
            killer.kill_session(id);
        }
    }

    /// Makes the monitor poll the server now, as the session has met an error.
    pub fn suspect(&self) {
        self.backend.suspicion.notify_one();
    }
}
