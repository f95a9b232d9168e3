//! What commands about logical sessions require.

use super::asked::{Asked, Grants};
use auth::{Action, ActionSet, Resource};
use document::Value;

/// All that `killAllSessionsByPattern` may require.
pub const ACTIONS: &[Action] = &[Action::KillAnySession, Action::Impersonate];

/// `killAllSessionsByPattern`: patterns of users and roles require more.
pub fn kill_by_pattern(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let patterns = asked.first.value().as_array().into_iter().flat_map(|patterns| patterns.values());
    let mut fields = patterns.filter_map(Value::as_document).flat_map(|pattern| pattern.elements());
    let names_users = fields.any(|field| matches!(field.key(), "users" | "roles"));
    let actions = if names_users { ACTIONS } else { &[Action::KillAnySession] };
    grants.allow(Resource::Cluster, &ActionSet::of(actions))
}

/// `currentOp`: the operations of others require a privilege.
pub fn current_op(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    asked.is_set("$ownOps") || grants.allow(Resource::Cluster, &ActionSet::of(&[Action::Inprog]))
}
