//! What commands require that name cursors.

use super::asked::{Asked, Grants};
use auth::{Action, ActionSet, Resource};
use document::Value;

/// The collection in the namespace of a cursor over a list of collections.
pub const LIST_OF_COLLECTIONS: &str = "$cmd.listCollections";

/// `getMore`: only the user of a cursor may read it, which the cursor itself checks. The term of an
/// election is for other servers.
pub fn get_more(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    asked.values("term").next().is_none() || grants.allow(Resource::Cluster, &ActionSet::of(&[Action::Internal]))
}

/// `find`: as `getMore`.
pub fn find(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    get_more(asked, grants) && grants.allow(asked.target(), &ActionSet::of(&[Action::Find]))
}

/// `killCursors`: a user may kill their own cursors. Those of others require `killAnyCursor` on the
/// server or on the cursor's collection, which for lists of collections is the database.
pub fn kill(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let Some(state) = asked.state else { return true };
    let kill = ActionSet::of(&[Action::KillAnyCursor]);
    let mut ids = asked.values("cursors").filter_map(Value::as_array).flat_map(|ids| ids.values());
    ids.all(|id| {
        let Value::Int64(id) = id else { return true };
        let Some(owner) = state.owner_of_cursor(id) else { return true };
        let database = &*owner.namespace.database;
        let target = match &*owner.namespace.collection {
            LIST_OF_COLLECTIONS => Resource::Database(database),
            collection => Resource::Collection(database, collection),
        };
        owner.user.as_ref() == asked.user || grants.allow(Resource::Cluster, &kill) || grants.allow(target, &kill)
    })
}
