//! A table's columns, which MariaDB takes milliseconds to tell: a tenth of that to show its definition, by which it is known whether
//! they are still the same.

use crate::catalog::definition_lock;
use crate::catalog::table_columns::{Column, Shape, shape};
use ahash::AHashMap;
use error::Error;
use mariadb_client::{Connection, Event, Failure, Result, quote};
use mariadb_wire::Param;
use memchr::memmem;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// How often a table that is there is asked about before its columns are given up.
const LOOKS_MAX: u32 = 8;

/// How often a table is asked about whose columns do not agree with its definition.
const AGREEMENTS_MAX: u32 = 6;

/// Tables remembered; past it all are forgotten.
const TABLES_MAX: usize = 10_000;

pub(super) struct Columns {
    /// By schema and name, as they stand in statements. True of a table for as long as its definition is the same.
    known: RefCell<AHashMap<String, (Definition, Rc<Described>)>>,
    tell: Arc<str>,
    tell_keys: Arc<str>,
}

/// The statement that makes a table, by its hash, and the names in it.
#[derive(Clone, Copy, PartialEq)]
struct Definition {
    hash: [u8; 32],
    names: Names,
}

/// A hash of the names of a table's columns and keys.
type Names = [u8; 32];

/// What the columns are, but for the expressions of generated ones, and what they make of the table.
pub(super) struct Described {
    pub columns: Vec<Column>,
    /// The names of the table's keys, but for the primary one.
    pub keys: Vec<String>,
    pub shape: Option<Shape>,
}

impl Columns {
    pub fn new() -> Columns {
        Columns {
            known: RefCell::default(),
            tell: "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_KEY, EXTRA, GENERATION_EXPRESSION, IS_NULLABLE, \
                   COLUMN_DEFAULT IS NOT NULL FROM information_schema.COLUMNS \
                   WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION"
                .into(),
            tell_keys: "SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS \
                        WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND INDEX_NAME <> 'PRIMARY'"
                .into(),
        }
    }

    /// Those of a table; none where there is no table, or none that can be opened just now.
    ///
    /// Columns and keys are two questions, and each may wait for a change of the table. Between
    /// them it may be dropped and made anew. So what is told has to agree with the definition, or
    /// the keys of another moment would be believed for as long as it stays.
    pub async fn of(&self, connection: &mut Connection, schema: &str, table: &str) -> Result<Rc<Described>> {
        let quoted = quoted(schema, table);
        let (mut definition, mut described);
        let mut attempt = 0;
        loop {
            definition = self::definition(connection, &quoted).await?;
            if let Some(described) = self.remembered(&quoted, definition) {
                return Ok(described);
            }
            described = Rc::new(self.told(connection, schema, table).await?);
            let disagrees = definition.is_some_and(|definition| definition.names != described.names());
            if described.columns.is_empty() || !disagrees {
                break;
            }
            attempt += 1;
            if attempt >= AGREEMENTS_MAX {
                return Ok(described);
            }
            definition_lock::pause(attempt).await;
        }
        // One that cannot be opened may be shown all the same; one that is told may have been altered between the two questions.
        if !described.columns.is_empty()
            && let Some(definition) = definition
            && self::definition(connection, &quoted).await? == Some(definition)
        {
            let mut known = self.known.borrow_mut();
            if known.len() >= TABLES_MAX {
                known.clear();
            }
            known.insert(quoted, (definition, described.clone()));
        }
        Ok(described)
    }

    /// Those of a table; `None` when there is no table, which takes the server a small part of the time that its columns take.
    ///
    /// `information_schema` has no columns of a table that cannot be opened just now, and no error either. A table that is there is not
    /// taken for missing: its documents would be.
    pub async fn if_any(
        &self,
        connection: &mut Connection,
        schema: &str,
        table: &str,
    ) -> Result<Option<Rc<Described>>> {
        let quoted = quoted(schema, table);
        let is_known = self.known.borrow().contains_key(&quoted);
        if is_known {
            let definition = definition(connection, &quoted).await?;
            if let Some(described) = self.remembered(&quoted, definition) {
                return Ok(Some(described));
            }
        }
        let look = format!("SELECT 1 FROM {quoted} LIMIT 0");
        let mut refusal = None;
        // It may be dropped between the two questions, or be in the midst of a change.
        for attempt in 0..LOOKS_MAX {
            if attempt > 1 {
                definition_lock::pause(attempt).await;
            }
            connection.queue_query(&look);
            match connection.finish().await {
                Ok(_) => refusal = None,
                Err(failure) if failure.is_missing_table() => return Ok(None),
                Err(failure) if failure.is_lost() => return Err(failure),
                // Its columns can be read all the same, or it is none of ours.
                Err(failure) => refusal = Some(failure),
            }
            let described = self.of(connection, schema, table).await?;
            if !described.columns.is_empty() {
                return Ok(Some(described));
            }
            if refusal.is_some() && attempt > 0 {
                break;
            }
        }
        // MariaDB says so of tables that are not there as well.
        if refusal.as_ref().is_some_and(Failure::is_access_denied) {
            return Ok(None);
        }
        let untold = || Error::internal(format!("MariaDB does not tell the columns of {schema}.{table}")).into();
        Err(refusal.unwrap_or_else(untold))
    }

    fn remembered(&self, quoted: &str, definition: Option<Definition>) -> Option<Rc<Described>> {
        let known = self.known.borrow();
        known.get(quoted).filter(|(known, _)| definition == Some(*known)).map(|(_, described)| described.clone())
    }

