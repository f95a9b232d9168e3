//! The privileges of SQL clients' accounts, as SHOW GRANTS lists them. Cached results depend on
//! them, so they are read again and again.
//!
//! The server checks a session against privileges of different ages: global ones are read at the
//! login, those of the current schema when it is chosen, all others with each statement. So a
//! cached result is returned only to sessions that have had the same privileges in the same order
//! since their logins.

use ahash::AHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lists the privileges of the account, its roles and PUBLIC.
pub const PRIVILEGES_QUERY: &str = "SHOW GRANTS";

/// The privileges of more accounts than this are not cached.
const ACCOUNTS_MAX: usize = 10_000;

/// Changes of privileges after which a session no longer uses the cache.
const HISTORY_MAX: usize = 16;

/// The next version number of the process. Numbers are never reused, and several listeners may have
/// one cache of results.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// The privileges of accounts, as last read.
#[derive(Debug)]
pub struct PrivilegeCache {
    /// Privileges older than this are read again.
    pub age_max: Duration,
    accounts: Mutex<AHashMap<String, Account>>,
}

#[derive(Debug)]
struct Account {
    grants: Vec<u8>,
    version: PrivilegeVersion,
}

/// A version of an account's privileges.
#[derive(Clone, Copy, Debug)]
pub struct PrivilegeVersion {
    /// Differs from other privileges, and from the same privileges before and after others.
    number: u64,
    /// When they were requested.
    requested: Instant,
    /// The server counts the account's statements (MAX_QUERIES_PER_HOUR): nothing may be cached.
    has_quota: bool,
}

impl PrivilegeCache {
    pub fn new(age_max: Duration) -> PrivilegeCache {
        PrivilegeCache { age_max, accounts: Mutex::default() }
    }

    /// Returns the account's privileges, unless they are too old.
    pub fn recent(&self, account: &str) -> Option<PrivilegeVersion> {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.get(account).map(|account| account.version).filter(|version| self.is_recent(version))
    }

    fn is_recent(&self, version: &PrivilegeVersion) -> bool {
        version.requested.elapsed() < self.age_max
    }

    /// Records the rows of [`PRIVILEGES_QUERY`]. Returns their version: a new one if they changed.
    pub fn record(&self, account: &str, grants: Vec<u8>, requested: Instant) -> PrivilegeVersion {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = accounts.get_mut(account)
            && known.grants == grants
        {
            known.version.requested = known.version.requested.max(requested);
            return PrivilegeVersion { requested, ..known.version };
        }
        let has_quota = memchr::memmem::find(&grants, b"MAX_QUERIES_PER_HOUR").is_some();
        let version = PrivilegeVersion { number: PrivilegeCache::next_number(), requested, has_quota };
        if accounts.len() >= ACCOUNTS_MAX {
            accounts.clear();
        }
        accounts.insert(account.to_owned(), Account { grants, version });
        version
    }

    fn next_number() -> u64 {
        NUMBERS.fetch_add(1, Ordering::Relaxed)
    }
}

/// The privileges that a session has had since its login.
#[derive(Debug, Default)]
pub struct PrivilegeHistory {
    /// The current versions, by account and role.
    current: Vec<(String, u64)>,
    /// The versions to which they changed since the login, and [`RELOADED`].
    changes: Vec<u64>,
    last: Option<PrivilegeVersion>,
    /// A schema or a role was chosen since the last record, with the privileges of that moment.
    has_reloaded: bool,
}

/// In a history of changes: a schema or a role was chosen.
const RELOADED: u64 = 0;

impl PrivilegeHistory {
    /// Records the account's privileges. Returns whether they have not changed.
    pub fn record(&mut self, account: &str, version: PrivilegeVersion) -> bool {
        let current = self.current.iter_mut().find(|(other, _)| other == account);
        let mut has_changed = false;
        match current {
            Some((_, number)) => has_changed = std::mem::replace(number, version.number) != version.number,
            None => self.current.push((account.to_owned(), version.number)),
        }
        if has_changed {
            self.changes.push(version.number);
        }
        if std::mem::take(&mut self.has_reloaded) && self.changes.last().is_some_and(|last| *last != RELOADED) {
            // Right after a change it is unknown which privileges the choice used, so the session
            // gets a history that no other has.
            self.changes.push(if has_changed { PrivilegeCache::next_number() } else { RELOADED });
        }
        self.last = Some(version);
        !has_changed
    }

