//! What commands about operations require.

use super::asked::{Asked, Grants};
use crate::arguments::number_to_i64;
use auth::{Action, ActionSet, Resource};

/// `currentOp`: the operations of others require a privilege.
pub fn current_op(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    asked.is_always_set("$ownOps") || grants.allow(Resource::Cluster, &ActionSet::of(&[Action::Inprog]))
}

/// `killOp`: a user may end their own operations.
pub fn kill_op(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let mut ids = asked.values("op").filter_map(number_to_i64).peekable();
    let is_own = |id| {
        let own = asked.state.zip(asked.user);
        own.is_some_and(|(state, user)| state.is_operation_of(id, user))
    };
    let all_own = ids.peek().is_some() && ids.all(is_own);
    all_own || grants.allow(Resource::Cluster, &ActionSet::of(&[Action::Killop]))
}
