//! What lives how long: the process, a worker thread, a client connection.

use crate::answers::{Answers, CachePolicy, Caches};
use crate::catalog_figures::Catalog;
use crate::clock;
use crate::cursor::{CursorLimits, Cursors};
use crate::index_filters::IndexFilters;
use crate::logical_session::{LogicalSessionId, LogicalSessions};
use crate::profiling::Profiling;
use crate::running::Operations;
use crate::statistics::Statistics;
use crate::table;
use crate::usage::Usage;
use crate::write_lock::WriteLock;
use bytes::Bytes;
use document::{Doc, DocBuf, ObjectId, Value};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;
use store::{DocumentStore, Engine, Namespace};
use tokio::sync::watch;
use values::spill::SpillSpace;

/// How often a worker looks for cursors and sessions whose time is up, in milliseconds.
const SWEEP_INTERVAL_MS: i64 = 4000;

/// How the server presents itself in `hello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// `msg: "isdbgrid"`: works behind any address translation.
    Router,
    /// `setName`, with one member at the advertised address.
    ReplicaSet {
        name: String,
        advertised: String,
    },
    Standalone,
}

/// What the process was started with, as far as commands answer from it or depend on it.
#[derive(Clone, Debug)]
pub struct Settings {
    pub topology: Topology,
    pub cursor_timeout: std::time::Duration,
    pub cursor_limits: CursorLimits,
    /// How many clients may be connected.
    pub connections_max: usize,
    /// Operations that take longer are slow, in milliseconds.
    pub slow_ms: i64,
    /// Whether slow operations are logged.
    pub slow_log: bool,
    /// The command line, for `getCmdLineOpts`.
    pub argv: Vec<String>,
    /// The configuration in effect, for `getCmdLineOpts`.
    pub parsed: DocBuf,
    /// Compressors offered, by preference.
    pub compressors: Vec<String>,
    pub workers: usize,
    /// Where sorts and groups put what does not fit into memory; nowhere, where there is none.
    pub disk: Option<Arc<dyn SpillSpace>>,
}

/// Process-wide state: settings, cursors, counters. Shared by all workers.
pub struct Server {
    pub settings: Settings,
    pub engine: Arc<dyn Engine>,
    /// The document cache, if there is one.
    pub answers: Option<Answers>,
    /// What connections use of the caches, by the listener that they came to.
    listeners: Vec<CachePolicy>,
    /// What the result-set cache tells of itself, if there is one.
    pub results: Option<Box<dyn Fn() -> cache::Statistics + Send + Sync>>,
    /// The same for the answers that SQL clients get.
    pub sql: Option<Box<dyn Fn() -> cache::Statistics + Send + Sync>>,
    pub cursors: Cursors,
    /// When the process began to serve.
    pub started: Instant,
    pub started_ms: i64,
    /// Names this run of the process in `topologyVersion`.
    pub process_id: ObjectId,
    /// The counter in `topologyVersion`: goes up when what `hello` says changes.
    topology: watch::Sender<i64>,
    stopping: AtomicBool,
    workers: Mutex<Vec<Arc<WorkerShared>>>,
    pub parameters: Parameters,
    pub(crate) catalog: Catalog,
    /// `fsync` with `lock`.
    pub write_lock: WriteLock,
    pub profiling: Profiling,
    pub(crate) index_filters: IndexFilters,
    /// Sessions that clients have ended, and when.
    ended_sessions: LogicalSessions,
    /// A worker has taken it upon itself to delete expired documents.
    expiry_claimed: AtomicBool,
}

/// What `setParameter` can change.
#[derive(Debug)]
pub struct Parameters {
    pub cursor_timeout_ms: AtomicI64,
    /// `ttlMonitorSleepSecs`: the pause between two rounds that delete expired documents.
    pub expiry_sleep_seconds: AtomicI64,
    /// `ttlMonitorEnabled`.
    pub expiry_enabled: AtomicBool,
}

impl Parameters {
    fn new(cursor_timeout_ms: i64) -> Parameters {
        Parameters {
            cursor_timeout_ms: AtomicI64::new(cursor_timeout_ms),
            expiry_sleep_seconds: AtomicI64::new(60),
            expiry_enabled: AtomicBool::new(true),
        }
    }
}

impl Server {
    /// The caches that clients of a listener use.
    fn uses_of(&self, listener: usize) -> CachePolicy {
        self.listeners.get(listener).copied().unwrap_or(CachePolicy::ALL)
    }

