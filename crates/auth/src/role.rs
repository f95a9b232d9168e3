//! Roles that users define, as `admin.system.roles` stores them.

use crate::fields;
use crate::name::RoleName;
use crate::privilege::{self, Privilege};
use crate::restrictions::Restrictions;
use crate::user::role_names;
use document::{Doc, DocBuf};
use error::Result;

/// A role: its own privileges, and the roles that it inherits from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub name: RoleName,
    pub privileges: Vec<Privilege>,
    pub roles: Vec<RoleName>,
    pub restrictions: Restrictions,
}

impl Role {
    /// Reads a document of `system.roles`. Fails with 12 if it is malformed.
    pub fn from_document(document: Doc<'_>) -> Result<Role> {
        let privileges = fields::documents(document, "privileges")?.into_iter().map(Privilege::from_document);
        let privileges = privileges.map(|one| one.ok_or_else(|| fields::malformed("privileges", "privileges")));
        Ok(Role {
            name: RoleName::new(fields::text(document, "role")?, fields::text(document, "db")?),
            privileges: privileges.collect::<Result<_>>()?,
            roles: role_names(document)?,
            restrictions: Restrictions::from_field(document)?,
        })
    }

    /// Returns the document to store in `system.roles`.
    pub fn to_document(&self) -> DocBuf {
        DocBuf::build(|document| {
            document.append("_id", &*self.name.to_string());
            self.name.write(document);
            privilege::write_all(&self.privileges, &mut document.array("privileges"));
            let mut roles = document.array("roles");
            self.roles.iter().for_each(|role| role.write(&mut roles.document()));
            drop(roles);
            if !self.restrictions.is_empty() {
                self.restrictions.write(&mut document.array("authenticationRestrictions"));
            }
        })
    }
}
