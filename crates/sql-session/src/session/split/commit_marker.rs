//! Marks of committed transactions, by which their outcome is found on another primary.
//!
//! A transaction that has written inserts a row into `selkie.commits` before it commits. The row
//! and COMMIT are one statement: they need no further round trip. Without the row there is no
//! COMMIT.
//!
//! The question for the outcome inserts the row as well. If the row is there, the transaction was
//! committed. Otherwise it cannot be any more.

use std::fmt::Write;

/// Errors of a statement that cannot insert the row, and has done nothing: ER_DBACCESS_DENIED,
/// ER_BAD_DB, ER_PARSE (with `sql_mode = ORACLE`), ER_TABLEACCESS_DENIED, ER_COLUMNACCESS_DENIED,
/// ER_NO_SUCH_TABLE, and [`READ_ONLY_TRANSACTION`].
pub const UNUSABLE: [u16; 7] = [1044, 1049, 1064, 1142, 1143, 1146, READ_ONLY_TRANSACTION];

/// ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION. It concerns this transaction alone, which has written
/// nothing.
pub const READ_ONLY_TRANSACTION: u16 = 1792;

/// The marks of a session.
#[derive(Debug, Default)]
pub struct CommitMarker {
    /// Names the session, as a literal; empty before the first mark.
    session: String,
    /// Counts its marks.
    number: u64,
    /// The last mark was sent, and there is no reply yet.
    pub is_pending: bool,
    /// Rows cannot be inserted.
    pub is_unusable: bool,
}

impl CommitMarker {
    /// Returns the statement that marks the open transaction and commits it. The session's row of
    /// an earlier transaction is not needed any more.
    pub fn commit(&mut self) -> String {
        if self.session.is_empty() {
            self.session = literal(rand::random());
        }
        self.number += 1;
        self.is_pending = true;
        let CommitMarker { session, number, .. } = self;
        format!(
            "BEGIN NOT ATOMIC INSERT INTO selkie.commits (session, number) VALUES ({session}, {number}); \
             DELETE FROM selkie.commits WHERE session = {session} AND number < {number}; COMMIT; END"
        )
    }

    /// Returns the statement that inserts the row of the last mark if it is missing. It waits for a
    /// transaction that has inserted the row and not ended.
    pub fn question(&self) -> String {
        let CommitMarker { session, number, .. } = self;
        format!(
            "SET STATEMENT innodb_lock_wait_timeout = 5 FOR \
             INSERT IGNORE INTO selkie.commits (session, number) VALUES ({session}, {number})"
        )
    }
}

fn literal(bytes: [u8; 16]) -> String {
    let mut text = String::from("X'");
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_distinct() {
        let (mut one, mut two) = (CommitMarker::default(), CommitMarker::default());
        let commits = [one.commit(), one.commit(), two.commit()];
        assert!(commits[0] != commits[1] && commits[0] != commits[2]);
        assert!(one.question().ends_with(", 2)") && one.is_pending);
        assert_eq!(literal([0xAB; 16]), format!("X'{}'", "ab".repeat(16)));
    }
}
