//! The client of an operation.

use auth::UserName;
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, OnceLock};

/// The client of a connection, as `currentOp` and the profiler show it.
#[derive(Debug)]
pub struct ClientIdentity {
    pub connection_id: u64,
    pub client: Option<SocketAddr>,
    /// The `client` document of the handshake.
    pub metadata: OnceLock<Bytes>,
    /// Whether a handshake has succeeded: the client must not send its metadata again.
    pub is_introduced: AtomicBool,
    user: Mutex<Option<UserName>>,
}

impl ClientIdentity {
    pub fn new(connection_id: u64, client: Option<SocketAddr>) -> ClientIdentity {
        ClientIdentity {
            connection_id,
            client,
            metadata: OnceLock::new(),
            is_introduced: AtomicBool::new(false),
            user: Mutex::default(),
        }
    }

    /// Returns the user that is logged in.
    pub fn user(&self) -> Option<UserName> {
        self.lock_user().clone()
    }

    pub(crate) fn set_user(&self, user: Option<UserName>) {
        *self.lock_user() = user;
    }

    fn lock_user(&self) -> MutexGuard<'_, Option<UserName>> {
        self.user.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
