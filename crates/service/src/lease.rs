//! A session's right to a backend.

use crate::backend::Backend;
use crate::condition::Condition;
use crate::role::WantedRole;
use crate::router::connections::{self, SessionEnd};
use crate::sessions::{ConnectionAt, Entry, KnownSession, SessionAt, Sessions};
use crate::settings::ServerSettings;
use crate::slots::Slot;
use crate::targets::{State, Target};
use mariadb_client::Killer;
use std::sync::Arc;
use tokio::sync::watch;

/// The right of a session to be on a backend, returned when it is dropped.
#[derive(Debug)]
pub struct Lease {
    /// The server as it was when the session connected.
    pub server: Arc<ServerSettings>,
    pub assignment: Assignment,
    killer: Option<Arc<Killer>>,
    entry: Option<Entry>,
    /// The account that has logged in.
    user: Vec<u8>,
    sessions: Arc<Sessions>,
    /// `None`: the connection was given to others.
    slot: Option<Slot>,
}

/// The way of a KILL.
#[derive(Debug, PartialEq, Eq)]
pub enum Kill {
    /// The session's server executes it.
    Here,
    /// The session's server executes it, by the id there.
    HereAs(u64),
    /// The gateway executes it.
    Done,
    /// The session is not this user's, and on another server, which cannot say whether the user may
    /// end it.
    Denied,
}

/// Observes whether a session may stay where it is.
#[derive(Clone, Debug)]
pub struct Assignment {
    backend: Arc<Backend>,
    conditions: watch::Receiver<Condition>,
    service: watch::Receiver<Arc<State>>,
}

impl Lease {
    pub fn new(target: &Target, slot: Slot, service: watch::Receiver<Arc<State>>, sessions: Arc<Sessions>) -> Lease {
        let Target { backend, killer } = target.clone();
        let (server, conditions) = (backend.settings(), backend.conditions());
        let assignment = Assignment { backend, conditions, service };
        Lease { server, assignment, killer, entry: None, user: Vec::new(), sessions, slot: Some(slot) }
    }

    /// Records the session's connection id on the server, as the one that the client gets. Returns
    /// false if another session has this id.
    pub fn claim(&mut self, id: u64) -> bool {
        self.entry = self.sessions.claim((self.assignment.backend.clone(), id));
        self.entry.is_some()
    }

    /// As [`Lease::claim`], but the client gets an id of the gateway's own.
    pub fn claim_own(&mut self, id: u64) {
        self.entry = Some(self.sessions.claim_own(&(self.assignment.backend.clone(), id)));
    }

    /// Returns the id by which clients know the session.
    pub fn id(&self) -> Option<u64> {
        self.entry.as_ref().map(|entry| entry.id)
    }

    /// Records the account that has logged in.
    pub fn set_user(&mut self, user: &[u8]) {
        self.user = user.to_vec();
        if let Some(entry) = &self.entry {
            self.sessions.set_user(entry, user);
        }
    }

    /// Takes over the connection id that clients know, from the connection that this one replaces.
    /// `id`: the session's connection id here.
    pub fn replace(&mut self, before: &mut Lease, id: u64) {
        self.user = std::mem::take(&mut before.user);
        self.entry = before.entry.take();
        if let Some(entry) = &self.entry {
            self.sessions.set_home(entry, Some((self.assignment.backend.clone(), id)));
        }
    }

    /// Gives the connection to others: returns the right to it. The session keeps its entry.
    pub fn give_up(&mut self) -> Lease {
        if let Some(entry) = &self.entry {
            self.sessions.set_home(entry, None);
        }
        Lease {
            server: self.server.clone(),
            assignment: self.assignment.clone(),
            killer: self.killer.clone(),
            entry: None,
            user: Vec::new(),
            sessions: self.sessions.clone(),
            slot: self.slot.take(),
        }
    }

    /// Waits until the session is killed while it has no connection.
    pub async fn ended(&self) {
        match &self.entry {
            Some(entry) => entry.ended.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Notes the further connection that executes the session's statement; `None`: this one does.
    pub fn set_running(&self, running: Option<ConnectionAt>) {
        if let Some(entry) = &self.entry {
            self.sessions.set_running(entry, running);
        }
    }

    /// Returns the account that has logged in.
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// Returns the killer of sessions on the server.
    pub fn killer(&self) -> Option<Arc<Killer>> {
        self.killer.clone()
    }

    /// Returns whether the session has a connection.
    pub fn is_connected(&self) -> bool {
        self.slot.is_some()
    }

    /// Kills the session that clients know by this id, if it is one of this gateway's, and of the
    /// same user. `is_query`: only its statement.
    pub fn kill(&self, id: u64, is_query: bool) -> Kill {
        let Some(KnownSession { user, at }) = self.sessions.find(id, is_query) else { return Kill::Here };
        let is_own = user == self.user;
        let (backend, there) = match at {
            SessionAt::Idle(_) if !is_own => return Kill::Denied,
            SessionAt::Idle(ended) => {
                if !is_query {
                    ended.notify_one();
                }
                return Kill::Done;
            }
            SessionAt::At(connection) => connection,
        };
        let is_here = self.is_connected() && Arc::ptr_eq(&backend, &self.assignment.backend);
        if is_here && there == id {
            return Kill::Here;
        }
        let state = self.assignment.service.borrow();
        let target = state.targets.iter().find(|target| Arc::ptr_eq(&target.backend, &backend));
        match target.and_then(|target| target.killer.clone()).filter(|_| is_own) {
            Some(killer) if is_query => killer.kill_query(there),
            Some(killer) => killer.kill_session(there),
            // The server knows the user's privileges.
            None if is_here => return Kill::HereAs(there),
            None => return Kill::Denied,
        }
        Kill::Done
    }
}

impl Assignment {
    pub fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// Returns whether and when the session must leave.
    pub fn end(&self) -> Option<SessionEnd> {
        let role = self.service.borrow().settings.role;
        self.end_as(role)
    }

    /// As [`Assignment::end`], for a session that needs this role.
    pub fn end_as(&self, role: WantedRole) -> Option<SessionEnd> {
        let state = self.service.borrow();
        let end = connections::end(role, &self.conditions.borrow());
        match end {
            Some(SessionEnd::Now(_)) => end,
            _ if !state.contains(&self.backend) => Some(SessionEnd::WhenIdle("the service no longer uses it")),
            end => end,
        }
    }

    /// Waits until [`Assignment::end`] may return something else.
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

    /// Waits until the session must leave at once, and returns why.
    pub async fn end_now(&mut self) -> &'static str {
        loop {
            if let Some(SessionEnd::Now(reason)) = self.end() {
                return reason;
            }
            self.changed().await;
        }
    }

    /// Makes the monitor poll the server now, as the session has met an error.
    pub fn suspect(&self) {
        self.backend.suspicion.notify_one();
    }
}
