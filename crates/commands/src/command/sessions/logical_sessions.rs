//! `startSession`, `endSessions`, `refreshSessions`, `killSessions` and related commands.

use crate::arguments;
use crate::authorization::check;
use crate::call::{Call, Disposition};
use crate::envelope;
use crate::table::fields;
use auth::{Action, Resource, UserName};
use document::{Doc, DocWriter, Element, Value};
use error::{Code, Error, Result};
use server::logical_session::{LogicalSessionId, TIMEOUT_MINUTES, user_digest};

pub fn start_session(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut uuid: [u8; 16] = rand::random();
    // Version 4, variant 1: a random UUID.
    uuid[6] = uuid[6] & 0x0F | 0x40;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    let id = LogicalSessionId { uuid, user: call.session.user_digest() };
    call.session.note_logical_session(call.worker, id, call.steady_ms);
    reply.document("id").append("id", Value::Binary { subtype: 4, bytes: &uuid });
    reply.append("timeoutMinutes", TIMEOUT_MINUTES);
    Ok(())
}

/// Parses the sessions of a command.
pub fn parse(call: &Call<'_>) -> Result<()> {
    fields::parse_own(call)?;
    session_ids(call, &[Action::Impersonate]).map(drop)
}

pub fn end_sessions(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    for id in session_ids(call, &[Action::Impersonate])? {
        call.worker.server.end_session(&id, call.steady_ms);
    }
    call.session.forget_noted_session();
    Ok(())
}

/// Kills the given sessions, or all of the user.
pub fn kill_sessions(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let ids = session_ids(call, &[Action::Impersonate, Action::KillAnySession])?;
    if call.first().value().as_array().is_some_and(Doc::is_empty) {
        let own = call.session.user_digest();
        call.worker.server.kill_sessions_where(|session| session.user == own);
    }
    ids.iter().for_each(|id| call.worker.server.kill_session(id));
    call.session.forget_noted_session();
    Ok(())
}

pub fn refresh_sessions(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    for id in session_ids(call, &[Action::Impersonate])? {
        call.session.note_logical_session(call.worker, id, call.steady_ms);
    }
    Ok(())
}

/// Kills the sessions of all users, or of those given. Fails with 11 if one of them does not exist.
pub async fn kill_all_sessions(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let users = arguments::array("KillAllSessionsCmd", call.first())?;
    let directory = &call.worker.server.access_control.directory;
    let mut digests = Vec::new();
    for user in users.elements() {
        let (name, database) = user_of("KillAllSessionsCmd.killAllSessions", user)?;
        let user = UserName::new(name, database);
        if directory.user(&*call.worker.store, &user).await?.is_none() {
            let message = format!("Could not find user \"{name}\" for db \"{database}\"");
            return Err(Error::new(Code(11), message));
        }
        digests.push(user_digest(&user));
    }
    let matches = |session: &LogicalSessionId| digests.is_empty() || digests.contains(&session.user);
    call.worker.server.kill_sessions_where(matches);
    call.session.forget_noted_session();
    Ok(Disposition::Reply)
}

/// Reads a user's name and database.
fn user_of<'a>(within: &str, element: Element<'a>) -> Result<(&'a str, &'a str)> {
    let name = element.value().as_document().ok_or_else(|| arguments::wrong_type(within, element, "object"))?;
    let (mut user, mut database) = (None, None);
    for field in name.elements() {
        match field.key() {
            "user" if user.is_none() => user = Some(arguments::string(within, field)?),
            "db" if database.is_none() => database = Some(arguments::string(within, field)?),
            "user" | "db" => return Err(arguments::repeated_field(within, field.key())),
            other => return Err(arguments::unknown_field(within, other)),
        }
    }
    let missing = |field| arguments::missing_field(within, field);
    Ok((user.ok_or_else(|| missing("user"))?, database.ok_or_else(|| missing("db"))?))
}

