//! Limits on the number of cursors and the memory that they hold: in total, and for each logical
//! session. The number is also limited for each user.

use crate::logical_session::LogicalSessionId;
use error::{Code, Error, Result};
use hashbrown::HashMap;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// The limits in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorLimits {
    /// The most bytes that all cursors may hold.
    pub bytes: i64,
    /// The most bytes that the cursors of a session may hold.
    pub session_bytes: i64,
    pub count: i64,
    pub session_count: i64,
    /// The most cursors of a user.
    pub user_count: i64,
}

impl Default for CursorLimits {
    fn default() -> Self {
        CursorLimits {
            bytes: i64::MAX,
            session_bytes: i64::MAX,
            count: i64::MAX,
            session_count: i64::MAX,
            user_count: i64::MAX,
        }
    }
}

/// The session or connection that a cursor is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaHolder {
    Session(LogicalSessionId),
    /// A connection's number, for cursors without a session.
    Connection(u64),
}

/// The use of the limits, in total and by holder.
#[derive(Debug)]
pub struct Quotas {
    limits: CursorLimits,
    bytes: AtomicI64,
    count: AtomicI64,
    shares: Mutex<HashMap<QuotaHolder, Share, ahash::RandomState>>,
    /// The number of each user's cursors, by the name.
    users: Mutex<HashMap<Arc<str>, i64, ahash::RandomState>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    count: i64,
    bytes: i64,
}

/// One cursor's share of the limits; released when dropped.
#[derive(Debug)]
pub struct Charge {
    quotas: Arc<Quotas>,
    pub holder: QuotaHolder,
    _user: Option<UserShare>,
    bytes: i64,
}

/// One cursor in the number of a user's; released when dropped.
#[derive(Debug)]
struct UserShare {
    quotas: Arc<Quotas>,
    name: Arc<str>,
}

impl Drop for UserShare {
    fn drop(&mut self) {
        let mut users = self.quotas.users();
        match users.get_mut(&self.name) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(users.remove(&self.name)),
        }
    }
}

impl Quotas {
    pub fn new(limits: CursorLimits) -> Arc<Quotas> {
        Arc::new(Quotas {
            limits,
            bytes: AtomicI64::new(0),
            count: AtomicI64::new(0),
            shares: Mutex::default(),
            users: Mutex::default(),
        })
    }

    /// Charges for one more cursor. Fails with 146 if a limit on count or bytes would be exceeded.
    /// `user`: the name of the user that is logged in.
    pub fn charge(self: &Arc<Self>, holder: QuotaHolder, user: Option<&str>, bytes: i64) -> Result<Charge> {
        let user = user.map(|user| self.charge_user(user)).transpose()?;
        let mut shares = self.lock();
        let share = shares.get(&holder).copied().unwrap_or_default();
        self.check_count(share)?;
        self.check_bytes(share, bytes)?;
        shares.insert(holder, Share { count: share.count + 1, bytes: share.bytes + bytes });
        self.count.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        Ok(Charge { quotas: self.clone(), holder, _user: user, bytes })
    }

    fn charge_user(self: &Arc<Self>, user: &str) -> Result<UserShare> {
        let mut users = self.users();
        let found = users.get_key_value(user).map(|(name, count)| (name.clone(), *count));
        let (name, count) = found.unwrap_or_else(|| (user.into(), 0));
        if count >= self.limits.user_count {
            return Err(exceeded(format!("{count} cursors of this user are open, as many as there may be")));
        }
        users.insert(name.clone(), count + 1);
        drop(users);
        Ok(UserShare { quotas: self.clone(), name })
    }

    fn check_count(&self, share: Share) -> Result<()> {
        if share.count >= self.limits.session_count {
            return Err(exceeded(format!("{} cursors are open in this session, as many as there may be", share.count)));
        }
        match self.count.load(Relaxed) {
            count if count >= self.limits.count => {
                Err(exceeded(format!("{count} cursors are open, as many as there may be")))
            }
            _ => Ok(()),
        }
    }

    fn check_bytes(&self, share: Share, bytes: i64) -> Result<()> {
        let limits = &self.limits;
        if share.bytes + bytes > limits.session_bytes {
            let message = format!(
                "this cursor would hold {bytes} bytes beside the {} bytes of others of its session, which may hold {} bytes",
                share.bytes, limits.session_bytes
            );
            return Err(exceeded(message));
        }
        let held = self.bytes.load(Relaxed);
        if held + bytes > limits.bytes {
            let message = format!(
                "this cursor would hold {bytes} bytes beside the {held} bytes of all others, and cursors may hold {} bytes",
                limits.bytes
            );
            return Err(exceeded(message));
        }
        Ok(())
    }

