//! The router `connections`: a session gets one server, by role, weight and load.

use crate::condition::{Condition, Mode};
use crate::reachability::Reached;
use crate::role::{Role, WantedRole};

/// That a session must leave its server, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    Now(&'static str),
    /// When it runs no command and is in no transaction.
    WhenIdle(&'static str),
}

/// A server as the router sees it.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub condition: Condition,
    pub connections: usize,
    pub weight: u32,
}

/// Returns how well a new session fits on a server: 0 is best. Fails with the reason why it
/// cannot be there.
pub fn fit(wanted: WantedRole, condition: &Condition) -> Result<u8, &'static str> {
    match condition.mode {
        _ if condition.is_removed => return Err("it is no longer configured"),
        Mode::Drain => return Err("it is being drained"),
        Mode::Maintenance => return Err("it is in maintenance"),
        Mode::Active if !condition.is_monitored => return Ok(0),
        Mode::Active => {}
    }
    match (condition.reached, wanted, condition.role()) {
        (Reached::Unknown, ..) => Err("it was not reached yet"),
        (Reached::Down, ..) => Err("it is down"),
        (Reached::Up, _, Role::None) => Err(condition.standing.reason),
        (Reached::Up, WantedRole::Primary, Role::Replica) => Err("it is a replica"),
        (Reached::Up, WantedRole::Replica, Role::Primary) => Ok(1),
        (Reached::Up, WantedRole::PrimaryFirst, Role::Replica) => Ok(1),
        (Reached::Up, ..) => Ok(0),
    }
}

/// Returns whether and when a session must leave a server.
pub fn end(wanted: WantedRole, condition: &Condition) -> Option<SessionEnd> {
    if condition.mode == Mode::Maintenance {
        return Some(SessionEnd::Now("it is in maintenance"));
    }
    if condition.is_monitored {
        match (condition.reached, wanted, condition.role()) {
            (Reached::Unknown, ..) => {}
            (Reached::Down, ..) => return Some(SessionEnd::Now("it is down")),
            (Reached::Up, WantedRole::Primary, Role::Replica | Role::None) => {
                return Some(SessionEnd::Now("it is no longer the primary"));
            }
            // Its data may get old, and what it has read so far is right.
            (Reached::Up, _, Role::None) => return Some(SessionEnd::WhenIdle(condition.standing.reason)),
            (Reached::Up, ..) => {}
        }
    }
    match condition.mode {
        _ if condition.is_removed => Some(SessionEnd::WhenIdle("it is no longer configured")),
        Mode::Drain => Some(SessionEnd::WhenIdle("it is being drained")),
        Mode::Active | Mode::Maintenance => None,
    }
}

/// Returns the servers on which a session may be, the best first: by role, then by the number of
/// sessions relative to the weight, then by the order of the configuration.
pub fn rank(loads: &[Load], wanted: WantedRole) -> Vec<usize> {
    let fits = loads.iter().enumerate().filter_map(|(number, load)| Some((fit(wanted, &load.condition).ok()?, number)));
    let mut ranked: Vec<(u8, usize)> = fits.collect();
    let share =
        |number: usize, weight: usize| (loads[number].connections as u128 + 1) * u128::from(loads[weight].weight);
    ranked.sort_by(|&(fit, a), &(other_fit, b)| fit.cmp(&other_fit).then_with(|| share(a, b).cmp(&share(b, a))));
    ranked.into_iter().map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Standing;
    use proptest::prelude::*;

    fn condition(role: Role) -> Condition {
        let reason = if role == Role::None { "it is odd" } else { "" };
        let standing = Standing { role, reason };
        Condition { is_monitored: true, reached: Reached::Up, standing, ..Condition::default() }
    }

    fn load(role: Role, connections: usize, weight: u32) -> Load {
        Load { condition: condition(role), connections, weight }
    }

    #[test]
    fn servers_are_ranked_by_role_then_by_load() {
        let loads =
            [load(Role::Primary, 0, 1), load(Role::Replica, 5, 1), load(Role::Replica, 4, 1), load(Role::None, 0, 1)];
        assert_eq!(rank(&loads, WantedRole::Primary), [0]);
        assert_eq!(rank(&loads, WantedRole::Replica), [2, 1, 0]);
        assert_eq!(rank(&loads, WantedRole::Any), [0, 2, 1]);
        assert!(rank(&[], WantedRole::Any).is_empty());
    }

    #[test]
    fn a_session_leaves_a_server_that_lost_its_role() {
        use SessionEnd::{Now, WhenIdle};
        use WantedRole::{Any, Primary, Replica};
        let check = |condition: Condition, wanted: WantedRole, expected| assert_eq!(end(wanted, &condition), expected);
        let primary = condition(Role::Primary);
        for wanted in [Any, Primary, Replica] {
            check(primary, wanted, None);
            check(Condition { mode: Mode::Drain, ..primary }, wanted, Some(WhenIdle("it is being drained")));
            check(Condition { mode: Mode::Maintenance, ..primary }, wanted, Some(Now("it is in maintenance")));
            check(Condition { is_removed: true, ..primary }, wanted, Some(WhenIdle("it is no longer configured")));
            check(Condition { reached: Reached::Down, ..primary }, wanted, Some(Now("it is down")));
            check(Condition { is_monitored: false, reached: Reached::Unknown, ..primary }, wanted, None);
        }
        check(condition(Role::Replica), Primary, Some(Now("it is no longer the primary")));
        check(condition(Role::None), Primary, Some(Now("it is no longer the primary")));
        check(condition(Role::None), Replica, Some(WhenIdle("it is odd")));
        check(condition(Role::Replica), Any, None);
        let drained = Condition { mode: Mode::Drain, ..condition(Role::None) };
        check(drained, Primary, Some(Now("it is no longer the primary")));
    }

    proptest! {
        /// Sessions that come one after the other are shared by the weights.
        #[test]
        fn sessions_are_shared_by_weight(weights in prop::collection::vec(1..20u32, 1..5), rounds in 1..20usize) {
            let mut loads: Vec<Load> = weights.iter().map(|&weight| load(Role::Replica, 0, weight)).collect();
            let total: u32 = weights.iter().sum();
            for _ in 0..total as usize * rounds {
                let best = rank(&loads, WantedRole::Replica)[0];
                loads[best].connections += 1;
            }
            for load in &loads {
                prop_assert_eq!(load.connections, load.weight as usize * rounds);
            }
        }
    }
}
