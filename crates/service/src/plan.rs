//! What a monitor changes on its servers: pure decisions from what it has observed, or the reason
//! why nothing may be changed.
//!
//! Positions are compared by global transaction id. Servers must have received what any running
//! replica has received, before one of them is promoted; a server whose binary log has what the
//! primary's has not never becomes its replica.

mod failover;
mod rejoin;
mod switchover;

pub use failover::{failover, forced_failover};
pub use rejoin::{Allowed, Upkeep, follow_reason, has_diverged, rejoin, upkeep};
pub use switchover::switchover;

use crate::observation::Facts;
use crate::role::Member;

/// A server, as the plans see it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'m> {
    pub name: &'m str,
    pub member: Member<'m>,
    /// Whether the last polls have failed; a server that was never polled is not down.
    pub is_down: bool,
    /// Whether the administrator allows that it gets sessions.
    pub is_active: bool,
}

/// A server gets the writes, and others follow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion {
    pub new: usize,
    /// The primary that is replaced.
    pub old: Option<usize>,
    /// The other servers that follow the old primary.
    pub followers: Vec<usize>,
}

/// Why something is not done, as a clause.
pub type Refusal = String;

/// Returns the only member that a member follows; `None` if it follows none, several, or a server
/// that is no member.
fn followed(members: &[Candidate<'_>], member: usize) -> Option<usize> {
    let [source] = members[member].member.facts?.sources() else { return None };
    let is_source = |other: &Candidate<'_>| source.is(other.member.server_id, other.member.address);
    members.iter().position(is_source).filter(|&found| found != member)
}

/// Returns whether the replication of a member works, and goes by global transaction ids.
fn replicates_by_gtid(candidate: &Candidate<'_>) -> Result<(), Refusal> {
    let name = candidate.name;
    let Some([source]) = candidate.member.facts.map(|facts| facts.sources()) else {
        return Err(format!("{name} does not follow exactly one server"));
    };
    candidate.member.facts.map_or(Ok(()), |facts| has_default_name(name, facts))?;
    if !source.uses_gtid {
        return Err(format!("{name} does not replicate by GTID"));
    }
    if !source.is_sql_running {
        let error = if source.error.is_empty() { String::new() } else { format!(" ({})", source.error) };
        return Err(format!("{name} does not apply what it receives{error}"));
    }
    Ok(())
}

/// Fails if a replication connection has a name: statements without one would not reach it.
fn has_default_name(name: &str, facts: &Facts) -> Result<(), Refusal> {
    match facts.sources().iter().find(|source| !source.connection.is_empty()) {
        Some(source) => Err(format!("the replication connection of {name} has a name, {:?}", source.connection)),
        None => Ok(()),
    }
}

/// Fails if a member cannot be promoted, whatever it has received.
fn can_be_promoted(candidate: &Candidate<'_>) -> Result<(), Refusal> {
    let name = candidate.name;
    let Some(facts) = candidate.member.facts else { return Err(format!("{name} is down")) };
    if !candidate.is_active {
        return Err(format!("{name} is drained or in maintenance"));
    }
    if !facts.logs_everything {
        return Err(format!("{name} has not both log_bin and log_slave_updates"));
    }
    replicates_by_gtid(candidate)
}

#[cfg(test)]
mod tests;
