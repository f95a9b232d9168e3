//! What commands about shards require.

use super::asked::{Asked, Grants};
use auth::{Action, ActionSet, Resource};

/// `enableSharding`: the action on the database that the command names.
pub fn enable_sharding(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let database = asked.collection().unwrap_or_default();
    grants.allow(Resource::Database(database), &ActionSet::of(&[Action::EnableSharding]))
}
