//! Questions about the session that the gateway can answer.

/// The longest statement that may be one of [`LocalQuestion`].
pub const QUESTION_BYTES_MAX: usize = 100;

/// A question about the session or its last statement that can be answered without its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalQuestion {
    ConnectionId,
    FoundRows,
    RowCount,
    Warnings,
}

impl LocalQuestion {
    /// Returns the question that a statement is, and the name of its column.
    pub fn of(sql: &[u8]) -> Option<(LocalQuestion, &str)> {
        let text = std::str::from_utf8(sql).ok().filter(|text| text.len() <= QUESTION_BYTES_MAX)?;
        let text = text.trim().trim_end_matches(';').trim_end();
        let (first, rest) = text.split_once(char::is_whitespace)?;
        let rest = rest.trim_start();
        let compact: String = rest.chars().filter(|letter| !letter.is_whitespace()).collect();
        let question = match (first.to_ascii_uppercase().as_str(), compact.to_ascii_uppercase().as_str()) {
            ("SELECT", "CONNECTION_ID()") => LocalQuestion::ConnectionId,
            ("SELECT", "FOUND_ROWS()") => LocalQuestion::FoundRows,
            ("SELECT", "ROW_COUNT()") => LocalQuestion::RowCount,
            ("SHOW", "WARNINGS") => LocalQuestion::Warnings,
            _ => return None,
        };
        Some((question, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions() {
        for (sql, expected) in [
            ("SELECT CONNECTION_ID()", Some((LocalQuestion::ConnectionId, "CONNECTION_ID()"))),
            (" select  found_rows ( ) ;", Some((LocalQuestion::FoundRows, "found_rows ( )"))),
            ("SELECT ROW_COUNT()", Some((LocalQuestion::RowCount, "ROW_COUNT()"))),
            ("show warnings", Some((LocalQuestion::Warnings, "warnings"))),
            ("SELECT ROW_COUNT() + 1", None),
            ("SHOW WARNINGS LIMIT 1", None),
            (&*format!("SELECT ROW_COUNT(){}, 2", " ".repeat(100)), None),
            ("SELECT", None),
        ] {
            assert_eq!(LocalQuestion::of(sql.as_bytes()), expected, "{sql}");
        }
    }
}
