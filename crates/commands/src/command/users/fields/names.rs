//! Names of users and roles in commands.

use crate::arguments;
use auth::{RoleName, UserName};
use document::{Doc, DocBuf, Element, Kind, Value};
use error::{Error, Result};

/// The users or roles that `usersInfo` or `rolesInfo` lists.
pub enum Listed<N> {
    /// Those of all databases.
    Everywhere,
    /// Those of the command's database.
    OfDatabase,
    Named(Vec<N>),
}

/// Parses the first field of `usersInfo`. Fails with 2 for an invalid name.
pub fn listed_users(value: Value<'_>, database: &str) -> Result<Listed<UserName>> {
    match value {
        Value::Document(all) if all.get("forAllDBs").is_some_and(Value::is_truthy) => Ok(Listed::Everywhere),
        Value::Array(names) if names.is_empty() => Err(Error::bad_value("$and/$or/$nor must be a nonempty array")),
        value => {
            let form = NameForm { what: "UserName", field: "user", is_strict: true };
            listed(value, |value| form.parse(value, database).map(|(user, db)| UserName::new(user, db)))
        }
    }
}

/// Parses the first field of `rolesInfo`. Fails with 2 for an invalid name.
pub fn listed_roles(value: Value<'_>, database: &str) -> Result<Listed<RoleName>> {
    listed(value, |value| role(value, database))
}

fn listed<N>(value: Value<'_>, parse: impl Fn(Value<'_>) -> Result<N>) -> Result<Listed<N>> {
    match value {
        Value::Array(names) => names.values().map(parse).collect::<Result<_>>().map(Listed::Named),
        value if value.kind().is_number() && value.to_i64() == Some(1) => Ok(Listed::OfDatabase),
        value => Ok(Listed::Named(vec![parse(value)?])),
    }
}

/// Parses a field `roles`: each role once, in the order of the field. A text is the name of a role
/// of `database`.
pub fn roles(within: &str, field: Element<'_>, database: &str) -> Result<Vec<RoleName>> {
    let mut roles = Vec::new();
    for value in arguments::array(within, field)?.values() {
        if !matches!(value, Value::String(_) | Value::Document(_)) {
            return Err(Error::bad_value("Role name must be either a document or string"));
        }
        let role = role(value, database)?;
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    Ok(roles)
}

fn role(value: Value<'_>, database: &str) -> Result<RoleName> {
    let form = NameForm { what: "RoleName", field: "role", is_strict: false };
    form.parse(value, database).map(|(role, db)| RoleName::new(role, db))
}

/// The form of names of users or roles.
struct NameForm {
    what: &'static str,
    field: &'static str,
    /// Whether a name must not have other fields.
    is_strict: bool,
}

impl NameForm {
    /// Returns the name and its database.
    fn parse<'v>(&self, value: Value<'v>, database: &'v str) -> Result<(&'v str, &'v str)> {
        let NameForm { what, field, is_strict } = *self;
        let name: Doc<'v> = match value {
            Value::String(name) => return Ok((name, database)),
            Value::Document(name) => name,
            _ => return Err(Error::bad_value(format!("{what} must be either a string or an object"))),
        };
        for (index, part) in name.elements().enumerate() {
            let is_known = part.key() == field || part.key() == "db";
            if !is_known && is_strict {
                return Err(Error::bad_value(format!("{what} contains an unknown field named: '{}", part.key())));
            }
            if is_known && part.kind != Kind::String {
                let (key, found) = (part.key(), part.kind.alias());
                let message = format!("{what} must contain a string field named: {key}. But, has type {found}");
                return Err(Error::bad_value(message));
            }
            if is_known && name.elements().take(index).any(|other| other.key() == part.key()) {
                let message = format!("{what} has more than one field named: {}", part.key());
                return Err(Error::bad_value(message));
            }
        }
        let text = |part: &str| {
            let missing = || Error::bad_value(format!("{what} must contain a field named: {part}"));
            name.get(part).and_then(|value| value.as_str()).ok_or_else(missing)
        };
        Ok((text(field)?, text("db")?))
    }
}

/// Returns the name and the database of a stored user or role, as a filter that selects it. Fails
/// with 4 if one is missing, and 14 if it is no text.
pub fn stored_name(document: Doc<'_>, field: &str) -> Result<DocBuf> {
    let mut name = DocBuf::new();
    for part in [field, "db"] {
        let element = document.element(part);
        let element = element
            .ok_or_else(|| Error::new(error::Code::NO_SUCH_KEY, format!("Missing expected field \"{part}\"")))?;
        let wrong_type = || {
            let found = element.kind.alias();
            Error::type_mismatch(format!("\"{part}\" had the wrong type. Expected string, found {found}"))
        };
        name.append(part, element.value().as_str().ok_or_else(wrong_type)?);
    }
    Ok(name)
}
