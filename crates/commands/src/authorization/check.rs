//! The check of a request, before the document cache and before anything is executed.

use super::asked::{Asked, Granted, Grants, Recorder, State};
use super::decision::{USE_UUID, is_allowed};
use super::denial;
use crate::call::Call;
use crate::envelope::{self, collection_by_uuid};
use auth::{Action, ActionSet, Privilege, Resource, UserName};
use document::DocBuf;
use error::{Code, Error, Result};
use server::cursor::CursorOwner;
use server::{ClientSession, Server, Worker};

/// Fails with 13 if the session's user may not run the command. Fails with 26 or 207 if its
/// collection cannot be found by its UUID, which only users with `useUUID` learn. Costs one branch
/// without access control, and never allocates for a command that is allowed.
#[inline]
pub fn check(call: &Call<'_>) -> Result<()> {
    match call.worker.server.access_control.is_enabled() && !call.is_trusted && !call.envelope.asks_for_help {
        true => check_privileges(call),
        false => Ok(()),
    }
}

fn check_privileges(call: &Call<'_>) -> Result<()> {
    let body = envelope::body(call.request).0;
    let is_allowed = call.session.with_login(|login, privileges| {
        let mut grants = Granted(privileges);
        let asked = Asked {
            user: login.map(|login| &login.name),
            roles: login.map_or(&[], |login| &login.roles),
            state: Some(&*call.worker.server),
            ..asked(call)
        };
        let by_uuid = body.first().is_some_and(|first| collection_by_uuid::is_given(call.spec, first));
        let may_resolve = !by_uuid || grants.allow(Resource::Cluster, &USE_UUID);
        may_resolve
            && (call.unresolved.is_some() || is_allowed(call.table, &call.spec.authorization, &asked, &mut grants))
    });
    if is_allowed {
        return call.unresolved.clone().map_or(Ok(()), Err);
    }
    let redacted = call.table.redacted(call.spec, body);
    Err(denial::not_authorized(call.database(), redacted.as_ref().map_or(body, DocBuf::as_doc)))
}

fn asked<'a>(call: &Call<'a>) -> Asked<'a> {
    Asked {
        database: call.database(),
        first: call.first(),
        body: envelope::body(call.request).0,
        request: Some(call.request),
        user: None,
        roles: &[],
        state: None,
    }
}

/// Returns whether a session may name collections by their UUIDs.
pub fn may_use_uuid(worker: &Worker, session: &ClientSession) -> bool {
    has_action(worker, session, Resource::Cluster, Action::UseUuid)
}

/// Returns whether a session's user has a privilege; true without access control.
pub fn has_action(worker: &Worker, session: &ClientSession, resource: Resource<'_>, action: Action) -> bool {
    !worker.server.access_control.is_enabled()
        || session.with_login(|_, privileges| privileges.allows_all(resource, &ActionSet::of(&[action])))
}

/// Fails with 13 if the user may not use the sessions of other users.
pub fn check_foreign_session(call: &Call<'_>) -> Result<()> {
    check_foreign_sessions(call, &[Action::Impersonate])
}

/// Fails with 13 if the user has none of these privileges on the server as a whole.
pub fn check_foreign_sessions(call: &Call<'_>, actions: &[Action]) -> Result<()> {
    let mut actions = actions.iter();
    match actions.any(|action| has_action(call.worker, call.session, Resource::Cluster, *action)) {
        true => Ok(()),
        false => {
            let message = "Unauthorized to set user digest in LogicalSessionId";
            Err(Error::new(Code::UNAUTHORIZED, message))
        }
    }
}

/// Returns what a command requires, for the cursor that it opens.
pub fn required_privileges(call: &Call<'_>) -> Vec<Privilege> {
    let mut recorder = Recorder::default();
    if call.worker.server.access_control.is_enabled() {
        call.session.with_login(|login, _| {
            let asked = Asked { user: login.map(|login| &login.name), ..asked(call) };
            is_allowed(call.table, &call.spec.authorization, &asked, &mut recorder);
        });
    }
    recorder.0
}

impl State for Server {
    fn owner_of_cursor(&self, id: i64) -> Option<CursorOwner> {
        self.cursors.owner(id)
    }

    fn is_operation_of(&self, id: i64, user: &UserName) -> bool {
        let workers = self.workers();
        let mut operations = workers.iter().flat_map(|worker| worker.operations.list());
        operations.any(|operation| {
            i64::from(operation.id) == id && operation.identity.user().is_some_and(|name| name == *user)
        })
    }
}
