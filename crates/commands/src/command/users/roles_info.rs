//! `rolesInfo`.

use super::fields::names::{Listed, listed_roles};
use super::inheritance::{self, Inherited};
use crate::call::{Call, Disposition};
use crate::table::fields;
use auth::{Privilege, RoleName, builtin_roles};
use document::{Doc, DocBuf, DocWriter, Element, Value, doc};
use error::{Code, Error, Result};
use server::user_store;

/// What `rolesInfo` shows.
struct Shown {
    privileges: ShownPrivileges,
    builtin_roles: bool,
    restrictions: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ShownPrivileges {
    None,
    OfEachRole,
    /// Those that a user with all the roles would have.
    AsUserFragment,
}

impl Shown {
    /// Reads the fields. Fails with 2, 14 or 40415.
    fn parse(call: &Call<'_>) -> Result<Shown> {
        let mut shown = Shown { privileges: ShownPrivileges::None, builtin_roles: false, restrictions: false };
        for field in call.fields() {
            fields::check(call.spec.name, fields::ROLES_INFO, [field])?;
            match field.key() {
                "showPrivileges" => shown.privileges = shown_privileges(field)?,
                "showBuiltinRoles" => shown.builtin_roles = field.value().is_truthy(),
                _ => shown.restrictions = field.value().is_truthy(),
            }
        }
        Ok(shown)
    }
}

/// Reads `showPrivileges`: a flag, or the form of the reply.
fn shown_privileges(field: Element<'_>) -> Result<ShownPrivileges> {
    match field.value() {
        Value::String("asUserFragment") => Ok(ShownPrivileges::AsUserFragment),
        value if matches!(value, Value::Boolean(_)) || value.kind().is_number() => {
            Ok(if value.is_truthy() { ShownPrivileges::OfEachRole } else { ShownPrivileges::None })
        }
        value => {
            let found = values::text::element(field.key(), value);
            Err(Error::bad_value(format!(
                "Failed to parse 'showPrivileges'. 'showPrivileges' should either be a boolean or the string \
                 'asUserFragment', given: {found}"
            )))
        }
    }
}

/// Parses the fields of a `rolesInfo`.
pub fn parse(call: &Call<'_>) -> Result<()> {
    Shown::parse(call)?;
    listed_roles(call.first().value(), call.database()).map(drop)
}

/// Fails with 2 for an invalid name or form of the reply, and 20 for a fragment of all roles.
pub async fn roles_info(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let shown = Shown::parse(call)?;
    let listed = listed_roles(call.first().value(), call.database())?;
    let roles = match (listed, shown.privileges) {
        (Listed::Named(names), ShownPrivileges::AsUserFragment) => {
            write_fragment(call, &names, &shown, reply).await?;
            return Ok(Disposition::Reply);
        }
        (Listed::Named(names), _) => named(call, names, &shown).await?,
        (_, ShownPrivileges::AsUserFragment) => {
            let message = "Cannot get user fragment for all roles in a database";
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        _ => of_database(call, &shown).await?,
    };
    let mut array = reply.array("roles");
    roles.iter().for_each(|role| array.push(role));
    Ok(Disposition::Reply)
}

/// Describes the roles with these names, as far as they exist.
async fn named(call: &Call<'_>, names: Vec<RoleName>, shown: &Shown) -> Result<Vec<DocBuf>> {
    let mut roles = Vec::new();
    for name in names {
        let stored = match builtin_roles::exists(&name) {
            true => None,
            false => match user_store::role(&*call.worker.store, &name).await? {
                Some(stored) => Some(stored),
                None => continue,
            },
        };
        roles.push(describe(call, &name, stored.as_ref().map(DocBuf::as_doc), shown).await?);
    }
    Ok(roles)
}

/// Describes the roles of the command's database: those built in first, if they are shown.
async fn of_database(call: &Call<'_>, shown: &Shown) -> Result<Vec<DocBuf>> {
    let mut roles = Vec::new();
    if shown.builtin_roles {
        for name in builtin_roles::names(call.database()) {
            roles.push(describe(call, &name, None, shown).await?);
        }
    }
    let filter = doc! { "db": call.database() };
    let mut stored = user_store::find(&*call.worker.store, &user_store::roles(), filter.as_doc()).await?;
    stored.sort_by(|left, right| {
        let name = |role: &DocBuf| role.as_doc().get("role").and_then(|name| name.as_str()).map(str::to_owned);
        name(left).cmp(&name(right))
    });
    for role in &stored {
        if let Some(name) = RoleName::from_document(role.as_doc()) {
            roles.push(describe(call, &name, Some(role.as_doc()), shown).await?);
        }
    }
    Ok(roles)
}

/// Describes a role; one that is not stored is built in.
async fn describe(call: &Call<'_>, name: &RoleName, stored: Option<Doc<'_>>, shown: &Shown) -> Result<DocBuf> {
    let inherited = match stored {
        Some(stored) => Inherited::from(call, &user_store::role_names(stored)).await?,
        None => Inherited::from(call, &[]).await?,
    };
    let own = match stored {
        Some(stored) => inheritance::read(name, stored).privileges,
        None => builtin_roles::privileges(name).unwrap_or_default(),
    };
    let shows_privileges = shown.privileges != ShownPrivileges::None;
    Ok(DocBuf::build(|role| {
        let restrictions = match stored {
            Some(stored) => {
                let hidden =
                    |key: &str| key == "authenticationRestrictions" || key == "privileges" && !shows_privileges;
                stored.elements().filter(|field| !hidden(field.key())).for_each(|field| role.append_element(field));
                inheritance::restrictions(stored)
            }
            None => {
                role.append("db", &*name.db);
                role.append("role", &*name.role);
                drop(role.array("roles"));
                if shows_privileges {
                    auth::privilege::write_all(&own, &mut role.array("privileges"));
                }
                None
            }
        };
        if shown.restrictions {
            let mut array = role.array("authenticationRestrictions");
            restrictions.into_iter().for_each(|own| array.push(Value::Array(own)));
        }
        inherited.write_roles("inheritedRoles", role);
        if shows_privileges {
            let mut all: Vec<Privilege> = own;
            inherited.privileges.iter().for_each(|one| auth::privilege::add(&mut all, one.clone()));
            auth::privilege::write_all(&all, &mut role.array("inheritedPrivileges"));
        }
        if shown.restrictions {
            inherited.write_restrictions(restrictions, true, role);
        }
        role.append("isBuiltin", stored.is_none());
    }))
}

/// Appends `userFragment`: what a user with all the roles would inherit.
async fn write_fragment(call: &Call<'_>, names: &[RoleName], shown: &Shown, reply: &mut DocWriter<'_>) -> Result<()> {
    let inherited = Inherited::from(call, names).await?;
    let mut fragment = reply.document("userFragment");
    {
        let mut roles = fragment.array("roles");
        names.iter().for_each(|name| name.write(&mut roles.document()));
    }
    inherited.write_roles("inheritedRoles", &mut fragment);
    inherited.write_privileges(&mut fragment);
    if shown.restrictions {
        inherited.write_restrictions(None, false, &mut fragment);
    }
    Ok(())
}
