//! The roles in a primary with replicas.
//!
//! A server can be the primary if it is up and writable, and follows no other server of the
//! monitor. Among several, the servers that follow them decide:
//!
//! - The primary stays while it can be one, unless no server follows it and some follow another.
//! - Otherwise it is the one that most servers follow, by the order of the configuration if that is
//!   the same.
//! - A server that nothing follows is the primary only if no other could be one, and no server
//!   follows any other. So an old primary that was restarted, and is writable again, is not chosen
//!   while replicas follow another server, even if that one is down.

use crate::role::{Member, Standing};

/// Returns the roles of the members. `previous`: the primary of the last decision.
pub fn decide(members: &[Member<'_>], previous: Option<usize>) -> Vec<Standing> {
    let links = Links::of(members);
    let primary = links.primary(members, previous);
    (0..members.len()).map(|member| links.standing(members, member, primary)).collect()
}

/// The relation of members that follow each other, directly or through others.
struct Links {
    /// `all[a][b]`: `a` follows `b`.
    all: Vec<Vec<bool>>,
    /// As `all`, through replication that works on each step.
    working: Vec<Vec<bool>>,
    /// The members that follow a server which is not among the members.
    follows_others: Vec<bool>,
}

impl Links {
    fn of(members: &[Member<'_>]) -> Links {
        let count = members.len();
        let mut links = Links {
            all: vec![vec![false; count]; count],
            working: vec![vec![false; count]; count],
            follows_others: vec![false; count],
        };
        for (follower, member) in members.iter().enumerate() {
            let sources = member.facts.and_then(|facts| facts.replication()).map_or(&[][..], |facts| &facts.sources);
            for source in sources.iter().filter(|source| source.is_started()) {
                let found = members.iter().position(|other| source.is(other.server_id, other.address));
                match found {
                    Some(found) if found != follower => {
                        links.all[follower][found] = true;
                        links.working[follower][found] |= source.is_working();
                    }
                    Some(_) => {}
                    None => links.follows_others[follower] = true,
                }
            }
        }
        close(&mut links.all);
        close(&mut links.working);
        links
    }

    /// Returns whether a member may be the primary. In a ring of servers that follow each other,
    /// each may.
    fn can_be_primary(&self, members: &[Member<'_>], member: usize) -> bool {
        let is_writable = members[member].facts.is_some_and(|facts| !facts.is_read_only);
        is_writable && (0..members.len()).all(|other| !self.all[member][other] || self.all[other][member])
    }

    /// Returns the number of members that follow a member.
    fn followers(&self, member: usize) -> usize {
        self.all.iter().enumerate().filter(|(other, follows)| *other != member && follows[member]).count()
    }

    fn primary(&self, members: &[Member<'_>], previous: Option<usize>) -> Option<usize> {
        let candidates: Vec<usize> =
            (0..members.len()).filter(|&member| self.can_be_primary(members, member)).collect();
        let most = candidates.iter().map(|&member| self.followers(member)).max()?;
        if let Some(previous) = previous.filter(|previous| candidates.contains(previous))
            && (self.followers(previous) > 0 || most == 0)
        {
            return Some(previous);
        }
        if most > 0 {
            return candidates.into_iter().find(|&member| self.followers(member) == most);
        }
        let [only] = candidates[..] else { return None };
        let follows_another = |member: usize| {
            member != only && (self.follows_others[member] || self.all[member].iter().any(|&follows| follows))
        };
        (!(0..members.len()).any(follows_another)).then_some(only)
    }

    fn standing(&self, members: &[Member<'_>], member: usize, primary: Option<usize>) -> Standing {
        let Some(facts) = members[member].facts else { return Standing::UNREACHED };
        if primary == Some(member) {
            return Standing::PRIMARY;
        }
        let sources = facts.replication().map_or(&[][..], |facts| &facts.sources);
        match primary {
            Some(primary) if self.working[member][primary] => Standing::REPLICA,
            Some(primary) if self.all[member][primary] => Standing::none("its replication has stopped"),
            // Its data is as old as the loss of the primary at most.
            None if sources.iter().any(|source| source.is_working()) => Standing::REPLICA,
            _ if sources.iter().any(|source| source.is_started()) => Standing::none("it follows another server"),
            _ if !sources.is_empty() => Standing::none("its replication has stopped"),
            _ if facts.is_read_only => Standing::none("it is read-only and follows no server"),
            Some(_) => Standing::none("it is writable beside the primary and follows no server"),
            None => Standing::none("it is writable, and replicas follow another server"),
        }
    }
}

/// Adds the members that are followed through others.
fn close(follows: &mut [Vec<bool>]) {
    for through in 0..follows.len() {
        let beyond = follows[through].clone();
        for from in follows.iter_mut().filter(|from| from[through]) {
            from.iter_mut().zip(&beyond).for_each(|(reaches, beyond)| *reaches |= beyond);
        }
    }
}

#[cfg(test)]
mod tests;
