//! Whether a server can be reached: a state machine over the outcomes of its polls.

use crate::observation::Facts;

/// The state of a server, by its last polls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reachability {
    pub state: Reached,
    /// Polls that have failed since the last that succeeded.
    failures: u32,
    /// The facts of the last poll that succeeded; `None` while the server is down or unknown.
    pub facts: Option<Facts>,
    /// Why the last poll failed; empty if it has succeeded.
    pub error: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reached {
    /// It was not polled yet.
    #[default]
    Unknown,
    Up,
    Down,
}

/// The outcome of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Answered(Facts),
    /// The server runs, and has no connection left for the monitor.
    Full(String),
    Failed(String),
}

impl Reachability {
    /// Returns the state of a server that another monitor has observed until now.
    pub fn continued(facts: Option<Facts>) -> Reachability {
        let state = if facts.is_some() { Reached::Up } else { Reached::Unknown };
        Reachability { state, facts, ..Reachability::default() }
    }

    /// Records the outcome of a poll. A server that was up counts as down after `failures_max`
    /// failures in a row; until then its last facts stay in effect, so that one lost packet closes
    /// no session.
    pub fn record(&mut self, outcome: Outcome, failures_max: u32) {
        match outcome {
            Outcome::Answered(facts) => {
                *self = Reachability { state: Reached::Up, failures: 0, facts: Some(facts), error: String::new() };
            }
            // It answers, so it serves those that are connected. A server that has never had room
            // for the monitor is as unknown as before.
            Outcome::Full(error) => {
                self.failures = 0;
                self.error = error;
            }
            Outcome::Failed(error) => {
                self.failures = self.failures.saturating_add(1);
                self.error = error;
                if self.state != Reached::Up || self.failures >= failures_max {
                    self.state = Reached::Down;
                    self.facts = None;
                }
            }
        }
    }
}

impl Reached {
    pub fn name(self) -> &'static str {
        match self {
            Reached::Unknown => "unknown",
            Reached::Up => "up",
            Reached::Down => "down",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::facts;

    fn check(outcomes: &[Outcome], expected: &[Reached]) -> Reachability {
        let mut server = Reachability::default();
        for (number, (outcome, expected)) in outcomes.iter().zip(expected).enumerate() {
            server.record(outcome.clone(), 3);
            assert_eq!(server.state, *expected, "after poll {number}");
            assert_eq!(server.facts.is_some(), *expected == Reached::Up);
        }
        server
    }

    #[test]
    fn a_server_is_down_after_some_failures_in_a_row() {
        use Reached::{Down, Unknown, Up};
        let (up, failed) = (Outcome::Answered(facts(1)), Outcome::Failed("refused".into()));
        let full = Outcome::Full("too many connections".into());
        check(&[failed.clone(), up.clone()], &[Down, Up]);
        let server = check(&[up.clone(), failed.clone(), failed.clone()], &[Up, Up, Up]);
        assert_eq!(server.error, "refused");
        let outcomes: Vec<Outcome> =
            [&up, &failed, &failed, &up, &failed, &failed, &failed, &failed].into_iter().cloned().collect();
        let server = check(&outcomes, &[Up, Up, Up, Up, Up, Up, Down, Down]);
        assert_eq!(server.error, "refused");
        let outcomes = [full.clone(), up.clone(), failed.clone(), failed.clone(), full.clone(), failed.clone()];
        check(&outcomes, &[Unknown, Up, Up, Up, Up, Up]);
        check(&[failed, full], &[Down, Down]);
    }
}
