//! `usersInfo`, `rolesInfo` and other commands about users and roles, which do not exist yet.

use crate::call::Call;
use crate::table::fields;
use document::{Doc, DocWriter, Element, Kind, Value};
use error::{Code, Error, Result};

/// Parses the fields of a `usersInfo`.
pub fn parse_users_info(call: &Call<'_>) -> Result<()> {
    fields::parse_own(call)?;
    named_users(call.first().value()).map(drop)
}

/// Parses the fields of a `rolesInfo`.
pub fn parse_roles_info(call: &Call<'_>) -> Result<()> {
    for field in call.fields() {
        fields::check(call.spec.name, fields::ROLES_INFO, [field])?;
        check_privileges(field)?;
    }
    check_names(call.first().value(), &ROLE_NAMES).map(drop)
}

const ROLE_NAMES: Names = Names { what: "RoleName", field: "role", is_strict: false };

/// Returns whether all users are requested.
fn named_users(value: Value<'_>) -> Result<bool> {
    match value {
        Value::Document(all) if all.get("forAllDBs").is_some_and(Value::is_truthy) => Ok(true),
        Value::Array(names) if names.is_empty() => Err(Error::bad_value("$and/$or/$nor must be a nonempty array")),
        value => check_names(value, &Names { what: "UserName", field: "user", is_strict: true }),
    }
}

/// Lists no users. Fails with 2 for an invalid name, and 20 for details that require a single user.
pub fn users(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    const DETAILS: [&str; 3] = ["showPrivileges", "showCredentials", "showAuthenticationRestrictions"];
    let of_all = named_users(call.first().value())?;
    let asks = |field: Element<'_>| *field.key() != *"showCredentials" && DETAILS.contains(&field.key());
    if of_all && call.fields().any(|field| asks(field) && field.value().is_truthy()) {
        let message = "Privilege or restriction details require exact-match usersInfo queries";
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    drop(reply.array("users"));
    Ok(())
}

/// Lists no roles. Fails with 2 for an invalid name or form of the reply.
pub fn roles(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    parse_roles_info(call)?;
    drop(reply.array("roles"));
    Ok(())
}

/// Checks `showPrivileges`: a flag, or the form of the reply.
fn check_privileges(field: Element<'_>) -> Result<()> {
    let is_known = match (field.key(), field.value()) {
        ("showPrivileges", Value::Boolean(_) | Value::String("asUserFragment")) => true,
        ("showPrivileges", value) => value.kind().is_number(),
        _ => true,
    };
    match is_known {
        true => Ok(()),
        false => {
            let found = values::text::element(field.key(), field.value());
            Err(Error::bad_value(format!(
                "Failed to parse 'showPrivileges'. 'showPrivileges' should either be a boolean or the string \
                 'asUserFragment', given: {found}"
            )))
        }
    }
}

/// The form of names of users or roles.
struct Names {
    what: &'static str,
    field: &'static str,
    /// Whether a name must not have other fields.
    is_strict: bool,
}

/// Returns whether all are requested (`1`). Fails with 2 unless the value is that, a name or a list
/// of names.
fn check_names(value: Value<'_>, names: &Names) -> Result<bool> {
    match value {
        Value::Array(list) => list.values().try_for_each(|name| check_name(name, names)).map(|()| false),
        value if value.kind().is_number() && value.to_i64() == Some(1) => Ok(true),
        value => check_name(value, names).map(|()| false),
    }
}

fn check_name(value: Value<'_>, names: &Names) -> Result<()> {
    let Names { what, field, is_strict } = names;
    let name: Doc<'_> = match value {
        Value::String(_) => return Ok(()),
        Value::Document(name) => name,
        _ => return Err(Error::bad_value(format!("{what} must be either a string or an object"))),
    };
    for part in name.elements() {
        let is_known = part.key() == *field || *part.key() == *"db";
        if !is_known && *is_strict {
            return Err(Error::bad_value(format!("{what} contains an unknown field named: '{}", part.key())));
        }
        if is_known && part.kind != Kind::String {
            let (key, found) = (part.key(), part.kind.alias());
            let message = format!("{what} must contain a string field named: {key}. But, has type {found}");
            return Err(Error::bad_value(message));
        }
    }
    match [*field, "db"].into_iter().find(|part| name.get(part).is_none()) {
        Some(part) => Err(Error::bad_value(format!("{what} must contain a field named: {part}"))),
        None => Ok(()),
    }
}

/// `dropAllUsersFromDatabase` and `dropAllRolesFromDatabase`: drop none.
pub fn drop_users(_call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    reply.append("n", 0);
    Ok(())
}

pub fn forget_users(_call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    Ok(())
}
