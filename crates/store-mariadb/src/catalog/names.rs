//! Maps databases and collections to schemas and tables.
//!
//! A database is the schema of the same name, a collection the table of the same name. A collection
//! name that MariaDB cannot hold (longer than 64 characters, characters beyond the basic plane,
//! upper case on a server that ignores case …) gets a table name made of a hash; Selkie's own
//! schema records what it stands for. Databases have no such fallback: their names are short.
//!
//! The collections of users and roles have their tables in Selkie's own schema: SQL users that may
//! read the schema `admin` must not read credentials.

use error::{Code, Error, Result};
use sha2::{Digest, Sha256};
use store::Namespace;

/// The schema with Selkie's own records.
pub(crate) const OWN_SCHEMA: &str = "selkie";

/// The database whose users and roles have their tables in Selkie's own schema.
pub(crate) const OWN_DATABASE: &str = "admin";

/// The collections of that database with such tables: users and roles, and those that
/// `mongorestore` fills with users and roles.
pub(crate) const OWN_COLLECTIONS: [&str; 5] =
    ["system.roles", "system.users", "system.version", "temproles", "tempusers"];

/// Schemas that are no databases.
pub(crate) const HIDDEN: [&str; 5] = ["mysql", "information_schema", "performance_schema", "sys", OWN_SCHEMA];

/// The character set and collation with which schemas are created.
pub(crate) const SCHEMA_CHARACTER_SET: &str = "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin";

/// Prefix of made-up table names.
const MADE_UP: char = '~';

/// MariaDB's limit, in characters.
const IDENTIFIER_CHARS_MAX: usize = 64;

/// The longest file name of a table, without the suffixes of its files.
const FILE_NAME_BYTES_MAX: usize = 240;

/// MongoDB's limits, in bytes.
const DATABASE_BYTES_MAX: usize = 63;

pub(crate) fn is_hidden(schema: &str) -> bool {
    HIDDEN.iter().any(|hidden| schema.eq_ignore_ascii_case(hidden))
}

/// Returns whether a collection's table is in Selkie's own schema.
pub(crate) fn is_own(database: &str, collection: &str) -> bool {
    database == OWN_DATABASE && OWN_COLLECTIONS.contains(&collection)
}

/// Returns schema and table of a collection.
pub(crate) fn schema_and_table(namespace: &Namespace, ignores_case: bool) -> Result<(&str, String)> {
    if is_own(&namespace.database, &namespace.collection) {
        return Ok((OWN_SCHEMA, namespace.collection.to_string()));
    }
    Ok((schema(&namespace.database, ignores_case)?, table(namespace, ignores_case)?))
}

/// Returns the collection that a table holds, by the names of schema and table. A made-up table
/// name stands for the whole database. Returns `None` if the table is no collection's.
pub(crate) fn namespace(schema: &str, table: &str) -> Option<Namespace> {
    if schema.eq_ignore_ascii_case(OWN_SCHEMA) {
        return is_own(OWN_DATABASE, table).then(|| Namespace::new(OWN_DATABASE, table));
    }
    if is_hidden(schema) || is_own(schema, table) {
        return None;
    }
    Some(Namespace::new(schema, if is_made_up(table) { "" } else { table }))
}

/// The schema of a database.
pub(crate) fn schema(database: &str, ignores_case: bool) -> Result<&str> {
    let refuse = |reason: String| Err(Error::new(Code::INVALID_NAMESPACE, reason));
    if database.is_empty()
        || database.len() > DATABASE_BYTES_MAX
        || database.contains(['/', '\\', '.', ' ', '"', '$', '\0'])
    {
        return refuse(format!("Invalid database name: '{database}'"));
    }
    if is_hidden(database) {
        return refuse(format!("Invalid database name: '{database}' is a schema that MariaDB or Selkie reserves"));
    }
    if !fits(database, ignores_case) {
        return refuse(format!("Invalid database name: '{database}' cannot be the name of a schema in MariaDB"));
    }
    Ok(database)
}

/// The table of a collection.
pub(crate) fn table(namespace: &Namespace, ignores_case: bool) -> Result<String> {
    let collection = &*namespace.collection;
    // Commands that write refuse names with a `$` and names that are too long. For commands that
    // read, such a collection does not exist.
    if collection.is_empty() || collection.contains('\0') || collection.starts_with('.') {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid namespace specified '{namespace}'")));
    }
    if fits(collection, ignores_case) && !collection.starts_with(MADE_UP) && !collection.ends_with('.') {
        return Ok(collection.to_owned());
    }
    Ok(made_up(collection))
}

