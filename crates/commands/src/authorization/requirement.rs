//! The facts about what a command requires of its user.

use super::asked::{Asked, Grants};
use auth::Action;

/// What a user must be allowed to do in order to run a command. A login is another matter
/// (`Spec::needs_authentication`).
#[derive(Clone, Copy)]
pub enum Authorization {
    Nothing,
    /// An action on a resource.
    Required(On, Action),
    /// What a function computes from the command's fields.
    Computed(Computed),
    /// What the command requires that is explained.
    Explained,
    /// What the entries of an oplog require.
    OplogEntries,
}

/// The resource of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Cluster,
    /// The database that the command is sent to.
    Database,
    /// The collection that the first field names.
    Collection,
    /// The collection that the first field names together with its database, whatever database the
    /// command is sent to.
    FullName,
    /// All databases, except for their system collections.
    AnyOrdinary,
}

/// A requirement that depends on the command's fields.
#[derive(Clone, Copy)]
pub struct Computed {
    /// The actions that some form of the command requires, for the documentation.
    pub actions: &'static [Action],
    /// Returns whether the grants suffice.
    pub is_allowed: fn(&Asked<'_>, &mut dyn Grants) -> bool,
}

/// What only MongoDB's own servers may do: no role has it but `__system`.
pub const INTERNAL: Authorization = on_cluster(Action::Internal);

/// An action on the server as a whole.
pub const fn on_cluster(action: Action) -> Authorization {
    Authorization::Required(On::Cluster, action)
}

/// An action on the database that the command is sent to.
pub const fn on_database(action: Action) -> Authorization {
    Authorization::Required(On::Database, action)
}

/// An action on the collection that the command's first field names.
pub const fn on_collection(action: Action) -> Authorization {
    Authorization::Required(On::Collection, action)
}

/// An action on the collection that the command's first field names together with its database.
pub const fn on_full_name(action: Action) -> Authorization {
    Authorization::Required(On::FullName, action)
}

/// A requirement that a function computes. `actions`: all that it may ask for.
pub const fn computed(
    actions: &'static [Action],
    is_allowed: fn(&Asked<'_>, &mut dyn Grants) -> bool,
) -> Authorization {
    Authorization::Computed(Computed { actions, is_allowed })
}

impl Authorization {
    /// Returns the actions that some form of the command requires.
    pub fn actions(&self) -> &[Action] {
        match self {
            Authorization::Required(_, action) => std::slice::from_ref(action),
            Authorization::Computed(computed) => computed.actions,
            Authorization::OplogEntries => &[Action::ApplyOps],
            Authorization::Nothing | Authorization::Explained => &[],
        }
    }
}
