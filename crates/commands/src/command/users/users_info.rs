//! `usersInfo`.

use super::fields::names::{Listed, listed_users};
use super::fields::restrictions;
use super::inheritance::Inherited;
use crate::call::{Call, Disposition};
use crate::table::fields;
use auth::UserName;
use document::{ArrayWriter, Doc, DocBuf, DocWriter, Value, doc};
use error::{Code, Error, Result};
use query::Predicate;
use server::user_store;

/// What `usersInfo` shows.
struct Shown<'a> {
    privileges: bool,
    credentials: bool,
    custom_data: bool,
    restrictions: bool,
    filter: Option<Doc<'a>>,
}

impl<'a> Shown<'a> {
    fn read(call: &Call<'a>) -> Shown<'a> {
        let flag = |name: &str| {
            let field = call.fields().find(|field| field.key() == name)?;
            (!crate::arguments::is_absent(field)).then(|| field.value().is_truthy())
        };
        Shown {
            privileges: flag("showPrivileges").unwrap_or_default(),
            credentials: flag("showCredentials").unwrap_or_default(),
            custom_data: flag("showCustomData").unwrap_or(true),
            restrictions: flag("showAuthenticationRestrictions").unwrap_or_default(),
            filter: call.fields().find(|field| field.key() == "filter").and_then(|field| field.value().as_document()),
        }
    }

    /// Returns whether inherited roles and privileges are shown.
    fn needs_details(&self) -> bool {
        self.privileges || self.restrictions
    }
}

/// Parses the fields of a `usersInfo`.
pub fn parse(call: &Call<'_>) -> Result<()> {
    fields::parse_own(call)?;
    listed_users(call.first().value(), call.database()).map(drop)
}

/// Fails with 2 for an invalid name or filter, and 20 for details of users that are not named.
pub async fn users_info(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let listed = listed_users(call.first().value(), call.database())?;
    let shown = Shown::read(call);
    let users = match listed {
        Listed::Named(names) if shown.needs_details() && shown.filter.is_none() => {
            let mut users = Vec::new();
            for name in names {
                users.extend(details(call, &name, &shown).await?);
            }
            users
        }
        _ if shown.needs_details() => {
            let message = "Privilege or restriction details require exact-match usersInfo queries";
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        listed => summaries(call, &listed, &shown).await?,
    };
    let mut array = reply.array("users");
    users.iter().for_each(|user| array.push(user));
    Ok(Disposition::Reply)
}

/// Returns the users as they are stored, ordered by their names.
async fn summaries(call: &Call<'_>, listed: &Listed<UserName>, shown: &Shown<'_>) -> Result<Vec<DocBuf>> {
    let filter = shown.filter.map(|filter| Predicate::parse(filter, &call.context())).transpose()?;
    let selection = match listed {
        Listed::Everywhere => DocBuf::new(),
        Listed::OfDatabase => doc! { "db": call.database() },
        Listed::Named(names) => DocBuf::build(|selection| {
            let mut alternatives = selection.array("$or");
            names.iter().for_each(|name| name.write(&mut alternatives.document()));
        }),
    };
    let mut users = user_store::find(&*call.worker.store, &user_store::users(), selection.as_doc()).await?;
    let part = |user: &DocBuf, name: &str| user.as_doc().get(name).unwrap_or(Value::Null).to_owned();
    users.sort_by(|left, right| {
        let by = |name| document::compare::compare(part(left, name).as_value(), part(right, name).as_value());
        by("user").then_with(|| by("db"))
    });
    let mut summaries = Vec::with_capacity(users.len());
    for user in &users {
        let summary = summary(user.as_doc(), shown);
        if filter.as_ref().map_or(Ok(true), |filter| filter.matches(summary.as_doc()))? {
            summaries.push(summary);
        }
    }
    Ok(summaries)
}

fn summary(user: Doc<'_>, shown: &Shown<'_>) -> DocBuf {
    DocBuf::build(|summary| {
        for field in user.elements() {
            let is_shown = match field.key() {
                "credentials" => shown.credentials,
                "customData" => shown.custom_data,
                "authenticationRestrictions" | "mechanisms" => false,
                _ => true,
            };
            if is_shown {
                summary.append_element(field);
            }
        }
        match user.get("credentials").and_then(|value| value.as_document()) {
            Some(credentials) => write_mechanisms(credentials, &mut summary.array("mechanisms")),
            None => summary.append("mechanisms", Value::Null),
        }
    })
}

/// Returns a user with what it inherits; `None` if it does not exist.
async fn details(call: &Call<'_>, name: &UserName, shown: &Shown<'_>) -> Result<Option<DocBuf>> {
    let Some(user) = user_store::user(&*call.worker.store, name).await? else { return Ok(None) };
    let user = user.as_doc();
    restrictions::check_stored(user)?;
    let inherited = Inherited::from(call, &user_store::role_names(user)).await?;
    Ok(Some(DocBuf::build(|details| {
        for field in user.elements() {
            match field.key() {
                "credentials" => {
                    let credentials = field.value().as_document().unwrap_or(Doc::EMPTY);
                    write_mechanisms(credentials, &mut details.array("mechanisms"));
                    if shown.credentials {
                        details.append_element(field);
                    }
                }
                "customData" if !shown.custom_data => {}
                "authenticationRestrictions" if !shown.restrictions => {}
                // MongoDB shows what it has parsed.
                "authenticationRestrictions" if !shown.custom_data => {
                    let own = field.value().as_array().unwrap_or(Doc::EMPTY);
                    details.append(field.key(), restrictions::normalized(own).as_value());
                }
                _ => details.append_element(field),
            }
        }
        if shown.restrictions && user.get("authenticationRestrictions").is_none() {
            drop(details.array("authenticationRestrictions"));
        }
        inherited.write_roles("inheritedRoles", details);
        inherited.write_privileges(details);
        inherited.write_restrictions(None, false, details);
    })))
}

fn write_mechanisms(credentials: Doc<'_>, mechanisms: &mut ArrayWriter<'_>) {
    credentials.iter().for_each(|(mechanism, _)| mechanisms.push(mechanism));
}
