//! The audit log's view of commands: which of them are recorded, and as which events.
//!
//! If there is an audit log, dispatch calls [`Recording::begin`] before a command, and
//! [`Recording::finish`] after it. Some events depend on what existed before: a write that creates
//! its collection, the indexes that are dropped. The reply is sent after the events are written.

pub(crate) mod accounts;
mod catalog;
mod direct_writes;

use crate::envelope;
use crate::login;
use crate::table::COMMANDS;
use crate::table::spec::Spec;
use catalog::Before;
use document::{Doc, DocBuf, Value, doc};
use error::{Code, Result};
use mongo_wire::Request;
use server::audit::{Connection, kind};
use server::{ClientSession, Worker};

/// What the events of a command are made of.
enum Recorded {
    /// A command about users or roles, and its kind of event.
    Account(&'static str),
    /// A change of the catalog.
    Catalog(Before),
    /// A write to the users or roles themselves.
    DirectWrite,
    /// The command of `mongorestore` about many users and roles, which records each.
    Merge,
    /// `logout`, with the connection as it was before.
    Logout(Connection),
    Shutdown,
    Login,
    Hello,
    /// Only the authorization check.
    Nothing,
}

/// A command under way, as far as it is recorded.
pub(crate) struct Recording<'a> {
    worker: &'a Worker,
    session: &'a ClientSession,
    request: &'a Request,
    spec: &'a Spec,
    body: Doc<'a>,
    /// Whether it is part of another command, with which the user was authorized.
    is_trusted: bool,
    recorded: Recorded,
}

impl<'a> Recording<'a> {
    /// Prepares to record a command. `is_trusted`: whether it is part of another one, with which
    /// the user was authorized. Fails with 96 if it must be refused, because the log cannot be
    /// written.
    pub async fn begin(
        worker: &'a Worker,
        session: &'a ClientSession,
        request: &'a Request,
        (spec, is_trusted): (&'a Spec, bool),
    ) -> Result<Recording<'a>> {
        let (body, _) = envelope::body(request);
        let audit = &worker.server.audit;
        let logs_in = matches!(spec.name, "saslStart" | "saslContinue" | "authenticate")
            || body.get("speculativeAuthenticate").is_some();
        let account = accounts::kind_of(spec.name);
        let recorded = match spec.name {
            // The catalog is not asked before the login, which dispatch checks.
            _ if login::check(worker, session, spec).is_err() => Recorded::Nothing,
            _ if account.is_some() => Recorded::Account(account.unwrap_or_default()),
            "logout" => Recorded::Logout(session.audited()),
            "shutdown" => Recorded::Shutdown,
            "hello" | "isMaster" => Recorded::Hello,
            "_mergeAuthzCollections" => Recorded::Merge,
            _ if logs_in => Recorded::Login,
            _ if direct_writes::is_one(spec, body) => Recorded::DirectWrite,
            _ => match Before::of(worker, spec, body).await {
                Some(before) => Recorded::Catalog(before),
                None => Recorded::Nothing,
            },
        };
        let changes =
            matches!(recorded, Recorded::Account(_) | Recorded::Catalog(_) | Recorded::DirectWrite | Recorded::Merge);
        if logs_in || changes || audit.records_authorization_success() && spec.needs_authentication {
            audit.check()?;
        }
        Ok(Recording { worker, session, request, spec, body, is_trusted, recorded })
    }

    /// Records the outcome of the command, and waits until that is written.
    pub async fn finish(self, reply: Doc<'_>) {
        let code = reply.get("code").and_then(Value::to_i64).and_then(|code| i32::try_from(code).ok());
        let succeeded = reply.get("ok").is_some_and(Value::is_truthy);
        let result = if succeeded { Code(0) } else { code.map_or(Code::OPERATION_FAILED, Code) };
        let mut events = Events { recording: &self, last: None };
        if !self.is_trusted {
            events.add_authorization(result);
        }
        if result != Code::UNAUTHORIZED {
            self.add(&mut events, result).await;
        }
        let last = events.last;
        self.worker.server.audit.written(last).await;
    }

    async fn add(&self, events: &mut Events<'_>, result: Code) {
        match &self.recorded {
            Recorded::Account(kind) => events.add(kind, || accounts::param(kind, self.database(), self.body), result),
            Recorded::Catalog(before) => before.add_events(self, events, result).await,
            Recorded::DirectWrite => direct_writes::add_events(self, events, result),
            Recorded::Logout(before) if !self.session.is_logged_in() => {
                let reason = format!("Explicit logout from db '{}'", self.database());
                events.last = self.worker.server.audit.record_logout(before, &reason);
            }
            Recorded::Shutdown => events.add(kind::SHUTDOWN, DocBuf::new, result),
            Recorded::Hello => self.add_metadata(events, result),
            // Recorded by the command itself.
            Recorded::Login | Recorded::Merge => events.last = self.worker.server.audit.last(),
            Recorded::Logout(_) | Recorded::Nothing => {}
        }
    }

    fn add_metadata(&self, events: &mut Events<'_>, result: Code) {
        events.last = self.worker.server.audit.last();
        let client = self.body.get("client").and_then(Value::as_document);
        let Some(client) = client.filter(|_| result == Code(0)) else { return };
        let param = || {
            let local =
                server::audit::endpoint_document(&self.worker.server.audit.subject(&self.session.audited()).local);
            doc! { "localEndpoint": &local, "clientMetadata": client }
        };
        events.add(kind::CLIENT_METADATA, param, result);
    }

    fn database(&self) -> &'a str {
        self.body.get("$db").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the command as it may be shown.
    fn shown(&self) -> DocBuf {
        COMMANDS.redacted(self.spec, self.body).unwrap_or_else(|| self.body.to_owned())
    }

    /// Returns the namespace in the command's first field.
    fn namespace(&self) -> String {
        let collection = self.body.first().and_then(|first| first.value().as_str()).unwrap_or_default();
        format!("{}.{collection}", self.database())
    }
}

/// The events of one command.
pub(crate) struct Events<'r> {
    recording: &'r Recording<'r>,
    last: Option<server::audit::Ticket>,
}

impl Events<'_> {
    fn add(&mut self, kind: &'static str, param: impl FnOnce() -> DocBuf, result: Code) {
        let Recording { worker, session, .. } = self.recording;
        let ticket = worker.server.audit.record(&session.audited(), kind, param, result);
        self.last = ticket.or(self.last);
    }

    /// Adds the authorization check, if it failed, or if successful ones are recorded.
    fn add_authorization(&mut self, result: Code) {
        let recording = self.recording;
        let failed = result == Code::UNAUTHORIZED;
        let audit = &recording.worker.server.audit;
        let records_success = recording.spec.needs_authentication && audit.records_authorization_success();
        if !failed && !records_success {
            return;
        }
        let param = || {
            let args = recording.shown();
            doc! { "command": recording.spec.name, "ns": recording.namespace().as_str(), "args": &args }
        };
        let checked = if failed { Code::UNAUTHORIZED } else { Code(0) };
        let ticket = audit.record(&recording.session.audited(), kind::AUTH_CHECK, param, checked);
        // A read does not wait for the log.
        if failed {
            self.last = ticket.or(self.last);
        }
    }
}
