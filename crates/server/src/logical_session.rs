//! Logical sessions (`lsid`): the active ones, and the resources that end with them.
//!
//! Source: <https://github.com/mongodb/specifications/blob/master/source/sessions/driver-sessions.md>
//!
//! A driver keeps a pool of session ids and sends one with nearly every command, over any of its
//! connections. Each worker records when it last saw an id; the latest record of all workers
//! counts. A session owns its cursors.

use hashbrown::HashMap;
use std::sync::{Mutex, MutexGuard};

/// How long an unused session lives.
pub const TIMEOUT_MINUTES: i32 = 30;
const TIMEOUT_MS: i64 = TIMEOUT_MINUTES as i64 * 60 * 1000;

/// The most sessions that a worker records; further ones work, but do not keep their idle cursors
/// alive.
const SESSIONS_MAX: usize = 1_000_000;

/// The UUID in an `lsid`.
pub type LogicalSessionId = [u8; 16];

/// The SHA-256 digest of the empty user name, which identifies the owner of a session without a
/// login.
pub const ANONYMOUS_USER_DIGEST: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41,
    0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// How long the cursors of an ended session live on: MongoDB closes them in a periodic job.
const AFTER_END_MS: i64 = 5 * 60 * 1000;

/// The sessions that one worker has seen, and their last use in milliseconds since 1970.
#[derive(Debug, Default)]
pub struct LogicalSessions {
    last_use: Mutex<HashMap<LogicalSessionId, i64, ahash::RandomState>>,
}

impl LogicalSessions {
    /// Records the use of a session.
    pub fn touch(&self, id: LogicalSessionId, now_ms: i64) {
        let mut sessions = self.lock();
        if sessions.len() < SESSIONS_MAX || sessions.contains_key(&id) {
            sessions.insert(id, now_ms);
        }
    }

    /// Forgets a session; returns whether it was known.
    pub fn end(&self, id: &LogicalSessionId) -> bool {
        self.lock().remove(id).is_some()
    }

    pub fn last_use(&self, id: &LogicalSessionId) -> Option<i64> {
        self.lock().get(id).copied()
    }

    /// Forgets the sessions that were unused for [`TIMEOUT_MINUTES`].
    pub fn expire(&self, now_ms: i64) {
        self.lock().retain(|_, last_use| now_ms - *last_use < TIMEOUT_MS);
    }

    /// Removes and returns the ended sessions whose cursors must be closed by now.
    pub fn take_ended(&self, now_ms: i64) -> Vec<LogicalSessionId> {
        let mut over = Vec::new();
        self.lock().retain(|id, ended_ms| {
            let is_over = now_ms - *ended_ms >= AFTER_END_MS;
            over.extend(is_over.then_some(*id));
            !is_over
        });
        over
    }

    pub fn list(&self) -> Vec<(LogicalSessionId, i64)> {
        self.lock().iter().map(|(id, last_use)| (*id, *last_use)).collect()
    }

    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LogicalSessionId, i64, ahash::RandomState>> {
        self.last_use.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
