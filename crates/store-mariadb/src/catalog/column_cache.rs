//! A cache of tables' columns. MariaDB takes milliseconds to return them, but a tenth of that to
//! show the table's definition, which validates an entry.

use crate::catalog::attempts;
use crate::catalog::table_columns::{ColumnInfo, TableShape, table_shape};
use ahash::AHashMap;
use error::Error;
use mariadb_client::{Connection, Event, Failure, Result, quote};
use mariadb_wire::Param;
use memchr::memmem;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Attempts to read the columns of an existing table.
const ATTEMPTS_MAX: u32 = 8;

/// Attempts to read columns that agree with the definition.
const AGREEMENT_ATTEMPTS_MAX: u32 = 6;

/// Entries cached; past this number all are evicted.
const TABLES_MAX: usize = 10_000;

/// The cache.
pub(super) struct ColumnCache {
    /// By quoted schema and name. An entry is valid as long as the table's definition is the same.
    entries: RefCell<AHashMap<String, (Definition, Rc<TableDescription>)>>,
    select_columns: Arc<str>,
    select_keys: Arc<str>,
}

/// The CREATE TABLE statement of a table, by its hash, and a hash of the names in it.
#[derive(Clone, Copy, PartialEq)]
struct Definition {
    hash: [u8; 32],
    names: Names,
}

/// A hash of the names of a table's columns and keys.
type Names = [u8; 32];

/// A table's columns, without the expressions of generated ones, and keys.
pub(super) struct TableDescription {
    pub columns: Vec<ColumnInfo>,
    /// The names of the table's keys, but for the primary one.
    pub keys: Vec<String>,
    pub shape: Option<TableShape>,
}

impl ColumnCache {
    pub fn new() -> ColumnCache {
        ColumnCache {
            entries: RefCell::default(),
            select_columns: "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_KEY, EXTRA, GENERATION_EXPRESSION, IS_NULLABLE, \
                   COLUMN_DEFAULT IS NOT NULL FROM information_schema.COLUMNS \
                   WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION"
                .into(),
            select_keys: "SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS \
                        WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND INDEX_NAME <> 'PRIMARY'"
                .into(),
        }
    }

    /// Returns the columns of a table; none if there is no table, or it cannot be opened just now.
    ///
    /// Columns and keys are two queries, each of which may wait for a change of the table. Between
    /// them it may be dropped and created again. So they must agree with the definition, or keys of
    /// another moment would be cached with it.
    pub async fn of(&self, connection: &mut Connection, schema: &str, table: &str) -> Result<Rc<TableDescription>> {
        let quoted = quoted(schema, table);
        let (mut definition, mut described);
        let mut attempt = 0;
        loop {
            definition = self::definition(connection, &quoted).await?;
            if let Some(described) = self.cached(&quoted, definition) {
                return Ok(described);
            }
            described = Rc::new(self.read(connection, schema, table).await?);
            let disagrees = definition.is_some_and(|definition| definition.names != described.names());
            if described.columns.is_empty() || !disagrees {
                break;
            }
            attempt += 1;
            if attempt >= AGREEMENT_ATTEMPTS_MAX {
                return Ok(described);
            }
            attempts::pause(attempt).await;
        }
        // A table that cannot be opened may still be shown; it may have been altered between the
        // queries.
        if !described.columns.is_empty()
            && let Some(definition) = definition
            && self::definition(connection, &quoted).await? == Some(definition)
        {
            let mut known = self.entries.borrow_mut();
            if known.len() >= TABLES_MAX {
                known.clear();
            }
            known.insert(quoted, (definition, described.clone()));
        }
        Ok(described)
    }

    /// Returns the columns of a table; `None` if there is no table, which the server answers in a
    /// small part of the time that the columns take.
    ///
    /// `information_schema` has neither columns nor an error for a table that cannot be opened just
    /// now. An existing table must not count as missing: its documents would.
    pub async fn if_any(
        &self,
        connection: &mut Connection,
        schema: &str,
        table: &str,
    ) -> Result<Option<Rc<TableDescription>>> {
        let quoted = quoted(schema, table);
        let is_known = self.entries.borrow().contains_key(&quoted);
        if is_known {
            let definition = definition(connection, &quoted).await?;
            if let Some(described) = self.cached(&quoted, definition) {
                return Ok(Some(described));
            }
        }
        let probe = format!("SELECT 1 FROM {quoted} LIMIT 0");
        let mut refusal = None;
        // It may be dropped between the two queries, or be in the middle of a change.
        for attempt in 0..ATTEMPTS_MAX {
            if attempt > 1 {
                attempts::pause(attempt).await;
            }
            connection.queue_query(&probe);
            match connection.finish().await {
                Ok(_) => refusal = None,
                Err(failure) if failure.is_missing_table() => return Ok(None),
                Err(failure) if failure.is_lost() => return Err(failure),
                // Its columns may be readable nevertheless, or it is no collection.
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
        // MariaDB denies access to missing tables as well.
        if refusal.as_ref().is_some_and(Failure::is_access_denied) {
            return Ok(None);
        }
        let no_columns = || Error::internal(format!("MariaDB does not return the columns of {schema}.{table}")).into();
        Err(refusal.unwrap_or_else(no_columns))
    }

    fn cached(&self, quoted: &str, definition: Option<Definition>) -> Option<Rc<TableDescription>> {
        let known = self.entries.borrow();
        known.get(quoted).filter(|(known, _)| definition == Some(*known)).map(|(_, described)| described.clone())
    }

    async fn read(&self, connection: &mut Connection, schema: &str, table: &str) -> Result<TableDescription> {
        let params = [Param::Text(schema.as_bytes()), Param::Text(table.as_bytes())];
        connection.queue_execute(&self.select_columns, &params);
        connection.queue_execute(&self.select_keys, &params);
        let (mut columns, mut keys) = (Vec::new(), Vec::new());
        while let Event::Row(range) = connection.next().await? {
            columns.push(ColumnInfo::read(&mut connection.row(range)?)?);
        }
        while let Event::Row(range) = connection.next().await? {
            let name = connection.row(range)?.next_bytes()?.unwrap_or_default();
            keys.push(String::from_utf8_lossy(name).into_owned());
        }
        Ok(TableDescription::new(columns, keys))
    }
}

impl TableDescription {
    fn new(mut columns: Vec<ColumnInfo>, keys: Vec<String>) -> TableDescription {
        let shape = table_shape(&columns);
        // Expressions are long and not needed.
        columns.iter_mut().for_each(|column| column.generation = None);
        TableDescription { columns, keys, shape }
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

/// Hashes the names of the columns and keys, except the primary one, in a definition: each is on a
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

/// Returns the name before the closing backtick; doubled backticks belong to it.
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

/// Reads the table's CREATE TABLE statement; `None` if the server does not show it.
async fn definition(connection: &mut Connection, quoted: &str) -> Result<Option<Definition>> {
    connection.queue_execute(&format!("SHOW CREATE TABLE {quoted}").into(), &[]);
    let mut found = None;
    loop {
        match connection.next().await {
            Ok(Event::Row(range)) => {
                let mut row = connection.row(range)?;
                // The first column is the name.
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

/// Returns the parts of the definition before and after the AUTO_INCREMENT counter, which changes
/// with the rows.
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
    fn names_are_read_from_a_definition() {
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
