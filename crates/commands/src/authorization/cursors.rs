//! What commands require that name cursors.

use super::asked::{Asked, Grants};
use auth::{Action, ActionSet, Resource};
use document::Value;

/// `getMore`: only the user of a cursor may read it, which the cursor itself checks. The term of an
/// election is for other servers.
pub fn get_more(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    asked.values("term").next().is_none() || grants.allow(Resource::Cluster, &ActionSet::of(&[Action::Internal]))
}

/// `find`: as `getMore`.
pub fn find(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    get_more(asked, grants) && grants.allow(asked.target(), &ActionSet::of(&[Action::Find]))
}

/// `killCursors`: a user may kill their own cursors.
pub fn kill(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let Some(state) = asked.state else { return true };
    let mut ids = asked.values("cursors").filter_map(Value::as_array).flat_map(|ids| ids.values());
    ids.all(|id| {
        let Value::Int64(id) = id else { return true };
        let Some(owner) = state.owner_of_cursor(id) else { return true };
        owner.user.as_ref() == asked.user || {
            let target = Resource::Collection(&owner.namespace.database, &owner.namespace.collection);
            grants.allow(target, &ActionSet::of(&[Action::KillAnyCursor]))
        }
    })
}
