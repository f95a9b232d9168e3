//! The decision: whether privileges suffice for a command. Pure, and without allocation.

use super::asked::{Asked, Grants};
use super::oplog;
use super::requirement::{Authorization, On};
use crate::table::lookup::CommandTable;
use auth::{Action, ActionSet, Resource};

/// The action, on the server as a whole, that names a collection by its UUID.
pub const USE_UUID: ActionSet = ActionSet::of(&[Action::UseUuid]);

/// Returns whether the grants suffice for a command.
pub fn is_allowed(
    table: &CommandTable,
    authorization: &Authorization,
    asked: &Asked<'_>,
    grants: &mut dyn Grants,
) -> bool {
    match authorization {
        Authorization::Nothing => true,
        Authorization::Required(on, action) => is_granted(*on, *action, asked, grants),
        Authorization::Computed(computed) => (computed.is_allowed)(asked, grants),
        Authorization::Explained => is_explained_allowed(table, asked, grants),
        Authorization::OplogEntries => {
            let is_nested_allowed =
                |nested: &Asked<'_>, grants: &mut dyn Grants| is_body_allowed(table, nested, grants);
            oplog::are_entries_allowed(asked, grants, &is_nested_allowed)
        }
    }
}

fn is_granted(on: On, action: Action, asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let resource = match on {
        On::Cluster => Resource::Cluster,
        On::Database => Resource::Database(asked.database),
        On::Collection => asked.target(),
        On::FullName => match asked.collection().and_then(|name| name.split_once('.')) {
            Some((database, collection)) => Resource::Collection(database, collection),
            // The command fails without a full name.
            None => return true,
        },
        On::AnyOrdinary => Resource::AnyOrdinary,
    };
    grants.allow(resource, &ActionSet::of(&[action]))
}

/// Decides by the command that is explained.
fn is_explained_allowed(table: &CommandTable, asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let Some(body) = asked.first.value().as_document() else { return true };
    body.first().is_none_or(|first| is_body_allowed(table, &asked.within(first, body), grants))
}

/// Decides by the command's name. One that does not exist is never executed.
fn is_body_allowed(table: &CommandTable, asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let spec = table.named(asked.first.key_bytes());
    spec.is_none_or(|spec| is_allowed(table, &spec.authorization, asked, grants))
}
