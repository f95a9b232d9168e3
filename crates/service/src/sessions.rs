//! The sessions of SQL clients on all backends, by the ids that the backends gave them.
//!
//! Each server counts its own connections, so two servers may give the same id. A session whose id
//! is taken on another server connects again, which gives it the next one. So an id means one
//! session of this gateway, and KILL can find it.

use crate::backend::Backend;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<u64, Vec<Session>>>);

#[derive(Debug)]
struct Session {
    backend: Arc<Backend>,
    user: Vec<u8>,
    number: u64,
}

/// The entry of a session, removed when it is dropped.
#[derive(Debug)]
pub struct Entry {
    id: u64,
    number: u64,
    sessions: Arc<Sessions>,
}

impl Sessions {
    /// Adds a session, whose user is not known yet.
    pub fn add(self: &Arc<Sessions>, id: u64, backend: Arc<Backend>) -> Entry {
        let mut sessions = self.lock();
        let sessions = sessions.entry(id).or_default();
        // A server that was restarted counts from 1 again.
        let number = sessions.last().map_or(0, |session| session.number + 1);
        sessions.push(Session { backend, user: Vec::new(), number });
        Entry { id, number, sessions: self.clone() }
    }

    pub fn set_user(&self, entry: &Entry, user: &[u8]) {
        let mut sessions = self.lock();
        let sessions = sessions.get_mut(&entry.id).into_iter().flatten();
        for session in sessions.filter(|session| session.number == entry.number) {
            session.user = user.to_vec();
        }
    }

    /// Returns whether a session on another server has this id.
    pub fn is_elsewhere(&self, id: u64, backend: &Arc<Backend>) -> bool {
        self.lock().get(&id).is_some_and(|sessions| sessions.iter().any(|one| !Arc::ptr_eq(&one.backend, backend)))
    }

    /// Returns the server of a user's session with an id.
    pub fn find(&self, id: u64, user: &[u8]) -> Option<Arc<Backend>> {
        let sessions = self.lock();
        let session = sessions.get(&id)?.iter().rev().find(|session| session.user == user)?;
        Some(session.backend.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Vec<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut sessions = self.sessions.lock();
        if let Some(left) = sessions.get_mut(&self.id) {
            left.retain(|session| session.number != self.number);
            if left.is_empty() {
                sessions.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ServerSettings;

    #[test]
    fn sessions_are_found_by_id_and_user() {
        let backend = |name: &str| {
            let (name, host) = (name.to_owned(), "h".to_owned());
            Backend::new(ServerSettings {
                name,
                host,
                port: 1,
                tls: Default::default(),
                weight: 1,
                connections_max: None,
            })
        };
        let (one, two) = (backend("one"), backend("two"));
        let sessions = Arc::new(Sessions::default());
        let entry = sessions.add(7, one.clone());
        assert!(sessions.is_elsewhere(7, &two) && !sessions.is_elsewhere(7, &one) && !sessions.is_elsewhere(8, &two));
        assert!(sessions.find(7, b"joe").is_none(), "it has not logged in");
        sessions.set_user(&entry, b"joe");
        let again = sessions.add(7, one.clone());
        drop(entry);
        assert!(sessions.find(7, b"joe").is_none());
        sessions.set_user(&again, b"joe");
        assert!(Arc::ptr_eq(&sessions.find(7, b"joe").unwrap(), &one));
        assert!(sessions.find(7, b"jim").is_none());
        drop(again);
        assert!(sessions.lock().is_empty());
    }
}
