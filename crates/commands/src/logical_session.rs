//! Logical sessions (`lsid`): which are alive, and what ends with them.
//!
//! Source: <https://github.com/mongodb/specifications/blob/master/source/sessions/driver-sessions.md>
//!
//! A driver keeps a pool of session ids and sends one with nearly every command, over any of its connections. Each worker notes
//! when it last saw an id; the latest note of all workers counts. What hangs on a session are its cursors.

use hashbrown::HashMap;
use std::sync::{Mutex, MutexGuard};

/// How long a session lives without being used.
pub const TIMEOUT_MINUTES: i32 = 30;
const TIMEOUT_MS: i64 = TIMEOUT_MINUTES as i64 * 60 * 1000;

/// How many sessions a worker notes at the most; further ones work, but no longer keep their idle cursors alive.
const SESSIONS_MAX: usize = 1_000_000;

/// The UUID in an `lsid`.
pub type LogicalSessionId = [u8; 16];

/// The sessions one worker has seen, and when: milliseconds since 1970.
#[derive(Debug, Default)]
pub struct LogicalSessions {
    last_use: Mutex<HashMap<LogicalSessionId, i64, ahash::RandomState>>,
}

impl LogicalSessions {
    pub fn note(&self, id: LogicalSessionId, now_ms: i64) {
        let mut sessions = self.lock();
        if sessions.len() < SESSIONS_MAX || sessions.contains_key(&id) {
            sessions.insert(id, now_ms);
        }
    }

    /// Forgets a session; gives whether it was known.
    pub fn end(&self, id: &LogicalSessionId) -> bool {
        self.lock().remove(id).is_some()
    }

    pub fn last_use(&self, id: &LogicalSessionId) -> Option<i64> {
        self.lock().get(id).copied()
    }

    /// Forgets the sessions that have not been used for half an hour.
    pub fn expire(&self, now_ms: i64) {
        self.lock().retain(|_, last_use| now_ms - *last_use < TIMEOUT_MS);
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
