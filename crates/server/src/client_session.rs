//! The life of one client connection, as commands see it.

use crate::access_control::conversation::Conversation;
use crate::access_control::login::{Addresses, Login};
use crate::access_control::{self, AccessControl};
use crate::audit;
use crate::client_identity::ClientIdentity;
use crate::document_cache::CachePolicy;
use crate::logical_session::{ANONYMOUS_USER_DIGEST, LogicalSessionId, UserDigest, user_digest};
use crate::server::Server;
use crate::worker::Worker;
use auth::Privileges;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::sync::Arc;
use tls::TlsFacts;

/// How long a logical session counts as noted, in milliseconds; its timeout is half an hour.
const SESSION_NOTED_MS: i64 = 1000;

const NO_SESSION: LogicalSessionId = LogicalSessionId { uuid: [0; 16], user: ANONYMOUS_USER_DIGEST };

/// A client connection.
pub struct ClientSession {
    pub connection_id: u64,
    pub client: Option<SocketAddr>,
    /// The address that the client has connected to; `None` for Unix sockets.
    pub local: Option<SocketAddr>,
    /// The facts of the connection's TLS, with the client's certificate; `None` without TLS.
    pub tls: Option<Box<TlsFacts>>,
    pub identity: Arc<ClientIdentity>,
    /// The logical session noted last, and when; saves noting it with each command.
    noted: Cell<(LogicalSessionId, i64)>,
    /// Identifies the user in logical sessions.
    user_digest: Cell<UserDigest>,
    /// The listener's number.
    listener: usize,
    /// The caches that the connection reads from and fills.
    pub cache_policy: Cell<CachePolicy>,
    /// The subject of the client's certificate, which TLS has verified.
    pub certificate_subject: Option<Box<str>>,
    login: RefCell<Option<Arc<Login>>>,
    /// Boxed, since it lasts for a login alone.
    conversation: RefCell<Option<Box<Conversation>>>,
    localhost_exception: Cell<bool>,
}

impl ClientSession {
    /// Creates a session. `listener`: the number of the listener that accepted the client.
    pub fn new(server: &Server, connection_id: u64, client: Option<SocketAddr>, listener: usize) -> Self {
        ClientSession {
            connection_id,
            client,
            local: None,
            tls: None,
            identity: Arc::new(ClientIdentity::new(connection_id, client)),
            noted: Cell::new((NO_SESSION, 0)),
            user_digest: Cell::new(ANONYMOUS_USER_DIGEST),
            listener,
            cache_policy: Cell::new(server.cache_policy(listener)),
            certificate_subject: None,
            login: RefCell::default(),
            conversation: RefCell::default(),
            localhost_exception: Cell::new(false),
        }
    }

    /// Sets the facts of the connection's TLS, and the name of the client by its certificate.
    pub fn with_tls(self, tls: Option<Box<TlsFacts>>) -> Self {
        let certificate = tls.as_ref().and_then(|tls| tls.peer_certificates.first());
        let subject = certificate.and_then(|certificate| tls::subject::of_certificate(certificate));
        ClientSession { tls, certificate_subject: subject.map(String::into_boxed_str), ..self }
    }

    /// Sets the address that the client has connected to.
    pub fn with_local_address(self, local: Option<SocketAddr>) -> Self {
        ClientSession { local, ..self }
    }

    /// Returns the login, if there is one.
    pub fn login(&self) -> Option<Arc<Login>> {
        self.login.borrow().clone()
    }

    pub fn is_logged_in(&self) -> bool {
        self.login.borrow().is_some()
    }

    /// Returns the ends of the connection.
    pub fn addresses(&self) -> Addresses {
        Addresses { client: self.client.map(|address| address.ip()), server: self.local.map(|address| address.ip()) }
    }

    /// Returns whether [`ClientSession::refresh_login`] would change nothing.
    #[inline]
    pub fn is_login_current(&self, access_control: &AccessControl) -> bool {
        match &*self.login.borrow() {
            Some(login) => login.generation == access_control.directory.generation(),
            None => {
                let decided = !access_control.is_enabled() || access_control.is_known_to_have_users();
                (decided || !self.is_local()) && !self.localhost_exception.get()
            }
        }
    }