/// Kills sessions by patterns: `{lsid: …}` names a session, `{uid: …}` its owner. Patterns of users
/// and roles, for other servers to log, match all.
pub fn kill_all_sessions_by_pattern(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let patterns = arguments::array("KillAllSessionsByPatternCmd", call.first())?;
    if patterns.is_empty() {
        call.worker.server.kill_sessions_where(|_| true);
    }
    for element in patterns.elements() {
        const WITHIN: &str = "KillAllSessionsByPatternCmd.killAllSessionsByPattern";
        let pattern = element.value().as_document();
        let pattern = pattern.ok_or_else(|| arguments::wrong_type(WITHIN, element, "object"))?;
        if let Some(other) = pattern.elements().find(|field| !["lsid", "uid", "users", "roles"].contains(&field.key()))
        {
            return Err(arguments::unknown_field(WITHIN, other.key()));
        }
        if pattern.elements().any(|field| matches!(field.key(), "users" | "roles")) {
            check_impersonation(call)?;
        }
        let user = pattern.element("uid").map(|uid| envelope::user_digest(WITHIN, uid)).transpose()?;
        let is_users = |session: &LogicalSessionId| user.is_none_or(|user| session.user == user);
        match pattern.element("lsid") {
            Some(lsid) => {
                if let Some(id) = named_session(lsid)?.filter(is_users) {
                    call.worker.server.kill_session(&id);
                }
            }
            None => call.worker.server.kill_sessions_where(is_users),
        }
    }
    call.session.forget_noted_session();
    Ok(())
}

fn check_impersonation(call: &Call<'_>) -> Result<()> {
    match check::has_action(call.worker, call.session, Resource::Cluster, Action::Impersonate) {
        true => Ok(()),
        false => Err(Error::new(Code::UNAUTHORIZED, "Not authorized to impersonate in killAllSessionsByPattern")),
    }
}

/// Returns the session that a pattern names; `None` if it cannot exist here, because it belongs to
/// a transaction.
fn named_session(lsid: Element<'_>) -> Result<Option<LogicalSessionId>> {
    const WITHIN: &str = "KillAllSessionsByPatternCmd.killAllSessionsByPattern.lsid";
    let fields = lsid.value().as_document();
    let fields = fields
        .ok_or_else(|| arguments::wrong_type("KillAllSessionsByPatternCmd.killAllSessionsByPattern", lsid, "object"))?;
    let (mut id, mut uid, mut in_transaction) = (None, None, false);
    for field in fields.elements() {
        match field.key() {
            "id" => id = Some(envelope::uuid(WITHIN, field)?),
            "uid" => uid = Some(envelope::user_digest(WITHIN, field)?),
            "txnNumber" | "txnUUID" => in_transaction = true,
            other => return Err(arguments::unknown_field(WITHIN, other)),
        }
    }
    let missing = |field| arguments::missing_field(WITHIN, field);
    let (uuid, user) = (id.ok_or_else(|| missing("id"))?, uid.ok_or_else(|| missing("uid"))?);
    Ok((!in_transaction).then_some(LogicalSessionId { uuid, user }))
}

/// Returns the sessions that a command names. `of_others`: the privileges of which one allows the
/// sessions of other users.
fn session_ids(call: &Call<'_>, of_others: &[Action]) -> Result<Vec<LogicalSessionId>> {
    let within = call.spec.name;
    let sessions: Doc<'_> = arguments::array(within, call.first())?;
    let own = call.session.user_digest();
    let mut ids = Vec::new();
    for element in sessions.elements() {
        if element.value().as_document().is_none() {
            return Err(arguments::wrong_type(&format!("{within}.{within}FromClient"), element, "object"));
        }
        let id = envelope::logical_session(element, &own)?;
        if id.is_some_and(|id| id.user != own) {
            check::check_foreign_sessions(call, of_others)?;
        }
        ids.extend(id);
    }
    Ok(ids)
}

/// The sessions that `$listSessions` and `$listLocalSessions` return.
pub enum ListedSessions {
    Own,
    OfAll,
    Of(Vec<UserName>),
}

/// Returns whose sessions `$listSessions` or `$listLocalSessions` asks for.
pub fn listed_sessions(stage: Element<'_>) -> Result<ListedSessions> {
    let name = stage.key();
    let Some(options) = stage.value().as_document() else {
        let found = stage.kind.alias();
        let message = format!("{name} options must be specified in an object, but found: {found}");
        return Err(Error::type_mismatch(message));
    };
    let (mut all, mut named) = (false, Vec::new());
    for option in options.elements() {
        match option.key() {
            "allUsers" if arguments::is_absent(option) => {}
            "allUsers" => all = arguments::boolean(name, option)?,
            "users" => {
                for user in arguments::array(name, option)?.elements() {
                    let (user, database) = user_of(&format!("{name}.users"), user)?;
                    named.push(UserName::new(user, database));
                }
            }
            other => return Err(arguments::unknown_field(name, other)),
        }
    }
    match (all, named.is_empty()) {
        (true, false) => {
            let message = format!("{name} may not specify {{allUsers:true}} and {{users:[...]}} at the same time");
            Err(Error::new(Code(12), message))
        }
        (true, true) => Ok(ListedSessions::OfAll),
        (false, true) => Ok(ListedSessions::Own),
        (false, false) => Ok(ListedSessions::Of(named)),
    }
}
