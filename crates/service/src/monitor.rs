//! The task of a monitor: polls its servers, decides their roles, and publishes both.

use crate::backend::Backend;
use crate::condition::Condition;
use crate::poll::Poller;
use crate::reachability::{Outcome, Reachability, Reached};
use crate::role::{Member, Role, Standing};
use crate::settings::MonitorSettings;
use crate::topology;
use mariadb_client::Address;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A server that stays down is polled less often: at most this many times the interval apart.
const BACKOFF_MAX: u32 = 8;

/// A running monitor, which ends when this is dropped.
#[derive(Debug)]
pub struct Monitor {
    pub settings: MonitorSettings,
    pub backends: Vec<Arc<Backend>>,
    _stop: oneshot::Sender<()>,
}

impl Monitor {
    /// Starts a monitor in a thread of its own. Its backends keep their condition until they were
    /// polled, so that a changed monitor closes no session.
    pub fn start(settings: MonitorSettings, backends: Vec<Arc<Backend>>) -> io::Result<Monitor> {
        for backend in &backends {
            backend.details().monitor = Some(settings.name.clone());
            backend.change(|condition| condition.is_monitored = true);
        }
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (task_settings, task_backends) = (settings.clone(), backends.clone());
        let thread = std::thread::Builder::new().name(format!("monitor-{}", settings.name));
        thread.spawn(move || {
            // Its connections never leave the thread.
            let mut task = Task::new(task_settings, task_backends);
            runtime.block_on(async {
                tokio::select! {
                    // The sender only ever drops.
                    _ = stopped => {}
                    () = task.run() => {}
                }
            });
        })?;
        Ok(Monitor { settings, backends, _stop: stop })
    }
}

struct Task {
    settings: MonitorSettings,
    servers: Vec<Observed>,
    primary: Option<usize>,
}

/// A server as the monitor knows it.
struct Observed {
    backend: Arc<Backend>,
    name: String,
    address: Address,
    poller: Poller,
    reachability: Reachability,
    server_id: Option<u32>,
    /// When it is polled next, and how many intervals after the last poll that is.
    due: Instant,
    backoff: u32,
}

impl Task {
    fn new(settings: MonitorSettings, backends: Vec<Arc<Backend>>) -> Task {
        let primary = backends.iter().position(|backend| backend.condition().role() == Role::Primary);
        let observed = |backend: Arc<Backend>| {
            let server = backend.settings();
            let target = server.url(&settings.user, &settings.password);
            let facts = backend.details().facts.clone().filter(|_| backend.condition().reached == Reached::Up);
            Observed {
                name: server.name.clone(),
                address: server.address(),
                poller: Poller::new(target, settings.kind, settings.timeout),
                server_id: facts.as_ref().map(|facts| facts.server_id),
                reachability: Reachability::continued(facts),
                due: Instant::now(),
                backoff: 1,
                backend,
            }
        };
        Task { servers: backends.into_iter().map(observed).collect(), settings, primary }
    }

    async fn run(&mut self) {
        loop {
            self.round().await;
            self.decide();
            self.pause().await;
        }
    }

    /// Polls the servers that are due, all at the same time.
    async fn round(&mut self) {
        let now = Instant::now();
        let (interval, failures_max) = (self.settings.interval, self.settings.failures_max);
        let due = self.servers.iter_mut().filter(|server| server.due <= now);
        type Polling<'s> = Pin<Box<dyn Future<Output = ()> + 's>>;
        let polls = due.map(|server| Box::pin(server.poll(interval, failures_max)) as Polling<'_>);
        let mut polls: Vec<Polling<'_>> = polls.collect();
        poll_fn(|context| {
            polls.retain_mut(|poll| poll.as_mut().poll(context).is_pending());
            if polls.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Waits until a server is due, or a session has met an error.
    async fn pause(&mut self) {
        let due = self.servers.iter().map(|server| server.due).min();
        let due = due.unwrap_or_else(|| Instant::now() + self.settings.interval);
        let mut suspicions: Vec<_> =
            self.servers.iter().map(|server| Box::pin(server.backend.suspicion.notified())).collect();
        let suspected = poll_fn(|context| {
            let noted = suspicions.iter_mut().position(|suspicion| suspicion.as_mut().poll(context).is_ready());
            noted.map_or(Poll::Pending, Poll::Ready)
        });
        let suspected = tokio::select! {
            () = tokio::time::sleep_until(due) => return,
            suspected = suspected => suspected,
        };
        drop(suspicions);
        // Not more often than that, however many sessions fail.
        tokio::time::sleep(self.settings.interval / 10).await;
        self.servers[suspected].due = Instant::now();
    }

    /// Decides the roles and publishes the changes.
    fn decide(&mut self) {
        let members: Vec<Member<'_>> = self.servers.iter().map(Observed::member).collect();
        let standings = topology::decide(self.settings.kind, &members, self.primary);
        let primary = topology::primary(&standings);
        // The server that loses the role does so before another gets it.
        let order = (0..standings.len()).filter(|&number| Some(number) != primary).chain(primary);
        for number in order {
            self.servers[number].publish(standings[number], &self.settings.name);
        }
        if self.primary != primary {
            let name = |number: Option<usize>| number.map_or("none", |number| self.servers[number].name.as_str());
            let (monitor, before, after) = (&self.settings.name, name(self.primary), name(primary));
            match primary {
                Some(_) => tracing::info!(monitor, before, "the primary is {after}"),
                None => tracing::warn!(monitor, before, "there is no primary"),
            }
            self.primary = primary;
        }
    }
}

impl Observed {
    fn member(&self) -> Member<'_> {
        Member { address: &self.address, server_id: self.server_id, facts: self.reachability.facts.as_ref() }
    }

    async fn poll(&mut self, interval: Duration, failures_max: u32) {
        let outcome = self.poller.poll().await;
        if let Outcome::Answered(facts) = &outcome {
            self.server_id = Some(facts.server_id);
        }
        self.reachability.record(outcome, failures_max);
        self.backoff = match self.reachability.state {
            Reached::Down => (2 * self.backoff).min(BACKOFF_MAX),
            Reached::Up | Reached::Unknown => 1,
        };
        self.due = Instant::now() + interval * self.backoff;
    }

    /// Publishes the state, and logs it if it has changed.
    fn publish(&self, standing: Standing, monitor: &str) {
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
