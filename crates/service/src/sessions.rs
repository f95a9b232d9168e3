//! The sessions of SQL clients on all backends, by the ids that the backends gave them.
//!
//! Each server counts its own connections, so two servers may give the same id. A session whose id
//! is taken on another server connects again, which gives it the next one, a limited number of
//! times. So an id nearly always means one session of this gateway. Otherwise KILL finds the latest
//! of the user's.

use crate::backend::Backend;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub struct Sessions {
    by_id: Mutex<HashMap<u64, Vec<Session>>>,
    /// Notified when a session waits for a connection that others may have and do not use.
    pub connection_wanted: Notify,
}

/// A connection: its server, and its id there.
pub type ConnectionAt = (Arc<Backend>, u64);

#[derive(Debug)]
struct Session {
    /// The session's own connection; `None`: it shares connections, and has none at the moment.
    home: Option<ConnectionAt>,
    /// Ends the session while it has none.
    ended: Arc<Notify>,
    user: Vec<u8>,
    number: u64,
    /// The connection that executes the session's statement, if that is another.
    running: Option<ConnectionAt>,
}

/// The entry of a session, removed when it is dropped.
#[derive(Debug)]
pub struct Entry {
    id: u64,
    number: u64,
    sessions: Arc<Sessions>,
    /// Notified when the session is killed while it has no connection.
    pub ended: Arc<Notify>,
}

/// A session that is to be killed.
#[derive(Debug)]
pub enum SessionAt {
    At(ConnectionAt),
    /// It has no connection at the moment, and executes nothing.
    Idle(Arc<Notify>),
}

impl Sessions {
    /// Adds a session, whose user is not known yet.
    pub fn add(self: &Arc<Sessions>, id: u64, backend: Arc<Backend>) -> Entry {
        let mut sessions = self.lock();
        let sessions = sessions.entry(id).or_default();
        // A server that was restarted counts from 1 again.
        let number = sessions.last().map_or(0, |session| session.number + 1);
        let ended = Arc::new(Notify::new());
        let home = Some((backend, id));
        sessions.push(Session { home, ended: ended.clone(), user: Vec::new(), number, running: None });
        Entry { id, number, sessions: self.clone(), ended }
    }

    pub fn set_user(&self, entry: &Entry, user: &[u8]) {
        self.change(entry, |session| session.user = user.to_vec());
    }

    /// Records that another connection has replaced the session's; `None`: that it has none.
    pub fn set_home(&self, entry: &Entry, home: Option<ConnectionAt>) {
        self.change(entry, |session| session.home = home);
    }

    /// Records a further connection that executes the session's statement; `None`: the session's
    /// own does.
    pub fn set_running(&self, entry: &Entry, running: Option<ConnectionAt>) {
        self.change(entry, |session| session.running = running);
    }

    fn change(&self, entry: &Entry, change: impl FnOnce(&mut Session)) {
        let mut sessions = self.lock();
        let mut sessions = sessions.get_mut(&entry.id).into_iter().flatten();
        if let Some(session) = sessions.find(|session| session.number == entry.number) {
            change(session);
        }
    }

    /// Returns whether a session on another server has this id.
    pub fn is_elsewhere(&self, id: u64, backend: &Arc<Backend>) -> bool {
        self.lock().get(&id).is_some_and(|sessions| {
            sessions.iter().any(|one| one.home.as_ref().is_none_or(|home| !Arc::ptr_eq(&home.0, backend)))
        })
    }

    /// Returns the connection of a user's session with an id. `is_query`: the connection that
    /// executes its statement.
    pub fn find(&self, id: u64, user: &[u8], is_query: bool) -> Option<SessionAt> {
        let sessions = self.lock();
        let session = sessions.get(&id)?.iter().rev().find(|session| session.user == user)?;
        let connection = session.running.as_ref().filter(|_| is_query).or(session.home.as_ref());
        Some(match connection {
            Some(connection) => SessionAt::At(connection.clone()),
            None => SessionAt::Idle(session.ended.clone()),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Vec<Session>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
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
                tags: Vec::new(),
            })
        };
        let (one, two) = (backend("one"), backend("two"));
        let sessions = Arc::new(Sessions::default());
        let entry = sessions.add(7, one.clone());
        assert!(sessions.is_elsewhere(7, &two) && !sessions.is_elsewhere(7, &one) && !sessions.is_elsewhere(8, &two));
        assert!(sessions.find(7, b"joe", false).is_none(), "it has not logged in");
        sessions.set_user(&entry, b"joe");
        let again = sessions.add(7, one.clone());
        drop(entry);
        assert!(sessions.find(7, b"joe", false).is_none());
        sessions.set_user(&again, b"joe");
        let at = |id, is_query| match sessions.find(id, b"joe", is_query) {
            Some(SessionAt::At((backend, id))) => Some((backend.settings().name.clone(), id)),
            _ => None,
        };
        assert_eq!(at(7, true), Some(("one".into(), 7)));
        sessions.set_running(&again, Some((two.clone(), 9)));
        assert_eq!((at(7, true), at(7, false)), (Some(("two".into(), 9)), Some(("one".into(), 7))));
        sessions.set_running(&again, None);
        sessions.set_home(&again, Some((two.clone(), 8)));
        assert_eq!(at(7, true), Some(("two".into(), 8)));
        assert!(sessions.find(7, b"jim", false).is_none());
        sessions.set_home(&again, None);
        assert!(matches!(sessions.find(7, b"joe", true), Some(SessionAt::Idle(_))));
        drop(again);
        assert!(sessions.lock().is_empty());
    }
}