    pub fn new(settings: Settings, engine: Arc<dyn Engine>, caches: Caches) -> Arc<Server> {
        let cursor_timeout_ms = settings.cursor_timeout.as_millis() as i64;
        let (slow_ms, slow_log) = (settings.slow_ms, settings.slow_log);
        let cursors = Cursors::new(settings.cursor_limits);
        Arc::new(Server {
            settings,
            engine,
            answers: caches.answers,
            listeners: caches.listeners,
            results: caches.results,
            sql: caches.sql,
            cursors,
            started: Instant::now(),
            started_ms: clock::now_ms(),
            process_id: ObjectId::from_parts(clock::now_seconds(), rand::random(), rand::random()),
            expiry_claimed: AtomicBool::new(false),
            topology: watch::Sender::new(0),
            stopping: AtomicBool::new(false),
            workers: Mutex::default(),
            catalog: Catalog::default(),
            write_lock: WriteLock::default(),
            profiling: Profiling::new(slow_ms, slow_log),
            index_filters: IndexFilters::default(),
            ended_sessions: LogicalSessions::default(),
            parameters: Parameters::new(cursor_timeout_ms),
        })
    }

    /// What every worker shows to the others.
    pub fn workers(&self) -> Vec<Arc<WorkerShared>> {
        self.lock_workers().clone()
    }

    /// All workers' figures in one.
    pub fn statistics(&self) -> Statistics {
        let total = Statistics::new(table::COMMANDS.len());
        for worker in self.workers() {
            total.merge(&worker.statistics);
        }
        total
    }

    /// The process is going down: nobody waits in `hello` any more, neither those who do now nor those who come yet.
    pub fn announce_stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.announce_topology_change();
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Tells everybody who waits in `hello` that what it says has changed.
    pub fn announce_topology_change(&self) {
        self.topology.send_modify(|counter| *counter += 1);
    }

    pub fn topology_changes(&self) -> watch::Receiver<i64> {
        self.topology.subscribe()
    }

    /// Whether the caller is the first to ask, and so the one that deletes expired documents.
    pub(crate) fn claim_expiry(&self) -> bool {
        !self.expiry_claimed.swap(true, Ordering::Relaxed)
    }

    /// Notes on all workers when a logical session was used last.
    pub fn session_last_use(&self, id: &LogicalSessionId) -> Option<i64> {
        self.workers().iter().filter_map(|worker| worker.sessions.last_use(id)).max()
    }

    /// Forgets how collections were used that are there no more.
    pub(crate) fn forget_usage(&self, gone: impl Fn(&Namespace) -> bool) {
        self.workers().iter().for_each(|worker| worker.usage.forget(&gone));
    }

    /// Counts anew what is read by an index with this key.
    pub(crate) fn begin_index(&self, namespace: &Namespace, key: Doc<'_>) {
        let now = crate::clock::now_ms();
        self.workers().iter().for_each(|worker| worker.usage.begin_index(namespace, key, now));
    }

    /// When the process began, in milliseconds since 1970.
    pub(crate) fn started_ms(&self) -> i64 {
        crate::clock::now_ms() - self.started.elapsed().as_millis() as i64
    }

    /// Ends a logical session as its client does: its cursors stay for a while.
    pub fn end_session(&self, id: &LogicalSessionId, now_ms: i64) {
        self.forget_session(id);
        self.ended_sessions.note(*id, now_ms);
    }

