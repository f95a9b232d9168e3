//! What clients may do, as the server shows it: answers are kept by it, and it is asked again and
//! again.
//!
//! The server judges a session by rights of different ages: global ones are read at the login,
//! those of the current schema when it is chosen, all others with each statement. So an answer is
//! given only to sessions that have seen the same rights in the same order since their logins.

use ahash::AHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Asks for the rights of the account, its roles and PUBLIC.
pub const QUESTION: &str = "SHOW GRANTS";

/// More accounts than these are not remembered.
const ACCOUNTS_MAX: usize = 10_000;

/// Changes of rights that a session can live through and still be given kept answers.
const HISTORY_MAX: usize = 16;

/// The rights of accounts, as they were shown last.
#[derive(Debug)]
pub struct RightsShown {
    /// After this time they are asked for again.
    pub age_max: Duration,
    /// The numbers of rights, which are never used again.
    numbers: AtomicU64,
    accounts: Mutex<AHashMap<String, Shown>>,
}

#[derive(Debug)]
struct Shown {
    rows: Vec<u8>,
    seen: Seen,
}

/// Rights that were shown to a session.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Tells them from others, and from the same rights before and after others.
    number: u64,
    /// When they were asked for.
    asked: Instant,
    /// Answers are not to be kept: the server counts the account's statements.
    has_quota: bool,
}

impl RightsShown {
    pub fn new(age_max: Duration) -> RightsShown {
        RightsShown { age_max, numbers: AtomicU64::new(1), accounts: Mutex::default() }
    }

    /// Returns the account's rights if they were asked for a short while ago.
    pub fn recent(&self, account: &str) -> Option<Seen> {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.get(account).map(|shown| shown.seen).filter(|seen| self.is_recent(seen))
    }

    fn is_recent(&self, seen: &Seen) -> bool {
        seen.asked.elapsed() < self.age_max
    }

    /// Takes note of what the server has shown: its answer's rows.
    pub fn note(&self, account: &str, rows: Vec<u8>, asked: Instant) -> Seen {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shown) = accounts.get_mut(account)
            && shown.rows == rows
        {
            shown.seen.asked = shown.seen.asked.max(asked);
            return Seen { asked, ..shown.seen };
        }
        let has_quota = memchr::memmem::find(&rows, b"MAX_QUERIES_PER_HOUR").is_some();
        let seen = Seen { number: self.number(), asked, has_quota };
        if accounts.len() >= ACCOUNTS_MAX {
            accounts.clear();
        }
        accounts.insert(account.to_owned(), Shown { rows, seen });
        seen
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

/// The rights that a session has seen since its login.
#[derive(Debug, Default)]
pub struct History {
    /// Those that it has now, by account and role.
    now: Vec<(String, u64)>,
    /// How they have changed under it.
    changes: Vec<u64>,
    last: Option<Seen>,
    /// The schema or the role was chosen anew since, by the rights of that moment.
    has_moved: bool,
}

/// In a history of changes: the schema or the role was chosen anew.
const MOVED: u64 = 0;

impl History {
    /// Takes note of the account's rights. Returns whether they are what they were.
    pub fn note(&mut self, account: &str, seen: Seen, shown: &RightsShown) -> bool {
        let known = self.now.iter_mut().find(|(other, _)| other == account);
        let mut is_change = false;
        match known {
            Some((_, number)) => is_change = std::mem::replace(number, seen.number) != seen.number,
            None => self.now.push((account.to_owned(), seen.number)),
        }
        if is_change {
            self.changes.push(seen.number);
        }
        if std::mem::take(&mut self.has_moved) && self.changes.last().is_some_and(|last| *last != MOVED) {
            // By which rights the choice was made cannot be told right after a change: the session
            // is like no other.
            self.changes.push(if is_change { shown.number() } else { MOVED });
        }
        self.last = Some(seen);
        !is_change
    }

    pub fn note_move(&mut self) {
        self.has_moved = true;
    }

    /// The rights have to be asked for before an answer is given.
    pub fn is_due(&self, shown: &RightsShown) -> bool {
        self.has_moved || self.last.is_none_or(|seen| !shown.is_recent(&seen))
    }

    /// They cannot be told now.
    pub fn forget_last(&mut self) {
        self.last = None;
    }

    pub fn allows_keeping(&self) -> bool {
        self.changes.len() + self.now.len() <= HISTORY_MAX && self.last.is_some_and(|seen| !seen.has_quota)
    }

    /// Writes what an answer is kept by.
    pub fn write_key(&self, key: &mut Vec<u8>) {
        let last = self.last.map_or(MOVED, |seen| seen.number);
        key.push(self.changes.len() as u8);
        self.changes.iter().chain([&last]).for_each(|number| key.extend_from_slice(&number.to_le_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(history: &History) -> Vec<u8> {
        let mut key = Vec::new();
        history.write_key(&mut key);
        key
    }

    #[test]
    fn sessions_with_the_same_history_share() {
        let shown = RightsShown::new(Duration::from_secs(60));
        let see = |rights: &[u8]| shown.note("joe", rights.to_vec(), Instant::now());
        let (mut old, mut moved, mut other) = (History::default(), History::default(), History::default());
        let first = see(b"SELECT ON *.*");
        [&mut old, &mut moved, &mut other].into_iter().for_each(|history| assert!(history.note("joe", first, &shown)));
        assert_eq!(key(&old), key(&moved));
        moved.note_move();
        assert!(moved.is_due(&shown) && !old.is_due(&shown));
        moved.note("joe", see(b"SELECT ON *.*"), &shown);
        assert_eq!(key(&old), key(&moved), "nothing has changed in between");

        let second = see(b"USAGE ON *.*");
        [&mut old, &mut moved, &mut other]
            .into_iter()
            .for_each(|history| assert!(!history.note("joe", second, &shown)));
        let mut new = History::default();
        new.note("joe", second, &shown);
        assert_eq!(key(&old), key(&other));
        assert_ne!(key(&old), key(&new), "global rights are as old as the login");
        moved.note_move();
        moved.note("joe", second, &shown);
        assert_ne!(key(&old), key(&moved), "those of a schema as its choice");

        let third = see(b"SELECT ON *.*");
        other.note_move();
        other.note("joe", third, &shown);
        old.note_move();
        old.note("joe", third, &shown);
        assert_ne!(key(&old), key(&other), "before or after the choice?");
        assert_ne!(third.number, first.number, "what was kept in between may be wrong");
    }

    #[test]
    fn choosing_roles_again_and_again_leaves_no_trace() {
        let shown = RightsShown::new(Duration::from_secs(60));
        let mut history = History::default();
        for _ in 0..100 {
            for account in ["joe", "joe:role"] {
                history.note_move();
                history.note(account, shown.note(account, account.into(), Instant::now()), &shown);
                assert!(history.allows_keeping());
            }
        }
    }

    #[test]
    fn counted_statements_go_to_the_server() {
        let shown = RightsShown::new(Duration::ZERO);
        let mut history = History::default();
        history.note("joe", shown.note("joe", b"WITH MAX_QUERIES_PER_HOUR 5".to_vec(), Instant::now()), &shown);
        assert!(!history.allows_keeping() && history.is_due(&shown) && shown.recent("joe").is_none());
    }
}
