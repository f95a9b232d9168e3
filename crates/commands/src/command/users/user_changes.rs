//! `createUser`, `updateUser`, `dropUser`, `dropAllUsersFromDatabase`, `grantRolesToUser`,
//! `revokeRolesFromUser`.

use super::credentials::{self, Password};
use super::fields::{self, RoleGrant, UserFields};
use super::stored::{self, AccountStep};
use crate::arguments;
use crate::call::{Call, Disposition};
use auth::name::EXTERNAL;
use auth::{RoleName, UserName};
use document::{Doc, DocBuf, DocWriter, Value, doc};
use error::{Code, Error, Result};
use server::user_store;
use store::catalog::random_uuid;

/// Parses the fields of a `createUser`.
pub fn parse_create(call: &Call<'_>) -> Result<()> {
    let fields = UserFields::parse(call)?;
    match fields.roles {
        Some(_) => Ok(()),
        None => Err(arguments::missing_field(call.spec.name, "roles")),
    }
}

/// Parses the fields of an `updateUser`.
pub fn parse_update(call: &Call<'_>) -> Result<()> {
    UserFields::parse(call).map(drop)
}

/// Parses the fields of a command that grants or revokes roles.
pub fn parse_grant(call: &Call<'_>) -> Result<()> {
    RoleGrant::parse(call).map(drop)
}

/// Fails with 2 for an invalid user, 31 if a role does not exist, and 51003 if the user exists.
pub async fn create_user(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    parse_create(call)?;
    let fields = UserFields::parse(call)?;
    let user = fields::user_name(call, fields.name)?;
    check_password(call, &fields)?;
    let credentials = match fields.password {
        None => doc! { "external": true },
        Some(password) => make_credentials(call, &user, password, &fields).await?,
    };
    if user.user.is_empty() {
        return Err(Error::bad_value("User document needs 'user' field to be non-empty"));
    }
    if *user.db == *"local" {
        return Err(Error::bad_value("Cannot create users in the local database"));
    }
    if let Some(restrictions) = &fields.restrictions {
        restrictions.check()?;
    }
    stored::begin_change(call).await?;
    let roles = fields.roles.as_deref().unwrap_or_default();
    check_roles_exist(call, roles).await?;
    let document = DocBuf::build(|document| {
        document.append("_id", &*user.to_string());
        document.append("userId", Value::Binary { subtype: 4, bytes: &random_uuid() });
        user.write(document);
        document.append("credentials", &credentials);
        if let Some(restrictions) = fields.restrictions.as_ref().filter(|restrictions| !restrictions.is_empty()) {
            document.append("authenticationRestrictions", restrictions.to_array().as_value());
        }
        if let Some(data) = fields.custom_data {
            document.append("customData", data);
        }
        write_roles(roles, document);
    });
    let step = match fields.password {
        Some(password) => AccountStep::SetPassword { user: &user, password, credentials: &credentials },
        None => AccountStep::CheckName(&user),
    };
    match stored::insert_user(call, &document, step).await {
        Err(error) if error.code() == Code::DUPLICATE_KEY => {
            let message = format!("User \"{}\" already exists", user.at_database());
            Err(Error::new(Code(51003), message))
        }
        outcome => outcome.map(|()| Disposition::Reply),
    }
}

/// Fails with 2 for invalid fields, 11 if the user does not exist, and 31 if a role does not exist.
pub async fn update_user(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let fields = UserFields::parse(call)?;
    let user = fields::user_name(call, fields.name)?;
    check_password(call, &fields)?;
    let mut changes = Changes::default();
    match (fields.password, &fields.mechanisms) {
        (Some(password), _) => {
            let credentials = make_credentials(call, &user, password, &fields).await?;
            changes.set.append("credentials", &credentials);
            changes.password = Some((password, credentials));
        }
        (None, Some(mechanisms)) => {
            for removed in removed_mechanisms(call, &user, mechanisms).await? {
                changes.unset.append(&format!("credentials.{removed}"), "");
            }
            changes.is_given = true;
        }
        (None, None) => {}
    }
    if let Some(data) = fields.custom_data {
        changes.set.append("customData", data);
    }
    match &fields.restrictions {
        Some(restrictions) if restrictions.is_empty() => changes.unset.append("authenticationRestrictions", ""),
        Some(restrictions) => {
            changes.set.append("authenticationRestrictions", restrictions.to_array().as_value());
        }
        None => {}
    }
    if let Some(roles) = &fields.roles {
        write_roles_to(roles, &mut changes.set);
    }
    if changes.is_empty() {
        return Err(fields::no_update(call));
    }
    stored::begin_change(call).await?;
    check_roles_exist(call, fields.roles.as_deref().unwrap_or_default()).await?;
    update(call, &user, &changes).await.map(|()| Disposition::Reply)
}

