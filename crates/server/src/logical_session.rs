//! Logical sessions (`lsid`): the active ones, and the resources that end with them.
//!
//! Source: <https://github.com/mongodb/specifications/blob/master/source/sessions/driver-sessions.md>
//!
//! A driver keeps a pool of session ids and sends one with nearly every command, over any of its
//! connections. Each worker records when it last saw an id; the latest record of all workers
//! counts. A session owns its cursors.

use auth::UserName;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hashbrown::{HashMap, HashSet};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::{Mutex, MutexGuard};

/// How long an unused session lives.
pub const TIMEOUT_MINUTES: i32 = 30;
const TIMEOUT_MS: i64 = TIMEOUT_MINUTES as i64 * 60 * 1000;

/// The most sessions that a worker records; further ones work, but do not keep their idle cursors
/// alive.
const SESSIONS_MAX: usize = 1_000_000;

/// A session: the UUID in an `lsid`, and its user. Users do not share sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogicalSessionId {
    pub uuid: [u8; 16],
    pub user: UserDigest,
}

impl LogicalSessionId {
    /// Returns the identity of the session for retryable writes.
    pub fn retry_id(&self) -> [u8; 16] {
        if self.user == ANONYMOUS_USER_DIGEST {
            return self.uuid;
        }
        let digest = Sha256::new().chain_update(self.uuid).chain_update(self.user).finalize();
        let mut id = [0; 16];
        id.iter_mut().zip(digest).for_each(|(byte, from)| *byte = from);
        id
    }
}

/// Formats as MongoDB does: the UUID, and the digest of the user's name.
impl fmt::Display for LogicalSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} - {} -  - ", uuid_text(&self.uuid), STANDARD.encode(self.user))
    }
}

/// Formats a UUID with hyphens.
pub fn uuid_text(id: &[u8; 16]) -> String {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The SHA-256 digest of a user's name.
pub type UserDigest = [u8; 32];

/// Returns the digest that identifies a user in sessions.
pub fn user_digest(user: &UserName) -> UserDigest {
    Sha256::digest(user.at_database()).into()
}

/// The digest of the empty user name, which identifies the owner of a session without a login.
pub const ANONYMOUS_USER_DIGEST: UserDigest = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41,
    0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// How long the cursors of an ended session live on: MongoDB closes them in a periodic job.
const AFTER_END_MS: i64 = 5 * 60 * 1000;

/// The sessions that one worker has seen.
#[derive(Debug, Default)]
pub struct LogicalSessions {
    known: Mutex<KnownSessions>,
}

#[derive(Debug, Default)]
struct KnownSessions {
    /// The last use of each session, in milliseconds since 1970.
    last_use: HashMap<LogicalSessionId, i64, ahash::RandomState>,
    /// The owners of sessions that were logged in.
    owners: HashMap<UserDigest, UserName, ahash::RandomState>,
}

impl LogicalSessions {
    /// Records the use of a session. `owner`: its user, if it is used by that user.
    pub fn touch(&self, id: LogicalSessionId, owner: Option<&UserName>, now_ms: i64) {
        let mut known = self.lock();
        if known.last_use.len() >= SESSIONS_MAX && !known.last_use.contains_key(&id) {
            return;
        }
        known.last_use.insert(id, now_ms);
        if let Some(owner) = owner.filter(|_| !known.owners.contains_key(&id.user)) {
            known.owners.insert(id.user, owner.clone());
        }
    }

    /// Forgets a session; returns whether it was known.
    pub fn end(&self, id: &LogicalSessionId) -> bool {
        self.lock().last_use.remove(id).is_some()
    }

    pub fn last_use(&self, id: &LogicalSessionId) -> Option<i64> {
        self.lock().last_use.get(id).copied()
    }

    /// Returns the name of a session's user; `None` if it was not logged in, or is unknown here.
    pub fn owner(&self, id: &LogicalSessionId) -> Option<UserName> {
        self.lock().owners.get(&id.user).cloned()
    }

    /// Forgets the sessions that were unused for [`TIMEOUT_MINUTES`], and the owners of none.
    pub fn expire(&self, now_ms: i64) {
        let KnownSessions { last_use, owners } = &mut *self.lock();
        let before = last_use.len();
        last_use.retain(|_, last_use| now_ms - *last_use < TIMEOUT_MS);
        if last_use.len() < before {
            let users: HashSet<UserDigest, ahash::RandomState> = last_use.keys().map(|id| id.user).collect();
            owners.retain(|user, _| users.contains(user));
        }
    }

    /// Removes and returns the ended sessions whose cursors must be closed by now.
    pub fn take_ended(&self, now_ms: i64) -> Vec<LogicalSessionId> {
        let mut over = Vec::new();
        self.lock().last_use.retain(|id, ended_ms| {
            let is_over = now_ms - *ended_ms >= AFTER_END_MS;
            over.extend(is_over.then_some(*id));
            !is_over
        });
        over
    }

    pub fn list(&self) -> Vec<(LogicalSessionId, i64)> {
        self.lock().last_use.iter().map(|(id, last_use)| (*id, *last_use)).collect()
    }

    /// Forgets the sessions that match.
    pub fn end_where(&self, matches: impl Fn(&LogicalSessionId) -> bool) {
        self.lock().last_use.retain(|id, _| !matches(id));
    }

    fn lock(&self) -> MutexGuard<'_, KnownSessions> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_known_while_they_have_sessions() {
        let (sessions, anna) = (LogicalSessions::default(), UserName::new("anna", "admin"));
        let of_anna = |uuid| LogicalSessionId { uuid: [uuid; 16], user: user_digest(&anna) };
        sessions.touch(of_anna(1), Some(&anna), 0);
        sessions.touch(of_anna(2), None, TIMEOUT_MS);
        sessions.touch(LogicalSessionId { uuid: [3; 16], user: [7; 32] }, None, TIMEOUT_MS);
        assert_eq!(sessions.owner(&of_anna(2)), Some(anna.clone()));
        assert_eq!(sessions.owner(&LogicalSessionId { uuid: [3; 16], user: [7; 32] }), None);
        sessions.expire(TIMEOUT_MS);
        assert_eq!((sessions.list().len(), sessions.owner(&of_anna(2))), (2, Some(anna.clone())));
        sessions.expire(2 * TIMEOUT_MS);
        assert_eq!((sessions.list().len(), sessions.owner(&of_anna(2))), (0, None));
    }
}