    /// Updates the login before a command, if users or roles have changed since. A user that was
    /// dropped, or may no longer log in from its address, is logged out.
    pub async fn refresh_login(&self, worker: &Worker) -> error::Result<()> {
        let (access_control, store) = (&worker.server.access_control, &*worker.store);
        let Some(login) = self.login() else {
            let may_apply = access_control.is_enabled() && self.is_local();
            self.localhost_exception.set(may_apply && !access_control.has_users(store).await?);
            return Ok(());
        };
        self.localhost_exception.set(false);
        let directory = &access_control.directory;
        let found = directory.user(store, &login.name).await?.filter(|user| user.id == login.user_id);
        let login = match found {
            Some(user) => Login::of(directory, store, user, self.addresses()).await?,
            None => None,
        };
        if login.is_none() {
            worker.server.audit.record_logout(&self.audited(), "Implicit logout due to a change of the user");
        }
        self.set_login(login.map(Arc::new));
        Ok(())
    }

    pub fn set_login(&self, login: Option<Arc<Login>>) {
        let user = login.as_ref().map(|login| login.name.clone());
        self.user_digest.set(user.as_ref().map_or(ANONYMOUS_USER_DIGEST, user_digest));
        self.identity.set_user(user);
        *self.login.borrow_mut() = login;
    }

    /// Returns whether a login has begun.
    pub fn has_conversation(&self) -> bool {
        self.conversation.borrow().is_some()
    }

    /// Takes the login that has begun, if there is one.
    pub fn take_conversation(&self) -> Option<Conversation> {
        self.conversation.take().map(|conversation| *conversation)
    }

    /// Replaces the login that has begun.
    pub fn set_conversation(&self, conversation: Option<Conversation>) {
        *self.conversation.borrow_mut() = conversation.map(Box::new);
    }

    /// Calls `use_privileges` with the privileges of the login, or of a connection without one. Any
    /// action is allowed where access control is off, which this does not know.
    #[inline]
    pub fn with_privileges<T>(&self, use_privileges: impl FnOnce(&Privileges) -> T) -> T {
        match &*self.login.borrow() {
            Some(login) => use_privileges(&login.privileges),
            None => use_privileges(access_control::privileges_without_login(self.localhost_exception.get())),
        }
    }

    /// As [`ClientSession::with_privileges`], with the login as well.
    #[inline]
    pub fn with_login<T>(&self, use_login: impl FnOnce(Option<&Login>, &Privileges) -> T) -> T {
        let login = self.login.borrow();
        self.with_privileges(|privileges| use_login(login.as_deref(), privileges))
    }

    /// Returns the digest that identifies the user in logical sessions.
    pub fn user_digest(&self) -> UserDigest {
        self.user_digest.get()
    }

    /// Returns whether the client is on this machine.
    pub fn is_local(&self) -> bool {
        self.client.is_none_or(|client| client.ip().to_canonical().is_loopback())
    }

    /// Returns whether the connection may create the first user without a login.
    pub fn has_localhost_exception(&self) -> bool {
        self.localhost_exception.get()
    }

    /// Returns the connection as the audit log describes it.
    pub fn audited(&self) -> audit::Connection {
        let login = self.login.borrow();
        let name = |name: &str, db: &str| audit::Name { name: name.to_owned(), db: db.to_owned() };
        let user = login.iter().map(|login| name(&login.name.user, &login.name.db));
        let roles = login.iter().flat_map(|login| login.roles.iter()).map(|role| name(&role.role, &role.db));
        audit::Connection {
            id: self.connection_id,
            listener: self.listener,
            client: self.client,
            local: self.local,
            users: user.collect(),
            roles: roles.collect(),
        }
    }

    /// Switches the caches on or off, within what the listener allows.
    pub fn set_caching(&self, server: &Server, enabled: bool) {
        self.cache_policy.set(if enabled { server.cache_policy(self.listener) } else { CachePolicy::NONE });
    }

    /// Records the use of a logical session, at most once in [`SESSION_NOTED_MS`].
    pub fn touch_logical_session(&self, worker: &Worker, id: LogicalSessionId, now_ms: i64) {
        let (noted, noted_ms) = self.noted.get();
        if noted != id || now_ms - noted_ms >= SESSION_NOTED_MS {
            self.note_logical_session(worker, id, now_ms);
            self.noted.set((id, now_ms));
        }
    }

    /// Records the use of a logical session.
    pub fn note_logical_session(&self, worker: &Worker, id: LogicalSessionId, now_ms: i64) {
        let login = self.login.borrow();
        let owner = login.as_ref().map(|login| &login.name).filter(|_| id.user == self.user_digest());
        worker.shared.sessions.touch(id, owner, now_ms);
    }

    pub fn forget_noted_session(&self) {
        self.noted.set((NO_SESSION, 0));
    }
}
