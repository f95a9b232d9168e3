//! Strict parsing of a command's fields, with MongoDB's error messages.

pub mod aggregate;
pub mod count;
pub mod distinct;
pub mod find;
pub mod options;

use document::{Doc, Element, Kind, Value};
use error::{Code, Error, Result};
use store::Namespace;

/// The types that MongoDB lists for numeric fields, with its unbalanced quote.
const NUMBER_TYPES: &str = "'[long, int, decimal, double']";

/// Returns the error for a field that the command does not have. `within`: what MongoDB calls the
/// command's fields.
pub fn unknown_field(within: &str, field: &str) -> Error {
    Error::new(Code(40415), format!("BSON field '{within}.{field}' is an unknown field."))
}

pub fn repeated_field(within: &str, field: &str) -> Error {
    Error::new(Code(40413), format!("BSON field '{within}.{field}' is a duplicate field"))
}

pub fn missing_field(within: &str, field: &str) -> Error {
    Error::new(Code(40414), format!("BSON field '{within}.{field}' is missing but a required field"))
}

pub fn wrong_type(within: &str, field: Element<'_>, expected: &str) -> Error {
    wrong_kind(within, field.key(), field.kind, expected)
}

pub fn wrong_kind(within: &str, field: &str, kind: Kind, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{within}.{field}' is the wrong type '{}', expected type '{expected}'",
        kind.alias()
    ))
}

pub fn wrong_types(within: &str, field: Element<'_>, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{within}.{}' is the wrong type '{}', expected types {expected}",
        field.key(),
        field.kind.alias()
    ))
}

/// Returns whether a field is null or undefined, which counts as absent.
pub fn is_absent(field: Element<'_>) -> bool {
    matches!(field.kind, Kind::Null | Kind::Undefined)
}

/// Returns whether a field is null and null counts as absent for it. Flags, hints and lists must
/// have their type.
pub fn is_left_out(field: Element<'_>, may_be_null: &[&str]) -> bool {
    is_absent(field) && may_be_null.contains(&field.key())
}

/// Reads a boolean; other types fail.
pub fn boolean(within: &str, field: Element<'_>) -> Result<bool> {
    match field.value() {
        Value::Boolean(flag) => Ok(flag),
        _ => Err(wrong_type(within, field, "bool")),
    }
}

/// Reads a boolean or a number that stands for one.
pub fn boolean_or_number(within: &str, field: Element<'_>) -> Result<bool> {
    match field.value() {
        Value::Boolean(flag) => Ok(flag),
        value if value.kind().is_number() => Ok(value.is_truthy()),
        _ => Err(wrong_types(within, field, "'[bool, long, int, decimal, double']")),
    }
}

/// Reads a boolean with the error of `find` and `aggregate`.
pub fn plain_boolean(field: Element<'_>) -> Result<bool> {
    match field.value() {
        Value::Boolean(flag) => Ok(flag),
        _ => Err(Error::type_mismatch(format!(
            "Field '{}' should be a boolean value, but found: {}",
            field.key(),
            field.kind.alias()
        ))),
    }
}

pub fn document<'a>(within: &str, field: Element<'a>) -> Result<Doc<'a>> {
    field.value().as_document().ok_or_else(|| missing_or_wrong(within, field, "object"))
}

pub fn array<'a>(within: &str, field: Element<'a>) -> Result<Doc<'a>> {
    field.value().as_array().ok_or_else(|| match is_absent(field) {
        true => Error::new(Code(10065), format!("invalid parameter: expected an object ({})", field.key())),
        false => wrong_type(within, field, "array"),
    })
}

pub fn string<'a>(within: &str, field: Element<'a>) -> Result<&'a str> {
    field.value().as_str().ok_or_else(|| missing_or_wrong(within, field, "string"))
}

/// Returns the error for a wrong type; null in a required field counts as its absence.
fn missing_or_wrong(within: &str, field: Element<'_>, expected: &str) -> Error {
    match is_absent(field) {
        true => missing_field(within, field.key()),
        false => wrong_type(within, field, expected),
    }
}

/// Reads an integer from any numeric type: fractions are truncated, values out of range are
/// clamped, NaN is zero.
pub fn integer(within: &str, field: Element<'_>) -> Result<i64> {
    number_to_i64(field.value()).ok_or_else(|| wrong_types(within, field, NUMBER_TYPES))
}

/// Reads an integer as [`integer`] does; fails if it is negative.
pub fn non_negative(within: &str, field: Element<'_>) -> Result<u64> {
    let number = integer(within, field)?;
    u64::try_from(number).map_err(|_| below_zero(field.key(), number))
}