    /// Returns the bytes that all cursors hold.
    pub fn bytes(&self) -> i64 {
        self.bytes.load(Relaxed)
    }

    pub fn limits(&self) -> CursorLimits {
        self.limits
    }

    /// Returns whether any cursor is charged to the holder.
    pub fn has(&self, holder: QuotaHolder) -> bool {
        self.lock().contains_key(&holder)
    }

    fn users(&self) -> MutexGuard<'_, HashMap<Arc<str>, i64, ahash::RandomState>> {
        self.users.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QuotaHolder, Share, ahash::RandomState>> {
        self.shares.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Charge {
    /// Changes the bytes that the cursor is charged for. Fails with 146, and changes nothing, if a
    /// limit would be exceeded.
    pub fn change(&mut self, by: i64) -> Result<()> {
        let by = by.max(-self.bytes);
        let quotas = self.quotas.clone();
        let mut shares = quotas.lock();
        let Some(share) = shares.get_mut(&self.holder) else { return Ok(()) };
        if by > 0 {
            quotas.check_bytes(*share, by)?;
        }
        share.bytes += by;
        quotas.bytes.fetch_add(by, Relaxed);
        self.bytes += by;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let quotas = &self.quotas;
        quotas.count.fetch_sub(1, Relaxed);
        quotas.bytes.fetch_sub(self.bytes, Relaxed);
        let mut shares = quotas.lock();
        if let Some(share) = shares.get_mut(&self.holder) {
            share.count -= 1;
            share.bytes -= self.bytes;
            if share.count == 0 {
                shares.remove(&self.holder);
            }
        }
    }
}

fn exceeded(message: String) -> Error {
    Error::new(Code::EXCEEDED_MEMORY_LIMIT, message)
}

#[cfg(test)]
mod tests {
    use super::{CursorLimits, QuotaHolder, Quotas};
    use error::Code;

    const LIMITS: CursorLimits =
        CursorLimits { bytes: 100, session_bytes: 60, count: 4, session_count: 2, user_count: 3 };

    #[test]
    fn a_session_and_all_sessions_are_bounded() {
        let quotas = Quotas::new(LIMITS);
        let holder = |number| {
            QuotaHolder::Session(crate::logical_session::LogicalSessionId { uuid: [number; 16], user: [0; 32] })
        };
        let first = quotas.charge(holder(1), None, 30).unwrap();
        assert!(quotas.charge(holder(1), None, 31).is_err(), "too many bytes in the session");
        let second = quotas.charge(holder(1), None, 30).unwrap();
        assert!(quotas.charge(holder(1), None, 0).is_err(), "too many in the session");
        assert!(quotas.charge(holder(2), None, 41).is_err(), "too many bytes in all");
        let _third = quotas.charge(holder(2), None, 40).unwrap();
        let _fourth = quotas.charge(QuotaHolder::Connection(7), None, 0).unwrap();
        assert!(quotas.charge(holder(3), None, 0).is_err(), "too many in all");
        drop((first, second));
        assert_eq!(quotas.bytes(), 40);
        assert!(!quotas.has(holder(1)) && quotas.has(holder(2)));
    }

    #[test]
    fn a_user_is_bounded_over_its_sessions() {
        let quotas = Quotas::new(CursorLimits { user_count: 2, ..CursorLimits::default() });
        let charge = |number, user| quotas.charge(QuotaHolder::Connection(number), Some(user), 0);
        let first = charge(1, "admin.a").unwrap();
        let _second = charge(2, "admin.a").unwrap();
        assert_eq!(charge(3, "admin.a").unwrap_err().code(), Code::EXCEEDED_MEMORY_LIMIT);
        let _other = charge(3, "admin.b").unwrap();
        drop(first);
        drop(charge(3, "admin.a").unwrap());
        let limited = Quotas::new(CursorLimits { session_count: 0, ..CursorLimits::default() });
        assert!(limited.charge(QuotaHolder::Connection(1), Some("admin.a"), 0).is_err());
        assert!(limited.users().is_empty(), "a refused cursor does not count");
    }

    #[test]
    fn a_cursor_grows_and_shrinks() {
        let quotas = Quotas::new(LIMITS);
        let mut charge = quotas.charge(QuotaHolder::Connection(1), None, 10).unwrap();
        charge.change(50).unwrap();
        assert_eq!(charge.change(1).unwrap_err().code(), Code::EXCEEDED_MEMORY_LIMIT);
        charge.change(-1000).unwrap();
        assert_eq!(quotas.bytes(), 0);
        drop(charge);
        assert_eq!(quotas.bytes(), 0);
    }
}
