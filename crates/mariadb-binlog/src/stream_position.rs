//! The position that the stream has reached, by GTID, and the check whether it has passed another.

use mariadb_wire::binlog::Gtid;
use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

/// The last delivered transaction of each domain.
#[derive(Clone, Debug, Default)]
pub struct StreamPosition {
    last: BTreeMap<u32, Gtid>,
    goal: Option<Goal>,
}

/// The server's position at some moment, which the stream has to position_reached.
#[derive(Clone, Debug)]
struct Goal {
    moment: Instant,
    /// Transactions delivered since just before that moment, which the server's answer may include.
    since: HashSet<Gtid>,
    /// Transactions not delivered yet; `None` until the server has answered.
    missing: Option<Vec<Gtid>>,
    /// How often since then the stream was at the end of the log.
    ends: u32,
}

/// If the stream is at the end of its log more often than this without reaching the goal, it reads
/// another log.
const ENDS_MAX: u32 = 3;

/// The server lacks transactions that were delivered: its log was reset, or it is another server.
#[derive(Debug, PartialEq, Eq)]
pub struct Diverged;

impl StreamPosition {
    pub fn at(position: &[Gtid]) -> StreamPosition {
        StreamPosition { last: position.iter().map(|gtid| (gtid.domain, *gtid)).collect(), goal: None }
    }

    /// Returns the position as `@slave_connect_state` takes it.
    pub fn text(&self) -> String {
        self.last.values().map(Gtid::to_string).collect::<Vec<_>>().join(",")
    }

    pub fn position(&self) -> Vec<Gtid> {
        self.last.values().copied().collect()
    }

    /// Notes that a transaction was delivered.
    pub fn delivered(&mut self, gtid: Gtid) {
        self.last.insert(gtid.domain, gtid);
        if let Some(goal) = &mut self.goal {
            if let Some(missing) = &mut goal.missing {
                missing.retain(|other| *other != gtid);
            } else {
                goal.since.insert(gtid);
            }
        }
    }

    /// Starts a goal, before the server is asked for its position. Returns the moment of an earlier
    /// goal that has not been reached, if there is one.
    pub fn start_goal(&mut self, now: Instant) -> Option<Instant> {
        if let Some(goal) = &self.goal {
            return Some(goal.moment);
        }
        let since = self.last.values().copied().collect();
        self.goal = Some(Goal { moment: now, since, missing: None, ends: 0 });
        None
    }

    /// Sets the goal to the server's `@@gtid_binlog_pos`. Fails if the server lacks delivered
    /// transactions.
    pub fn set_goal(&mut self, position: &[Gtid]) -> Result<(), Diverged> {
        if self.last.keys().any(|domain| position.iter().all(|gtid| gtid.domain != *domain)) {
            return Err(Diverged);
        }
        let is_new = |gtid: &&Gtid| self.goal.as_ref().is_none_or(|goal| !goal.since.contains(gtid));
        let goes_back = |gtid: &Gtid| {
            let last = self.last.get(&gtid.domain);
            last.is_some_and(|last| last.server == gtid.server && last.sequence > gtid.sequence)
        };
        if position.iter().filter(is_new).any(goes_back) {
            return Err(Diverged);
        }
        if let Some(goal) = &mut self.goal {
            goal.missing = Some(position.iter().filter(|gtid| !goal.since.contains(gtid)).copied().collect());
            goal.since.clear();
        }
        Ok(())
    }

    /// Notes that the stream is at the end of the log and everything before was delivered. Fails if
    /// it never reaches the goal.
    pub fn at_end(&mut self) -> Result<(), Diverged> {
        match &mut self.goal {
            Some(goal @ Goal { missing: Some(_), .. }) => {
                goal.ends += 1;
                if goal.ends > ENDS_MAX { Err(Diverged) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Returns the moment of the goal, and clears it, once everything up to it has been delivered.
    pub fn take_reached(&mut self) -> Option<Instant> {
        let moment = self.goal.as_ref().filter(|goal| goal.missing.as_ref().is_some_and(Vec::is_empty))?.moment;
        self.goal = None;
        Some(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(text: &str) -> Vec<Gtid> {
        Gtid::parse_list(text).unwrap()
    }

    fn gtid(text: &str) -> Gtid {
        position(text)[0]
    }

    #[test]
    fn a_goal_is_reached_when_all_domains_are() {
        let mut position_reached = StreamPosition::at(&position("0-1-5,1-1-7"));
        let asked = Instant::now();
        assert_eq!(position_reached.start_goal(asked), None);
        position_reached.set_goal(&position("0-1-6,1-1-7,2-9-1")).unwrap();
        assert_eq!(position_reached.take_reached(), None);
        assert_eq!(position_reached.start_goal(Instant::now()), Some(asked));
        position_reached.delivered(gtid("0-1-6"));
        assert_eq!(position_reached.take_reached(), None);
        position_reached.delivered(gtid("2-9-1"));
        assert_eq!(position_reached.take_reached(), Some(asked));
        assert_eq!(position_reached.take_reached(), None);
        assert_eq!(position_reached.text(), "0-1-6,1-1-7,2-9-1");
    }

    #[test]
    fn transactions_delivered_before_the_answer_count() {
        let mut position_reached = StreamPosition::at(&position("0-1-5"));
        let asked = Instant::now();
        position_reached.start_goal(asked);
        position_reached.delivered(gtid("0-1-6"));
        position_reached.delivered(gtid("0-2-3"));
        position_reached.set_goal(&position("0-1-6")).unwrap();
        assert_eq!(position_reached.take_reached(), Some(asked));
    }

    #[test]
    fn a_log_that_was_reset_is_noticed() {
        let mut position_reached = StreamPosition::at(&position("0-1-5"));
        position_reached.start_goal(Instant::now());
        assert_eq!(position_reached.set_goal(&[]), Err(Diverged));
        position_reached.start_goal(Instant::now());
        assert_eq!(position_reached.set_goal(&position("0-1-4")), Err(Diverged));
        // The sequence number is larger by now, but those transactions never arrive.
        assert_eq!(position_reached.set_goal(&position("0-1-6")), Ok(()));
        for _ in 0..ENDS_MAX {
            assert_eq!(position_reached.at_end(), Ok(()));
        }
        assert_eq!(position_reached.at_end(), Err(Diverged));
        let mut empty = StreamPosition::at(&[]);
        empty.start_goal(Instant::now());
        empty.set_goal(&[]).unwrap();
        assert!(empty.take_reached().is_some());
    }
}
