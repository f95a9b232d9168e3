//! A server as its monitor knows it.

use crate::backend::Backend;
use crate::condition::{Condition, Mode};
use crate::observation::Facts;
use crate::plan::Candidate;
use crate::poll::Poller;
use crate::reachability::{Outcome, Reachability, Reached};
use crate::role::{Member, Role, Standing};
use crate::settings::MonitorSettings;
use mariadb_client::{Address, TlsMode};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A server that stays down is polled less often: at most this many times the interval apart.
const BACKOFF_MAX: u32 = 8;

/// A server, the connection to it, and the outcome of its polls.
pub struct Observed {
    pub backend: Arc<Backend>,
    pub name: String,
    pub address: Address,
    pub tls: TlsMode,
    pub poller: Poller,
    reachability: Reachability,
    server_id: Option<u32>,
    /// When it is polled next, and how many intervals after the last poll that is.
    pub due: Instant,
    backoff: u32,
}

impl Observed {
    pub fn new(backend: Arc<Backend>, settings: &MonitorSettings) -> Observed {
        let server = backend.settings();
        let target = server.url(&settings.user, &settings.password);
        let facts = backend.details().facts.clone().filter(|_| backend.condition().reached == Reached::Up);
        Observed {
            name: server.name.clone(),
            address: server.address(),
            tls: server.tls.mode,
            poller: Poller::new(target, settings.kind, settings.timeout, settings.lock_name()),
            server_id: facts.as_ref().map(|facts| facts.server_id),
            reachability: Reachability::continued(facts),
            due: Instant::now(),
            backoff: 1,
            backend,
        }
    }

    pub fn is_up(&self) -> bool {
        self.reachability.state == Reached::Up
    }

    pub fn facts(&self) -> Option<&Facts> {
        self.reachability.facts.as_ref()
    }

    pub fn member(&self) -> Member<'_> {
        Member { address: &self.address, server_id: self.server_id, facts: self.facts() }
    }

    pub fn candidate(&self) -> Candidate<'_> {
        Candidate {
            name: &self.name,
            member: self.member(),
            is_down: self.reachability.state == Reached::Down,
            is_active: self.backend.condition().mode == Mode::Active,
        }
    }

    /// Polls the server, and decides when it is polled next.
    pub async fn poll(&mut self, interval: Duration, failures_max: u32) {
        let outcome = self.poller.poll().await;
        self.record(outcome, failures_max);
        self.backoff = match self.reachability.state {
            Reached::Down => (2 * self.backoff).min(BACKOFF_MAX),
            Reached::Up | Reached::Unknown => 1,
        };
        self.due = Instant::now() + interval * self.backoff;
    }

    /// Returns the facts of this moment. Fails if the server does not answer.
    pub async fn fresh_facts(&mut self) -> Result<Facts, String> {
        match self.poller.poll().await {
            Outcome::Answered(facts) => Ok(facts),
            Outcome::Full(error) | Outcome::Failed(error) => Err(error),
        }
    }

    fn record(&mut self, outcome: Outcome, failures_max: u32) {
        if let Outcome::Answered(facts) = &outcome {
            self.server_id = Some(facts.server_id);
        }
        self.reachability.record(outcome, failures_max);
    }

    /// Publishes the state, and logs it if it has changed.
    pub fn publish(&self, standing: Standing, monitor: &str) {
        {
            let mut details = self.backend.details();
            details.error.clone_from(&self.reachability.error);
            if let Some(facts) = &self.reachability.facts {
                details.facts = Some(facts.clone());
            }
        }
        let reached = self.reachability.state;
        let Some(before) = self.backend.change(|condition| {
            (condition.reached, condition.standing) = (reached, standing);
        }) else {
            return;
        };
        self.log(before, standing, monitor);
    }

    fn log(&self, before: Condition, standing: Standing, monitor: &str) {
        let Observed { name, address, reachability, .. } = self;
        let role = standing.role.name();
        match reachability.state {
            Reached::Down => {
                let error = &reachability.error;
                tracing::warn!(monitor, server = name, %address, "the server is down: {error}");
            }
            Reached::Up if standing.role == Role::None => {
                let reason = standing.reason;
                tracing::warn!(monitor, server = name, %address, "the server is up and cannot be used: {reason}");
            }
            Reached::Up => {
                let (before, version) =
                    (before.role().name(), reachability.facts.as_ref().map(|facts| &*facts.version));
                tracing::info!(monitor, server = name, %address, before, version, "the server is up, as {role}");
            }
            Reached::Unknown => {}
        }
    }
}
