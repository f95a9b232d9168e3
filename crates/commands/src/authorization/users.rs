//! What commands about users and roles require.
//!
//! A role belongs to a database, and so do the rights to grant and to revoke it.

use super::asked::{Asked, Grants, values};
use auth::{Action, ActionSet, Resource};
use document::{Doc, Value};

/// All that commands require that create or change a user.
pub const ACTIONS_OF_USER: &[Action] = &[
    Action::CreateUser,
    Action::ChangePassword,
    Action::ChangeCustomData,
    Action::GrantRole,
    Action::RevokeRole,
    Action::SetAuthenticationRestriction,
];

/// All that commands require that create or change a role.
pub const ACTIONS_OF_ROLE: &[Action] =
    &[Action::CreateRole, Action::GrantRole, Action::RevokeRole, Action::SetAuthenticationRestriction];

/// All that `_mergeAuthzCollections` may require.
pub const ACTIONS_OF_MERGE: &[Action] = &[
    Action::CreateUser,
    Action::CreateRole,
    Action::GrantRole,
    Action::RevokeRole,
    Action::DropUser,
    Action::DropRole,
    Action::Find,
];

/// `_mergeAuthzCollections`: it may change each user and role.
pub fn merge(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let actions = if asked.is_set("drop") { &ACTIONS_OF_MERGE[..6] } else { &ACTIONS_OF_MERGE[..4] };
    let sources = asked.values("tempUsersCollection").chain(asked.values("tempRolesCollection"));
    grants.allow(Resource::AnyOrdinary, &ActionSet::of(actions))
        && sources.filter_map(Value::as_str).filter_map(|name| name.split_once('.')).all(|(database, collection)| {
            grants.allow(Resource::Collection(database, collection), &ActionSet::of(&[Action::Find]))
        })
}

pub fn create_user(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    allow_here(asked, Action::CreateUser, grants)
        && are_roles_allowed(asked, Action::GrantRole, grants)
        && are_restrictions_allowed(asked, grants)
}

/// `updateUser`: one's own password and data are actions of their own.
pub fn update_user(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let is_own = asked.user.is_some_and(|user| *user.db == *asked.database && Some(&*user.user) == asked.collection());
    let mut allow_change = |field: &'static str, own: Action, of_others: Action| {
        asked.values(field).next().is_none()
            || is_own && allow_here(asked, own, grants)
            || allow_here(asked, of_others, grants)
    };
    allow_change("pwd", Action::ChangeOwnPassword, Action::ChangePassword)
        && allow_change("customData", Action::ChangeOwnCustomData, Action::ChangeCustomData)
        && (asked.values("roles").next().is_none() || may_revoke_any(grants))
        && are_roles_allowed(asked, Action::GrantRole, grants)
        && are_restrictions_allowed(asked, grants)
}

/// `grantRolesToUser` and `grantRolesToRole`.
pub fn grant_roles(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    are_roles_allowed(asked, Action::GrantRole, grants)
}

/// `revokeRolesFromUser` and `revokeRolesFromRole`.
pub fn revoke_roles(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    are_roles_allowed(asked, Action::RevokeRole, grants)
}

pub fn create_role(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    allow_here(asked, Action::CreateRole, grants)
        && are_roles_allowed(asked, Action::GrantRole, grants)
        && are_privileges_allowed(asked, Action::GrantRole, grants)
        && are_restrictions_allowed(asked, grants)
}

/// `updateRole`: what the role had before is not known here, and may be revoked.
pub fn update_role(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    may_revoke_any(grants)
        && are_roles_allowed(asked, Action::GrantRole, grants)
        && are_privileges_allowed(asked, Action::GrantRole, grants)
        && are_restrictions_allowed(asked, grants)
}

/// `grantPrivilegesToRole`.
pub fn grant_privileges(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    are_privileges_allowed(asked, Action::GrantRole, grants)
}

/// `revokePrivilegesFromRole`.
pub fn revoke_privileges(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    are_privileges_allowed(asked, Action::RevokeRole, grants)
}

