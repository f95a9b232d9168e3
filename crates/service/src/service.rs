//! A service: the servers from which its router chooses, and the connections that it opens.

use crate::backend::Backend;
use crate::lease::Lease;
use crate::role::Role;
use crate::role::WantedRole;
use crate::router::connections::{self, Load};
use crate::router::read_write_split::{self, ReadLoad};
use crate::sessions::Sessions;
use crate::settings::{Router, ServerSettings, ServiceSettings};
use crate::slots::Slot;
use crate::split_statistics::SplitStatistics;
use crate::targets::{State, Target};
use crate::user_connections::{UserConnection, UserConnections};
use sql_filter::{Counters, Filter, Pipeline, SharedCounter};
use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

/// So many times a session connects to a server again because another has its id. More would count
/// there as errors of this host.
const SAME_ID_MAX: usize = 3;

/// The pause between two attempts of a new session, while there is no primary.
const PRIMARY_PAUSE: Duration = Duration::from_millis(50);

/// A service of SQL clients.
#[derive(Debug)]
pub struct Service {
    state: watch::Sender<Arc<State>>,
    sessions: Arc<Sessions>,
    pub statistics: SplitStatistics,
    /// Counts what its filters do.
    pub filter_counters: Arc<Counters>,
    pub document_reads: DocumentReads,
    users: Arc<UserConnections>,
}

/// Counters of the reads of documents on replicas.
#[derive(Debug, Default)]
pub struct DocumentReads {
    pub on_replicas: SharedCounter,
    /// Reads that waited on a replica for writes before them.
    pub causal_waits: SharedCounter,
    /// Of these, those that waited too long.
    pub causal_timeouts: SharedCounter,
}

/// A server to which a connection is opened.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub server: Arc<ServerSettings>,
    /// Whether the service has other servers to try.
    pub has_others: bool,
}

/// An open connection, and the id that the server gave it (0: none, as it refuses the connection).
pub type Opened<C> = (C, u64);

/// Why a connection to a server could not be opened.
pub type OpenError = io::Error;

/// Why a session gets no server.
#[derive(Debug)]
pub enum ConnectError {
    /// No server has the role. The text names each, with the reason.
    NoServer(String),
    /// All servers have as many sessions as they may have.
    Full(String),
    /// The session was not admitted after it had got a place on a server.
    NotAdmitted,
    /// The last server that was tried.
    Failed { server: String, error: io::Error },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::NoServer(text) | ConnectError::Full(text) => f.write_str(text),
            ConnectError::NotAdmitted => f.write_str("the session was not admitted"),
            ConnectError::Failed { server, error } => write!(f, "{server}: {error}"),
        }
    }
}

impl Service {
    pub fn new(settings: ServiceSettings, backends: Vec<Arc<Backend>>, sessions: Arc<Sessions>) -> Arc<Service> {
        let state = watch::Sender::new(Arc::new(State::new(settings, backends, Pipeline::default(), None)));
        let (statistics, filter_counters, document_reads, users) = Default::default();
        Arc::new(Service { state, sessions, statistics, filter_counters, document_reads, users })
    }

    /// Changes the settings. Sessions on servers that the service no longer has end when they are
    /// idle. `mirror`: the server that also executes the statements.
    pub fn change(
        &self,
        settings: ServiceSettings,
        backends: Vec<Arc<Backend>>,
        filters: Vec<Arc<dyn Filter>>,
        mirror: Option<Arc<Backend>>,
    ) {
        let before = self.state.borrow().clone();
        let pipeline = Pipeline { filters, counters: self.filter_counters.clone() };
        let state = State::new(settings, backends, pipeline, Some(&before));
        self.state.send_replace(Arc::new(State { mirror, ..state }));
    }

    /// Returns the settings in effect, with notice of changes.
    pub fn states(&self) -> watch::Receiver<Arc<State>> {
        self.state.subscribe()
    }

    pub fn name(&self) -> String {
        self.state.borrow().settings.name.clone()
    }

