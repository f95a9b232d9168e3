//! A worker thread's half of the state.

use crate::clock;
use crate::server::Server;
use crate::statistics::Statistics;
use crate::worker_shared::WorkerShared;
use document::{Doc, ObjectId, Value};
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::DocumentStore;

/// How often a worker expires idle cursors and sessions, in milliseconds.
const EXPIRY_INTERVAL_MS: i64 = 4000;

/// A worker thread's store and statistics. Never leaves the thread.
pub struct Worker {
    pub server: Arc<Server>,
    pub store: Rc<dyn DocumentStore>,
    pub shared: Arc<WorkerShared>,
    /// Reused for the keys of cached replies.
    pub key_buffer: RefCell<Vec<u8>>,
    /// What the commands of this worker share, in a type of their own.
    pub attached: OnceCell<Rc<dyn Any>>,
    object_ids: ObjectIds,
    timestamp_counter: Cell<u32>,
    expired_ms: Cell<i64>,
}

impl Worker {
    /// Opens the store for a new worker. Fails as the store does.
    pub fn open(server: Arc<Server>) -> error::Result<Rc<Worker>> {
        let store = server.engine.clone().open()?;
        let shared = server.add_worker();
        Ok(Rc::new(Worker {
            server,
            store,
            shared,
            key_buffer: RefCell::default(),
            attached: OnceCell::new(),
            object_ids: ObjectIds { process: rand::random(), counter: Cell::new(rand::random()) },
            timestamp_counter: Cell::new(0),
            expired_ms: Cell::new(clock::steady_ms()),
        }))
    }

    pub fn statistics(&self) -> &Statistics {
        &self.shared.statistics
    }

    /// Closes the cursor of a `getMore` whose exhaust stream the client has left.
    pub fn close_exhaust_cursor(&self, body: Doc<'_>) {
        if let Some(first) = body.first()
            && let ("getMore", Value::Int64(id)) = (first.key(), first.value())
        {
            self.server.cursors.kill(id);
        }
    }

    /// Returns the worker with another store in its place, for a command within a transaction.
    pub fn with_store(&self, store: Rc<dyn DocumentStore>) -> Worker {
        Worker {
            server: self.server.clone(),
            store,
            shared: self.shared.clone(),
            key_buffer: RefCell::default(),
            attached: OnceCell::new(),
            object_ids: ObjectIds { process: rand::random(), counter: Cell::new(rand::random()) },
            timestamp_counter: Cell::new(self.timestamp_counter.get()),
            expired_ms: Cell::new(self.expired_ms.get()),
        }
    }

    /// Returns a new ObjectId, unlike any other made by any worker of any process.
    pub fn new_object_id(&self, now_ms: i64) -> ObjectId {
        let counter = self.object_ids.counter.get().wrapping_add(1);
        self.object_ids.counter.set(counter);
        ObjectId::from_parts((now_ms / 1000) as u32, self.object_ids.process, counter)
    }

    /// Returns a timestamp to replace an empty one in a stored document; unique within a worker and
    /// second.
    pub fn new_timestamp(&self, now_ms: i64) -> Value<'static> {
        let increment = self.timestamp_counter.get().wrapping_add(1);
        self.timestamp_counter.set(increment);
        Value::Timestamp { time: (now_ms / 1000) as u32, increment }
    }

    /// Ends idle cursors and sessions, at most once in [`EXPIRY_INTERVAL_MS`]. Called before each
    /// command. A server that must release idle cursors without any request calls it from a timer.
    pub fn expire_idle(&self, now_ms: i64) {
        self.server.expire_transactions(now_ms);
        if now_ms - self.expired_ms.get() < EXPIRY_INTERVAL_MS {
            return;
        }
        self.expired_ms.set(now_ms);
        self.shared.sessions.expire(now_ms);
        self.server.ended_sessions.take_ended(now_ms).iter().for_each(|id| self.server.kill_session(id));
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