    /// Notes that a schema or a role was chosen.
    pub fn note_reload(&mut self) {
        self.has_reloaded = true;
    }

    /// Returns whether the privileges must be read before a cached result is returned.
    pub fn is_due(&self, cache: &PrivilegeCache) -> bool {
        self.has_reloaded || self.last.is_none_or(|version| !cache.is_recent(&version))
    }

    /// Notes that the privileges could not be read.
    pub fn forget_last(&mut self) {
        self.last = None;
    }

    pub fn allows_caching(&self) -> bool {
        self.changes.len() + self.current.len() <= HISTORY_MAX && self.last.is_some_and(|version| !version.has_quota)
    }

    /// Appends the history to a cache key.
    pub fn write_key(&self, key: &mut Vec<u8>) {
        let last = self.last.map_or(RELOADED, |version| version.number);
        key.push(self.changes.len() as u8);
        self.changes.iter().chain([&last]).for_each(|number| key.extend_from_slice(&number.to_le_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(history: &PrivilegeHistory) -> Vec<u8> {
        let mut key = Vec::new();
        history.write_key(&mut key);
        key
    }

    #[test]
    fn sessions_with_the_same_history_share_results() {
        let cache = PrivilegeCache::new(Duration::from_secs(60));
        let read = |grants: &[u8]| cache.record("joe", grants.to_vec(), Instant::now());
        let (mut old, mut reloaded, mut other) =
            (PrivilegeHistory::default(), PrivilegeHistory::default(), PrivilegeHistory::default());
        let first = read(b"SELECT ON *.*");
        [&mut old, &mut reloaded, &mut other].into_iter().for_each(|history| assert!(history.record("joe", first)));
        assert_eq!(key(&old), key(&reloaded));
        reloaded.note_reload();
        assert!(reloaded.is_due(&cache) && !old.is_due(&cache));
        reloaded.record("joe", read(b"SELECT ON *.*"));
        assert_eq!(key(&old), key(&reloaded), "nothing has changed in between");

        let second = read(b"USAGE ON *.*");
        [&mut old, &mut reloaded, &mut other].into_iter().for_each(|history| assert!(!history.record("joe", second)));
        let mut new = PrivilegeHistory::default();
        new.record("joe", second);
        assert_eq!(key(&old), key(&other));
        assert_ne!(key(&old), key(&new), "global privileges are read at the login");
        reloaded.note_reload();
        reloaded.record("joe", second);
        assert_ne!(key(&old), key(&reloaded), "those of a schema when it is chosen");

        let third = read(b"SELECT ON *.*");
        other.note_reload();
        other.record("joe", third);
        old.note_reload();
        old.record("joe", third);
        assert_ne!(key(&old), key(&other), "before or after the choice?");
        assert_ne!(third.number, first.number, "results cached in between may be wrong");
    }

    #[test]
    fn choosing_roles_repeatedly_does_not_lengthen_the_history() {
        let cache = PrivilegeCache::new(Duration::from_secs(60));
        let mut history = PrivilegeHistory::default();
        for _ in 0..100 {
            for account in ["joe", "joe:role"] {
                history.note_reload();
                history.record(account, cache.record(account, account.into(), Instant::now()));
                assert!(history.allows_caching());
            }
        }
    }

    #[test]
    fn listeners_give_no_number_to_other_privileges() {
        let caches = [(); 2].map(|()| PrivilegeCache::new(Duration::from_secs(60)));
        let grants: [&[u8]; 2] = [b"SELECT ON *.*", b"USAGE ON *.*"];
        let [one, other] = [0, 1].map(|at| caches[at].record("joe", grants[at].to_vec(), Instant::now()));
        assert_ne!(one.number, other.number);
    }

    #[test]
    fn accounts_with_a_quota_bypass_the_cache() {
        let cache = PrivilegeCache::new(Duration::ZERO);
        let mut history = PrivilegeHistory::default();
        history.record("joe", cache.record("joe", b"WITH MAX_QUERIES_PER_HOUR 5".to_vec(), Instant::now()));
        assert!(!history.allows_caching() && history.is_due(&cache) && cache.recent("joe").is_none());
    }
}