    /// Opens a connection for a new session with `open`: on the best server, or, if that fails, on
    /// the next one. Waits as long as `patience` if all servers have as many sessions as they may
    /// have, or for a primary if its monitor replaces one that is lost.
    /// `admit`: a permit to connect, taken once a server has room, so that sessions that wait
    /// for room hold no permits; `None` refuses the session.
    pub async fn connect<A, C, F>(
        &self,
        patience: Duration,
        admit: impl Future<Output = Option<A>>,
        open: impl Fn(Candidate) -> F,
    ) -> Result<(Lease, A, C), ConnectError>
    where
        F: Future<Output = Result<Opened<C>, OpenError>>,
    {
        let deadline = Instant::now() + patience;
        let (mut admit, mut admitted) = (pin!(admit), None);
        let mut failed: Vec<Arc<Backend>> = Vec::new();
        let mut last_error = None;
        loop {
            let state = self.state.borrow().clone();
            let left =
                state.targets.iter().filter(|target| !failed.iter().any(|one| Arc::ptr_eq(one, &target.backend)));
            let left: Vec<&Target> = left.collect();
            let loads: Vec<Load> = left.iter().map(|target| load(&target.backend)).collect();
            let ranked: Vec<&Target> =
                connections::rank(&loads, state.settings.role).into_iter().map(|number| left[number]).collect();
            let Some(best) = ranked.first() else {
                // The monitor is about to notice that the primary is lost, or replaces it.
                if state.awaits_primary() && Instant::now() + PRIMARY_PAUSE < deadline {
                    sleep(PRIMARY_PAUSE).await;
                    failed.clear();
                    continue;
                }
                return Err(
                    last_error.unwrap_or_else(|| ConnectError::NoServer(no_server(&state, state.settings.role)))
                );
            };
            let free = ranked.iter().find_map(|target| Some((*target, target.backend.slots.try_take()?)));
            let (target, slot) = match free {
                Some(free) => free,
                None => {
                    let waiting = tokio::time::timeout_at(deadline, best.backend.slots.wait()).await;
                    let Ok(Ok(slot)) = waiting else { return Err(ConnectError::Full(all_full(&state))) };
                    // It may have got another role meanwhile.
                    if connections::fit(state.settings.role, &best.backend.condition()).is_err() {
                        continue;
                    }
                    (*best, slot)
                }
            };
            let permit = match admitted.take() {
                Some(permit) => permit,
                None => admit.as_mut().await.ok_or(ConnectError::NotAdmitted)?,
            };
            let mut lease = Lease::new(target, slot, self.state.subscribe(), self.sessions.clone());
            let candidate = Candidate { server: lease.server.clone(), has_others: ranked.len() > 1 };
            match open_with_id(&open, candidate, &mut lease, state.settings.router.shares_connections()).await {
                Ok(connection) => return Ok((lease, permit, connection)),
                Err(error) => {
                    tracing::debug!(server = lease.server.name, %error, "a session could not connect");
                    lease.assignment.suspect();
                    last_error = Some(ConnectError::Failed { server: lease.server.name.clone(), error });
                    failed.push(target.backend.clone());
                    admitted = Some(permit);
                }
            }
        }
    }

    /// Counts a session of a logged-in user. Returns `None` if the user has as many as the
    /// service allows.
    pub fn add_user(&self, user: &[u8]) -> Option<UserConnection> {
        let max = self.state.borrow().settings.connections_per_user;
        self.users.add(user, max)
    }

    /// Returns whether the router chooses a server for each statement.
    pub fn splits_statements(&self) -> bool {
        matches!(self.state.borrow().settings.router, Router::ReadWriteSplit(_))
    }

    /// Returns whether statements pass filters.
    pub fn has_filters(&self) -> bool {
        !self.state.borrow().pipeline.is_empty()
    }

    /// Returns the settings in effect.
    pub fn state(&self) -> Arc<State> {
        self.state.borrow().clone()
    }

