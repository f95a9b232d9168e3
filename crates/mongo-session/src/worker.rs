//! The state of a worker.

use crate::admission::Admission;
use crate::buffers::Buffers;
use crate::malformed_log::MalformedLog;
use mongo_wire::Codecs;
use selkie_runtime::RateLimit;
use selkie_runtime::zero_copy::splice::Pipes;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long clients may be inactive.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the connection to the end of the TLS handshake, and from there to the end of the first
    /// message; `None`: forever.
    pub handshake: Option<Duration>,
    /// Within a message, or before they read their reply.
    pub stalled: Duration,
    /// Between two requests; `None`: forever.
    pub idle: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts { handshake: Some(Duration::from_secs(30)), stalled: Duration::from_secs(300), idle: None }
    }
}

/// State shared by the connections of one worker. It never leaves the worker's thread.
pub(crate) struct SessionWorker {
    pub commands: Rc<server::Worker>,
    pub buffers: Buffers,
    pub pipes: Pipes,
    pub codecs: RefCell<Codecs>,
    pub malformed_log: MalformedLog,
    pub timeouts: Timeouts,
    pub housekeeping: fn(),
    pub admission: Arc<Admission>,
    /// The limit on requests per second, shared by all workers.
    pub request_rate: Option<Arc<RateLimit>>,
    pub next_reply_id: Cell<i32>,
}

impl SessionWorker {
    pub fn reply_id(&self) -> i32 {
        let id = self.next_reply_id.get();
        self.next_reply_id.set(id.wrapping_add(1));
        id
    }
}
