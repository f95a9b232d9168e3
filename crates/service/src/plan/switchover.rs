//! The exchange of a primary that works for one of its replicas.

use super::{Candidate, Promotion, Refusal, can_be_promoted, followed};
use crate::observation::IoThread;

/// Plans that `new` gets the writes, and the present primary becomes its replica. Refuses it unless
/// `new` is a replica that works, directly of the primary, and no other server is writable.
pub fn switchover(members: &[Candidate<'_>], primary: Option<usize>, new: usize) -> Result<Promotion, Refusal> {
    let Some(old) = primary else { return Err("there is no primary; use failover".into()) };
    if old == new {
        return Err(format!("{} is the primary already", members[new].name));
    }
    can_be_promoted(&members[new])?;
    if followed(members, new) != Some(old) {
        return Err(format!("{} does not follow {} directly", members[new].name, members[old].name));
    }
    let sources = members[new].member.facts.map_or(&[][..], |facts| facts.sources());
    if !sources.iter().all(|source| source.io == IoThread::Running) {
        return Err(format!("{} is not connected to {}", members[new].name, members[old].name));
    }
    let old_facts = members[old].member.facts;
    if old_facts.is_some_and(|facts| !facts.sources().is_empty()) {
        return Err(format!("{} follows another server itself", members[old].name));
    }
    if old_facts.is_some_and(|facts| !facts.logs_everything) {
        return Err(format!("{} has not both log_bin and log_slave_updates", members[old].name));
    }
    let is_writable =
        |one: &Candidate<'_>| one.member.facts.is_some_and(|facts| !facts.is_read_only && facts.sources().is_empty());
    let other = (0..members.len()).find(|&other| other != old && is_writable(&members[other]));
    if let Some(other) = other {
        return Err(format!("{} is writable beside the primary", members[other].name));
    }
    let followers = (0..members.len()).filter(|&other| other != new && followed(members, other) == Some(old));
    Ok(Promotion { new, old: Some(old), followers: followers.collect() })
}
