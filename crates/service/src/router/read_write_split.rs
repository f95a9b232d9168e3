//! The router `read-write-split`: the servers for a read, the best first.

use super::connections;
use crate::condition::Condition;
use crate::role::{Role, WantedRole};
use std::time::Duration;

/// A server as the router sees it.
#[derive(Clone, Copy, Debug)]
pub struct ReadLoad {
    pub condition: Condition,
    /// How far it is behind the primary; `None`: it is not known. Without a primary it is 0: then
    /// no server has more.
    pub lag_seconds: Option<u64>,
    /// The statements that it executes now.
    pub outstanding: usize,
    /// The smoothed time of a statement; zero if none was measured.
    pub latency: Duration,
    pub weight: u32,
    /// The session has a connection to it.
    pub is_open: bool,
}

/// A server without an open connection must be so many times better than one with it.
const CONNECTION_COST: u128 = 2;

impl ReadLoad {
    /// Returns why the server cannot get reads as a replica.
    pub fn refusal(&self, lag_max_seconds: Option<u64>) -> Option<&'static str> {
        if let Err(reason) = connections::fit(WantedRole::Any, &self.condition) {
            return Some(reason);
        }
        if self.condition.role() != Role::Replica {
            return Some("it is no replica");
        }
        match (lag_max_seconds, self.lag_seconds) {
            (Some(_), None) => Some("it is not known how far it is behind"),
            (Some(max), Some(lag)) if lag > max => Some("it is too far behind"),
            _ => None,
        }
    }

    /// Returns how long a new statement is expected to take, relative to the weight.
    fn cost(&self) -> u128 {
        let time = self.latency.as_nanos().max(1);
        let cost = time * (self.outstanding as u128 + 1) * 1000 / u128::from(self.weight.max(1));
        if self.is_open { cost } else { cost * CONNECTION_COST }
    }
}

/// Returns the replicas that may get a read, the best first: by the statements that they execute
/// and by the time that they take.
pub fn rank(loads: &[ReadLoad], lag_max_seconds: Option<u64>) -> Vec<usize> {
    let usable = loads.iter().enumerate().filter(|(_, load)| load.refusal(lag_max_seconds).is_none());
    let mut ranked: Vec<(u128, usize)> = usable.map(|(number, load)| (load.cost(), number)).collect();
    ranked.sort();
    ranked.into_iter().map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Mode;
    use crate::reachability::Reached;
    use crate::role::Standing;
    use proptest::prelude::*;

    fn load(role: Role, outstanding: usize, micros: u64) -> ReadLoad {
        let standing = Standing { role, reason: "" };
        let condition = Condition { is_monitored: true, reached: Reached::Up, standing, ..Condition::default() };
        let latency = Duration::from_micros(micros);
        ReadLoad { condition, lag_seconds: Some(0), outstanding, latency, weight: 1, is_open: false }
    }

    #[test]
    fn the_replica_that_answers_first_is_best() {
        let primary = load(Role::Primary, 0, 1);
        assert_eq!(rank(&[primary, load(Role::Replica, 3, 100), load(Role::Replica, 1, 150)], None), [2, 1]);
        let open = ReadLoad { is_open: true, ..load(Role::Replica, 0, 150) };
        assert_eq!(rank(&[load(Role::Replica, 0, 100), open], None), [1, 0]);
        let heavy = ReadLoad { weight: 3, ..load(Role::Replica, 1, 100) };
        assert_eq!(rank(&[load(Role::Replica, 0, 100), heavy], None), [1, 0]);
    }

    #[test]
    fn replicas_that_lag_or_are_taken_out_are_left_out() {
        let behind = |lag_seconds| ReadLoad { lag_seconds, ..load(Role::Replica, 0, 1) };
        assert_eq!(rank(&[behind(Some(11)), behind(Some(10)), behind(None)], Some(10)), [1]);
        assert_eq!(rank(&[behind(Some(11)), behind(None)], None), [0, 1]);
        let mut drained = behind(Some(0));
        drained.condition.mode = Mode::Drain;
        assert_eq!(drained.refusal(None), Some("it is being drained"));
        assert_eq!(rank(&[drained, load(Role::None, 0, 1), load(Role::Primary, 0, 1)], None), [0; 0]);
    }

    proptest! {
        #[test]
        fn only_usable_servers_are_ranked(
            lags in prop::collection::vec(prop::option::of(0..20u64), 0..6),
            max in prop::option::of(0..20u64),
        ) {
            let loads: Vec<ReadLoad> =
                lags.iter().map(|&lag_seconds| ReadLoad { lag_seconds, ..load(Role::Replica, 0, 5) }).collect();
            let ranked = rank(&loads, max);
            for (number, lag) in lags.iter().enumerate() {
                let may = max.is_none_or(|max| lag.is_some_and(|lag| lag <= max));
                prop_assert_eq!(ranked.contains(&number), may);
            }
        }
    }
}
