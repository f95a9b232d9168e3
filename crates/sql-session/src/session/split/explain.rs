//! EXPLAIN ROUTE: where a statement would go now, and why.

use super::carried::StateChange;
use super::command::{Outcome, Routed};
use super::route::Destination;
use super::split_state::Split;
use crate::session::state::Session;
use mariadb_wire::{END, OK};
use std::io;

/// The words with which an explained statement may begin. Others are names of columns:
/// `EXPLAIN route name` describes a table.
const FIRST_WORDS: [&str; 21] = [
    "SELECT", "WITH", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE", "SET", "USE", "BEGIN", "START", "COMMIT",
    "ROLLBACK", "CREATE", "DROP", "ALTER", "CALL", "DO", "SHOW", "LOCK", "PREPARE",
];

const COLUMNS: [&str; 4] = ["server", "role", "reason", "session"];

/// The extended capability by which column definitions have a type in words.
const EXTENDED_METADATA: u8 = 1 << 3;

const UTF8: u16 = 33;
const BINARY: u16 = 63;
const VAR_STRING: u8 = 0xFD;
const LONGLONG: u8 = 0x08;

/// Returns the statement that EXPLAIN ROUTE explains; `None` for another statement.
pub fn explained(sql: &[u8]) -> Option<&[u8]> {
    let rest = after_word(sql, b"EXPLAIN")?;
    let statement = after_word(rest, b"ROUTE")?;
    let statement = statement.trim_ascii_start();
    let end = statement.iter().position(|byte| !byte.is_ascii_alphabetic() && *byte != b'(').unwrap_or(statement.len());
    let first = statement.get(..end)?;
    let may_begin =
        first.first() == Some(&b'(') || FIRST_WORDS.iter().any(|word| first.eq_ignore_ascii_case(word.as_bytes()));
    may_begin.then_some(statement)
}

fn after_word<'s>(sql: &'s [u8], word: &[u8]) -> Option<&'s [u8]> {
    let (first, rest) = sql.trim_ascii_start().split_at_checked(word.len())?;
    (first.eq_ignore_ascii_case(word) && rest.first()?.is_ascii_whitespace()).then_some(rest)
}

impl Session {
    pub(super) async fn send_explanation(&mut self, split: &Split, routed: &Routed) -> io::Result<Outcome> {
        let service = &self.context.service;
        let reader = || {
            let lag_max_seconds = routed.lag_max_seconds.or(split.settings.lag_max_seconds);
            let readers = service.readers(lag_max_seconds, |_| true);
            readers.first().map(|target| target.backend.settings().name.clone())
        };
        let primary = || service.primary().map(|target| target.backend.settings().name.clone());
        let (server, role) = match &routed.route.destination {
            Destination::Primary => (primary(), "primary"),
            Destination::Replica | Destination::ReplicaForTransaction => match reader() {
                Some(name) => (Some(name), "replica"),
                None => (primary(), "primary, as there is no replica"),
            },
            Destination::Named(name) => (Some(name.clone()), "replica"),
            Destination::Reading => {
                (split.reading.as_ref().map(|replica| replica.lease.server.name.clone()), "replica")
            }
            Destination::Last => match &split.last_replica {
                Some(name) => (Some(name.clone()), "replica"),
                None => (primary(), "primary"),
            },
        };
        let change = match &routed.change {
            StateChange::None => "leaves nothing behind".to_owned(),
            StateChange::Carry { keys, .. } => format!("sets {}, also on other servers", keys.join(", ")),
            StateChange::Pin(reason) => format!("cannot go over to another primary afterwards: {reason}"),
            StateChange::Bind(reason) => format!("stays on the primary afterwards: {reason}"),
            StateChange::LocksTables => "stays on the primary until UNLOCK TABLES".to_owned(),
            StateChange::UnlocksTables => "gives its table locks back".to_owned(),
        };
        let reason = routed.route.reason.to_string();
        let row = [server.as_deref().unwrap_or("none"), role, &reason, &change];
        let reply = result_set(&COLUMNS, &row, VAR_STRING, self.form(), split.status);
        self.client.send(&reply).await?;
        Ok(Outcome::Continues)
    }
}

