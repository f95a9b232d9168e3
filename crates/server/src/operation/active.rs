//! An operation that had to wait, as other connections see it.

use crate::client_identity::ClientIdentity;
use crate::logical_session::LogicalSessionId;
use bytes::Bytes;
use document::Doc;
use error::{Code, Error};
use futures_util::task::AtomicWaker;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use store::Progress;

/// An operation under way.
#[derive(Debug)]
pub struct Operation {
    pub id: i32,
    pub identity: Arc<ClientIdentity>,
    /// The logical session that it belongs to.
    pub session: Option<LogicalSessionId>,
    /// The command's body.
    pub command: Bytes,
    pub started: Instant,
    /// The code of the error that it must end with; 0 while it may go on.
    kill_code: AtomicI32,
    waits_for_lock: AtomicBool,
    /// Wakes the operation while it waits.
    pub(super) waker: AtomicWaker,
    /// Its progress, where that is known.
    pub progress: OnceLock<Arc<Progress>>,
}

impl Operation {
    pub fn new(identity: Arc<ClientIdentity>, session: Option<LogicalSessionId>, command: Bytes) -> Operation {
        Operation {
            id: next_operation_id(),
            identity,
            session,
            command,
            started: Instant::now(),
            kill_code: AtomicI32::new(0),
            waits_for_lock: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            progress: OnceLock::new(),
        }
    }

    pub fn command(&self) -> Doc<'_> {
        Doc::from_bytes(&self.command).unwrap_or(Doc::EMPTY)
    }

    pub fn kill(&self) {
        self.kill_with(Code::INTERRUPTED);
    }

    /// Kills the operation because its client has disconnected.
    pub fn kill_for_disconnect(&self) {
        self.kill_with(Code::CLIENT_DISCONNECT);
    }

    /// Sets the error to end with. The first reason counts.
    fn kill_with(&self, code: Code) {
        let _ = self.kill_code.compare_exchange(0, code.0, Ordering::Relaxed, Ordering::Relaxed);
        self.waker.wake();
    }

    pub(super) fn kill_reason(&self) -> Option<Error> {
        match Code(self.kill_code.load(Ordering::Relaxed)) {
            Code(0) => None,
            Code::CLIENT_DISCONNECT => {
                let message = "operation was interrupted because a client disconnected";
                Some(Error::new(Code::CLIENT_DISCONNECT, message))
            }
            code => Some(Error::new(code, "operation was interrupted")),
        }
    }

    pub fn waits_for_lock(&self) -> bool {
        self.waits_for_lock.load(Ordering::Relaxed)
    }

    pub(super) fn set_waiting_for_lock(&self, waits: bool) {
        self.waits_for_lock.store(waits, Ordering::Relaxed);
    }

    pub fn is_killed(&self) -> bool {
        self.kill_code.load(Ordering::Relaxed) != 0
    }
}

/// The next operation id. Ids are unique in the process; only operations that wait take one.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

pub fn next_operation_id() -> i32 {
    (NEXT_ID.fetch_add(1, Ordering::Relaxed) & 0x7FFF_FFFF) as i32
}
