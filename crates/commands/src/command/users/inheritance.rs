//! What users and roles inherit, as `usersInfo` and `rolesInfo` show it.

use super::fields::restrictions::normalized;
use crate::call::Call;
use auth::{Privilege, Restrictions, Role, RoleName};
use document::{Doc, DocWriter, Value};
use error::Result;
use server::user_store::{self, StoredRoles};

/// The privileges and restrictions of roles, together with all roles that they inherit from.
pub struct Inherited {
    /// The roles themselves, and all that they inherit from, whether they exist or not.
    pub roles: Vec<RoleName>,
    pub privileges: Vec<Privilege>,
    stored: StoredRoles,
}

impl Inherited {
    /// Follows the inheritance of roles.
    pub async fn from(call: &Call<'_>, names: &[RoleName]) -> Result<Inherited> {
        let stored = user_store::inherited(&*call.worker.store, names).await?;
        let find = |name: &RoleName| Some(read(name, stored.get(name)?.as_doc()));
        let resolved = auth::roles::resolve(names, find);
        let mut roles = names.to_vec();
        let direct = stored.values().flat_map(|role| user_store::role_names(role.as_doc()));
        for role in resolved.roles.into_iter().chain(direct) {
            if !roles.contains(&role) {
                roles.push(role);
            }
        }
        Ok(Inherited { roles, privileges: resolved.privileges, stored })
    }

    /// Appends the names of the roles to an array.
    pub fn write_roles(&self, name: &str, document: &mut DocWriter<'_>) {
        let mut array = document.array(name);
        self.roles.iter().for_each(|role| role.write(&mut array.document()));
    }

    pub fn write_privileges(&self, document: &mut DocWriter<'_>) {
        auth::privilege::write_all(&self.privileges, &mut document.array("inheritedPrivileges"));
    }

    /// Appends the restrictions of all roles, each an array, behind `own`. `as_stored`: as the
    /// roles have them, otherwise with the lengths of all ranges.
    pub fn write_restrictions(&self, own: Option<Doc<'_>>, as_stored: bool, document: &mut DocWriter<'_>) {
        let mut array = document.array("inheritedAuthenticationRestrictions");
        own.into_iter().for_each(|own| array.push(Value::Array(own)));
        for role in self.roles.iter().filter_map(|name| self.stored.get(name)) {
            if let Some(own) = restrictions(role.as_doc()) {
                match as_stored {
                    true => array.push(Value::Array(own)),
                    false => array.push(normalized(own).as_value()),
                }
            }
        }
    }
}

/// Returns the restrictions of a role, if it has any.
pub fn restrictions(role: Doc<'_>) -> Option<Doc<'_>> {
    let own = role.get("authenticationRestrictions").and_then(|value| value.as_array());
    own.filter(|own| !own.is_empty())
}

/// Reads the privileges and roles of a stored role; malformed ones are left out.
pub fn read(name: &RoleName, role: Doc<'_>) -> Role {
    let privileges = role.get("privileges").and_then(|value| value.as_array()).unwrap_or(Doc::EMPTY);
    Role {
        name: name.clone(),
        privileges: privileges.values().filter_map(|one| Privilege::from_document(one.as_document()?)).collect(),
        roles: user_store::role_names(role),
        restrictions: Restrictions::default(),
    }
}
