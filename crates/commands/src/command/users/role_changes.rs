//! `createRole`, `updateRole`, `dropRole`, `dropAllRolesFromDatabase`, and the commands that grant
//! roles and privileges to roles or revoke them.

use super::fields::{self, PrivilegeGrant, RoleFields, RoleGrant, privileges};
use super::inheritance;
use super::stored;
use super::user_changes::{role_not_found, write_roles_to};
use crate::arguments;
use crate::call::{Call, Disposition};
use auth::name::EXTERNAL;
use auth::{Privilege, RoleName, builtin_roles};
use document::{Doc, DocBuf, DocWriter, doc};
use error::{Code, Error, Result};
use server::user_store;

/// Parses the fields of a `createRole`.
pub fn parse_create(call: &Call<'_>) -> Result<()> {
    let fields = RoleFields::parse(call)?;
    let missing = |name| Err(arguments::missing_field(call.spec.name, name));
    match (fields.privileges, fields.roles) {
        (None, _) => missing("privileges"),
        (_, None) => missing("roles"),
        _ => Ok(()),
    }
}

/// Parses the fields of an `updateRole`.
pub fn parse_update(call: &Call<'_>) -> Result<()> {
    RoleFields::parse(call).map(drop)
}

/// Parses the fields of a command that grants or revokes privileges.
pub fn parse_privileges(call: &Call<'_>) -> Result<()> {
    PrivilegeGrant::parse(call).map(drop)
}

/// Fails with 2 or 9 for an invalid role, 31 and 49 if it may not inherit from the roles, and 51002
/// if it exists.
pub async fn create_role(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    parse_create(call)?;
    let fields = RoleFields::parse(call)?;
    let role = fields::role_name(call, fields.name)?;
    let refuse = |message: &str| Err(Error::bad_value(message));
    if role.role.is_empty() {
        return refuse("Role name must be non-empty");
    }
    if *role.db == *"local" {
        return refuse("Cannot create roles in the local database");
    }
    if *role.db == *EXTERNAL {
        return refuse("Cannot create roles in the $external database");
    }
    if builtin_roles::exists(&role) {
        return refuse("Cannot create roles with the same name as a built-in role");
    }
    let privileges = privileges::parse(fields.privileges.unwrap_or(Doc::EMPTY))?;
    let roles = fields.roles.unwrap_or_default();
    stored::begin_change(call).await?;
    check_inheritance(call, &role, &roles).await?;
    privileges::check_scope(&role.db, &privileges)?;
    let mut document = doc! { "_id": &*role.to_string(), "role": &*role.role, "db": &*role.db };
    document.append("privileges", privileges::to_array(&privileges).as_value());
    write_roles_to(&roles, &mut document);
    if let Some(restrictions) = fields.restrictions.filter(|restrictions| !restrictions.is_empty()) {
        document.append("authenticationRestrictions", restrictions.to_array().as_value());
    }
    match stored::insert_role(call, &document).await {
        Err(error) if error.code() == Code::DUPLICATE_KEY => {
            let message = format!("Role \"{}\" already exists", role.at_database());
            Err(Error::new(Code(51002), message))
        }
        outcome => outcome.map(|()| Disposition::Reply),
    }
}

