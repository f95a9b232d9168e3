//! The process-wide state.

use crate::access_control::AccessControl;
use crate::audit::Audit;
use crate::catalog_counts::CatalogCounts;
use crate::clock;
use crate::cluster_clock::{ClusterClock, ClusterTime};
use crate::cursor::{CursorOwner, CursorRegistry};
use crate::default_concerns::DefaultConcerns;
use crate::document_cache::{CachePolicy, CacheStatistics, Caches, DocumentCache};
use crate::fail_point::FailPoint;
use crate::index_filters::IndexFilters;
use crate::logical_session::{LogicalSessionId, LogicalSessions};
use crate::login_statistics::LoginStatistics;
use crate::profiling::Profiling;
use crate::settings::{Parameters, Settings};
use crate::snapshots::Snapshots;
use crate::sql_statistics::SqlStatistics;
use crate::statistics::Statistics;
use crate::transactions::Transactions;
use crate::worker_shared::WorkerShared;
use crate::write_lock::WriteLock;
use document::{Doc, ObjectId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use store::{Engine, Namespace};
use tokio::sync::watch;

/// Process-wide state: settings, cursors, counters. Shared by all workers.
pub struct Server {
    pub settings: Settings,
    pub access_control: AccessControl,
    pub engine: Arc<dyn Engine>,
    pub document_cache: Option<DocumentCache>,
    /// The caches that connections use, by the number of their listener.
    listeners: Vec<CachePolicy>,
    /// Returns the statistics of the store's result-set cache, if there is one.
    pub result_set_cache: Option<CacheStatistics>,
    /// Returns the statistics of the cache for SQL clients, if there is one.
    pub sql_cache: Option<CacheStatistics>,
    pub cursors: CursorRegistry,
    pub transactions: Transactions,
    pub snapshots: Snapshots,
    pub default_concerns: DefaultConcerns,
    /// When the process began to serve.
    pub started: Instant,
    pub started_ms: i64,
    /// Names this run of the process in `topologyVersion`.
    pub process_id: ObjectId,
    /// The counter in `topologyVersion`, which rises when the reply to `hello` changes.
    topology: watch::Sender<i64>,
    stopping: AtomicBool,
    workers: Mutex<Vec<Arc<WorkerShared>>>,
    /// The number of commands that have statistics.
    command_count: usize,
    pub parameters: Parameters,
    pub catalog_counts: CatalogCounts,
    /// The times of writes, which replies report.
    pub cluster_clock: ClusterClock,
    /// `fsync` with `lock`.
    pub write_lock: WriteLock,
    /// `failCommand`, which is off without [`Settings::test_commands`].
    pub fail_command: FailPoint,
    pub profiling: Profiling,
    pub index_filters: IndexFilters,
    pub sql_statistics: SqlStatistics,
    pub login_statistics: LoginStatistics,
    /// The MariaDB servers with a name.
    pub sql_servers: Arc<service::Registry>,
    /// The audit log, if there is one.
    pub audit: Audit,
    /// Sessions that clients have ended, and when.
    pub(crate) ended_sessions: LogicalSessions,
    /// Whether a worker runs the TTL monitor.
    ttl_monitor_claimed: AtomicBool,
}

impl Server {
    /// Creates the state of a process. `command_count`: the number of commands in the table.
    pub fn new(settings: Settings, engine: Arc<dyn Engine>, caches: Caches, command_count: usize) -> Arc<Server> {
        let cursor_timeout_ms = settings.cursor_timeout.as_millis() as i64;
        let (slow_ms, slow_log) = (settings.slow_ms, settings.slow_log);
        let cursors = CursorRegistry::new(settings.cursor_limits);
        let cluster_clock = ClusterClock::new(ClusterTime::new(clock::now_seconds(), 1), settings.access_control);
        Arc::new(Server {
            access_control: AccessControl::new(settings.access_control),
            sql_servers: settings.sql_servers.clone(),
            settings,
            engine,
            document_cache: caches.documents,
            listeners: caches.listeners,
            result_set_cache: caches.result_sets,
            sql_cache: caches.sql,
            cursors,
            transactions: Transactions::default(),
            snapshots: Snapshots::default(),
            default_concerns: DefaultConcerns::default(),
            started: Instant::now(),
            started_ms: clock::now_ms(),
            process_id: ObjectId::from_parts(clock::now_seconds(), rand::random(), rand::random()),
            ttl_monitor_claimed: AtomicBool::new(false),
            topology: watch::Sender::new(0),
            stopping: AtomicBool::new(false),
            workers: Mutex::default(),
            command_count,
            catalog_counts: CatalogCounts::default(),
            cluster_clock,
            write_lock: WriteLock::default(),
            fail_command: FailPoint::default(),
            profiling: Profiling::new(slow_ms, slow_log),
            index_filters: IndexFilters::default(),
            sql_statistics: SqlStatistics::default(),
            login_statistics: LoginStatistics::default(),
            audit: Audit::default(),
            ended_sessions: LogicalSessions::default(),
            parameters: Parameters::new(cursor_timeout_ms),
        })
    }

    /// Returns the caches that clients of a listener use.
    pub(crate) fn cache_policy(&self, listener: usize) -> CachePolicy {
        self.listeners.get(listener).copied().unwrap_or(CachePolicy::ALL)
    }

    /// Returns the shared part of each worker.
    pub fn workers(&self) -> Vec<Arc<WorkerShared>> {
        self.lock_workers().clone()
    }

    /// Creates the shared part of a new worker.
    pub(crate) fn add_worker(&self) -> Arc<WorkerShared> {
        let shared = Arc::new(WorkerShared::new(self.command_count));
        self.lock_workers().push(shared.clone());
        shared
    }

    /// Returns the sum of all workers' counters.
    pub fn statistics(&self) -> Statistics {
        let total = Statistics::new(self.command_count);
        for worker in self.workers() {
            total.merge(&worker.statistics);
        }
        total
    }

    /// Announces that the process is stopping: no `hello` waits any more, neither present nor later
    /// ones.
    pub fn announce_stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.announce_topology_change();
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Returns whether documents can be written: their servers have a primary.
    pub fn is_writable(&self) -> bool {
        self.settings.store_service.as_ref().is_none_or(|service| service.primary().is_some())
    }

    /// Wakes each waiting `hello`, because its reply has changed.
    pub fn announce_topology_change(&self) {
        self.topology.send_modify(|counter| *counter += 1);
    }

    pub fn topology_changes(&self) -> watch::Receiver<i64> {
        self.topology.subscribe()
    }

    /// Returns true for the first caller, which must run the TTL monitor.
    pub fn claim_ttl_monitor(&self) -> bool {
        !self.ttl_monitor_claimed.swap(true, Ordering::Relaxed)
    }

    /// Returns the last use of a logical session on any worker.
    pub fn session_last_use(&self, id: &LogicalSessionId) -> Option<i64> {
        self.workers().iter().filter_map(|worker| worker.sessions.last_use(id)).max()
    }

    /// Discards the usage statistics of the collections that `dropped` names.
    pub fn forget_usage(&self, dropped: impl Fn(&Namespace) -> bool) {
        self.workers().iter().for_each(|worker| worker.usage.forget(&dropped));
    }

    /// Restarts the usage statistics of indexes with this key.
    pub fn reset_index_usage(&self, namespace: &Namespace, key: Doc<'_>) {
        let now = clock::now_ms();
        self.workers().iter().for_each(|worker| worker.usage.reset_index(namespace, key, now));
    }

    /// Returns when the process began, in milliseconds since 1970, by the clock of now.
    pub fn started_ms(&self) -> i64 {
        clock::now_ms() - self.started.elapsed().as_millis() as i64
    }

    /// Ends a logical session as its client does: its transaction is aborted, and its cursors live
    /// on for a while.
    pub fn end_session(&self, id: &LogicalSessionId, now_ms: i64) {
        self.abort_transactions_where(|session| session == id);
        self.forget_session(id);
        self.ended_sessions.touch(*id, None, now_ms);
    }

    /// Ends a logical session at once, kills its operations and cursors, and aborts its
    /// transaction.
    pub fn kill_session(&self, id: &LogicalSessionId) {
        self.forget_session(id);
        self.kill_operations_where(|session| session == id);
        self.abort_transactions_where(|session| session == id);
        self.cursors.kill_where(|owner| owner.session == Some(*id));
    }

    /// Ends the logical sessions that match at once, kills their operations and cursors, and aborts
    /// their transactions.
    pub fn kill_sessions_where(&self, matches: impl Fn(&LogicalSessionId) -> bool) {
        self.kill_operations_where(&matches);
        self.abort_transactions_where(&matches);
        for worker in self.workers() {
            worker.sessions.end_where(&matches);
        }
        self.cursors.kill_where(|owner| owner.session.is_some_and(|session| matches(&session)));
    }

    /// Kills the operations under way of the sessions that match.
    fn kill_operations_where(&self, matches: impl Fn(&LogicalSessionId) -> bool) {
        for worker in self.workers() {
            worker.operations.for_each(|operation| {
                if operation.session.is_some_and(|session| matches(&session)) {
                    operation.kill();
                }
            });
        }
    }

    /// Aborts the transactions of the sessions that match, and kills the cursors of these.
    fn abort_transactions_where(&self, matches: impl Fn(&LogicalSessionId) -> bool) {
        if self.transactions.are_used() {
            self.transactions.abort_where(&matches);
            let is_of_one =
                |owner: &CursorOwner| owner.transaction.is_some() && owner.session.is_some_and(|id| matches(&id));
            self.cursors.kill_where(is_of_one);
        }
    }

    /// Aborts a transaction and kills its cursors.
    pub fn abort_transaction(&self, id: &LogicalSessionId, number: i64) {
        self.transactions.abort(id, number);
        self.kill_transaction_cursors(id, number);
    }

    /// Kills the cursors of a transaction that has ended.
    pub fn kill_transaction_cursors(&self, id: &LogicalSessionId, number: i64) {
        self.cursors.kill_where(|owner| owner.transaction == Some(number) && owner.session == Some(*id));
    }

    /// Aborts the transactions that have exceeded their life time, and releases old snapshots.
    pub fn expire_transactions(&self, now_ms: i64) {
        self.snapshots.expire(now_ms);
        for (id, number) in self.transactions.expire(now_ms) {
            tracing::debug!(session = %id, number, "a transaction has exceeded its life time and was aborted");
            self.kill_transaction_cursors(&id, number);
        }
    }

    fn forget_session(&self, id: &LogicalSessionId) {
        for worker in self.workers() {
            worker.sessions.end(id);
        }
    }

    fn lock_workers(&self) -> MutexGuard<'_, Vec<Arc<WorkerShared>>> {
        self.workers.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
