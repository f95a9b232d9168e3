//! The sessions of SQL clients on all servers, by the ids that clients know them by.
//!
//! Each server counts its own connections, so two servers may give the same id, and a server that
//! was restarted gives its ids again. A session claims its id, so that no two have one: an id that
//! is taken is replaced by one of the gateway's own.

use crate::backend::Backend;
use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The first of the gateway's own ids, which end at twice this number. Servers count from 1, so
/// none reaches them in practice, and drivers with signed numbers can read them.
const OWN_IDS: u32 = 1 << 30;

#[derive(Debug)]
pub struct Sessions {
    by_id: Mutex<HashMap<u64, Session>>,
    /// Counts the gateway's own ids.
    own_ids: AtomicU32,
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
    /// The connection that executes the session's statement, if that is another.
    running: Option<ConnectionAt>,
}

/// The entry of a session, removed when it is dropped.
#[derive(Debug)]
pub struct Entry {
    /// The id by which clients know the session.
    pub id: u64,
    sessions: Arc<Sessions>,
    /// Notified when the session is killed while it has no connection.
    pub ended: Arc<Notify>,
}

/// A session that is to be killed.
#[derive(Debug)]
pub struct KnownSession {
    pub user: Vec<u8>,
    pub at: SessionAt,
}

/// The place of a session.
#[derive(Debug)]
pub enum SessionAt {
    At(ConnectionAt),
    /// It has no connection at the moment, and executes nothing.
    Idle(Arc<Notify>),
}

impl Default for Sessions {
    fn default() -> Sessions {
        // Several gateways rarely give the same ids.
        let first = RandomState::new().hash_one(0) as u32;
        Sessions { by_id: Mutex::default(), own_ids: AtomicU32::new(first), connection_wanted: Notify::new() }
    }
}

impl Sessions {
    /// Adds a session with the id that its server gave it, whose user is not known yet. Returns
    /// `None` if another session has this id.
    pub fn claim(self: &Arc<Sessions>, connection: ConnectionAt) -> Option<Entry> {
        self.add(connection.1, connection)
    }

    /// As [`Sessions::claim`], with an id of the gateway's own.
    pub fn claim_own(self: &Arc<Sessions>, connection: &ConnectionAt) -> Entry {
        loop {
            let id = OWN_IDS + self.own_ids.fetch_add(1, Ordering::Relaxed) % OWN_IDS;
            if let Some(entry) = self.add(id.into(), connection.clone()) {
                return entry;
            }
        }
    }

    fn add(self: &Arc<Sessions>, id: u64, connection: ConnectionAt) -> Option<Entry> {
        let mut sessions = self.lock();
        let MapEntry::Vacant(place) = sessions.entry(id) else { return None };
        let ended = Arc::new(Notify::new());
        place.insert(Session { home: Some(connection), ended: ended.clone(), user: Vec::new(), running: None });
        Some(Entry { id, sessions: self.clone(), ended })
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
        if let Some(session) = self.lock().get_mut(&entry.id) {
            change(session);
        }
    }

    /// Returns the user and the connection of a session with an id. `is_query`: the connection that
    /// executes its statement.
    pub fn find(&self, id: u64, is_query: bool) -> Option<KnownSession> {
        let sessions = self.lock();
        let session = sessions.get(&id)?;
        let connection = session.running.as_ref().filter(|_| is_query).or(session.home.as_ref());
        let at = match connection {
            Some(connection) => SessionAt::At(connection.clone()),
            None => SessionAt::Idle(session.ended.clone()),
        };
        Some(KnownSession { user: session.user.clone(), at })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Session>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.sessions.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ServerSettings;

    fn backend(name: &str) -> Arc<Backend> {
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
    }

    #[test]
    fn sessions_are_found_by_id() {
        let (one, two) = (backend("one"), backend("two"));
        let sessions = Arc::new(Sessions::default());
        let entry = sessions.claim((one.clone(), 7)).unwrap();
        assert!(sessions.find(8, false).is_none());
        assert_eq!(sessions.find(7, false).unwrap().user, b"", "it has not logged in");
        sessions.set_user(&entry, b"joe");
        assert_eq!(sessions.find(7, false).unwrap().user, b"joe");
        let at = |id, is_query| match sessions.find(id, is_query)?.at {
            SessionAt::At((backend, id)) => Some((backend.settings().name.clone(), id)),
            SessionAt::Idle(_) => None,
        };
        assert_eq!(at(7, true), Some(("one".into(), 7)));
        sessions.set_running(&entry, Some((two.clone(), 9)));
        assert_eq!((at(7, true), at(7, false)), (Some(("two".into(), 9)), Some(("one".into(), 7))));
        sessions.set_running(&entry, None);
        sessions.set_home(&entry, Some((two.clone(), 8)));
        assert_eq!(at(7, true), Some(("two".into(), 8)));
        sessions.set_home(&entry, None);
        assert!(matches!(sessions.find(7, true).unwrap().at, SessionAt::Idle(_)));
        drop(entry);
        assert!(sessions.lock().is_empty());
    }

    #[test]
    fn no_two_sessions_have_one_id() {
        let (one, two) = (backend("one"), backend("two"));
        let sessions = Arc::new(Sessions::default());
        let first = sessions.claim((one.clone(), 7)).unwrap();
        assert!(sessions.claim((two.clone(), 7)).is_none());
        assert!(sessions.claim((one, 7)).is_none(), "the server was restarted");
        let connection = (two, 7);
        sessions.own_ids.store(u32::MAX, Ordering::Relaxed);
        let own = [sessions.claim_own(&connection), sessions.claim_own(&connection)];
        assert_eq!(own.each_ref().map(|entry| entry.id), [(1 << 31) - 1, 1 << 30]);
        sessions.own_ids.store(u32::MAX, Ordering::Relaxed);
        assert_eq!(sessions.claim_own(&connection).id, (1 << 30) + 1, "the others are taken");
        drop(first);
        assert!(sessions.claim(connection).is_some());
    }
}