    /// Ends a logical session at once: forgets it, kills its cursors.
    pub fn kill_session(&self, id: &LogicalSessionId) {
        self.forget_session(id);
        self.cursors.kill_where(|owner| owner.session == Some(*id));
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

/// The part of a worker that other threads may look at. Its locks are its worker's own, but for the rare visitor.
#[derive(Debug)]
pub struct WorkerShared {
    pub statistics: Statistics,
    pub sessions: LogicalSessions,
    pub operations: Operations,
    pub(crate) usage: Usage,
}

/// A worker thread's half: its store and its statistics. Never leaves the thread.
pub struct Worker {
    pub server: Arc<Server>,
    pub store: Rc<dyn DocumentStore>,
    pub shared: Arc<WorkerShared>,
    /// Used again and again for what answers are kept by.
    pub(crate) key_buffer: RefCell<Vec<u8>>,
    object_ids: ObjectIds,
    timestamp_counter: Cell<u32>,
    swept_ms: Cell<i64>,
}

impl Worker {
    pub fn open(server: Arc<Server>) -> error::Result<Rc<Worker>> {
        let store = server.engine.clone().open()?;
        let shared = Arc::new(WorkerShared {
            statistics: Statistics::new(table::COMMANDS.len()),
            sessions: LogicalSessions::default(),
            operations: Operations::default(),
            usage: Usage::default(),
        });
        server.lock_workers().push(shared.clone());
        Ok(Rc::new(Worker {
            server,
            store,
            shared,
            key_buffer: RefCell::default(),
            object_ids: ObjectIds { process: rand::random(), counter: Cell::new(rand::random()) },
            timestamp_counter: Cell::new(0),
            swept_ms: Cell::new(clock::now_ms()),
        }))
    }

    pub fn statistics(&self) -> &Statistics {
        &self.shared.statistics
    }

    /// Ends what is under way for a connection and was only to be read to its client, which has
    /// hung up. Writes go on, as in MongoDB.
    pub fn stop_reads_of(&self, connection_id: u64) {
        let operations = self.shared.operations.list();
        let own = operations.iter().filter(|operation| operation.identity.connection_id == connection_id);
        own.filter(|operation| table::only_reads(operation.command())).for_each(|operation| operation.client_left());
    }

    /// Closes the cursor of a `getMore` that a client which has left wanted to have repeated.
    pub fn give_up(&self, body: Doc<'_>) {
        if let Some(first) = body.first()
            && let ("getMore", Value::Int64(id)) = (first.key(), first.value())
        {
            self.server.cursors.kill(id);
        }
    }

    /// A new ObjectId, unlike any other made by any worker of any process.
    pub fn new_object_id(&self, now_ms: i64) -> ObjectId {
        let counter = self.object_ids.counter.get().wrapping_add(1);
        self.object_ids.counter.set(counter);
        ObjectId::from_parts((now_ms / 1000) as u32, self.object_ids.process, counter)
    }

    /// A timestamp for documents that are stored with an empty one; no two of a worker are the same within a second.
    pub fn new_timestamp(&self, now_ms: i64) -> Value<'static> {
        let increment = self.timestamp_counter.get().wrapping_add(1);
        self.timestamp_counter.set(increment);
        Value::Timestamp { time: (now_ms / 1000) as u32, increment }
    }

    /// Ends cursors and sessions whose time is up, every few seconds. Called before each command; a server that should
    /// let go of idle cursors also when nobody asks for anything calls it from a timer.
    pub fn sweep(&self, now_ms: i64) {
        if now_ms - self.swept_ms.get() < SWEEP_INTERVAL_MS {
            return;
        }
        self.swept_ms.set(now_ms);
        self.shared.sessions.expire(now_ms);
        self.server.ended_sessions.take_over(now_ms).iter().for_each(|id| self.server.kill_session(id));
        let timeout_ms = self.server.parameters.cursor_timeout_ms.load(Ordering::Relaxed);
        let timed_out =
            self.server.cursors.expire(now_ms, timeout_ms, |session| self.server.session_last_use(session).is_some());
        self.statistics().cursors_timed_out.add(timed_out);
    }
}

struct ObjectIds {
    process: [u8; 5],
    counter: Cell<u32>,
}

/// Who is at the other end, for those who list operations.
#[derive(Debug)]
pub struct ClientIdentity {
    pub connection_id: u64,
    pub client: Option<SocketAddr>,
    /// The `client` document of the handshake.
    pub metadata: OnceLock<Bytes>,
    /// A handshake has succeeded: the client may not say again who it is.
    pub is_introduced: AtomicBool,
}

/// The life of one client connection, as commands see it.
pub struct ClientSession {
    pub connection_id: u64,
    pub client: Option<SocketAddr>,
    pub identity: Arc<ClientIdentity>,
    /// The logical session noted last, and when; saves noting it with each command.
    noted: Cell<(LogicalSessionId, i64)>,
    /// The listener's number.
    listener: usize,
    /// From which caches answers may come, and into which they may go.
    pub uses: Cell<CachePolicy>,
}

impl ClientSession {
    /// `listener`: the number of the one that the client came to.
    pub fn new(server: &Server, connection_id: u64, client: Option<SocketAddr>, listener: usize) -> Self {
        ClientSession {
            connection_id,
            client,
            identity: Arc::new(ClientIdentity {
                connection_id,
                client,
                metadata: OnceLock::new(),
                is_introduced: AtomicBool::new(false),
            }),
            noted: Cell::new(([0; 16], 0)),
            listener,
            uses: Cell::new(server.uses_of(listener)),
        }
    }

    /// Says whether the caches are used, as far as the listener lets its clients.
    pub fn use_caches(&self, server: &Server, use_them: bool) {
        self.uses.set(if use_them { server.uses_of(self.listener) } else { CachePolicy::NONE });
    }

    /// Notes that a logical session is in use. To the second: the timeout is half an hour.
    pub fn note_logical_session(&self, worker: &Worker, id: LogicalSessionId, now_ms: i64) {
        let (noted, noted_ms) = self.noted.get();
        if noted != id || now_ms - noted_ms >= 1000 {
            worker.shared.sessions.note(id, now_ms);
            self.noted.set((id, now_ms));
        }
    }

    pub fn forget_noted_session(&self) {
        self.noted.set(([0; 16], 0));
    }
}
