//! The sessions of each user of a service, and their limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of sessions of each user.
#[derive(Debug, Default)]
pub struct UserConnections(Mutex<HashMap<Vec<u8>, usize>>);

/// A session of a user, which counts until it is dropped.
#[derive(Debug)]
pub struct UserConnection {
    user: Vec<u8>,
    all: Arc<UserConnections>,
}

impl UserConnections {
    /// Counts a session of a user. Returns `None` if the user has `max` already.
    pub fn add(self: &Arc<Self>, user: &[u8], max: Option<usize>) -> Option<UserConnection> {
        let mut users = self.lock();
        let present = users.get(user).copied().unwrap_or_default();
        if max.is_some_and(|max| present >= max) {
            return None;
        }
        users.insert(user.to_vec(), present + 1);
        Some(UserConnection { user: user.to_vec(), all: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UserConnection {
    pub fn is_of(&self, user: &[u8]) -> bool {
        self.user == user
    }
}

impl Drop for UserConnection {
    fn drop(&mut self) {
        let mut users = self.all.lock();
        if let Some(present) = users.get_mut(&self.user) {
            *present -= 1;
            if *present == 0 {
                users.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_of_each_user() {
        let users = Arc::new(UserConnections::default());
        let first = users.add(b"joe", Some(2)).unwrap();
        let second = users.add(b"joe", Some(2)).unwrap();
        assert!(users.add(b"joe", Some(2)).is_none() && users.add(b"joe", None).is_some());
        assert!(users.add(b"jim", Some(1)).is_some_and(|one| one.is_of(b"jim") && !one.is_of(b"joe")));
        drop(first);
        assert!(users.add(b"joe", Some(2)).is_some());
        drop(second);
        assert!(users.lock().is_empty());
    }
}
