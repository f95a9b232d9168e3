//! Reads the words of a statement in the log.

use crate::changes::TableName;
use std::sync::Arc;

/// A reader of the words of a statement.
pub struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    pub fn of(sql: &'a str) -> Words<'a> {
        Words { rest: sql }
    }

    pub fn starts_with(&self, text: &str) -> bool {
        self.rest.starts_with(text)
    }

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
    pub fn keyword(&mut self) -> String {
        self.skip_blanks();
        let end = self.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_ascii_uppercase()
    }

    pub fn take(&mut self, word: &str) -> bool {
        let before = self.rest;
        let found = self.keyword() == word;
        if !found {
            self.rest = before;
        }
        found
    }

    pub fn take_sign(&mut self, sign: char) -> bool {
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
    pub fn skip_if_exists(&mut self) {
        if self.take("IF") {
            self.take("NOT");
            self.take("EXISTS");
        }
    }

    /// Returns whether the rest contains any of these words, even as a part of others.
    pub fn contains_any(&self, words: &[&str]) -> bool {
        let rest = self.rest.to_ascii_uppercase();
        words.iter().any(|word| rest.contains(word))
    }

    /// Takes an identifier, quoted or not.
    pub fn name(&mut self) -> Option<String> {
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

    /// Takes the name of a table. `database` is the default database.
    pub fn table(&mut self, database: &str) -> Option<Arc<TableName>> {
        let first = self.name()?;
        Some(if self.take_sign('.') { TableName::new(&first, &self.name()?) } else { TableName::new(database, &first) })
    }
}
