//! `_mergeAuthzCollections`: moves users and roles out of collections that `mongorestore` has
//! filled.

use super::fields::names::stored_name;
use super::stored::{self, AccountStep};
use crate::arguments::{self, is_absent, unknown_field};
use crate::audit::accounts;
use crate::call::{Call, Disposition};
use crate::command::catalog::collections::full_name;
use document::{Doc, DocBuf, DocWriter, doc};
use error::{Code, Error, Result};
use server::audit::kind;
use server::user_store;
use store::Namespace;

/// The fields of a `_mergeAuthzCollections`.
#[derive(Default)]
struct Merge<'a> {
    users: &'a str,
    roles: &'a str,
    /// The database whose users and roles are moved; empty for all.
    database: Option<&'a str>,
    /// Whether those that are not in the collections are dropped, and the others replaced.
    drops: bool,
}

impl<'a> Merge<'a> {
    fn parse(call: &Call<'a>) -> Result<Merge<'a>> {
        let within = call.spec.name;
        let mut merge = Merge::default();
        for field in call.fields() {
            match field.key() {
                _ if is_absent(field) && field.key() != "db" => {}
                "tempUsersCollection" => merge.users = arguments::string(within, field)?,
                "tempRolesCollection" => merge.roles = arguments::string(within, field)?,
                "db" => merge.database = Some(arguments::string(within, field)?),
                "drop" => merge.drops = arguments::boolean_or_number(within, field)?,
                other => return Err(unknown_field(within, other)),
            }
        }
        match merge.database {
            Some(_) => Ok(merge),
            None => Err(arguments::missing_field(within, "db")),
        }
    }
}

pub fn parse(call: &Call<'_>) -> Result<()> {
    Merge::parse(call).map(drop)
}

/// Fails with 2 if no collection is named, and 4 or 10065 at a malformed document.
pub async fn merge(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let merge = Merge::parse(call)?;
    if merge.users.is_empty() && merge.roles.is_empty() {
        let message = "Must provide at least one of \"tempUsersCollection\" and \"tempRolescollection\"";
        return Err(Error::bad_value(message));
    }
    stored::begin_change(call).await?;
    for (from, kind) in [(merge.users, Kind::User), (merge.roles, Kind::Role)] {
        if !from.is_empty() {
            merge_one(call, &merge, from, kind).await?;
        }
    }
    Ok(Disposition::Reply)
}

#[derive(Clone, Copy)]
enum Kind {
    User,
    Role,
}

impl Kind {
    /// Returns the field with the name.
    fn field(self) -> &'static str {
        match self {
            Kind::User => "user",
            Kind::Role => "role",
        }
    }

    /// Returns the events of the audit log about one that is inserted, replaced and dropped.
    fn events(self) -> [&'static str; 3] {
        match self {
            Kind::User => [kind::CREATE_USER, kind::UPDATE_USER, kind::DROP_USER],
            Kind::Role => [kind::CREATE_ROLE, kind::UPDATE_ROLE, kind::DROP_ROLE],
        }
    }

    fn collection(self) -> Namespace {
        match self {
            Kind::User => user_store::users(),
            Kind::Role => user_store::roles(),
        }
    }
}

/// Moves the users or roles of one collection.
async fn merge_one(call: &Call<'_>, merge: &Merge<'_>, from: &str, kind: Kind) -> Result<()> {
    let invalid = || Error::new(Code::INVALID_NAMESPACE, format!("Invalid namespace specified '{from}.'"));
    let from = full_name(from).ok_or_else(invalid)?;
    let store = &*call.worker.store;
    let selection = match merge.database.unwrap_or_default() {
        "" => DocBuf::new(),
        database => doc! { "db": database },
    };
    let mut known = Vec::new();
    if merge.drops {
        for document in user_store::find(store, &kind.collection(), selection.as_doc()).await? {
            known.extend(stored_name(document.as_doc(), kind.field()).ok());
        }
    }
    for document in user_store::find(store, &from, selection.as_doc()).await? {
        let name = stored_name(document.as_doc(), kind.field())?;
        check_roles(document.as_doc())?;
        let is_known = known.iter().position(|known| *known == name);
        let outcome = match is_known {
            Some(_) => replace(call, kind, &name, &document).await,
            None => insert(call, kind, &document).await,
        };
        let [insert, update, _] = kind.events();
        let event = if is_known.is_some() { update } else { insert };
        accounts::record(call, event, document.as_doc(), outcome.as_ref().map_or_else(Error::code, |()| Code(0)));
        // As in MongoDB, the others are moved nevertheless.
        if let Err(error) = outcome {
            let id = document.as_doc().get("_id").map(|id| values::text::display(id)).unwrap_or_default();
            tracing::warn!(id, %error, "a user or role was not restored");
        }
        if let Some(at) = is_known {
            known.swap_remove(at);
        }
    }
    for name in known {
        stored::delete(call, kind.collection(), name.as_doc()).await?;
        let [.., delete] = kind.events();
        accounts::record(call, delete, name.as_doc(), Code(0));
    }
    Ok(())
}

async fn insert(call: &Call<'_>, kind: Kind, document: &DocBuf) -> Result<()> {
    match kind {
        Kind::User => stored::insert_user(call, document, AccountStep::Nothing).await,
        Kind::Role => stored::insert_role(call, document).await,
    }
}

async fn replace(call: &Call<'_>, kind: Kind, name: &DocBuf, document: &DocBuf) -> Result<()> {
    stored::update(call, kind.collection(), name.as_doc(), document.as_doc()).await.map(drop)
}

/// Fails with 10065 if a document has no list of roles.
fn check_roles(document: Doc<'_>) -> Result<()> {
    match document.get("roles").and_then(|roles| roles.as_array()) {
        Some(_) => Ok(()),
        None => Err(Error::new(Code(10065), "invalid parameter: expected an object ()")),
    }
}
