//! Classifies the statements in the log by what they may have changed.
//!
//! Statements that create, alter or drop one table or a database are recognized. All others,
//! including writes in statement format, may have changed everything.

use crate::changes::{Change, TableName};

/// The effect of a statement on its transaction.
#[derive(Debug, PartialEq)]
pub enum StatementEffect {
    /// Begins it, or sets or releases a savepoint.
    Mark,
    /// Commits or rolls back.
    End,
    /// Completes an XA transaction that was prepared before.
    XaCommit,
    XaRollback,
    /// Changes data or definitions.
    Changes(Vec<Change>),
}

/// Classifies a statement. `database` is the default database.
pub fn classify(database: &str, sql: &[u8]) -> StatementEffect {
    // A statement that is not UTF-8 counts as having changed everything.
    let Ok(sql) = std::str::from_utf8(sql) else { return StatementEffect::Changes(vec![Change::Everything]) };
    let mut words = Words { rest: sql };
    let first = words.keyword();
    match first.as_str() {
        "BEGIN" | "SAVEPOINT" | "RELEASE" => StatementEffect::Mark,
        "START" if words.keyword() == "TRANSACTION" => StatementEffect::Mark,
        "COMMIT" => StatementEffect::End,
        "ROLLBACK" if words.keyword() == "TO" => StatementEffect::Mark,
        "ROLLBACK" => StatementEffect::End,
        "XA" => match words.keyword().as_str() {
            "COMMIT" => StatementEffect::XaCommit,
            "ROLLBACK" => StatementEffect::XaRollback,
            _ => StatementEffect::Mark,
        },
        _ => StatementEffect::Changes(
            definition(&first, &mut words, database).unwrap_or_else(|| vec![Change::Everything]),
        ),
    }
}

/// Returns the changes of a definition statement; `None` if it is not recognized.
fn definition(first: &str, words: &mut Words<'_>, database: &str) -> Option<Vec<Change>> {
    let mut second = words.keyword();
    if first == "CREATE" && second == "OR" {
        words.take("REPLACE").then_some(())?;
        second = words.keyword();
    }
    match (first, second.as_str()) {
        ("CREATE" | "ALTER" | "DROP", "DATABASE" | "SCHEMA") => {
            words.skip_if_exists();
            Some(vec![Change::Database(words.name()?.into())])
        }
        // Exchanged partitions and new names affect other tables.
        ("ALTER", "TABLE") if words.contains_any(&["EXCHANGE", "RENAME", "CONVERT"]) => None,
        ("CREATE" | "ALTER" | "TRUNCATE", "TABLE") => {
            words.skip_if_exists();
            Some(vec![words.table(database)?])
        }
        ("ANALYZE" | "OPTIMIZE", "TABLE" | "TABLES") | ("FLUSH", _) => Some(Vec::new()),
        // Other sessions do not see these tables.
        ("CREATE" | "DROP", "TEMPORARY") => Some(Vec::new()),
        ("DROP", "") if words.rest.starts_with("/*!40005 TEMPORARY */ TABLE") => Some(Vec::new()),
        ("DROP", "TABLE") => {
            words.skip_if_exists();
            let mut dropped = vec![words.table(database)?];
            while words.take_sign(',') {
                dropped.push(words.table(database)?);
            }
            // The server adds a comment after the names.
            Some(dropped)
        }
        _ => None,
    }
}

