//! The life of one client connection, as commands see it.

use crate::client_identity::ClientIdentity;
use crate::document_cache::CachePolicy;
use crate::logical_session::LogicalSessionId;
use crate::server::Server;
use crate::worker::Worker;
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// How long a logical session counts as noted, in milliseconds; its timeout is half an hour.
const SESSION_NOTED_MS: i64 = 1000;

/// A client connection.
pub struct ClientSession {
    pub connection_id: u64,
    pub client: Option<SocketAddr>,
    pub identity: Arc<ClientIdentity>,
    /// The logical session noted last, and when; saves noting it with each command.
    noted: Cell<(LogicalSessionId, i64)>,
    /// The listener's number.
    listener: usize,
    /// The caches that the connection reads from and fills.
    pub cache_policy: Cell<CachePolicy>,
}

impl ClientSession {
    /// Creates a session. `listener`: the number of the listener that accepted the client.
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
            cache_policy: Cell::new(server.cache_policy(listener)),
        }
    }

    /// Switches the caches on or off, within what the listener allows.
    pub fn set_caching(&self, server: &Server, enabled: bool) {
        self.cache_policy.set(if enabled { server.cache_policy(self.listener) } else { CachePolicy::NONE });
    }

    /// Records the use of a logical session, at most once in [`SESSION_NOTED_MS`].
    pub fn touch_logical_session(&self, worker: &Worker, id: LogicalSessionId, now_ms: i64) {
        let (noted, noted_ms) = self.noted.get();
        if noted != id || now_ms - noted_ms >= SESSION_NOTED_MS {
            worker.shared.sessions.touch(id, now_ms);
            self.noted.set((id, now_ms));
        }
    }

    pub fn forget_noted_session(&self) {
        self.noted.set(([0; 16], 0));
    }
}