pub fn below_zero(field: &str, number: i64) -> Error {
    Error::new(Code(51024), format!("BSON field '{field}' value must be >= 0, actual value '{number}'"))
}

/// Truncates and clamps as MongoDB does with counts; returns `None` unless the value is a number.
pub fn number_to_i64(value: Value<'_>) -> Option<i64> {
    value.to_i64()
}

/// Returns the namespace that a command's first field names.
pub fn namespace(database: &str, first: Element<'_>) -> Result<Namespace> {
    let Some(collection) = first.value().as_str() else {
        return Err(Error::bad_value(format!("collection name has invalid type {}", first.kind.alias())));
    };
    if collection.is_empty() {
        return Err(invalid_namespace(format!("Invalid namespace specified '{database}.'")));
    }
    if collection.contains('\0') {
        return Err(invalid_namespace("namespaces cannot have embedded null characters".to_owned()));
    }
    Ok(Namespace::new(database, collection))
}

/// Returns the namespace of a command that reads.
pub fn namespace_to_read(database: &str, first: Element<'_>) -> Result<Namespace> {
    let namespace = namespace(database, first)?;
    if namespace.collection.starts_with('.') {
        return Err(invalid_namespace(format!("Collection names cannot start with '.': {}", namespace.collection)));
    }
    if namespace.collection.contains('$') {
        return Err(invalid_namespace(format!("Invalid collection name specified '{namespace}")));
    }
    Ok(namespace)
}

/// Returns the namespace of a command that may create its collection.
pub fn namespace_to_write(database: &str, first: Element<'_>) -> Result<Namespace> {
    let namespace = namespace(database, first)?;
    check_to_write(&namespace)?;
    Ok(namespace)
}

/// Checks that a command may write to a collection of this name, and create it.
pub fn check_to_write(namespace: &Namespace) -> Result<()> {
    if matches!(&*namespace.collection, "system.views" | "system.profile") {
        return Err(invalid_namespace(format!("cannot write to {namespace}")));
    }
    check_writable(namespace)
}

/// Checks that a collection of this name may be created.
pub fn check_writable(namespace: &Namespace) -> Result<()> {
    let collection = &*namespace.collection;
    if collection.starts_with('.') {
        return Err(invalid_namespace(format!("Collection names cannot start with '.': {collection}")));
    }
    if collection.contains('$') {
        return Err(invalid_namespace(format!("Invalid collection name: {collection}")));
    }
    if collection.starts_with("system.") && !is_writable_system_collection(namespace) {
        return Err(invalid_namespace(format!("Invalid system namespace: {namespace}")));
    }
    if namespace.database.len() + 1 + collection.len() > NAMESPACE_BYTES_MAX {
        return Err(invalid_namespace(format!(
            "Fully qualified namespace is too long. Namespace: {namespace} Max: {NAMESPACE_BYTES_MAX}"
        )));
    }
    Ok(())
}

/// Returns whether applications may write to a collection whose name begins with `system.`: stored
/// functions, which GUIs write, and the collections that MongoDB's tools restore.
fn is_writable_system_collection(namespace: &Namespace) -> bool {
    let of_database: &[&str] = match &*namespace.database {
        "admin" => &["system.roles", "system.version", "system.keys", "system.backup_users", "system.new_users"],
        "config" => &["system.sessions", "system.indexBuilds", "system.preimages"],
        "local" => &["system.replset", "system.healthlog"],
        _ => &[],
    };
    let collection = &*namespace.collection;
    if collection.strip_prefix("system.buckets.").is_some_and(|name| !name.is_empty()) {
        return true;
    }
    matches!(collection, "system.js" | "system.users") || of_database.contains(&collection)
}

const NAMESPACE_BYTES_MAX: usize = 255;

fn invalid_namespace(message: String) -> Error {
    Error::new(Code::INVALID_NAMESPACE, message)
}

/// Checks that a name is valid for a database.
/// Source: <https://www.mongodb.com/docs/manual/reference/limits/#std-label-restrictions-on-db-names>
pub fn check_database(name: &str) -> Result<()> {
    let forbidden = |byte: u8| matches!(byte, b'/' | b'\\' | b'.' | b' ' | b'"' | b'$' | b'\0');
    let valid = !name.is_empty() && name.len() < 64 && !name.bytes().any(forbidden);
    if valid || name == "$external" {
        return Ok(());
    }
    if name.contains('.') {
        return Err(invalid_namespace(format!("'.' is an invalid character in the database name: {name}")));
    }
    Err(invalid_namespace(format!("Invalid database name: '{name}'")))
}
