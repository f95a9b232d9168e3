//! The fields that commands about users and roles share: names, roles, privileges and restrictions,
//! with MongoDB's checks and messages.

pub mod arrays;
pub mod names;
pub mod privileges;
pub mod restrictions;

use crate::arguments::{self, is_absent, unknown_field};
use crate::call::Call;
use arrays::{documents, texts};
use auth::{Privilege, RoleName, UserName};
use document::Doc;
use error::{Code, Error, Result};
use restrictions::AddressRestrictions;

/// The fields of all commands that `createUser` and `updateUser` parse among their own.
pub const SHARED: &[&str] = &["writeConcern"];

/// The fields of `createUser` and `updateUser`.
#[derive(Default)]
pub struct UserFields<'a> {
    pub name: &'a str,
    pub password: Option<&'a str>,
    /// Whether the client sent a digest instead of the password.
    pub is_digested: bool,
    pub custom_data: Option<Doc<'a>>,
    pub roles: Option<Vec<RoleName>>,
    pub restrictions: Option<AddressRestrictions<'a>>,
    pub mechanisms: Option<Vec<&'a str>>,
}

impl<'a> UserFields<'a> {
    pub fn parse(call: &Call<'a>) -> Result<UserFields<'a>> {
        let within = call.spec.name;
        let mut fields = UserFields { name: name(call)?, ..UserFields::default() };
        for field in call.all_fields() {
            match field.key() {
                "pwd" | "customData" | "digestPassword" | "writeConcern" if is_absent(field) => {}
                "pwd" => fields.password = Some(arguments::string(within, field)?),
                "customData" => fields.custom_data = Some(arguments::document(within, field)?),
                "digestPassword" => fields.is_digested = !arguments::boolean_or_number(within, field)?,
                "roles" => fields.roles = Some(names::roles(within, field, call.database())?),
                "authenticationRestrictions" => {
                    fields.restrictions = Some(AddressRestrictions::parse(within, field)?);
                }
                "mechanisms" => fields.mechanisms = Some(texts(within, field)?),
                "writeConcern" => drop(arguments::document(within, field)?),
                other => return Err(unknown_field(within, other)),
            }
        }
        Ok(fields)
    }
}

/// The fields of `createRole` and `updateRole`.
#[derive(Default)]
pub struct RoleFields<'a> {
    pub name: &'a str,
    /// The elements of `privileges`, which are documents.
    pub privileges: Option<Doc<'a>>,
    pub roles: Option<Vec<RoleName>>,
    pub restrictions: Option<AddressRestrictions<'a>>,
}

impl<'a> RoleFields<'a> {
    pub fn parse(call: &Call<'a>) -> Result<RoleFields<'a>> {
        let within = call.spec.name;
        let mut fields = RoleFields { name: name(call)?, ..RoleFields::default() };
        for field in call.fields() {
            match field.key() {
                "privileges" => fields.privileges = Some(documents(within, field)?),
                "roles" => fields.roles = Some(names::roles(within, field, call.database())?),
                "authenticationRestrictions" => {
                    fields.restrictions = Some(AddressRestrictions::parse(within, field)?);
                }
                other => return Err(unknown_field(within, other)),
            }
        }
        Ok(fields)
    }
}

/// The fields of commands that grant or revoke roles.
pub struct RoleGrant<'a> {
    /// The user or role that is changed.
    pub name: &'a str,
    pub roles: Vec<RoleName>,
}

impl<'a> RoleGrant<'a> {
    pub fn parse(call: &Call<'a>) -> Result<RoleGrant<'a>> {
        let (within, name) = (call.spec.name, name(call)?);
        let mut roles = None;
        for field in call.fields() {
            match field.key() {
                "roles" => roles = Some(names::roles(within, field, call.database())?),
                other => return Err(unknown_field(within, other)),
            }
        }
        let roles = roles.ok_or_else(|| arguments::missing_field(within, "roles"))?;
        Ok(RoleGrant { name, roles })
    }

    /// Fails with 2 if there are no roles.
    pub fn check(&self, call: &Call<'_>) -> Result<()> {
        match self.roles.is_empty() {
            true => Err(must_not_be_empty(call, "roles")),
            false => check_name(self.name),
        }
    }
}

/// The fields of commands that grant or revoke privileges.
pub struct PrivilegeGrant<'a> {
    /// The role that is changed.
    pub name: &'a str,
    privileges: Doc<'a>,
}

impl<'a> PrivilegeGrant<'a> {
    pub fn parse(call: &Call<'a>) -> Result<PrivilegeGrant<'a>> {
        let (within, name) = (call.spec.name, name(call)?);
        let mut privileges = None;
        for field in call.fields() {
            match field.key() {
                "privileges" => privileges = Some(documents(within, field)?),
                other => return Err(unknown_field(within, other)),
            }
        }
        let privileges = privileges.ok_or_else(|| arguments::missing_field(within, "privileges"))?;
        Ok(PrivilegeGrant { name, privileges })
    }

    /// Fails with 2 if there are no privileges.
    pub fn check(&self, call: &Call<'_>) -> Result<()> {
        match self.privileges.is_empty() {
            true => Err(must_not_be_empty(call, "privileges")),
            false => check_name(self.name),
        }
    }

    /// Returns the privileges. Fails with 2 or 9 if one is malformed.
    pub fn privileges(&self) -> Result<Vec<Privilege>> {
        privileges::parse(self.privileges)
    }
}

/// The fields of commands that have none of their own but the name, such as `dropUser`.
pub fn parse_name_only(call: &Call<'_>) -> Result<()> {
    name(call)?;
    let within = call.spec.name;
    match call.fields().next() {
        Some(field) => Err(unknown_field(within, field.key())),
        None => Ok(()),
    }
}

/// Returns the name in the command's first field.
pub fn name<'a>(call: &Call<'a>) -> Result<&'a str> {
    arguments::string(call.spec.name, call.first())
}

/// Fails with 73 for a name with a null character.
pub fn check_name(name: &str) -> Result<()> {
    match name.contains('\0') {
        true => Err(Error::new(Code::INVALID_NAMESPACE, "namespaces cannot have embedded null characters")),
        false => Ok(()),
    }
}

/// Returns the user that the command names, of the command's database.
pub fn user_name(call: &Call<'_>, name: &str) -> Result<UserName> {
    check_name(name)?;
    Ok(UserName::new(name, call.database()))
}

/// Returns the role that the command names, of the command's database.
pub fn role_name(call: &Call<'_>, name: &str) -> Result<RoleName> {
    check_name(name)?;
    Ok(RoleName::new(name, call.database()))
}

pub fn no_update(call: &Call<'_>) -> Error {
    Error::bad_value(format!("Must specify at least one field to update in {}", call.spec.name))
}

fn must_not_be_empty(call: &Call<'_>, field: &str) -> Error {
    Error::bad_value(format!("{} command requires a non-empty \"{field}\" array", call.spec.name))
}
