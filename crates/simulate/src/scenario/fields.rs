//! One table of a scenario, with the keys that it may have.

use crate::generator::{Draw, Scope, Source as Chance};
use crate::template::{self, Template};
use strict_toml::{Source, TomlError, Value, nearest};
use toml::de::{DeTable, DeValue};

pub struct Fields<'t, 'a> {
    source: Source<'t>,
    /// The name of the table in messages.
    place: &'static str,
    table: &'a DeTable<'t>,
}

impl<'t, 'a> Fields<'t, 'a> {
    /// Fails if there is a key that is not among `known`.
    pub fn open(
        source: Source<'t>,
        place: &'static str,
        table: &'a DeTable<'t>,
        known: &[&str],
    ) -> Result<Fields<'t, 'a>, TomlError> {
        let fields = Fields { source, place, table };
        let Some((key, _)) = table.iter().find(|(key, _)| !known.contains(&key.get_ref().as_ref())) else {
            return Ok(fields);
        };
        let preposition = if place.starts_with('[') { "in" } else { "at" };
        let problem = format!("there is no key {:?} {preposition} {place}", key.get_ref());
        let message = match nearest(key.get_ref(), known.iter().copied()) {
            Some(meant) => format!("{problem}; did you mean {meant:?}?"),
            None => format!("{problem}; there are {}", known.join(", ")),
        };
        Err(source.refuse(key.span().start, message))
    }

    /// Returns an error about the table as a whole, at its beginning.
    pub fn refuse(&self, message: &str) -> TomlError {
        let at = self.table.iter().next().map_or(0, |(key, _)| key.span().start);
        self.source.refuse(at, format!("{}: {message}", self.place))
    }

    fn expected(&self, key: &str, value: &Value<'t>, expected: &str) -> TomlError {
        let found = match value.get_ref() {
            DeValue::String(text) => format!("{text:?}"),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(flag) => flag.to_string(),
            other => format!("a {}", other.type_str()),
        };
        self.source.refuse(value.span().start, format!("{key}: {expected} is expected here, not {found}"))
    }

    pub fn text(&self, key: &str) -> Result<Option<String>, TomlError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        match value.get_ref().as_str() {
            Some(text) if !text.is_empty() => Ok(Some(text.to_owned())),
            _ => Err(self.expected(key, value, "text")),
        }
    }

    pub fn required_text(&self, key: &str) -> Result<String, TomlError> {
        self.text(key)?.ok_or_else(|| self.refuse(&format!("{key} is missing")))
    }

    pub fn boolean(&self, key: &str) -> Result<Option<bool>, TomlError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        value.get_ref().as_bool().map(Some).ok_or_else(|| self.expected(key, value, "true or false"))
    }

    pub fn integer(&self, key: &str, low: i64, high: i64) -> Result<Option<i64>, TomlError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        match strict_toml::integer(value.get_ref()) {
            Some(number) if (low..=high).contains(&number) => Ok(Some(number)),
            _ => Err(self.expected(key, value, &format!("a number from {low} to {high}"))),
        }
    }

    pub fn integers(&self, key: &str) -> Result<Vec<i64>, TomlError> {
        let Some(value) = self.table.get(key) else { return Ok(Vec::new()) };
        let numbers =
            value.get_ref().as_array().map(|values| values.iter().map(|one| strict_toml::integer(one.get_ref())));
        let numbers = numbers.and_then(|numbers| numbers.collect::<Option<Vec<_>>>());
        numbers.ok_or_else(|| self.expected(key, value, "a list of numbers"))
    }

    /// Returns a number, which may be an expression of constants.
    pub fn count(&self, key: &str, scope: &mut Scope<'_>) -> Result<Option<u64>, TomlError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let Template::Drawn(generator) = template::read(self.source, key, value, scope)? else {
            return Err(self.expected(key, value, "a number"));
        };
        let count = generator.count(&mut Draw::from(&mut Chance::new(0, &[], 0, 1)));
        let refuse = |message| self.source.refuse(value.span().start, format!("{key}: {message}"));
        count.map(Some).map_err(refuse)
    }

    pub fn table(&self, key: &str) -> Result<Option<&'a DeTable<'t>>, TomlError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        value.get_ref().as_table().map(Some).ok_or_else(|| self.expected(key, value, &format!("a table [{key}]")))
    }

    /// Returns the tables of an array, such as `[[setup]]`.
    pub fn tables(&self, key: &str) -> Result<Vec<&'a DeTable<'t>>, TomlError> {
        let Some(value) = self.table.get(key) else { return Ok(Vec::new()) };
        let tables = value.get_ref().as_array().map(|values| values.iter().map(|one| one.get_ref().as_table()));
        let tables = tables.and_then(|tables| tables.collect::<Option<Vec<_>>>());
        tables.ok_or_else(|| self.expected(key, value, &format!("a list of tables [[{key}]]")))
    }

    /// Returns the template of a document; fails if it is missing or empty.
    pub fn document(&self, key: &str, scope: &mut Scope<'_>) -> Result<Template, TomlError> {
        let Some(value) = self.table.get(key) else { return Err(self.refuse(&format!("{key} is missing"))) };
        match value.get_ref().as_table() {
            Some(table) if !table.is_empty() => template::read_document(self.source, table, scope),
            _ => Err(self.expected(key, value, "a table with a document's fields")),
        }
    }

    pub fn template(&self, key: &str, scope: &mut Scope<'_>) -> Result<Template, TomlError> {
        let Some(value) = self.table.get(key) else { return Err(self.refuse(&format!("{key} is missing"))) };
        template::read(self.source, key, value, scope)
    }
}
