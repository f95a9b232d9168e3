//! `startSession`, `endSessions`, `refreshSessions`, `killSessions` and its relatives.

use crate::arguments;
use crate::dispatch::Call;
use crate::envelope;
use crate::logical_session::{LogicalSessionId, TIMEOUT_MINUTES};
use document::{Doc, DocWriter, Element, Value};
use error::Result;

pub fn start_session(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut id: LogicalSessionId = rand::random();
    // Version 4, variant 1: a random UUID.
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    call.worker.shared.sessions.note(id, call.now_ms);
    reply.document("id").append("id", Value::Binary { subtype: 4, bytes: &id });
    reply.append("timeoutMinutes", TIMEOUT_MINUTES);
    Ok(())
}

pub fn end_sessions(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    end_all(call, "endSessions")
}

pub fn kill_sessions(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    end_all(call, "killSessions")
}

fn end_all(call: &mut Call<'_>, within: &str) -> Result<()> {
    for id in session_ids(within, call.first())? {
        call.worker.server.end_session(&id);
    }
    call.session.forget_noted_session();
    Ok(())
}

pub fn refresh_sessions(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    for id in session_ids("refreshSessions", call.first())? {
        call.worker.shared.sessions.note(id, call.now_ms);
    }
    Ok(())
}

/// Ends the sessions of all users, or of those named; nobody is logged in, so no name fits anybody.
pub fn kill_all_sessions(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let users = arguments::array("KillAllSessionsCmd", call.first())?;
    if users.is_empty() {
        end_everything(call);
    }
    Ok(())
}

/// As [`kill_all_sessions`], by patterns: `{lsid: …}` names a session, `{users: …}` and `{roles: …}` nobody.
pub fn kill_all_sessions_by_pattern(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let patterns = arguments::array("KillAllSessionsByPatternCmd", call.first())?;
    if patterns.is_empty() {
        end_everything(call);
    }
    for pattern in patterns.values().filter_map(Value::as_document) {
        match pattern.element("lsid") {
            Some(lsid) => {
                if let Some(id) = envelope::logical_session(lsid)? {
                    call.worker.server.end_session(&id);
                }
            }
            None if pattern.is_empty() => end_everything(call),
            None => {}
        }
    }
    Ok(())
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
        ids.extend(envelope::logical_session(element)?);
    }
    Ok(ids)
}
