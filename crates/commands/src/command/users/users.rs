//! `usersInfo`, `rolesInfo` and what else there is about users and roles, of whom there are none yet.

use crate::call::Call;
use crate::table::fields;
use document::{Doc, DocWriter, Element, Kind, Value};
use error::{Code, Error, Result};

/// What is wrong with a `usersInfo` of its own.
pub fn parse_users_info(call: &Call<'_>) -> Result<()> {
    fields::parse_own(call)?;
    named_users(call.first().value()).map(drop)
}

/// What is wrong with a `rolesInfo` of its own.
pub fn parse_roles_info(call: &Call<'_>) -> Result<()> {
    for field in call.fields() {
        fields::check(call.spec.name, fields::ROLES_INFO, [field])?;
        check_privileges(field)?;
    }
    check_names(call.first().value(), &ROLE_NAMES).map(drop)
}

const ROLE_NAMES: Names = Names { what: "RoleName", field: "role", is_strict: false };

/// Whether all users are meant.
fn named_users(value: Value<'_>) -> Result<bool> {
    match value {
        Value::Document(all) if all.get("forAllDBs").is_some_and(Value::is_truthy) => Ok(true),
        Value::Array(names) if names.is_empty() => Err(Error::bad_value("$and/$or/$nor must be a nonempty array")),
        value => check_names(value, &Names { what: "UserName", field: "user", is_strict: true }),
    }
}

/// Errors: 2 for what names no user, 20 for details that are told of one user alone.
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

/// Errors: 2 for what names no role, and for a form of the answer that there is not.
pub fn roles(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    parse_roles_info(call)?;
    drop(reply.array("roles"));
    Ok(())
}

/// Whether privileges are told, or the form that they are told in.
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

/// How users or roles are named.
struct Names {
    what: &'static str,
    field: &'static str,
    /// A name has no other fields.
    is_strict: bool,
}

/// Whether all are meant (`1`). Error 2 for what is neither that nor a name nor a list of names.
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

/// `dropAllUsersFromDatabase`, `dropAllRolesFromDatabase`.
pub fn drop_users(_call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    reply.append("n", 0);
    Ok(())
}

pub fn forget_users(_call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    Ok(())
}