impl Session {
    /// Returns how the client expects result sets: without EOF packets, and with extended types.
    pub fn form(&self) -> (bool, bool) {
        (self.login.deprecates_eof, self.login.capabilities[4] & EXTENDED_METADATA != 0)
    }
}

/// Encodes a result set of one integer, in the text protocol.
pub fn integer_result(name: &str, value: i64, form: (bool, bool), status: u16) -> Vec<u8> {
    result_set(&[name], &[&value.to_string()], LONGLONG, form, status)
}

/// Encodes a result set of one row, in the text protocol.
fn result_set(
    columns: &[&str],
    row: &[&str],
    kind: u8,
    (deprecates_eof, has_types): (bool, bool),
    status: u16,
) -> Vec<u8> {
    let mut packets = Packets::default();
    let [low, high] = status.to_le_bytes();
    packets.push(&[columns.len() as u8]);
    for name in columns {
        let mut definition = Vec::new();
        for text in ["def", "", "", "", name, ""] {
            push_text(text, &mut definition);
        }
        if has_types {
            definition.push(0);
        }
        definition.push(0x0C);
        let (charset, width) = if kind == LONGLONG { (BINARY, 21) } else { (UTF8, 1024_u32) };
        definition.extend_from_slice(&charset.to_le_bytes());
        definition.extend_from_slice(&width.to_le_bytes());
        definition.extend_from_slice(&[kind, 0, 0, 0, 0, 0]);
        packets.push(&definition);
    }
    if !deprecates_eof {
        packets.push(&[END, 0, 0, low, high]);
    }
    let mut values = Vec::new();
    row.iter().for_each(|value| push_text(value, &mut values));
    packets.push(&values);
    match deprecates_eof {
        true => packets.push(&[END, OK, OK, low, high, 0, 0]),
        false => packets.push(&[END, 0, 0, low, high]),
    }
    packets.bytes
}

#[derive(Default)]
struct Packets {
    bytes: Vec<u8>,
    number: u8,
}

impl Packets {
    fn push(&mut self, payload: &[u8]) {
        self.number = self.number.wrapping_add(1);
        self.bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
        self.bytes.push(self.number);
        self.bytes.extend_from_slice(payload);
    }
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    match u8::try_from(text.len()) {
        Ok(length) if length <= 250 => out.push(length),
        _ => {
            out.push(0xFC);
            out.extend_from_slice(&(text.len().min(0xFFFF) as u16).to_le_bytes());
        }
    }
    out.extend_from_slice(text.as_bytes().get(..text.len().min(0xFFFF)).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply_tracker::{ReplyKind, ReplyTracker};
    use crate::result_rows::first_row;

    #[test]
    fn statements_to_explain() {
        assert_eq!(explained(b" explain  Route select 1"), Some(&b"select 1"[..]));
        assert_eq!(explained(b"EXPLAIN ROUTE (SELECT 1)"), Some(&b"(SELECT 1)"[..]));
        for other in ["EXPLAIN SELECT 1", "EXPLAIN route", "EXPLAIN route name", "EXPLAINROUTE SELECT 1", "", "EXPLAIN"]
        {
            assert_eq!(explained(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn an_explanation_is_a_result_set() {
        let long = "x".repeat(300);
        for (deprecates_eof, has_types) in [(false, false), (true, false), (true, true)] {
            let bytes =
                result_set(&COLUMNS, &["db1", "primary", &long, ""], VAR_STRING, (deprecates_eof, has_types), 2);
            let mut reply = ReplyTracker::new(ReplyKind::Results, deprecates_eof);
            assert_eq!((reply.feed(&bytes), reply.is_over(), reply.rows), (bytes.len(), true, 1));
            let row = first_row(&bytes, deprecates_eof).unwrap();
            assert_eq!(row[2].as_deref(), Some(long.as_str()));
            assert_eq!(reply.status, Some(2));
        }
    }
}
