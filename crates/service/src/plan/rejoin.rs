//! Servers that should follow the primary, or must not be written to.

use super::{Candidate, Refusal, followed, has_default_name};
use crate::observation::Facts;

/// A change that keeps servers in their roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// The server follows the primary from now on.
    Follow { server: usize, primary: usize },
    /// The server gets read-only, and its clients are disconnected.
    Fence(usize),
    /// A replica gets read-only.
    SetReadOnly(usize),
    /// The one server that the others follow has started again, and gets writable.
    SetWritable(usize),
}

/// What a monitor may change by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    pub failover: bool,
    pub rejoin: bool,
    pub enforce_read_only: bool,
}

/// Returns the next change that keeps servers in their roles. `before`: the last primary that this
/// gateway has seen.
pub fn upkeep(
    members: &[Candidate<'_>],
    primary: Option<usize>,
    before: Option<usize>,
    allowed: Allowed,
) -> Option<Upkeep> {
    let Some(primary) = primary else {
        // A server that is down may have been promoted since, unless this gateway knows better.
        let is_known = |source: &usize| before == Some(*source) || members.iter().all(|one| one.member.facts.is_some());
        return only_source(members).filter(|_| allowed.failover).filter(is_known).map(Upkeep::SetWritable);
    };
    let others = || (0..members.len()).filter(move |&member| member != primary);
    // In maintenance, the administrator may want to write to it.
    let is_writable = |member: usize| {
        let Candidate { member, is_active, .. } = members[member];
        is_active && member.facts.is_some_and(|facts| !facts.is_read_only)
    };
    let follows_none = |member: usize| members[member].member.facts.is_some_and(|facts| facts.sources().is_empty());
    let is_followed = others().any(|member| followed(members, member) == Some(primary));
    if allowed.failover || allowed.rejoin {
        // Without replicas, it is not certain which of the two is the old primary.
        let stray = others().find(|&member| is_writable(member) && follows_none(member) && is_followed);
        if let Some(stray) = stray {
            return Some(Upkeep::Fence(stray));
        }
    }
    if allowed.rejoin {
        let lost = |&server: &usize| is_lost(members, server, primary) && rejoin(members, primary, server).is_ok();
        if let Some(server) = others().find(lost) {
            return Some(Upkeep::Follow { server, primary });
        }
    }
    let replica = others().find(|&member| is_writable(member) && !follows_none(member));
    replica.filter(|_| allowed.enforce_read_only).map(Upkeep::SetReadOnly)
}

/// Fails if a server cannot be made to follow the primary.
pub fn rejoin(members: &[Candidate<'_>], primary: usize, server: usize) -> Result<(), Refusal> {
    let name = members[server].name;
    if server == primary {
        return Err(format!("{name} is the primary"));
    }
    let Some(facts) = members[server].member.facts else { return Err(format!("{name} is down")) };
    let Some(of_primary) = members[primary].member.facts else { return Err("the primary is down".into()) };
    if facts.sources().len() > 1 {
        return Err(format!("{name} follows several servers"));
    }
    has_default_name(name, facts)?;
    if !of_primary.logs_everything {
        return Err(format!("{} has not both log_bin and log_slave_updates", members[primary].name));
    }
    if has_diverged(facts, of_primary) {
        return Err(format!("{name} has transactions that the primary does not have"));
    }
    Ok(())
}

/// Returns why a server stays out, if it has more than the primary.
pub fn follow_reason(members: &[Candidate<'_>], primary: Option<usize>, server: usize) -> Option<&'static str> {
    let of_primary = members[primary?].member.facts?;
    let facts = members[server].member.facts?;
    let stays_out = is_lost(members, server, primary?) && has_diverged(facts, of_primary);
    stays_out.then_some("it has transactions that the primary does not have")
}

/// Returns whether a server has logged a transaction that the primary does not have.
pub fn has_diverged(facts: &Facts, of_primary: &Facts) -> bool {
    let mut state = of_primary.binlog_state.clone();
    state.add(&of_primary.current);
    !state.has(&facts.binlog)
}

/// Returns whether a server follows nothing, or a server that is not the primary and does not
/// follow it. One whose replication the administrator has stopped is left alone.
fn is_lost(members: &[Candidate<'_>], server: usize, primary: usize) -> bool {
    let Some(facts) = members[server].member.facts.filter(|_| members[server].is_active) else { return false };
    match facts.sources() {
        [] => true,
        [source] if source.is_started() => {
            followed(members, server).is_some_and(|source| !leads_to(members, source, primary))
        }
        _ => false,
    }
}

/// Returns whether a member is the primary, or follows it through others.
fn leads_to(members: &[Candidate<'_>], mut member: usize, primary: usize) -> bool {
    // In a ring, the way would have no end.
    for _ in 0..members.len() {
        if member == primary {
            return true;
        }
        let Some(next) = followed(members, member) else { return false };
        member = next;
    }
    false
}

/// Returns the server that follows none, is read-only, and is followed by all others that run.
fn only_source(members: &[Candidate<'_>]) -> Option<usize> {
    let up = || (0..members.len()).filter(|&member| members[member].member.facts.is_some());
    let is_source = |member: usize| members[member].member.facts.is_some_and(|facts| facts.sources().is_empty());
    let mut sources = up().filter(|&member| is_source(member));
    let (Some(source), None) = (sources.next(), sources.next()) else { return None };
    let is_ready = members[source].is_active && up().count() > 1;
    let all_read_only = up().all(|member| members[member].member.facts.is_some_and(|facts| facts.is_read_only));
    let all_follow = up().all(|member| member == source || followed(members, member) == Some(source));
    (is_ready && all_read_only && all_follow).then_some(source)
}
