//! The audit log's view of one SQL client: its attempts to log in, and the end of its login.
//!
//! Each attempt is recorded once, before the client learns its outcome. One that is pending when
//! the connection ends has been abandoned.

use document::doc;
use error::{Code, Result};
use server::Server;
use server::audit::{Connection, Name, Ticket, kind};
use std::sync::Arc;

/// The database of MariaDB's accounts in the names of users.
const DATABASE: &str = "$mariadb";

/// The client of a connection, and its attempt that is pending.
pub struct AuditedClient {
    server: Arc<Server>,
    connection: Connection,
    pending: Option<Attempt>,
}

/// An attempt to log in.
#[derive(Default)]
struct Attempt {
    /// Empty until the client has named it.
    user: String,
    /// The authentication plugin; empty if the client has named none.
    mechanism: String,
}

impl AuditedClient {
    /// Describes a client that has not logged in.
    pub fn new(server: Arc<Server>, connection: Connection) -> AuditedClient {
        AuditedClient { server, connection, pending: None }
    }

    /// Begins an attempt. Fails if it must be refused, because the log cannot be written.
    pub fn begin(&mut self, user: &[u8], plugin: &[u8]) -> Result<()> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        self.pending = Some(Attempt { user: text(user), mechanism: text(plugin) });
        self.server.audit.check()
    }

    /// Notes that the server asks for another plugin.
    pub fn switch(&mut self, plugin: &[u8]) {
        if let Some(attempt) = &mut self.pending {
            attempt.mechanism = String::from_utf8_lossy(plugin).into_owned();
        }
    }

    /// Records that the attempt has succeeded. The connection's earlier user, if it has one, is
    /// logged out.
    pub async fn succeeded(&mut self) {
        let attempt = self.pending.take().unwrap_or_default();
        self.server.audit.record_logout(&self.connection, "Implicit logout due to a change of user");
        self.connection.users = Arc::new([Name { name: attempt.user.clone(), db: DATABASE.to_owned() }]);
        let ticket = self.record(&attempt, Code(0));
        self.server.audit.written(ticket).await;
    }

    /// Records that the attempt, whose user may be unknown, has failed with an error.
    pub async fn failed(&mut self, code: u16) {
        let attempt = self.pending.take().unwrap_or_default();
        let ticket = self.record(&attempt, Code(i32::from(code)));
        self.server.audit.written(ticket).await;
    }

    fn record(&self, Attempt { user, mechanism }: &Attempt, result: Code) -> Option<Ticket> {
        let param = || doc! { "user": user.as_str(), "db": DATABASE, "mechanism": mechanism.as_str() };
        self.server.audit.record(&self.connection, kind::AUTHENTICATE, param, result)
    }
}

impl Drop for AuditedClient {
    fn drop(&mut self) {
        if let Some(attempt) = self.pending.take() {
            self.record(&attempt, Code::AUTHENTICATION_ABANDONED);
        }
        self.server.audit.record_logout(&self.connection, "Implicit logout due to client connection closure");
    }
}
