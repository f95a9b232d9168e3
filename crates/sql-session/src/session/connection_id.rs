//! `SELECT CONNECTION_ID()`: the client gets the id by which KILL finds the session, also if the
//! server knows the session by another one.

use super::local_question::{LocalQuestion, QUESTION_BYTES_MAX};
use super::state::Session;
use std::io;

/// What a statement must have to be the question.
const FUNCTION: &[u8] = b"CONNECTION_ID";

impl Session {
    /// Replaces the next command, a COM_QUERY with a payload of this `length`, if it asks for the
    /// session's id, which the server does not know.
    pub async fn replace_connection_id(&mut self, length: usize) -> io::Result<()> {
        let is_known = match &self.split {
            None => self.lease.id() == Some(self.login.session),
            // With shared connections, no server is asked.
            Some(split) => split.sharing.is_some(),
        };
        let Some(id) = self.lease.id().filter(|_| !is_known && length <= QUESTION_BYTES_MAX + 1) else {
            return Ok(());
        };
        let (_, payload) = self.client.peek(length).await?;
        let sql = payload.get(1..length).unwrap_or_default();
        if !sql.windows(FUNCTION.len()).any(|part| part.eq_ignore_ascii_case(FUNCTION)) {
            return Ok(());
        }
        if let Some((LocalQuestion::ConnectionId, name)) = LocalQuestion::of(sql) {
            let statement = format!("SELECT {id} AS `{name}`");
            self.client.replace_statement(statement.as_bytes());
        }
        Ok(())
    }
}