    async fn told(&self, connection: &mut Connection, schema: &str, table: &str) -> Result<Described> {
        let params = [Param::Text(schema.as_bytes()), Param::Text(table.as_bytes())];
        connection.queue_execute(&self.tell, &params);
        connection.queue_execute(&self.tell_keys, &params);
        let (mut columns, mut keys) = (Vec::new(), Vec::new());
        while let Event::Row(range) = connection.next().await? {
            columns.push(Column::read(&mut connection.row(range)?)?);
        }
        while let Event::Row(range) = connection.next().await? {
            let name = connection.row(range)?.next_bytes()?.unwrap_or_default();
            keys.push(String::from_utf8_lossy(name).into_owned());
        }
        Ok(Described::new(columns, keys))
    }
}

impl Described {
    fn new(mut columns: Vec<Column>, keys: Vec<String>) -> Described {
        let shape = shape(&columns);
        // They are long.
        columns.iter_mut().for_each(|column| column.generation = None);
        Described { columns, keys, shape }
    }

    fn names(&self) -> Names {
        let columns = self.columns.iter().map(|column| column.name.as_bytes());
        names_of(columns, self.keys.iter().map(String::as_bytes).collect())
    }
}

fn names_of<'n>(columns: impl Iterator<Item = &'n [u8]>, mut keys: Vec<&'n [u8]>) -> Names {
    let mut hash = Sha256::new();
    columns.for_each(|name| hash.update(Sha256::digest(name)));
    hash.update([0]);
    keys.sort_unstable();
    keys.iter().for_each(|name| hash.update(Sha256::digest(name)));
    hash.finalize().into()
}

/// The names of the columns and keys, but for the primary one, that a definition shows: each on a
/// line of its own.
fn names_shown(text: &[u8]) -> Names {
    let (mut columns, mut keys) = (Vec::new(), Vec::new());
    for line in text.split(|byte| *byte == b'\n') {
        let Some(line) = line.strip_prefix(b"  ") else { continue };
        if let Some(name) = line.strip_prefix(b"`") {
            columns.push(unquoted(name));
            continue;
        }
        let words: [&[u8]; 5] = [b"", b"UNIQUE ", b"FULLTEXT ", b"SPATIAL ", b"VECTOR "];
        let key = words.iter().find_map(|word| line.strip_prefix(*word)?.strip_prefix(b"KEY `"));
        keys.extend(key.map(unquoted));
    }
    names_of(columns.iter().map(Vec::as_slice), keys.iter().map(Vec::as_slice).collect())
}

/// A name that ends with a quotation mark; doubled ones belong to it.
fn unquoted(text: &[u8]) -> Vec<u8> {
    let mut name = Vec::new();
    let mut bytes = text.iter().peekable();
    while let Some(&byte) = bytes.next() {
        if byte == b'`' && bytes.next_if_eq(&&b'`').is_none() {
            break;
        }
        name.push(byte);
    }
    name
}

fn quoted(schema: &str, table: &str) -> String {
    format!("{}.{}", quote(schema), quote(table))
}

/// The statement that makes the table as it is; `None` where the server does not show it.
async fn definition(connection: &mut Connection, quoted: &str) -> Result<Option<Definition>> {
    connection.queue_execute(&format!("SHOW CREATE TABLE {quoted}").into(), &[]);
    let mut found = None;
    loop {
        match connection.next().await {
            Ok(Event::Row(range)) => {
                let mut row = connection.row(range)?;
                // The name is in front.
                row.next_bytes()?;
                found = row.next_bytes()?.map(|text| Definition {
                    hash: Sha256::digest(without_counter(text).concat()).into(),
                    names: names_shown(text),
                });
            }
            Ok(Event::Finished(_)) => return Ok(found),
            Err(failure) if failure.is_lost() => return Err(failure),
            Err(_) => return Ok(None),
        }
    }
}

/// The definition in front of the next number that a row gets, which is no part of it, and behind it.
fn without_counter(text: &[u8]) -> [&[u8]; 2] {
    const COUNTER: &[u8] = b" AUTO_INCREMENT=";
    let options = memmem::rfind(text, b"\n) ENGINE=").unwrap_or(text.len());
    let Some(counter) = memmem::find(&text[options..], COUNTER) else { return [text, b""] };
    let (front, rest) = text.split_at(options + counter);
    let digits = rest[COUNTER.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    [front, &rest[COUNTER.len() + digits..]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_off_a_definition() {
        let text = b"CREATE TABLE `t` (\n  `a` int DEFAULT 5,\n  `b``c` text,\n  PRIMARY KEY (`a`),\n  UNIQUE KEY `y~1` (`b``c`),\n  \
                     KEY `x``` (`a`),\n  CONSTRAINT `z` CHECK (`a` > 1)\n) ENGINE=InnoDB";
        let names = |columns: &[&'static str], keys: &[&'static str]| {
            names_of(columns.iter().map(|name| name.as_bytes()), keys.iter().map(|name| name.as_bytes()).collect())
        };
        assert!(names_shown(text) == names(&["a", "b`c"], &["x`", "y~1"]));
        assert!(names_shown(text) != names(&["a", "b`c"], &["y~1"]));
        assert!(names_shown(text) != names(&["a"], &["x`", "y~1"]));
    }

    #[test]
    fn the_counter_is_no_part_of_a_definition() {
        let table =
            |rest: &str| format!("CREATE TABLE `t` (\n  `a` int DEFAULT ' AUTO_INCREMENT=5'\n) ENGINE=InnoDB{rest}");
        let same = |rest: &str| without_counter(table(rest).as_bytes()).concat() == table(" CHARSET=x").as_bytes();
        assert!(same(" AUTO_INCREMENT=71 CHARSET=x") && same(" CHARSET=x"));
        assert!(!same(" AUTO_INCREMENT=71 CHARSET=y") && !same(""));
    }
}