/// `usersInfo`: all users need no privilege about themselves.
pub fn users_info(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let is_own =
        |name: &str, database: &str| asked.user.is_some_and(|user| *user.user == *name && *user.db == *database);
    let mut allow = |name: &str, database: &str| {
        is_own(name, database) || grants.allow(Resource::Database(database), &ActionSet::of(&[Action::ViewUser]))
    };
    let named = match asked.first.value() {
        Value::Document(document) if values(document, "forAllDBs").next().is_some() => {
            return grants.allow(Resource::Cluster, &ActionSet::of(&[Action::ViewUser]));
        }
        value => names(value, asked.database, "user", &mut allow),
    };
    named.unwrap_or_else(|| allow_here(asked, Action::ViewUser, grants))
}

/// `rolesInfo`: one's own roles need no privilege.
pub fn roles_info(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let is_own = |role: &str, database: &str| asked.roles.iter().any(|own| *own.role == *role && *own.db == *database);
    let mut allow = |role: &str, database: &str| {
        is_own(role, database) || grants.allow(Resource::Database(database), &ActionSet::of(&[Action::ViewRole]))
    };
    let named = names(asked.first.value(), asked.database, "role", &mut allow);
    named.unwrap_or_else(|| allow_here(asked, Action::ViewRole, grants))
}

/// Returns whether all named users or roles are allowed; `None` if the value names none.
fn names(
    value: Value<'_>,
    database: &str,
    key: &'static str,
    allow: &mut dyn FnMut(&str, &str) -> bool,
) -> Option<bool> {
    match value {
        Value::String(name) => Some(allow(name, database)),
        Value::Document(document) => Some(is_name_allowed(document, database, key, allow)),
        Value::Array(array) => Some(array.values().all(|value| match value {
            Value::String(name) => allow(name, database),
            Value::Document(document) => is_name_allowed(document, database, key, allow),
            _ => true,
        })),
        _ => None,
    }
}

/// Checks each combination of the name's fields.
fn is_name_allowed(
    document: Doc<'_>,
    database: &str,
    key: &'static str,
    allow: &mut dyn FnMut(&str, &str) -> bool,
) -> bool {
    let mut databases = values(document, "db").filter_map(Value::as_str);
    let first = databases.next().unwrap_or(database);
    std::iter::once(first)
        .chain(databases)
        .all(|database| values(document, key).filter_map(Value::as_str).all(|name| allow(name, database)))
}

/// Returns whether an action is allowed on the database that the command is sent to.
fn allow_here(asked: &Asked<'_>, action: Action, grants: &mut dyn Grants) -> bool {
    grants.allow(Resource::Database(asked.database), &ActionSet::of(&[action]))
}

fn may_revoke_any(grants: &mut dyn Grants) -> bool {
    grants.allow(Resource::AnyOrdinary, &ActionSet::of(&[Action::RevokeRole]))
}

fn are_restrictions_allowed(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    asked.values("authenticationRestrictions").next().is_none()
        || allow_here(asked, Action::SetAuthenticationRestriction, grants)
}

/// Checks an action on the databases of all roles in the field `roles`.
fn are_roles_allowed(asked: &Asked<'_>, action: Action, grants: &mut dyn Grants) -> bool {
    let mut allow = |_: &str, database: &str| grants.allow(Resource::Database(database), &ActionSet::of(&[action]));
    asked.values("roles").all(|roles| match roles {
        Value::Array(_) => names(roles, asked.database, "role", &mut allow).unwrap_or(true),
        _ => true,
    })
}

/// Checks an action on the databases of all privileges in the field `privileges`; privileges on
/// other resources, such as buckets, belong to the database `admin`.
fn are_privileges_allowed(asked: &Asked<'_>, action: Action, grants: &mut dyn Grants) -> bool {
    let privileges = asked.values("privileges").filter_map(Value::as_array).flat_map(|privileges| privileges.values());
    let mut resources = privileges
        .filter_map(Value::as_document)
        .flat_map(|privilege| values(privilege, "resource"))
        .filter_map(Value::as_document);
    resources.all(|resource| {
        let of_buckets = values(resource, "system_buckets").next().is_some();
        let named = values(resource, "db").filter_map(Value::as_str);
        let mut databases = named.filter(|database| !of_buckets && !database.is_empty());
        let first = databases.next().unwrap_or("admin");
        std::iter::once(first)
            .chain(databases)
            .all(|database| grants.allow(Resource::Database(database), &ActionSet::of(&[action])))
    })
}
