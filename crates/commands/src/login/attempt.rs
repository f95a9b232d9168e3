//! An attempt to log in. Each ends once: with one event in the audit log, and a failure with a line
//! in the server's log.

use crate::call::Call;
use auth::UserName;
use auth::scram::Failure;
use document::{Element, doc};
use error::{Code, Error, Result};
use server::access_control::conversation::Conversation;
use server::access_control::login::Login;
use server::audit::kind;
use server::{ClientSession, Server, Worker};
use std::sync::Arc;

/// An attempt to log in, as far as the client has described it.
#[derive(Debug)]
pub struct Attempt {
    /// The name is empty until the client has named the user.
    pub user: UserName,
    pub mechanism: Box<str>,
    /// It began in a `hello`.
    pub is_speculative: bool,
}

/// Why an attempt failed.
#[derive(Debug)]
pub struct Refusal {
    /// What the client learns.
    error: Error,
    /// The reason for the log, if the client does not learn it.
    reason: Option<&'static str>,
}

impl Refusal {
    /// Returns a refusal of which the client learns nothing but that the login failed.
    pub fn secret(reason: &'static str) -> Refusal {
        Refusal::with(Error::new(Code::AUTHENTICATION_FAILED, "Authentication failed."), reason)
    }

    /// Returns a refusal with an error for the client, and a reason for the log.
    pub fn with(error: Error, reason: &'static str) -> Refusal {
        Refusal { error, reason: Some(reason) }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal { error, reason: None }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(reason) => Refusal::secret(reason),
            Failure::InvalidBase64 => Error::new(Code(10270), "invalid base64").into(),
        }
    }
}

impl Attempt {
    /// Begins an attempt of a user of `db` that is not named yet.
    pub fn new(mechanism: &str, db: &str) -> Attempt {
        Attempt { user: UserName::new("", db), mechanism: mechanism.into(), is_speculative: false }
    }

    /// Counts the attempt. `is_speculative`: it begins in a `hello`.
    pub fn counted(self, call: &Call<'_>, is_speculative: bool) -> Attempt {
        call.worker.server.login_statistics.received(&self.mechanism, is_speculative);
        Attempt { is_speculative, ..self }
    }

    /// Returns the attempt of a conversation.
    pub fn of(conversation: &Conversation) -> Attempt {
        let Conversation { user, mechanism, is_speculative, .. } = conversation;
        Attempt { user: user.clone(), mechanism: mechanism.name().into(), is_speculative: *is_speculative }
    }

    /// Ends the attempt if it failed: logs it, and returns the client's error.
    pub fn end<T>(&self, call: &Call<'_>, outcome: Result<T, Refusal>) -> Result<T> {
        outcome.map_err(|refusal| self.fail(call, refusal))
    }

    fn fail(&self, call: &Call<'_>, Refusal { error, reason }: Refusal) -> Error {
        let session = call.session;
        self.record(&call.worker.server, session, error.code());
        let (user, mechanism) = (self.user.at_database(), &*self.mechanism);
        let client = session.client.map_or_else(|| "a Unix socket".to_owned(), |client| client.to_string());
        let reason = reason.unwrap_or_else(|| error.message());
        tracing::info!(user, mechanism, client, reason, connection = session.connection_id, "authentication failed");
        error
    }

    /// Ends the attempt of a client that has proved its identity: logs the user in. `user_id`: of
    /// the user at the time of the proof. Refuses a user that may not log in from this address with
    /// 18, and one beside another user with 5626701 or 5626702.
    pub async fn log_in(&self, call: &Call<'_>, user_id: Option<[u8; 16]>) -> Result<(), Refusal> {
        let (session, name) = (call.session, &self.user);
        if let Some(previous) = session.login().filter(|previous| previous.name != *name) {
            let (code, message) = match previous.name.db == name.db {
                true => {
                    (5626702, "Client has attempted to authenticate on multiple databases.Already authenticated as: ")
                }
                false => {
                    (5626701, "Each client connection may only be authenticated once. Previously authenticated as: ")
                }
            };
            return Err(Error::new(Code(code), format!("{message}{}", previous.name.at_database())).into());
        }
        let (directory, store) = (&call.worker.server.access_control.directory, &*call.worker.store);
        let user = directory.user(store, name).await?.filter(|user| user.id == user_id);
        let user = user.ok_or_else(|| Refusal::secret("the user was dropped meanwhile"))?;
        let login = Login::of(directory, store, user, session.addresses()).await?;
        let login = login.ok_or_else(|| Refusal::secret("the user may not log in between these addresses"))?;
        session.set_login(Some(Arc::new(login)));
        self.record(&call.worker.server, session, Code(0));
        call.worker.server.login_statistics.successful(&self.mechanism, self.is_speculative);
        let (user, mechanism) = (name.at_database(), &*self.mechanism);
        tracing::debug!(user, mechanism, connection = session.connection_id, "logged in");
        Ok(())
    }

    /// Records the outcome. Dispatch waits until the event is written.
    fn record(&self, server: &Server, session: &ClientSession, result: Code) {
        let UserName { user, db } = &self.user;
        let param = || doc! { "user": &**user, "db": &**db, "mechanism": &*self.mechanism };
        let _ = server.audit.record(&session.audited(), kind::AUTHENTICATE, param, result);
    }
}

/// Returns the message about a mechanism that is not offered.
pub fn not_enabled(mechanism: &str) -> String {
    format!("Received authentication for mechanism {mechanism} which is not enabled")
}

/// Passes the parsed fields of an attempt on. If they are wrong, the attempt has failed.
pub fn read<'a, T>(
    call: &Call<'_>,
    mut fields: impl Iterator<Item = Element<'a>>,
    db: &str,
    parsed: Result<T>,
) -> Result<T> {
    let mechanism = fields.find(|field| field.key() == "mechanism").and_then(|field| field.value().as_str());
    Attempt::new(mechanism.unwrap_or_default(), db).end(call, parsed.map_err(Refusal::from))
}

/// Ends the attempt that a connection has begun and not finished, if there is one.
pub fn abandon(worker: &Worker, session: &ClientSession) {
    if let Some(conversation) = session.take_conversation() {
        let attempt = Attempt::of(&conversation);
        attempt.record(&worker.server, session, Code::AUTHENTICATION_ABANDONED);
    }
}

/// Records that an unfinished attempt and the login end with their connection.
pub fn end_connection(worker: &Worker, session: &ClientSession) {
    let server = &worker.server;
    if server.audit.is_on() {
        abandon(worker, session);
        server.audit.record_logout(&session.audited(), "Implicit logout due to client connection closure");
    }
}