/// Returns whether a table's name is made up, so that the collection's name is in Selkie's own
/// schema.
pub(crate) fn is_made_up(table: &str) -> bool {
    table.starts_with(MADE_UP)
}

/// Returns `~`, the readable start of the name, and a hash of it.
fn made_up(collection: &str) -> String {
    let front: String = collection.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
    let hash = Sha256::digest(collection);
    let mut name = format!("{MADE_UP}{}~", front.to_ascii_lowercase());
    for byte in &hash[..16] {
        name.push_str(&format!("{byte:02x}"));
    }
    name
}

/// Returns the UUID of a collection without a record.
pub(crate) fn derived_uuid(schema: &str, table: &str) -> [u8; 16] {
    let mut uuid = [0; 16];
    let hash = Sha256::new().chain_update(schema).chain_update([0]).chain_update(table).finalize();
    uuid.copy_from_slice(&hash[..16]);
    uuid[6] = uuid[6] & 0x0F | 0x80;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    uuid
}

/// Returns whether MariaDB accepts this name and returns it unchanged.
fn fits(name: &str, ignores_case: bool) -> bool {
    name.chars().count() <= IDENTIFIER_CHARS_MAX
        && !name.ends_with(is_blank)
        && name.chars().all(|character| character as u32 <= 0xFFFF)
        && !(ignores_case && name.chars().any(char::is_uppercase))
        && file_name_bytes(name) <= FILE_NAME_BYTES_MAX
        && !name.starts_with("#mysql50#")
}

/// Returns whether MariaDB refuses the character at the end of a name.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

/// Returns the length of the table's file name: a character other than a letter, digit or
/// underscore takes five bytes (`@002e`).
fn file_name_bytes(name: &str) -> usize {
    name.chars().map(|character| if character.is_ascii_alphanumeric() || character == '_' { 1 } else { 5 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_table(collection: &str, expected: Option<&str>) {
        let table = table(&Namespace::new("db", collection), false).unwrap();
        match expected {
            Some(expected) => assert_eq!(table, expected),
            None => assert!(is_made_up(&table) && table.len() <= 64, "{table}"),
        }
    }

    #[test]
    fn collections_keep_their_names_where_they_can() {
        check_table("cars", Some("cars"));
        check_table("fs.chunks", Some("fs.chunks"));
        check_table("Größe `x`; drop", Some("Größe `x`; drop"));
        check_table(&"x".repeat(64), Some(&"x".repeat(64)));
        check_table(&"x".repeat(65), None);
        check_table(&".x".repeat(30)[1..], Some(&".x".repeat(30)[1..]));
        check_table(&format!("{}x", "-".repeat(60)), None);
        for character in [' ', '\t', '\n', '\u{b}', '\u{c}', '\r'] {
            check_table(&format!("blank{character}"), None);
            check_table(&format!("{character}blank"), Some(&format!("{character}blank")));
        }
        check_table("~tilde", None);
        check_table("dot.", None);
        check_table(&"x".repeat(300), None);
        check_table("smile 😀", None);
        assert!(is_made_up(&table(&Namespace::new("db", "Upper"), true).unwrap()));
    }

    #[test]
    fn users_and_roles_are_in_the_own_schema() {
        let users = Namespace::new("admin", "system.users");
        assert_eq!(schema_and_table(&users, true).unwrap(), (OWN_SCHEMA, "system.users".to_owned()));
        assert_eq!(namespace(OWN_SCHEMA, "system.users"), Some(users));
        assert_eq!(namespace("admin", "system.users"), None);
        assert_eq!(namespace(OWN_SCHEMA, "collections"), None);
        assert_eq!(namespace("mysql", "user"), None);
        let elsewhere = Namespace::new("shop", "system.users");
        assert_eq!(schema_and_table(&elsewhere, true).unwrap(), ("shop", "system.users".to_owned()));
        assert_eq!(namespace("shop", "system.users"), Some(elsewhere));
        assert_eq!(namespace("shop", "~x~0"), Some(Namespace::new("shop", "")));
    }

    #[test]
    fn names_that_mongodb_refuses_are_refused() {
        for collection in ["", ".a", "a\0b"] {
            let error = table(&Namespace::new("db", collection), false).unwrap_err();
            assert_eq!(error.code(), Code::INVALID_NAMESPACE, "{collection}");
        }
        for database in ["", "a.b", "a b", "a/b", "mysql", "SYS", "selkie", "a$", &"x".repeat(64)] {
            assert_eq!(schema(database, false).unwrap_err().code(), Code::INVALID_NAMESPACE, "{database}");
        }
        assert_eq!(schema("Shop", false).unwrap(), "Shop");
        assert!(schema("Shop", true).is_err());
    }
}
