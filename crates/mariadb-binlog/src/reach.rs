//! Positions by GTID, and telling whether one has been reached.

use mariadb_wire::binlog::Gtid;
use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

/// How far the stream has been handed on: the last transaction of each domain.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    last: BTreeMap<u32, Gtid>,
    goal: Option<Goal>,
}

/// Where the server was at some moment.
#[derive(Clone, Debug)]
struct Goal {
    moment: Instant,
    /// What has been handed on since just before that moment: the answer to the question may name it.
    since: HashSet<Gtid>,
    /// Transactions still to come; `None` while the server has not answered.
    missing: Option<Vec<Gtid>>,
    /// How often since then the stream has come to the log's end.
    ends: u32,
}

/// The stream is at the end of its log that often, and has not been where the server is: it reads another log.
const ENDS_MAX: u32 = 3;

/// The server does not have what has been handed on: its log was reset, or it is another server.
#[derive(Debug, PartialEq, Eq)]
pub struct Diverged;

impl Reach {
    pub fn at(position: &[Gtid]) -> Reach {
        Reach { last: position.iter().map(|gtid| (gtid.domain, *gtid)).collect(), goal: None }
    }

    /// As `@slave_connect_state` takes it.
    pub fn text(&self) -> String {
        self.last.values().map(Gtid::to_string).collect::<Vec<_>>().join(",")
    }

    pub fn position(&self) -> Vec<Gtid> {
        self.last.values().copied().collect()
    }

    pub fn handed_on(&mut self, gtid: Gtid) {
        self.last.insert(gtid.domain, gtid);
        if let Some(goal) = &mut self.goal {
            if let Some(missing) = &mut goal.missing {
                missing.retain(|other| *other != gtid);
            } else {
                goal.since.insert(gtid);
            }
        }
    }

    /// The server is about to be asked where it is. `None` while an earlier goal has not been reached: the moment of that one.
    pub fn ask(&mut self, now: Instant) -> Option<Instant> {
        if let Some(goal) = &self.goal {
            return Some(goal.moment);
        }
        let since = self.last.values().copied().collect();
        self.goal = Some(Goal { moment: now, since, missing: None, ends: 0 });
        None
    }

    /// The server's answer: `@@gtid_binlog_pos`.
    pub fn answer(&mut self, position: &[Gtid]) -> Result<(), Diverged> {
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

    /// The stream has come to the log's end: nothing is on its way. The caller has handed on what came before.
    pub fn at_end(&mut self) -> Result<(), Diverged> {
        match &mut self.goal {
            Some(goal @ Goal { missing: Some(_), .. }) => {
                goal.ends += 1;
                if goal.ends > ENDS_MAX { Err(Diverged) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// The moment of the goal, once everything up to it has been handed on.
    pub fn reached(&mut self) -> Option<Instant> {
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
        let mut reach = Reach::at(&position("0-1-5,1-1-7"));
        let asked = Instant::now();
        assert_eq!(reach.ask(asked), None);
        reach.answer(&position("0-1-6,1-1-7,2-9-1")).unwrap();
        assert_eq!(reach.reached(), None);
        assert_eq!(reach.ask(Instant::now()), Some(asked));
        reach.handed_on(gtid("0-1-6"));
        assert_eq!(reach.reached(), None);
        reach.handed_on(gtid("2-9-1"));
        assert_eq!(reach.reached(), Some(asked));
        assert_eq!(reach.reached(), None);
        assert_eq!(reach.text(), "0-1-6,1-1-7,2-9-1");
    }

    #[test]
    fn what_comes_before_the_answer_counts() {
        let mut reach = Reach::at(&position("0-1-5"));
        let asked = Instant::now();
        reach.ask(asked);
        reach.handed_on(gtid("0-1-6"));
        reach.handed_on(gtid("0-2-3"));
        reach.answer(&position("0-1-6")).unwrap();
        assert_eq!(reach.reached(), Some(asked));
    }

    #[test]
    fn a_log_that_was_reset_is_noticed() {
        let mut reach = Reach::at(&position("0-1-5"));
        reach.ask(Instant::now());
        assert_eq!(reach.answer(&[]), Err(Diverged));
        reach.ask(Instant::now());
        assert_eq!(reach.answer(&position("0-1-4")), Err(Diverged));
        // So many were written since that the number is larger, and they do not come.
        assert_eq!(reach.answer(&position("0-1-6")), Ok(()));
        for _ in 0..ENDS_MAX {
            assert_eq!(reach.at_end(), Ok(()));
        }
        assert_eq!(reach.at_end(), Err(Diverged));
        let mut empty = Reach::at(&[]);
        empty.ask(Instant::now());
        empty.answer(&[]).unwrap();
        assert!(empty.reached().is_some());
    }
}