/// Fails with 2 or 9 for invalid fields, 31 if the role or one that it inherits from does not
/// exist, and 49 if it may not inherit from the roles.
pub async fn update_role(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let fields = RoleFields::parse(call)?;
    let role = fields::role_name(call, fields.name)?;
    if fields.privileges.is_none() && fields.roles.is_none() && fields.restrictions.is_none() {
        return Err(fields::no_update(call));
    }
    let (mut set, mut unset) = (DocBuf::new(), DocBuf::new());
    let privileges = fields.privileges.map(privileges::parse).transpose()?;
    if let Some(privileges) = &privileges {
        set.append("privileges", privileges::to_array(privileges).as_value());
    }
    if let Some(roles) = &fields.roles {
        write_roles_to(roles, &mut set);
    }
    match &fields.restrictions {
        Some(restrictions) if restrictions.is_empty() => unset.append("authenticationRestrictions", ""),
        Some(restrictions) => set.append("authenticationRestrictions", restrictions.to_array().as_value()),
        None => {}
    }
    stored::begin_change(call).await?;
    if !user_store::role_exists(&*call.worker.store, &role).await? {
        return Err(role_not_found(&role));
    }
    if let Some(roles) = &fields.roles {
        check_inheritance(call, &role, roles).await?;
    }
    if let Some(privileges) = &privileges {
        privileges::check_scope(&role.db, privileges)?;
    }
    let update = DocBuf::build(|update| {
        for (operator, fields) in [("$set", &set), ("$unset", &unset)] {
            if !fields.as_doc().is_empty() {
                update.append(operator, fields);
            }
        }
    });
    match stored::update(call, user_store::roles(), filter_of(&role).as_doc(), update.as_doc()).await? {
        0 => Err(missing(&role)),
        _ => Ok(Disposition::Reply),
    }
}

/// Drops a role, and revokes it from all users and roles. Fails with 2 for a built-in role, and 31
/// if there is no such role.
pub async fn drop_role(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    fields::parse_name_only(call)?;
    let role = changeable(call, fields::name(call)?)?;
    stored::begin_change(call).await?;
    if user_store::role(&*call.worker.store, &role).await?.is_none() {
        return Err(role_not_found(&role));
    }
    let name = filter_of(&role);
    for holders in [user_store::users(), user_store::roles()] {
        let filter = doc! { "roles": &doc! { "$elemMatch": &name } };
        let update = doc! { "$pull": &doc! { "roles": &name } };
        stored::update(call, holders, filter.as_doc(), update.as_doc()).await?;
    }
    stored::delete(call, user_store::roles(), name.as_doc()).await?;
    Ok(Disposition::Reply)
}

/// Drops the roles of a database, and revokes them from all roles. As in MongoDB, users retain the
/// names of the roles.
pub async fn drop_all_roles(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    stored::begin_change(call).await?;
    let filter = doc! { "db": call.database() };
    let heirs = doc! { "roles.db": call.database() };
    let update = doc! { "$pull": &doc! { "roles": &filter } };
    stored::update(call, user_store::roles(), heirs.as_doc(), update.as_doc()).await?;
    let dropped = stored::delete(call, user_store::roles(), filter.as_doc()).await?;
    reply.append("n", i32::try_from(dropped).unwrap_or(i32::MAX));
    Ok(Disposition::Reply)
}

/// Fails with 2 for a built-in role, 31 if a role does not exist, and 49 if the role may not
/// inherit from another one.
pub async fn grant_roles(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let grant = RoleGrant::parse(call)?;
    grant.check(call)?;
    let role = changeable(call, grant.name)?;
    stored::begin_change(call).await?;
    change_roles(call, &role, async |mut roles: Vec<RoleName>| {
        check_inheritance(call, &role, &grant.roles).await?;
        for granted in &grant.roles {
            if !roles.contains(granted) {
                roles.push(granted.clone());
            }
        }
        Ok(roles)
    })
    .await
}

/// Fails with 2 for a built-in role, and 31 if there is no such role. It may lack the roles.
pub async fn revoke_roles(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let grant = RoleGrant::parse(call)?;
    grant.check(call)?;
    let role = changeable(call, grant.name)?;
    stored::begin_change(call).await?;
    change_roles(call, &role, async |mut roles: Vec<RoleName>| {
        roles.retain(|own| !grant.roles.contains(own));
        Ok(roles)
    })
    .await
}

/// Fails with 2 or 9 for an invalid privilege, 31 if there is no such role, and 49 if it may not
/// have the privilege.
pub async fn grant_privileges(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let grant = PrivilegeGrant::parse(call)?;
    grant.check(call)?;
    let role = changeable(call, grant.name)?;
    let granted = grant.privileges()?;
    privileges::check_scope(&role.db, &granted)?;
    stored::begin_change(call).await?;
    change_privileges(call, &role, |own| {
        granted.iter().for_each(|privilege| auth::privilege::add(own, privilege.clone()));
    })
    .await
}

