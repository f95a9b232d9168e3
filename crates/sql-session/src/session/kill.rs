//! KILL of a session on another server. The id that a client has from CONNECTION_ID() or from the
//! handshake belongs to the server of that session. The client that sends KILL may be on another
//! server, where the id means another session or none.

use super::com;
use super::state::Session;
use crate::reply_tracker::AUTOCOMMIT;
use sql_classify::Lexis;
use sql_classify::scanner::Scanner;
use std::io;

/// The longest statement that is read as KILL.
const BYTES_MAX: usize = 100;

/// A request to end a session or its statement.
#[derive(Debug, PartialEq, Eq)]
struct Kill {
    id: u64,
    /// Only the statement.
    is_query: bool,
}

/// Returns whether a statement may be KILL, by its first character: that of the word, or of white
/// space or a comment before it.
pub fn may_be_kill(first: Option<&u8>) -> bool {
    first.is_some_and(|first| matches!(first, b'k' | b'K' | b'/' | b'-' | b'#') || first.is_ascii_whitespace())
}

impl Session {
    /// Executes the next command if it ends a session of the same user on another server. Returns
    /// false for any other command, which remains to be executed.
    pub async fn kill_elsewhere(&mut self) -> io::Result<bool> {
        let (length, payload) = self.client.peek(BYTES_MAX).await?;
        let kill = payload.get(..length).and_then(Kill::parse);
        if !kill.is_some_and(|kill| self.lease.kill_elsewhere(kill.id, kill.is_query)) {
            return Ok(false);
        }
        self.client.packet(BYTES_MAX).await?;
        let [low, high] = self.status.unwrap_or(AUTOCOMMIT).to_le_bytes();
        self.client.send(&[7, 0, 0, 1, 0, 0, 0, low, high, 0, 0]).await?;
        Ok(true)
    }
}

impl Kill {
    /// Parses COM_PROCESS_KILL, and KILL [HARD | SOFT] [CONNECTION | QUERY] with a number.
    fn parse(payload: &[u8]) -> Option<Kill> {
        match payload.split_first()? {
            (&com::PROCESS_KILL, id) => {
                Some(Kill { id: u32::from_le_bytes(id.try_into().ok()?).into(), is_query: false })
            }
            (&com::QUERY, sql) => Kill::parse_statement(std::str::from_utf8(sql).ok()?),
            _ => None,
        }
    }

    fn parse_statement(sql: &str) -> Option<Kill> {
        // No setting changes the tokens of such a statement.
        let mut tokens = Scanner::new(sql, Lexis::default());
        let mut next_word =
            || Some(tokens.next_token().ok()?.map_or_else(String::new, |it| it.text.to_ascii_uppercase()));
        next_word().filter(|word| word == "KILL")?;
        let mut word = next_word()?;
        if matches!(word.as_str(), "HARD" | "SOFT") {
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
        end.is_empty().then_some(Kill { id, is_query })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_kill() {
        let check = |sql: &str, expected: Option<(u64, bool)>| {
            let found = Kill::parse(&[&[com::QUERY], sql.as_bytes()].concat());
            assert_eq!(found, expected.map(|(id, is_query)| Kill { id, is_query }), "{sql}");
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
        assert_eq!(Kill::parse(&[com::PROCESS_KILL, 1, 1, 0, 0]), Some(Kill { id: 257, is_query: false }));
        assert_eq!(Kill::parse(&[com::PROCESS_KILL, 1]), None);
        assert_eq!(Kill::parse(&[]), None);
    }
}
