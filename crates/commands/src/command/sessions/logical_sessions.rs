//! `startSession`, `endSessions`, `refreshSessions`, `killSessions` and related commands.

use crate::arguments;
use crate::call::Call;
use crate::envelope;
use crate::table::fields;
use document::{Doc, DocWriter, Element, Value};
use error::{Code, Error, Result};
use server::logical_session::{ANONYMOUS_USER_DIGEST, LogicalSessionId, TIMEOUT_MINUTES};

pub fn start_session(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut id: LogicalSessionId = rand::random();
    // Version 4, variant 1: a random UUID.
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    call.worker.shared.sessions.touch(id, call.now_ms);
    reply.document("id").append("id", Value::Binary { subtype: 4, bytes: &id });
    reply.append("timeoutMinutes", TIMEOUT_MINUTES);
    Ok(())
}

/// Parses the sessions of a command.
pub fn parse(call: &Call<'_>) -> Result<()> {
    fields::parse_own(call)?;
    session_ids(call.spec.name, call.first()).map(drop)
}

pub fn end_sessions(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    for id in session_ids("endSessions", call.first())? {
        call.worker.server.end_session(&id, call.now_ms);
    }
    call.session.forget_noted_session();
    Ok(())
}

/// Kills the given sessions, or all.
pub fn kill_sessions(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let ids = session_ids("killSessions", call.first())?;
    if call.first().value().as_array().is_some_and(Doc::is_empty) {
        end_everything(call);
    }
    ids.iter().for_each(|id| call.worker.server.kill_session(id));
    call.session.forget_noted_session();
    Ok(())
}

pub fn refresh_sessions(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    for id in session_ids("refreshSessions", call.first())? {
        call.worker.shared.sessions.touch(id, call.now_ms);
    }
    Ok(())
}

/// Kills the sessions of all users. Fails with 11 for a given user, because there are none.
pub fn kill_all_sessions(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let users = arguments::array("KillAllSessionsCmd", call.first())?;
    if users.is_empty() {
        end_everything(call);
    }
    if let Some(user) = users.elements().next() {
        let (user, database) = user_of("KillAllSessionsCmd.killAllSessions", user)?;
        let message = format!("Could not find user \"{user}\" for db \"{database}\"");
        return Err(Error::new(Code(11), message));
    }
    Ok(())
}

/// Reads a user's name and database.
fn user_of<'a>(within: &str, element: Element<'a>) -> Result<(&'a str, &'a str)> {
    let name = element.value().as_document().ok_or_else(|| arguments::wrong_type(within, element, "object"))?;
    let (mut user, mut database) = (None, None);
    for field in name.elements() {
        match field.key() {
            "user" => user = Some(arguments::string(within, field)?),
            "db" => database = Some(arguments::string(within, field)?),
            other => return Err(arguments::unknown_field(within, other)),
        }
    }
    let missing = |field| arguments::missing_field(within, field);
    Ok((user.ok_or_else(|| missing("user"))?, database.ok_or_else(|| missing("db"))?))
}

/// Kills sessions by patterns: `{lsid: …}` names a session, `{uid: …}` its owner. Patterns of users
/// and roles match all.
pub fn kill_all_sessions_by_pattern(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let patterns = arguments::array("KillAllSessionsByPatternCmd", call.first())?;
    if patterns.is_empty() {
        end_everything(call);
    }
    for element in patterns.elements() {
        const WITHIN: &str = "KillAllSessionsByPatternCmd.killAllSessionsByPattern";
        let pattern = element.value().as_document();
        let pattern = pattern.ok_or_else(|| arguments::wrong_type(WITHIN, element, "object"))?;
        if let Some(other) = pattern.elements().find(|field| !["lsid", "uid", "users", "roles"].contains(&field.key()))
        {
            return Err(arguments::unknown_field(WITHIN, other.key()));
        }
        let is_nobodys = pattern.element("uid").map_or(Ok(true), |uid| is_nobody(WITHIN, uid))?;
        match pattern.element("lsid") {
            Some(lsid) => {
                let (id, is_meant) = named_session(lsid)?;
                if is_nobodys && is_meant {
                    call.worker.server.kill_session(&id);
                }
            }
            None if is_nobodys => end_everything(call),
            None => {}
        }
    }
    Ok(())
}

