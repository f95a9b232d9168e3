//! The decision about the roles of servers: a pure function of what their monitor has observed.

mod galera;
mod replication;

use crate::role::{ClusterKind, Member, Role, Standing};

/// Returns the roles of the members. `previous`: the primary of the last decision.
pub fn decide(kind: ClusterKind, members: &[Member<'_>], previous: Option<usize>) -> Vec<Standing> {
    match kind {
        ClusterKind::Replication => replication::decide(members, previous),
        ClusterKind::Galera => galera::decide(members),
    }
}

/// Returns the number of the primary, if there is one.
pub fn primary(standings: &[Standing]) -> Option<usize> {
    standings.iter().position(|standing| standing.role == Role::Primary)
}