/// Fails with 2 or 9 for an invalid privilege, and 31 if there is no such role. It may lack the
/// privileges.
pub async fn revoke_privileges(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let grant = PrivilegeGrant::parse(call)?;
    grant.check(call)?;
    let role = changeable(call, grant.name)?;
    let revoked = grant.privileges()?;
    stored::begin_change(call).await?;
    change_privileges(call, &role, |own| {
        for privilege in &revoked {
            if let Some(own) = own.iter_mut().find(|own| own.pattern == privilege.pattern) {
                own.actions = own.actions.without(&privilege.actions);
            }
        }
        own.retain(|own| !own.actions.is_empty());
    })
    .await
}

/// Sets the roles that a role inherits from to what `change` makes of them.
async fn change_roles(
    call: &Call<'_>,
    role: &RoleName,
    change: impl AsyncFn(Vec<RoleName>) -> Result<Vec<RoleName>>,
) -> Result<Disposition> {
    let read = async || existing(call, role).await;
    stored::change_field(call, user_store::roles(), "roles", read, async |stored| {
        let mut set = DocBuf::new();
        write_roles_to(&change(user_store::role_names(stored)).await?, &mut set);
        Ok(doc! { "$set": &set })
    })
    .await?;
    Ok(Disposition::Reply)
}

/// Changes the own privileges of a role.
async fn change_privileges(
    call: &Call<'_>,
    role: &RoleName,
    change: impl Fn(&mut Vec<Privilege>),
) -> Result<Disposition> {
    let read = async || existing(call, role).await;
    stored::change_field(call, user_store::roles(), "privileges", read, async |stored| {
        let mut own = inheritance::read(role, stored).privileges;
        change(&mut own);
        let set = doc! { "privileges": privileges::to_array(&own).as_value() };
        Ok(doc! { "$set": &set })
    })
    .await?;
    Ok(Disposition::Reply)
}

/// Returns the document of a role. Fails with 31 if it does not exist.
async fn existing(call: &Call<'_>, role: &RoleName) -> Result<DocBuf> {
    user_store::role(&*call.worker.store, role).await?.ok_or_else(|| missing(role))
}

/// Returns the role that the command names. Fails with 2 if it is built in.
fn changeable(call: &Call<'_>, name: &str) -> Result<RoleName> {
    let role = fields::role_name(call, name)?;
    match builtin_roles::exists(&role) {
        true => {
            let message = format!("{} is a built-in role and cannot be modified", role.at_database());
            Err(Error::bad_value(message))
        }
        false => Ok(role),
    }
}

/// Checks that a role may inherit from others. Fails with 31 if one does not exist, and 49 if it is
/// the role itself, inherits from it, or belongs to another database.
async fn check_inheritance(call: &Call<'_>, role: &RoleName, others: &[RoleName]) -> Result<()> {
    let refuse = |message: String| Err(Error::new(Code::INVALID_ROLE_MODIFICATION, message));
    for other in others {
        if other == role {
            return refuse(format!("Cannot grant role {} to itself.", role.at_database()));
        }
        if *role.db != *"admin" && other.db != role.db {
            let message = format!("Roles on the '{}' database cannot be granted roles from other databases", role.db);
            return refuse(message);
        }
    }
    let store = &*call.worker.store;
    for other in others {
        if !user_store::role_exists(store, other).await? {
            let prefix = format!("Cannot grant roles to '{}': ", role.at_database());
            return Err(role_not_found(other).context(&prefix));
        }
    }
    if user_store::inherited(store, others).await?.contains_key(role) {
        let message = format!("Granting roles to {} would introduce a cycle in the role graph", role.at_database());
        return refuse(message);
    }
    Ok(())
}

fn missing(role: &RoleName) -> Error {
    Error::new(Code::ROLE_NOT_FOUND, format!("Role {} not found", role.at_database()))
}

fn filter_of(role: &RoleName) -> DocBuf {
    doc! { "role": &*role.role, "db": &*role.db }
}