    /// Returns a receiver of changes of the settings.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<State>> {
        self.state.subscribe()
    }

    /// Notified when a session waits for a connection that others may have and do not use.
    pub fn connection_wanted(&self) -> &Notify {
        &self.sessions.connection_wanted
    }

    /// Returns the primary, if it may get sessions.
    pub fn primary(&self) -> Option<Target> {
        let state = self.state();
        let is_usable = |target: &&Target| {
            let condition = target.backend.condition();
            connections::fit(WantedRole::Primary, &condition).is_ok() && condition.role() == Role::Primary
        };
        state.targets.iter().find(is_usable).cloned()
    }

    /// Returns the replicas that may get a read, the best first. `open`: those to which the session
    /// has connections.
    pub fn readers(&self, lag_max_seconds: Option<u64>, open: impl Fn(&Arc<Backend>) -> bool) -> Vec<Target> {
        let state = self.state();
        // Without a primary, its replicas do not know how far they are behind.
        let lag_of_all = if self.primary().is_none() { Some(0) } else { None };
        let load = |target: &Target| {
            let backend = &target.backend;
            ReadLoad {
                condition: backend.condition(),
                lag_seconds: lag_of_all.or_else(|| backend.lag_seconds()),
                outstanding: backend.activity.outstanding(),
                latency: backend.activity.latency(),
                weight: backend.settings().weight,
                is_open: open(backend),
            }
        };
        let loads: Vec<ReadLoad> = state.targets.iter().map(load).collect();
        let ranked = read_write_split::rank(&loads, lag_max_seconds);
        ranked.into_iter().map(|number| state.targets[number].clone()).collect()
    }

    /// Says why there is no primary, with the reason of each server.
    pub fn why_no_primary(&self) -> String {
        no_server(&self.state(), WantedRole::Primary)
    }

    /// Opens a further connection of a session, to this server. Waits as long as `patience` if the
    /// server has as many sessions as it may have.
    pub async fn connect_to<C, F>(
        &self,
        target: &Target,
        patience: Duration,
        open: impl Fn(Candidate) -> F,
    ) -> Result<(Lease, C), ConnectError>
    where
        F: Future<Output = Result<Opened<C>, OpenError>>,
    {
        let waiting = tokio::time::timeout(patience, target.backend.slots.wait()).await;
        let Ok(Ok(slot)) = waiting else { return Err(self.full()) };
        self.connect_in(target, slot, open).await
    }

    /// As [`Service::connect_to`], with the right to a connection.
    pub async fn connect_in<C, F>(
        &self,
        target: &Target,
        slot: Slot,
        open: impl Fn(Candidate) -> F,
    ) -> Result<(Lease, C), ConnectError>
    where
        F: Future<Output = Result<Opened<C>, OpenError>>,
    {
        let lease = Lease::new(target, slot, self.state.subscribe(), self.sessions.clone());
        let candidate = Candidate { server: lease.server.clone(), has_others: true };
        match open(candidate).await {
            Ok((connection, _)) => Ok((lease, connection)),
            Err(error) => {
                lease.assignment.suspect();
                Err(ConnectError::Failed { server: lease.server.name.clone(), error })
            }
        }
    }

    /// The error of a session for which there is no free connection.
    pub fn full(&self) -> ConnectError {
        ConnectError::Full(all_full(&self.state()))
    }
}

/// Opens a connection, and gives the session an id that no other has: the server's if possible.
/// `shares`: the session is going to have connections with other ids.
async fn open_with_id<C, F>(
    open: &impl Fn(Candidate) -> F,
    candidate: Candidate,
    lease: &mut Lease,
    shares: bool,
) -> Result<C, OpenError>
where
    F: Future<Output = Result<Opened<C>, OpenError>>,
{
    let (mut connection, mut id) = open(candidate.clone()).await?;
    for _ in 0..SAME_ID_MAX {
        if shares || id == 0 || lease.claim(id) {
            break;
        }
        (connection, id) = open(candidate.clone()).await?;
    }
    if id != 0 && lease.id().is_none() && (shares || !lease.claim(id)) {
        lease.claim_own(id);
    }
    Ok(connection)
}

fn load(backend: &Backend) -> Load {
    Load {
        condition: backend.condition(),
        connections: backend.slots.used() + backend.slots.queued(),
        weight: backend.settings().weight,
    }
}

/// Says why no server can be used.
fn no_server(state: &State, role: WantedRole) -> String {
    let reasons = state.targets.iter().filter_map(|target| {
        let reason = connections::fit(role, &target.backend.condition()).err()?;
        Some(format!("{}: {reason}", target.backend.settings().name))
    });
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    let what = match role {
        WantedRole::Primary => "primary",
        WantedRole::Replica | WantedRole::Any | WantedRole::PrimaryFirst => "server",
    };
    format!("service {} has no {what} ({reasons})", state.settings.name)
}

fn all_full(state: &State) -> String {
    format!("service {} has no server with a free connection", state.settings.name)
}

#[cfg(test)]
mod tests;