/// The parts of an update.
#[derive(Default)]
struct Changes<'a> {
    set: DocBuf,
    unset: DocBuf,
    /// Whether something is to be changed, although nothing may differ.
    is_given: bool,
    /// A new password, and the field `credentials` for it.
    password: Option<(&'a str, DocBuf)>,
}

impl Changes<'_> {
    fn is_empty(&self) -> bool {
        self.set.as_doc().is_empty() && self.unset.as_doc().is_empty() && !self.is_given
    }

    fn to_update(&self) -> DocBuf {
        DocBuf::build(|update| {
            for (operator, fields) in [("$set", &self.set), ("$unset", &self.unset)] {
                if !fields.as_doc().is_empty() {
                    update.append(operator, fields);
                }
            }
        })
    }
}

/// Updates a user. Fails with 11 if it does not exist.
async fn update(call: &Call<'_>, user: &UserName, changes: &Changes<'_>) -> Result<()> {
    let filter = filter_of(user);
    let update = changes.to_update();
    let found = match update.as_doc().is_empty() {
        true => u64::from(user_store::user(&*call.worker.store, user).await?.is_some()),
        false => {
            let step = match &changes.password {
                Some((password, credentials)) => AccountStep::SetPassword { user, password, credentials },
                None => AccountStep::Nothing,
            };
            stored::update_with(call, user_store::users(), filter.as_doc(), update.as_doc(), step).await?
        }
    };
    match found {
        0 => Err(Error::new(Code::USER_NOT_FOUND, format!("User {} not found", user.at_database()))),
        _ => Ok(()),
    }
}

/// Fails with 2 if the fields of a password do not fit one another or the database.
fn check_password(call: &Call<'_>, fields: &UserFields<'_>) -> Result<()> {
    let is_external = call.database() == EXTERNAL;
    let refuse = |message: &str| Err(Error::bad_value(message));
    match fields.password {
        None if call.spec.name == "createUser" && !is_external => refuse(
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source \
             db",
        ),
        Some(_) if is_external => refuse("Cannot set the password for users defined on the '$external' database"),
        Some(_) if fields.is_digested && call.worker.store.keeps_accounts() => refuse(
            "digestPassword: false is not possible with backend-identity = \"user\": the account in MariaDB needs the \
             password itself",
        ),
        _ if fields.mechanisms.as_ref().is_some_and(Vec::is_empty) => refuse("mechanisms field must not be empty"),
        _ => Ok(()),
    }
}

/// Returns the field `credentials` for a password.
async fn make_credentials(call: &Call<'_>, user: &UserName, password: &str, fields: &UserFields<'_>) -> Result<DocBuf> {
    let password = Password { text: password, is_digested: fields.is_digested };
    let offered = &call.worker.server.settings.login_mechanisms;
    credentials::make(user, password, fields.mechanisms.as_deref(), offered).await
}

/// Returns the mechanisms of a user that are not among these. Fails with 2 if it lacks one of
/// these, and 11 if it does not exist.
async fn removed_mechanisms(call: &Call<'_>, user: &UserName, retained: &[&str]) -> Result<Vec<String>> {
    let document = existing(call, user).await?;
    let credentials = document.as_doc().get("credentials").and_then(|value| value.as_document());
    let credentials = credentials.unwrap_or(Doc::EMPTY);
    if retained.iter().any(|mechanism| credentials.get(mechanism).is_none()) {
        return Err(Error::bad_value("mechanisms field must be a subset of previously set mechanisms"));
    }
    let names = credentials.iter().map(|(name, _)| name);
    Ok(names.filter(|name| !retained.contains(name)).map(str::to_owned).collect())
}