/// A reader of the words of a statement.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            // Executable comments (`/*!`) are not skipped.
            let comment = self.rest.strip_prefix("/*").filter(|tail| !tail.starts_with(['!', 'M']));
            match comment.and_then(|tail| tail.split_once("*/")) {
                Some((_, tail)) => self.rest = tail,
                None => return,
            }
        }
    }

    /// Takes the next word, in upper case; empty if there is none.
    fn keyword(&mut self) -> String {
        self.skip_blanks();
        let end = self.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_ascii_uppercase()
    }

    fn take(&mut self, word: &str) -> bool {
        let before = self.rest;
        let found = self.keyword() == word;
        if !found {
            self.rest = before;
        }
        found
    }

    fn take_sign(&mut self, sign: char) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(sign) {
            Some(tail) => {
                self.rest = tail;
                true
            }
            None => false,
        }
    }

    /// Skips IF EXISTS or IF NOT EXISTS.
    fn skip_if_exists(&mut self) {
        if self.take("IF") {
            self.take("NOT");
            self.take("EXISTS");
        }
    }

    /// Returns whether the rest contains any of these words, even as a part of others.
    fn contains_any(&self, words: &[&str]) -> bool {
        let rest = self.rest.to_ascii_uppercase();
        words.iter().any(|word| rest.contains(word))
    }

    /// Takes an identifier, quoted or not.
    fn name(&mut self) -> Option<String> {
        self.skip_blanks();
        let Some(quoted) = self.rest.strip_prefix('`') else {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
            let end = self.rest.find(|c: char| !is_part(c)).unwrap_or(self.rest.len());
            let (name, rest) = self.rest.split_at(end);
            self.rest = rest;
            return (!name.is_empty()).then(|| name.to_owned());
        };
        let mut name = String::new();
        let mut tail = quoted;
        loop {
            let (part, rest) = tail.split_once('`')?;
            name.push_str(part);
            match rest.strip_prefix('`') {
                Some(more) => {
                    name.push('`');
                    tail = more;
                }
                None => {
                    self.rest = rest;
                    return Some(name);
                }
            }
        }
    }

    fn table(&mut self, database: &str) -> Option<Change> {
        let first = self.name()?;
        let table =
            if self.take_sign('.') { TableName::new(&first, &self.name()?) } else { TableName::new(database, &first) };
        Some(Change::Table(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sql: &str, expected: &[&str]) {
        let StatementEffect::Changes(changes) = classify("db", sql.as_bytes()) else { panic!("{sql}") };
        let shown: Vec<String> = changes
            .iter()
            .map(|change| match change {
                Change::Table(table) => table.to_string(),
                Change::Database(database) => database.to_string(),
                Change::Everything => "*".into(),
                Change::Row(_) => panic!("{sql}"),
            })
            .collect();
        assert_eq!(shown, expected, "{sql}");
    }

    #[test]
    fn definitions_name_their_tables() {
        check("CREATE TABLE `a``b`.`c d` (x INT)", &["a`b.c d"]);
        check("create table if not exists t like u", &["db.t"]);
        check("CREATE OR REPLACE TABLE t (a INT)", &["db.t"]);
        check("ALTER TABLE x.y ADD COLUMN z INT", &["x.y"]);
        check("TRUNCATE TABLE `t`", &["db.t"]);
        check("DROP TABLE IF EXISTS `t`,`x`.`u` /* generated by server */", &["db.t", "x.u"]);
        check("DROP DATABASE IF EXISTS `shop`", &["shop"]);
        check("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", &[]);
        check("CREATE TEMPORARY TABLE t (a INT)", &[]);
        check("/* hello */ CREATE DATABASE größe", &["größe"]);
        check("ANALYZE TABLE t", &[]);
        check("optimize table `t`", &[]);
        check("FLUSH TABLES", &[]);
    }

    #[test]
    fn unrecognized_statements_may_have_changed_everything() {
        for sql in [
            "",
            "INSERT INTO t VALUES (1)",
            "UPDATE t SET a = 1",
            "TRUNCATE t",
            "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
            "ALTER TABLE t RENAME TO u",
            "RENAME TABLE a TO b",
            "CREATE VIEW v AS SELECT 1",
            "/*!50000 DROP TABLE t */",
            "DROP TABLE `t",
            "CREATE TABLE \"t\" (a INT)",
            "START SLAVE",
            "ANALYZE UPDATE t SET a = 1",
        ] {
            check(sql, &["*"]);
        }
        assert_eq!(classify("db", b"DROP TABLE \xff"), StatementEffect::Changes(vec![Change::Everything]));
    }

    #[test]
    fn marks_and_ends_are_known() {
        for (sql, expected) in [
            ("BEGIN", StatementEffect::Mark),
            ("START TRANSACTION", StatementEffect::Mark),
            ("SAVEPOINT `x`", StatementEffect::Mark),
            ("ROLLBACK TO `x`", StatementEffect::Mark),
            ("ROLLBACK", StatementEffect::End),
            ("COMMIT", StatementEffect::End),
            ("XA END X'78',X'',1", StatementEffect::Mark),
            ("XA COMMIT X'78',X'',1", StatementEffect::XaCommit),
            ("XA ROLLBACK X'78',X'',1", StatementEffect::XaRollback),
        ] {
            assert_eq!(classify("db", sql.as_bytes()), expected, "{sql}");
        }
    }
}
