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
    packets: Vec<u8>,
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

    /// Takes note of what the server has shown: its answer's packets.
    pub fn note(&self, account: &str, packets: Vec<u8>, asked: Instant) -> Seen {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shown) = accounts.get_mut(account)
            && shown.packets == packets
        {
            shown.seen.asked = shown.seen.asked.max(asked);
            return Seen { asked, ..shown.seen };
        }
        let has_quota = memchr::memmem::find(&packets, b"MAX_QUERIES_PER_HOUR").is_some();
        let seen = Seen { number: self.number(), asked, has_quota };
        if accounts.len() >= ACCOUNTS_MAX {
            accounts.clear();
        }
        accounts.insert(account.to_owned(), Shown { packets, seen });
        seen
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

/// The rights that a session has seen since its login.
#[derive(Debug, Default)]
pub struct History {
    numbers: Vec<u64>,
    last: Option<Seen>,
    /// The schema or the role was chosen anew since, by the rights of that moment.
    has_moved: bool,
}

impl History {
    pub fn note(&mut self, seen: Seen, shown: &RightsShown) {
        let is_new = self.numbers.last() != Some(&seen.number);
        if is_new {
            self.numbers.push(seen.number);
        }
        if std::mem::take(&mut self.has_moved) && self.numbers.len() > 1 {
            match (is_new, self.numbers.as_slice()) {
                // By which rights the choice was made cannot be told: the session is like no other.
                (true, _) => self.numbers.push(shown.number()),
                (false, [.., before, last]) if before == last => {}
                (false, _) => self.numbers.push(seen.number),
            }
        }
        self.last = Some(seen);
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
        self.numbers.len() <= HISTORY_MAX && self.last.is_some_and(|seen| !seen.has_quota)
    }

    /// Writes what an answer is kept by.
    pub fn write_key(&self, key: &mut Vec<u8>) {
        key.push(self.numbers.len() as u8);
        self.numbers.iter().for_each(|number| key.extend_from_slice(&number.to_le_bytes()));
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
        [&mut old, &mut moved, &mut other].into_iter().for_each(|history| history.note(first, &shown));
        assert_eq!(key(&old), key(&moved));
        moved.note_move();
        assert!(moved.is_due(&shown) && !old.is_due(&shown));
        moved.note(see(b"SELECT ON *.*"), &shown);
        assert_eq!(key(&old), key(&moved), "nothing has changed in between");

        let second = see(b"USAGE ON *.*");
        [&mut old, &mut moved, &mut other].into_iter().for_each(|history| history.note(second, &shown));
        let mut new = History::default();
        new.note(second, &shown);
        assert_eq!(key(&old), key(&other));
        assert_ne!(key(&old), key(&new), "global rights are as old as the login");
        moved.note_move();
        moved.note(second, &shown);
        assert_ne!(key(&old), key(&moved), "those of a schema as its choice");

        let third = see(b"SELECT ON *.*");
        other.note_move();
        other.note(third, &shown);
        old.note_move();
        old.note(third, &shown);
        assert_ne!(key(&old), key(&other), "before or after the choice?");
        let mut new = History::default();
        new.note(third, &shown);
        assert_ne!(third.number, first.number, "what was kept in between may be wrong");
    }

    #[test]
    fn counted_statements_go_to_the_server() {
        let shown = RightsShown::new(Duration::ZERO);
        let mut history = History::default();
        history.note(shown.note("joe", b"WITH MAX_QUERIES_PER_HOUR 5".to_vec(), Instant::now()), &shown);
        assert!(!history.allows_keeping() && history.is_due(&shown) && shown.recent("joe").is_none());
    }
}
