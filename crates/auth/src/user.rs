//! Users, as `admin.system.users` stores them.

use crate::credentials::Credentials;
use crate::fields;
use crate::name::{RoleName, UserName};
use crate::restrictions::Restrictions;
use document::{Doc, DocBuf, Value};
use error::Result;

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: UserName,
    /// Distinguishes a user from a later one of the same name.
    pub id: Option<[u8; 16]>,
    pub credentials: Credentials,
    pub restrictions: Restrictions,
    pub custom_data: Option<DocBuf>,
    pub roles: Vec<RoleName>,
}

impl User {
    /// Reads a document of `system.users`. Fails with 12 if it is malformed.
    pub fn from_document(document: Doc<'_>) -> Result<User> {
        let credentials = document.get("credentials").and_then(|value| value.as_document());
        let credentials = credentials.ok_or_else(|| fields::malformed("credentials", "an object"))?;
        Ok(User {
            name: UserName::new(fields::text(document, "user")?, fields::text(document, "db")?),
            id: fields::uuid(document.get("userId")),
            credentials: Credentials::from_document(credentials)?,
            restrictions: Restrictions::from_field(document)?,
            custom_data: document.get("customData").and_then(|value| value.as_document()).map(Doc::to_owned),
            roles: role_names(document)?,
        })
    }

    /// Returns the document to store in `system.users`.
    pub fn to_document(&self) -> DocBuf {
        DocBuf::build(|document| {
            document.append("_id", &*self.name.to_string());
            if let Some(id) = &self.id {
                document.append("userId", Value::Binary { subtype: 4, bytes: id });
            }
            self.name.write(document);
            self.credentials.write(&mut document.document("credentials"));
            if !self.restrictions.is_empty() {
                self.restrictions.write(&mut document.array("authenticationRestrictions"));
            }
            if let Some(data) = &self.custom_data {
                document.append("customData", data.as_doc());
            }
            let mut roles = document.array("roles");
            self.roles.iter().for_each(|role| role.write(&mut roles.document()));
        })
    }
}

/// Returns the names in the field `roles`.
pub(crate) fn role_names(document: Doc<'_>) -> Result<Vec<RoleName>> {
    let names = fields::documents(document, "roles")?;
    let names = names.into_iter().map(RoleName::from_document);
    names.map(|name| name.ok_or_else(|| fields::malformed("roles", "an array of role names"))).collect()
}
