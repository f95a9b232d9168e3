//! The task of a monitor: polls its servers, decides their roles, publishes both, and changes the
//! servers if that is allowed or ordered.

use crate::agreement::{MajorityOf, Votes};
use crate::backend::Backend;
use crate::monitor_status::{LastAction, MonitorReport, MonitorStatus};
use crate::observed::Observed;
use crate::operation::Operation;
use crate::order::{Order, Ordered, Outcome};
use crate::plan::{self, Candidate, Promotion, Upkeep};
use crate::role::{ClusterKind, Member, Role, Standing};
use crate::settings::MonitorSettings;
use crate::topology;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// After an action that has failed, the monitor does nothing by itself for so many intervals.
const INTERVALS_AFTER_FAILURE: u32 = 10;

/// A running monitor, which ends when this is dropped.
#[derive(Debug)]
pub struct Monitor {
    pub settings: MonitorSettings,
    pub backends: Vec<Arc<Backend>>,
    status: Arc<Mutex<MonitorStatus>>,
    orders: mpsc::UnboundedSender<Ordered>,
    _stop: oneshot::Sender<()>,
}

impl Monitor {
    /// Starts a monitor in a thread of its own. Its backends keep their condition until they were
    /// polled, so that a changed monitor closes no session.
    pub fn start(settings: MonitorSettings, backends: Vec<Arc<Backend>>) -> io::Result<Monitor> {
        for backend in &backends {
            backend.details().monitor = Some(settings.name.clone());
            backend.change(|condition| {
                (condition.is_monitored, condition.awaits_primary) = (true, settings.allowed.failover);
            });
        }
        let (stop, stopped) = oneshot::channel();
        let (orders, ordered) = mpsc::unbounded_channel();
        let status = Arc::<Mutex<MonitorStatus>>::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (task_settings, task_backends, task_status) = (settings.clone(), backends.clone(), status.clone());
        let thread = std::thread::Builder::new().name(format!("monitor-{}", settings.name));
        thread.spawn(move || {
            // Its connections never leave the thread.
            let mut task = Task::new(task_settings, task_backends, task_status, ordered);
            runtime.block_on(task.run(stopped));
        })?;
        Ok(Monitor { settings, backends, status, orders, _stop: stop })
    }

    /// Gives an order. The returned receiver fails if the monitor ends.
    pub fn order(&self, order: Order) -> oneshot::Receiver<Outcome> {
        let (answer, answered) = oneshot::channel();
        // If the monitor has ended, the answer drops.
        let _ = self.orders.send(Ordered { order, answer });
        answered
    }

    pub fn report(&self) -> MonitorReport {
        let MonitorSettings { name, kind, allowed, majority_of, .. } = self.settings.clone();
        let status = self.status.lock().unwrap_or_else(PoisonError::into_inner).clone();
        MonitorReport { name, kind, allowed, majority_of, status }
    }
}

struct Task {
    settings: MonitorSettings,
    servers: Vec<Observed>,
    primary: Option<usize>,
    /// The last primary that there was.
    last_primary: Option<usize>,
    status: Arc<Mutex<MonitorStatus>>,
    orders: mpsc::UnboundedReceiver<Ordered>,
    /// Nothing is changed before, because an action has failed.
    idle_until: Instant,
    /// Why there was no failover, to log each reason once.
    refusal: Option<String>,
}

impl Task {
    fn new(
        settings: MonitorSettings,
        backends: Vec<Arc<Backend>>,
        status: Arc<Mutex<MonitorStatus>>,
        orders: mpsc::UnboundedReceiver<Ordered>,
    ) -> Task {
        let primary = backends.iter().position(|backend| backend.condition().role() == Role::Primary);
        let servers = backends.into_iter().map(|backend| Observed::new(backend, &settings)).collect();
        let (last_primary, idle_until, refusal) = (primary, Instant::now(), None);
        Task { settings, servers, primary, last_primary, status, orders, idle_until, refusal }
    }

