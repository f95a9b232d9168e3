//! KILL of a session by the id that clients know. The client that sends KILL may be on another
//! server than the session, and each server has ids of its own.

use super::com;
use super::state::Session;
use crate::login::error_packet;
use crate::reply_tracker::AUTOCOMMIT;
use service::Kill;
use sql_classify::Lexis;
use sql_classify::scanner::Scanner;
use std::io;

/// The longest statement that is read as KILL.
const BYTES_MAX: usize = 100;

/// ER_KILL_DENIED_ERROR.
const DENIED: (u16, &str) = (1095, "HY000");

/// A request to end a session or its statement.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    id: u64,
    /// Only the statement.
    is_query: bool,
    /// It has SOFT: changes that would leave a table inconsistent are not interrupted.
    is_soft: bool,
}

/// Returns whether a statement may be KILL, by its first character: that of the word, or of white
/// space or a comment before it.
pub fn may_be_kill(first: Option<&u8>) -> bool {
    first.is_some_and(|first| matches!(first, b'k' | b'K' | b'/' | b'-' | b'#') || first.is_ascii_whitespace())
}

impl Session {
    /// Executes the next command if it ends a session of this gateway that is not on the session's
    /// server, or is known there by another id. Returns false for any other command, which remains
    /// to be executed.
    pub async fn kill(&mut self) -> io::Result<bool> {
        let (length, payload) = self.client.peek(BYTES_MAX).await?;
        let Some(request) = payload.get(..length).and_then(Request::parse) else { return Ok(false) };
        let Request { id, is_query, .. } = request;
        let mut kill = self.lease.kill(id, is_query);
        if kill == Kill::Denied && !self.lease.is_connected() {
            // The server decides, if it is the session's.
            if !self.end_parking().await? {
                self.client.packet(BYTES_MAX).await?;
                return Ok(true);
            }
            kill = self.lease.kill(id, is_query);
        }
        match kill {
            Kill::Here => return Ok(false),
            Kill::HereAs(there) => {
                self.replace_id(&request, there);
                return Ok(false);
            }
            Kill::Done => {
                self.client.packet(BYTES_MAX).await?;
                let [low, high] = self.status.unwrap_or(AUTOCOMMIT).to_le_bytes();
                self.client.send(&[7, 0, 0, 1, 0, 0, 0, low, high, 0, 0]).await?;
            }
            Kill::Denied => {
                self.client.packet(BYTES_MAX).await?;
                let sentence = format!("You are not owner of thread {id}, which is a session on another server");
                self.client.send(&error_packet(1, DENIED.0, DENIED.1, &sentence)).await?;
            }
        }
        Ok(true)
    }

    /// Names the session of the next command, which ends it, by its id on the server.
    fn replace_id(&mut self, request: &Request, there: u64) {
        let bytes = self.client.bytes_mut();
        match (bytes.get(4), u32::try_from(there)) {
            (Some(&com::PROCESS_KILL), Ok(there)) => {
                if let Some(place) = bytes.get_mut(5..9) {
                    place.copy_from_slice(&there.to_le_bytes());
                }
            }
            _ => {
                self.client.replace_statement(request.statement(there).as_bytes());
            }
        }
    }
}

impl Request {
    /// Parses COM_PROCESS_KILL, and KILL [HARD | SOFT] [CONNECTION | QUERY] with a number.
    fn parse(payload: &[u8]) -> Option<Request> {
        match payload.split_first()? {
            (&com::PROCESS_KILL, id) => {
                Some(Request { id: u32::from_le_bytes(id.try_into().ok()?).into(), is_query: false, is_soft: false })
            }
            (&com::QUERY, sql) => Request::parse_statement(std::str::from_utf8(sql).ok()?),
            _ => None,
        }
    }

    fn parse_statement(sql: &str) -> Option<Request> {
        // No setting changes the tokens of such a statement.
        let mut tokens = Scanner::new(sql, Lexis::default());
        let mut next_word =
            || Some(tokens.next_token().ok()?.map_or_else(String::new, |it| it.text.to_ascii_uppercase()));
        next_word().filter(|word| word == "KILL")?;
        let mut word = next_word()?;
        let is_soft = word == "SOFT";
        if is_soft || word == "HARD" {
            word = next_word()?;
        }
        let is_query = word == "QUERY";
        if is_query || word == "CONNECTION" {
            word = next_word()?;
        }
        let id = word.parse().ok()?;
        let mut end = next_word()?;
        while end == ";" {
            end = next_word()?;
        }
        end.is_empty().then_some(Request { id, is_query, is_soft })
    }

    /// Returns the request as a statement, with another id.
    fn statement(&self, id: u64) -> String {
        let soft = if self.is_soft { "SOFT " } else { "" };
        let query = if self.is_query { "QUERY " } else { "" };
        format!("KILL {soft}{query}{id}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_kill() {
        let check = |sql: &str, expected: Option<(u64, bool)>| {
            let found = Request::parse(&[&[com::QUERY], sql.as_bytes()].concat());
            assert_eq!(found.as_ref().map(|found| (found.id, found.is_query)), expected, "{sql}");
            if let Some(found) = found {
                let again = Request::parse(&[&[com::QUERY], found.statement(found.id).as_bytes()].concat());
                assert_eq!(again, Some(found), "{sql}");
            }
        };
        check("KILL 7", Some((7, false)));
        check(" kill\tquery 7 ; ", Some((7, true)));
        check("KILL HARD CONNECTION 7", Some((7, false)));
        check("KILL SOFT QUERY 18446744073709551615", Some((u64::MAX, true)));
        check("/* app */ KILL /*! QUERY */ 7 -- end", Some((7, true)));
        check("KILL /*!999999 QUERY */ 7", None);
        check("/* app */ KILL/**/QUERY 7;; -- end", Some((7, true)));
        check("-- app\n# too\nKILL 7", Some((7, false)));
        for other in [
            "",
            "KILL",
            "KILL QUERY",
            "KILL QUERY ID 7",
            "KILL USER joe",
            "KILL 7 8",
            "KILLER 7",
            "KILL -7",
            "SELECT 7",
        ] {
            check(other, None);
        }
        assert_eq!(
            Request::parse(&[com::PROCESS_KILL, 1, 1, 0, 0]),
            Some(Request { id: 257, is_query: false, is_soft: false })
        );
        assert_eq!(Request::parse(&[com::PROCESS_KILL, 1]), None);
        assert_eq!(Request::parse(&[]), None);
    }
}
