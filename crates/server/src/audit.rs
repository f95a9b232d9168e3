//! The audit log, as sessions and commands use it.

use crate::clock;
use audit::{AuditLog, Endpoint, Event};
use document::{DocBuf, DocWriter, doc};
use error::{Code, Error, Result};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

pub use audit::event::kind;
pub use audit::log::Ticket;
pub use audit::{Name, Subject};

/// A connection as events describe it.
#[derive(Clone, Debug)]
pub struct Connection {
    pub id: u64,
    /// The number of the listener that accepted it.
    pub listener: usize,
    /// The addresses of both ends; `None` for Unix sockets.
    pub client: Option<SocketAddr>,
    pub local: Option<SocketAddr>,
    pub users: Arc<[Name]>,
    pub roles: Arc<[Name]>,
}

/// The audit log of a process that may have none.
#[derive(Debug, Default)]
pub struct Audit(OnceLock<Started>);

#[derive(Debug)]
struct Started {
    log: AuditLog,
    /// The addresses of the listeners, by their number.
    listeners: Vec<Endpoint>,
    process: [u8; 8],
}

impl Audit {
    /// Begins to record events. `process` is part of the identifiers of connections.
    pub fn start(&self, log: AuditLog, listeners: Vec<Endpoint>, process: [u8; 8]) {
        // It is called once.
        let _ = self.0.set(Started { log, listeners, process });
    }

    #[inline]
    pub fn log(&self) -> Option<&AuditLog> {
        self.0.get().map(|started| &started.log)
    }

    /// Returns whether there is a log.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns whether successful authorization checks are recorded, and so every command.
    pub fn records_authorization_success(&self) -> bool {
        self.log().is_some_and(AuditLog::wants_authorization_success)
    }

    /// Fails with 96 if recorded commands must be refused, because the log cannot be written.
    pub fn check(&self) -> Result<()> {
        match self.log().map(AuditLog::check) {
            Some(Err(unavailable)) => Err(Error::new(Code::OPERATION_FAILED, unavailable.to_string())),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// Records an event of a connection. `param` is called only if the log wants the event.
    pub fn record(
        &self,
        connection: &Connection,
        kind: &'static str,
        param: impl FnOnce() -> DocBuf,
        result: Code,
    ) -> Option<Ticket> {
        let started = self.0.get().filter(|started| started.log.wants(kind))?;
        started.record(started.subject(connection), kind, param(), result)
    }

    /// Records that the users of a connection are logged out; nothing if there are none.
    /// `connection`: as it was before.
    pub fn record_logout(&self, connection: &Connection, reason: &str) -> Option<Ticket> {
        let param = || logout_param(reason, &connection.users);
        if connection.users.is_empty() { None } else { self.record(connection, kind::LOGOUT, param, Code(0)) }
    }

    /// Returns a connection and its users, as events describe them.
    pub fn subject(&self, connection: &Connection) -> Subject {
        self.0.get().map_or_else(|| Subject::system([0; 16]), |started| started.subject(connection))
    }

    /// Returns the place in the queue of the event that was recorded last.
    pub fn last(&self) -> Option<Ticket> {
        self.log().map(AuditLog::last)
    }

    /// Waits until an event is written, or the log fails.
    pub async fn written(&self, ticket: Option<Ticket>) {
        if let (Some(log), Some(ticket)) = (self.log(), ticket) {
            log.written(ticket).await;
        }
    }
}

impl Started {
    fn record(&self, subject: Subject, kind: &'static str, param: DocBuf, result: Code) -> Option<Ticket> {
        self.log.record(Event { kind, ts_ms: clock::now_ms(), subject, param, result: result.0 })
    }

    fn subject(&self, connection: &Connection) -> Subject {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&self.process);
        uuid[8..].copy_from_slice(&connection.id.to_be_bytes());
        // Version 8, variant 1: an identifier of an own kind.
        uuid[6] = uuid[6] & 0x0F | 0x80;
        uuid[8] = uuid[8] & 0x3F | 0x80;
        let listener = || self.listeners.get(connection.listener).cloned().unwrap_or(Endpoint::System);
        let local = connection.local.map_or_else(listener, Endpoint::Ip);
        let remote = connection.client.map_or_else(|| Endpoint::Unix("anonymous".to_owned()), Endpoint::Ip);
        let (users, roles) = (connection.users.clone(), connection.roles.clone());
        Subject { uuid, local, remote, users, roles }
    }
}

/// Returns the parameters of a logout that ends the login of all users.
fn logout_param(reason: &str, before: &[Name]) -> DocBuf {
    DocBuf::build(|writer: &mut DocWriter<'_>| {
        writer.append("reason", reason);
        let mut users = writer.array("initialUsers");
        for Name { name, db } in before {
            users.push(&doc! { "user": name.as_str(), "db": db.as_str() });
        }
        drop(users);
        drop(writer.array("updatedUsers"));
    })
}

/// Returns one end of a connection as a document.
pub fn endpoint_document(endpoint: &Endpoint) -> DocBuf {
    match endpoint {
        Endpoint::Ip(address) => {
            doc! { "ip": address.ip().to_string().as_str(), "port": i32::from(address.port()) }
        }
        Endpoint::Unix(path) => doc! { "unix": path.as_str() },
        Endpoint::System => doc! { "isSystemUser": true },
    }
}