    /// Runs until it is stopped. A change of servers that has begun is ended first: its locks keep
    /// the monitor that replaces this one from changing them.
    async fn run(&mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                // The sender only ever drops.
                _ = &mut stopped => return,
                () = self.observe() => {}
            }
            if self.settings.is_active() {
                self.vote(self.settings.majority_of).await;
                self.act().await;
            }
            self.note_status();
            let ordered = tokio::select! {
                _ = &mut stopped => return,
                ordered = self.pause() => ordered,
            };
            if let Some(ordered) = ordered {
                self.obey(ordered).await;
            }
        }
    }

    async fn observe(&mut self) {
        self.round().await;
        self.decide();
    }

    /// Observes all servers at once.
    async fn observe_all(&mut self) {
        self.servers.iter_mut().for_each(|server| server.due = Instant::now());
        self.observe().await;
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

    /// Waits until a server is due, a session has met an error, or there is an order.
    async fn pause(&mut self) -> Option<Ordered> {
        let due = self.servers.iter().map(|server| server.due).min();
        let due = due.unwrap_or_else(|| Instant::now() + self.settings.interval);
        let mut suspicions: Vec<_> =
            self.servers.iter().map(|server| Box::pin(server.backend.suspicion.notified())).collect();
        let suspected = poll_fn(|context| {
            let noted = suspicions.iter_mut().position(|suspicion| suspicion.as_mut().poll(context).is_ready());
            noted.map_or(Poll::Pending, Poll::Ready)
        });
        let suspected = tokio::select! {
            () = tokio::time::sleep_until(due) => return None,
            // Without senders, the task is about to be stopped.
            Some(ordered) = self.orders.recv() => return Some(ordered),
            suspected = suspected => suspected,
        };
        drop(suspicions);
        // Not more often than that, however many sessions fail.
        tokio::time::sleep(self.settings.interval / 10).await;
        self.servers[suspected].due = Instant::now();
        None
    }

    /// Decides the roles and publishes the changes.
    fn decide(&mut self) {
        let standings = self.standings();
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
        self.last_primary = primary.or(self.last_primary);
    }

    fn standings(&self) -> Vec<Standing> {
        let members: Vec<Member<'_>> = self.servers.iter().map(Observed::member).collect();
        let mut standings = topology::decide(self.settings.kind, &members, self.primary);
        let primary = topology::primary(&standings);
        if !self.settings.is_active() {
            return standings;
        }
        let is_isolated = self.votes().may_be_isolated() && self.settings.majority_of == MajorityOf::All;
        if let Some(primary) = primary.filter(|_| is_isolated && self.settings.allowed.failover) {
            standings[primary] =
                Standing::none("most servers cannot be reached, and another gateway may have replaced it");
        }
        let candidates = self.candidates();
        for (number, standing) in standings.iter_mut().enumerate() {
            if let Some(reason) = plan::follow_reason(&candidates, primary, number) {
                *standing = Standing::none(reason);
            }
        }
        standings
    }

    fn candidates(&self) -> Vec<Candidate<'_>> {
        self.servers.iter().map(Observed::candidate).collect()
    }

    fn votes(&self) -> Votes {
        let count = |is: fn(&Observed) -> bool| self.servers.iter().filter(|server| is(server)).count();
        Votes {
            servers: self.servers.len(),
            running: count(Observed::is_up),
            held: count(|server| server.poller.holds_lock()),
        }
    }

    /// Takes the lock on all servers, one after the other. A gateway that gets no majority releases
    /// what it has, so that another one gets it.
    async fn vote(&mut self, of: MajorityOf) -> bool {
        let had_majority = self.votes().are_majority(of);
        let MonitorSettings { interval, timeout, change_timeout, .. } = self.settings;
        let idle_max = 3 * (interval + timeout) + change_timeout + Duration::from_secs(1);
        for server in self.servers.iter_mut().filter(|server| server.is_up()) {
            if let Err(failure) = server.poller.take_lock(idle_max).await {
                tracing::debug!(monitor = self.settings.name, server = server.name, "the lock is not taken: {failure}");
            }
        }
        let votes = self.votes();
        let has_majority = votes.are_majority(of);
        if has_majority != had_majority {
            let (monitor, held, servers) = (&self.settings.name, votes.held, votes.servers);
            tracing::info!(
                monitor,
                held,
                servers,
                "this gateway {} the majority of locks",
                match has_majority {
                    true => "has",
                    false => "has not",
                }
            );
        }
        if !has_majority {
            self.release_locks().await;
        }
        has_majority
    }

    async fn release_locks(&mut self) {
        for server in &mut self.servers {
            server.poller.release_lock().await;
        }
    }

    /// Makes the change that is due, if there is one.
    async fn act(&mut self) {
        if self.settings.kind != ClusterKind::Replication || Instant::now() < self.idle_until {
            return;
        }
        let promotion = match self.primary {
            None if self.settings.allowed.failover => plan::failover(&self.candidates()),
            _ => Ok(None),
        };
        let has_majority = self.votes().are_majority(self.settings.majority_of);
        let promotion = match promotion {
            Ok(Some(_)) if !has_majority => Err("this gateway has not the majority of locks".to_owned()),
            promotion => promotion,
        };
        self.note_refusal(promotion.as_ref().err().cloned());
        if let Ok(Some(promotion)) = promotion {
            return self.fail_over(promotion).await;
        }
        let upkeep = plan::upkeep(&self.candidates(), self.primary, self.last_primary, self.settings.allowed);
        if let Some(upkeep) = upkeep.filter(|_| has_majority) {
            let (what, outcome) = self.keep_up(upkeep).await;
            self.conclude(what, outcome).await;
        }
    }

    /// Fails over, if another poll of all servers leads to the same plan.
    async fn fail_over(&mut self, promotion: Promotion) {
        self.observe_all().await;
        if self.primary.is_some() || plan::failover(&self.candidates()) != Ok(Some(promotion.clone())) {
            return;
        }
        let (new, old) = (&self.servers[promotion.new], promotion.old.map(|old| &self.servers[old]));
        let what = format!("failover to {}", new.name);
        if let (Some(old), Some(facts)) = (old, new.facts()) {
            let (monitor, has) = (&self.settings.name, facts.received());
            let last = old.backend.details().facts.as_ref().map(|facts| facts.binlog.to_string());
            tracing::warn!(monitor, %has, "{what}, as {} is lost, whose last known position was {}", old.name, last.unwrap_or_default());
        }
        let outcome = self.operation(false).fail_over(&promotion).await;
        if outcome.is_ok() {
            self.primary = Some(promotion.new);
        }
        self.conclude(what, outcome).await;
    }

    async fn keep_up(&mut self, upkeep: Upkeep) -> (String, Outcome) {
        let name = |server: usize| self.servers[server].name.clone();
        let what = match upkeep {
            Upkeep::Follow { server, .. } => format!("rejoin of {}", name(server)),
            Upkeep::Fence(server) | Upkeep::SetReadOnly(server) => format!("read-only on {}", name(server)),
            Upkeep::SetWritable(server) => format!("writes on {}, which has started again", name(server)),
        };
        tracing::info!(monitor = self.settings.name, "{what}");
        let mut operation = self.operation(false);
        let outcome = match upkeep {
            Upkeep::Follow { server, primary } => operation.rejoin(server, primary).await,
            Upkeep::Fence(server) => operation.fence(server).await,
            Upkeep::SetReadOnly(server) => operation.set_read_only(server, true).await,
            Upkeep::SetWritable(server) => operation.set_read_only(server, false).await,
        };
        (what, outcome)
    }

    /// Executes an order.
    async fn obey(&mut self, Ordered { order, answer }: Ordered) {
        let outcome = self.try_to_obey(&order).await;
        if !self.settings.is_active() {
            self.release_locks().await;
        }
        let what = match &order {
            Order::Switchover(server) => format!("switchover to {server}"),
            Order::Failover(server) => format!("failover to {server}, as ordered"),
            Order::Rejoin(server) => format!("rejoin of {server}, as ordered"),
        };
        self.conclude(what, outcome.clone()).await;
        self.announce_change(self.settings.allowed.failover);
        // An order is no reason to leave others undone.
        self.idle_until = Instant::now();
        // The client may have gone.
        let _ = answer.send(outcome);
    }

    async fn try_to_obey(&mut self, order: &Order) -> Outcome {
        if self.settings.kind != ClusterKind::Replication {
            return Err("the nodes of a Galera cluster have no primary to change".into());
        }
        let name = order.server();
        let server = self.servers.iter().position(|server| server.name == name);
        let server = server.ok_or_else(|| format!("the monitor has no server {name:?}"))?;
        self.observe_all().await;
        if !self.vote(MajorityOf::Running).await {
            return Err("another gateway holds the locks of most servers".into());
        }
        let candidates = self.candidates();
        let promotion = match order {
            Order::Switchover(_) => plan::switchover(&candidates, self.primary, server)?,
            Order::Failover(_) => plan::forced_failover(&candidates, server)?,
            Order::Rejoin(_) => {
                let primary = self.primary.ok_or("there is no primary")?;
                plan::rejoin(&candidates, primary, server)?;
                return self.operation(true).rejoin(server, primary).await;
            }
        };
        tracing::info!(monitor = self.settings.name, "{order:?} begins");
        match promotion.old.filter(|_| matches!(order, Order::Switchover(_))) {
            Some(old) => {
                self.announce_change(true);
                // Its sessions end before their writes are refused.
                let standing = Standing::none("its role goes to another server");
                self.servers[old].publish(standing, &self.settings.name);
                self.operation(true).switch_over(&promotion).await?;
            }
            None => self.operation(true).fail_over(&promotion).await?,
        }
        self.primary = Some(promotion.new);
        Ok(())
    }

    /// Makes new sessions wait for a primary, or no longer.
    fn announce_change(&self, awaits_primary: bool) {
        for server in &self.servers {
            server.backend.change(|condition| condition.awaits_primary = awaits_primary);
        }
    }

    fn operation(&mut self, is_ordered: bool) -> Operation<'_> {
        Operation { settings: &self.settings, servers: &mut self.servers, is_ordered }
    }

    /// Records the outcome of an action, and polls all servers.
    async fn conclude(&mut self, what: String, outcome: Outcome) {
        let monitor = &self.settings.name;
        match &outcome {
            Ok(()) => tracing::info!(monitor, "done: {what}"),
            Err(error) => {
                tracing::warn!(monitor, "failed: {what}: {error}");
                self.idle_until = Instant::now() + self.settings.interval * INTERVALS_AFTER_FAILURE;
            }
        }
        self.observe_all().await;
        self.lock_status().last = Some(LastAction::now(what, outcome));
        self.note_status();
    }

    fn note_refusal(&mut self, refusal: Option<String>) {
        if self.refusal != refusal {
            if let Some(refusal) = &refusal {
                tracing::warn!(monitor = self.settings.name, "no failover: {refusal}");
            }
            self.refusal = refusal;
        }
    }

    fn note_status(&self) {
        let mut status = self.lock_status();
        status.primary = self.primary.map(|primary| self.servers[primary].name.clone());
        status.votes = self.votes();
        status.refusal.clone_from(&self.refusal);
    }

    fn lock_status(&self) -> std::sync::MutexGuard<'_, MonitorStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
