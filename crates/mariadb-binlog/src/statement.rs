//! What a statement in the log may have changed.
//!
//! A handful of statements that create, change or drop one table or a database are understood; all others, those that write rows in statement
//! format among them, may have changed anything.

use crate::changes::{Change, TableName};

/// What a statement does to the transaction it stands in.
#[derive(Debug, PartialEq)]
pub enum Statement {
    /// Begins it, or sets or forgets a savepoint.
    Marks,
    Ends,
    /// Completes an XA transaction that was prepared before.
    XaCommit,
    XaRollback,
    /// Changes data or definitions.
    Changes(Vec<Change>),
}

/// `database`: the default one.
pub fn classify(database: &str, sql: &[u8]) -> Statement {
    // What is not understood in a name that is no UTF-8 has changed everything.
    let Ok(sql) = std::str::from_utf8(sql) else { return Statement::Changes(vec![Change::Everything]) };
    let mut words = Words { rest: sql };
    let first = words.keyword();
    match first.as_str() {
        "BEGIN" | "SAVEPOINT" | "RELEASE" => Statement::Marks,
        "START" if words.keyword() == "TRANSACTION" => Statement::Marks,
        "COMMIT" => Statement::Ends,
        "ROLLBACK" if words.keyword() == "TO" => Statement::Marks,
        "ROLLBACK" => Statement::Ends,
        "XA" => match words.keyword().as_str() {
            "COMMIT" => Statement::XaCommit,
            "ROLLBACK" => Statement::XaRollback,
            _ => Statement::Marks,
        },
        _ => Statement::Changes(definition(&first, &mut words, database).unwrap_or_else(|| vec![Change::Everything])),
    }
}

/// `None` for what is not understood.
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
        // Exchanged partitions and new names reach other tables.
        ("ALTER", "TABLE") if words.mention(&["EXCHANGE", "RENAME", "CONVERT"]) => None,
        ("CREATE" | "ALTER" | "TRUNCATE", "TABLE") => {
            words.skip_if_exists();
            Some(vec![words.table(database)?])
        }
        // As the server writes it when a session ends, and as people do: nobody else sees these tables.
        ("CREATE" | "DROP", "TEMPORARY") => Some(Vec::new()),
        ("DROP", "") if words.rest.starts_with("/*!40005 TEMPORARY */ TABLE") => Some(Vec::new()),
        ("DROP", "TABLE") => {
            words.skip_if_exists();
            let mut dropped = vec![words.table(database)?];
            while words.take_sign(',') {
                dropped.push(words.table(database)?);
            }
            // What the server adds behind the names is a comment.
            Some(dropped)
        }
        _ => None,
    }
}

/// Takes words off the front of a statement.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            // Not the comments that hold code (`/*!`).
            let comment = self.rest.strip_prefix("/*").filter(|tail| !tail.starts_with(['!', 'M']));
            match comment.and_then(|tail| tail.split_once("*/")) {
                Some((_, tail)) => self.rest = tail,
                None => return,
            }
        }
    }

    /// The next word in upper case; empty where there is none.
    fn keyword(&mut self) -> String {
        self.skip_blanks();
        let end = self.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_ascii_uppercase()
    }

    fn take(&mut self, word: &str) -> bool {
        let before = self.rest;
        let is_there = self.keyword() == word;
        if !is_there {
            self.rest = before;
        }
        is_there
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

    /// IF EXISTS, IF NOT EXISTS.
    fn skip_if_exists(&mut self) {
        if self.take("IF") {
            self.take("NOT");
            self.take("EXISTS");
        }
    }

    /// Whether any of these words stands further behind, perhaps as a part of something else.
    fn mention(&self, words: &[&str]) -> bool {
        let rest = self.rest.to_ascii_uppercase();
        words.iter().any(|word| rest.contains(word))
    }

    /// An identifier, quoted or not.
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
        let Statement::Changes(changes) = classify("db", sql.as_bytes()) else { panic!("{sql}") };
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
    }

    #[test]
    fn what_is_not_understood_may_have_changed_everything() {
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
        ] {
            check(sql, &["*"]);
        }
        assert_eq!(classify("db", b"DROP TABLE \xff"), Statement::Changes(vec![Change::Everything]));
    }

    #[test]
    fn marks_and_ends_are_known() {
        for (sql, expected) in [
            ("BEGIN", Statement::Marks),
            ("START TRANSACTION", Statement::Marks),
            ("SAVEPOINT `x`", Statement::Marks),
            ("ROLLBACK TO `x`", Statement::Marks),
            ("ROLLBACK", Statement::Ends),
            ("COMMIT", Statement::Ends),
            ("XA END X'78',X'',1", Statement::Marks),
            ("XA COMMIT X'78',X'',1", Statement::XaCommit),
            ("XA ROLLBACK X'78',X'',1", Statement::XaRollback),
        ] {
            assert_eq!(classify("db", sql.as_bytes()), expected, "{sql}");
        }
    }
}