/// Returns the session that a pattern names, and whether it can exist here: without an owner, and
/// in no transaction.
fn named_session(lsid: Element<'_>) -> Result<(LogicalSessionId, bool)> {
    const WITHIN: &str = "KillAllSessionsByPatternCmd.killAllSessionsByPattern.lsid";
    let fields = lsid.value().as_document();
    let fields = fields
        .ok_or_else(|| arguments::wrong_type("KillAllSessionsByPatternCmd.killAllSessionsByPattern", lsid, "object"))?;
    let (mut id, mut uid, mut in_transaction) = (None, None, false);
    for field in fields.elements() {
        match field.key() {
            "id" => id = Some(envelope::uuid(WITHIN, field)?),
            "uid" => uid = Some(is_nobody(WITHIN, field)?),
            "txnNumber" | "txnUUID" => in_transaction = true,
            other => return Err(arguments::unknown_field(WITHIN, other)),
        }
    }
    let missing = |field| arguments::missing_field(WITHIN, field);
    let (id, is_nobodys) = (id.ok_or_else(|| missing("id"))?, uid.ok_or_else(|| missing("uid"))?);
    Ok((id, is_nobodys && !in_transaction))
}

/// Returns whether the digest of a user's name is that of the empty name. Fails with 14 or 12.
fn is_nobody(within: &str, uid: Element<'_>) -> Result<bool> {
    match uid.value() {
        Value::Binary { bytes, .. } if bytes.len() == ANONYMOUS_USER_DIGEST.len() => Ok(bytes == ANONYMOUS_USER_DIGEST),
        Value::Binary { bytes, .. } => {
            let message = format!("Unsupported SHA256Block hash length: {}", bytes.len());
            Err(Error::new(Code(12), message))
        }
        _ => Err(arguments::wrong_type(within, uid, "binData")),
    }
}

fn end_everything(call: &Call<'_>) {
    for worker in call.worker.server.workers() {
        worker.sessions.clear();
    }
    call.worker.server.cursors.kill_where(|owner| owner.session.is_some());
    call.session.forget_noted_session();
}

fn session_ids(within: &str, first: Element<'_>) -> Result<Vec<LogicalSessionId>> {
    let sessions: Doc<'_> = arguments::array(within, first)?;
    let mut ids = Vec::new();
    for element in sessions.elements() {
        if element.value().as_document().is_none() {
            return Err(arguments::wrong_type(&format!("{within}.{within}FromClient"), element, "object"));
        }
        let id = envelope::logical_session(element)?;
        let uid = element.value().as_document().and_then(|fields| fields.element("uid"));
        if uid.map_or(Ok(true), |uid| is_nobody(within, uid))? {
            ids.extend(id);
        }
    }
    Ok(ids)
}

/// Returns whether `$listSessions` or `$listLocalSessions` asks for the sessions of given users,
/// which do not exist.
pub fn asks_for_users(stage: Element<'_>) -> Result<bool> {
    let name = stage.key();
    let Some(options) = stage.value().as_document() else {
        let found = stage.kind.alias();
        let message = format!("{name} options must be specified in an object, but found: {found}");
        return Err(Error::type_mismatch(message));
    };
    let (mut all, mut some) = (false, false);
    for option in options.elements() {
        match option.key() {
            "allUsers" if arguments::is_absent(option) => {}
            "allUsers" => all = arguments::boolean(name, option)?,
            "users" => {
                let users = arguments::array(name, option)?;
                users.elements().try_for_each(|user| user_of(&format!("{name}.users"), user).map(drop))?;
                some = !users.is_empty();
            }
            other => return Err(arguments::unknown_field(name, other)),
        }
    }
    if all && some {
        let message = format!("{name} may not specify {{allUsers:true}} and {{users:[...]}} at the same time");
        return Err(Error::new(Code(12), message));
    }
    Ok(some)
}
