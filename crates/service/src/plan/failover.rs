//! The replacement of a primary that is lost.

use super::{Candidate, Promotion, Refusal, can_be_promoted, followed};
use crate::observation::IoThread;
use crate::role::Member;

/// Plans the replacement of the primary that all running replicas have followed, and have lost.
/// `Ok(None)`: no primary is lost, as far as can be seen.
///
/// Refuses it if
/// - the primary is not down, or a replica still receives from it, or none confirms that it cannot
///   reach it,
/// - a server is writable, or follows several servers or another one,
/// - the servers that can be promoted have not received all that another one has.
pub fn failover(members: &[Candidate<'_>]) -> Result<Option<Promotion>, Refusal> {
    let up: Vec<usize> = (0..members.len()).filter(|&member| members[member].member.facts.is_some()).collect();
    if up.is_empty() || up.len() == members.len() {
        return Ok(None);
    }
    if let Some(unknown) = members.iter().find(|one| one.member.facts.is_none() && !one.is_down) {
        return Err(format!("{} was not reached yet", unknown.name));
    }
    let lost = lost_primary(members, &up)?;
    let replicas: Vec<usize> = up.into_iter().filter(|&member| followed(members, member) == Some(lost)).collect();
    confirm_loss(members, lost, &replicas)?;
    let new = most_advanced(members, &replicas)?;
    let followers = replicas.into_iter().filter(|&replica| replica != new).collect();
    Ok(Some(Promotion { new, old: Some(lost), followers }))
}

/// Plans the promotion of a server that the administrator has chosen, although transactions of
/// others may be lost. Refuses it while a server is writable.
pub fn forced_failover(members: &[Candidate<'_>], new: usize) -> Result<Promotion, Refusal> {
    let Some(facts) = members[new].member.facts else { return Err(format!("{} is down", members[new].name)) };
    if !facts.logs_everything {
        return Err(format!("{} has not both log_bin and log_slave_updates", members[new].name));
    }
    let is_up = |candidate: &Candidate<'_>| candidate.member.facts.is_some();
    if let Some(other) = members.iter().find(|one| one.member.facts.is_some_and(|facts| !facts.is_read_only)) {
        return Err(format!("{} is up and writable", other.name));
    }
    let old = followed(members, new);
    if let Some(source) = old.filter(|&source| is_up(&members[source])) {
        return Err(format!("{}, which it follows, is up; use switchover", members[source].name));
    }
    let others = (0..members.len()).filter(|&other| other != new && is_up(&members[other]));
    let followers = others.filter(|&other| old.is_some() && followed(members, other) == old).collect();
    Ok(Promotion { new, old, followers })
}

/// Returns the server that all running replicas follow. A server that follows none, such as an old
/// primary, must not be writable.
fn lost_primary(members: &[Candidate<'_>], up: &[usize]) -> Result<usize, Refusal> {
    let mut lost: Option<usize> = None;
    for &member in up {
        let Candidate { name, member: Member { facts: Some(facts), .. }, .. } = members[member] else { continue };
        if !facts.is_read_only {
            return Err(format!("{name} is writable"));
        }
        match (facts.sources().len(), followed(members, member)) {
            (0, _) => {}
            (2.., _) => return Err(format!("{name} follows several servers")),
            (_, None) => return Err(format!("{name} follows a server that is not the monitor's")),
            (_, Some(source)) if lost.is_none_or(|lost| lost == source) => lost = Some(source),
            (_, Some(source)) => {
                let first = lost.map_or("", |lost| members[lost].name);
                return Err(format!("replicas follow several servers, {first} and {}", members[source].name));
            }
        }
    }
    let lost = lost.ok_or_else(|| "no running server is a replica".to_owned())?;
    if !members[lost].is_down {
        return Err(format!("{}, which the replicas follow, is up", members[lost].name));
    }
    Ok(lost)
}

/// Fails unless the replicas have lost the primary too.
fn confirm_loss(members: &[Candidate<'_>], lost: usize, replicas: &[usize]) -> Result<(), Refusal> {
    let io = |&replica: &usize| members[replica].member.facts?.sources().first().map(|source| source.io);
    if let Some(&receiving) = replicas.iter().find(|replica| io(replica) == Some(IoThread::Running)) {
        let (lost, replica) = (members[lost].name, members[receiving].name);
        return Err(format!("{replica} is still connected to {lost}"));
    }
    if !replicas.iter().any(|replica| io(replica) == Some(IoThread::Connecting)) {
        return Err(format!("no replica tries to connect to {}, so none confirms that it is lost", members[lost].name));
    }
    Ok(())
}

/// Returns the first replica that can be promoted and has received everything that any has.
fn most_advanced(members: &[Candidate<'_>], replicas: &[usize]) -> Result<usize, Refusal> {
    let mut refusals = Vec::new();
    for &replica in replicas {
        match can_be_promoted(&members[replica]).and_then(|()| lacks_nothing(members, replica)) {
            Ok(()) => return Ok(replica),
            Err(refusal) => refusals.push(refusal),
        }
    }
    Err(format!("no replica can be promoted: {}", refusals.join(", ")))
}

/// Fails if another running server has received transactions that this one has not.
fn lacks_nothing(members: &[Candidate<'_>], candidate: usize) -> Result<(), Refusal> {
    let received = |member: usize| members[member].member.facts.map(|facts| facts.received());
    let own = received(candidate).unwrap_or_default();
    let more = (0..members.len()).find(|&other| received(other).is_some_and(|other| !own.has_all_of(&other)));
    match more {
        Some(other) => {
            Err(format!("{} has transactions that {} does not have", members[other].name, members[candidate].name))
        }
        None => Ok(()),
    }
}