/// Returns the document of a user. Fails with 11 if it does not exist.
async fn existing(call: &Call<'_>, user: &UserName) -> Result<DocBuf> {
    let missing = || {
        let message = format!("Could not find user \"{}\" for db \"{}\"", user.user, user.db);
        Error::new(Code::USER_NOT_FOUND, message)
    };
    user_store::user(&*call.worker.store, user).await?.ok_or_else(missing)
}

/// Fails with 31 if one of the roles does not exist.
async fn check_roles_exist(call: &Call<'_>, roles: &[RoleName]) -> Result<()> {
    for role in roles {
        if !user_store::role_exists(&*call.worker.store, role).await? {
            return Err(role_not_found(role));
        }
    }
    Ok(())
}

pub fn role_not_found(role: &RoleName) -> Error {
    Error::new(Code::ROLE_NOT_FOUND, format!("Could not find role: {}", role.at_database()))
}

/// Fails with 11 if the user does not exist.
pub async fn drop_user(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    fields::parse_name_only(call)?;
    let user = fields::user_name(call, fields::name(call)?)?;
    stored::begin_change(call).await?;
    match stored::delete(call, user_store::users(), filter_of(&user).as_doc()).await? {
        0 => Err(Error::new(Code::USER_NOT_FOUND, format!("User '{}' not found", user.at_database()))),
        _ => Ok(Disposition::Reply),
    }
}

pub async fn drop_all_users(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    stored::begin_change(call).await?;
    let filter = doc! { "db": call.database() };
    let dropped = stored::delete(call, user_store::users(), filter.as_doc()).await?;
    reply.append("n", i32::try_from(dropped).unwrap_or(i32::MAX));
    Ok(Disposition::Reply)
}

/// Fails with 11 if the user does not exist, and 31 if a role does not exist.
pub async fn grant_roles(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let grant = RoleGrant::parse(call)?;
    grant.check(call)?;
    change_roles(call, &grant, |roles| {
        for role in &grant.roles {
            if !roles.contains(role) {
                roles.push(role.clone());
            }
        }
    })
    .await
}

/// Fails with 11 if the user does not exist, and 31 if a role does not exist. The user may lack the
/// roles.
pub async fn revoke_roles(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let grant = RoleGrant::parse(call)?;
    grant.check(call)?;
    change_roles(call, &grant, |roles| roles.retain(|role| !grant.roles.contains(role))).await
}

/// Changes the roles of a user.
async fn change_roles(
    call: &Call<'_>,
    grant: &RoleGrant<'_>,
    change: impl Fn(&mut Vec<RoleName>),
) -> Result<Disposition> {
    let user = fields::user_name(call, grant.name)?;
    stored::begin_change(call).await?;
    let read = async || {
        let user = existing(call, &user).await?;
        fields::restrictions::check_stored(user.as_doc())?;
        Ok(user)
    };
    stored::change_field(call, user_store::users(), "roles", read, async |user| {
        check_roles_exist(call, &grant.roles).await?;
        let mut roles = user_store::role_names(user);
        change(&mut roles);
        let mut set = DocBuf::new();
        write_roles_to(&roles, &mut set);
        Ok(doc! { "$set": &set })
    })
    .await?;
    Ok(Disposition::Reply)
}

fn filter_of(user: &UserName) -> DocBuf {
    doc! { "user": &*user.user, "db": &*user.db }
}

/// Appends the field `roles`.
fn write_roles(roles: &[RoleName], document: &mut DocWriter<'_>) {
    let mut array = document.array("roles");
    roles.iter().for_each(|role| role.write(&mut array.document()));
}

/// Appends the field `roles` to a document of changes.
pub fn write_roles_to(roles: &[RoleName], document: &mut DocBuf) {
    let field = DocBuf::build(|document| write_roles(roles, document));
    document.append("roles", field.as_doc().get("roles").unwrap_or(Value::Null));
}
