//! What commands require that write documents.

use super::asked::{Asked, Grants};
use auth::{Action, ActionSet};

/// All that a write may require.
pub const ACTIONS: &[Action] = &[Action::Insert, Action::Update, Action::BypassDocumentValidation];

/// All that `findAndModify` may require.
pub const ACTIONS_OF_ONE: &[Action] =
    &[Action::Find, Action::Insert, Action::Remove, Action::Update, Action::BypassDocumentValidation];

pub fn insert(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    allow_write(asked, ActionSet::of(&[Action::Insert]), grants)
}

pub fn update(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let upserts = asked.statements("updates").any(|statement| {
        let mut fields = statement.elements();
        fields.any(|field| field.key() == "upsert" && field.value().is_truthy())
    });
    let actions = ActionSet::of(if upserts { &[Action::Update, Action::Insert] } else { &[Action::Update] });
    allow_write(asked, actions, grants)
}

pub fn find_and_modify(asked: &Asked<'_>, grants: &mut dyn Grants) -> bool {
    let mut actions = ActionSet::of(&[Action::Find]);
    if asked.is_set("remove") {
        actions = actions.union(ActionSet::of(&[Action::Remove]));
    }
    if !asked.is_set("remove") || asked.values("update").next().is_some() {
        actions = actions.union(ActionSet::of(&[Action::Update]));
    }
    if asked.is_set("upsert") {
        actions = actions.union(ActionSet::of(&[Action::Insert]));
    }
    allow_write(asked, actions, grants)
}

fn allow_write(asked: &Asked<'_>, actions: ActionSet, grants: &mut dyn Grants) -> bool {
    let bypass = ActionSet::of(&[Action::BypassDocumentValidation]);
    let actions = if asked.is_set("bypassDocumentValidation") { actions.union(bypass) } else { actions };
    grants.allow(asked.target(), &actions)
}
