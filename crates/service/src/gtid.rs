//! Positions in binary logs by global transaction id: the last transaction of each domain.

use std::collections::BTreeMap;
use std::fmt;

/// The last transaction of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    server: u32,
    sequence: u64,
}

/// A position, such as `0-1-270,1-3-15`: domain, server and sequence number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidPosition(BTreeMap<u32, Last>);

impl GtidPosition {
    /// Parses a position. Returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<GtidPosition> {
        let mut position = GtidPosition::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let mut numbers = part.split('-');
            let (domain, server, sequence) = (numbers.next()?, numbers.next()?, numbers.next()?);
            if numbers.next().is_some() {
                return None;
            }
            let last = Last { server: server.parse().ok()?, sequence: sequence.parse().ok()? };
            let known = position.0.entry(domain.parse().ok()?).or_insert(last);
            if known.sequence < last.sequence {
                *known = last;
            }
        }
        Some(position)
    }

    /// Moves the position to where it includes `other`.
    pub fn extend(&mut self, other: &GtidPosition) {
        for (&domain, &last) in &other.0 {
            let own = self.0.entry(domain).or_insert(last);
            if own.sequence < last.sequence {
                *own = last;
            }
        }
    }

    /// Returns whether a history that ends here has all of `other`, if both are parts of the same
    /// one: at the same sequence number, the transactions must be the same.
    pub fn has_all_of(&self, other: &GtidPosition) -> bool {
        let has =
            |domain, last: &Last| self.0.get(domain).is_some_and(|own| own.sequence > last.sequence || own == last);
        other.0.iter().all(|(domain, last)| has(domain, last))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether every transaction of `other` is also before this position, by the sequence
    /// numbers of each domain.
    pub fn includes(&self, other: &GtidPosition) -> bool {
        other.0.iter().all(|(domain, last)| self.0.get(domain).is_some_and(|own| own.sequence >= last.sequence))
    }
}

/// The state of a binary log (`gtid_binlog_state`): the last transaction of each server in each
/// domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidState(BTreeMap<(u32, u32), u64>);

impl GtidState {
    /// Parses a state. Leaves out malformed parts.
    pub fn parse(text: &str) -> GtidState {
        let mut state = GtidState::default();
        for position in text.split(',').filter_map(GtidPosition::parse) {
            state.add(&position);
        }
        state
    }

    /// Adds the last transactions of a position.
    pub fn add(&mut self, position: &GtidPosition) {
        for (&domain, last) in &position.0 {
            let known = self.0.entry((domain, last.server)).or_default();
            *known = (*known).max(last.sequence);
        }
    }

    /// Returns whether the log has the last transactions of a position. As the transactions of a
    /// domain have one order, it then has those before them as well.
    pub fn has(&self, position: &GtidPosition) -> bool {
        let has = |(&domain, last): (&u32, &Last)| {
            self.0.get(&(domain, last.server)).is_some_and(|&own| own >= last.sequence)
        };
        position.0.iter().all(has)
    }
}

impl fmt::Display for GtidPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (domain, Last { server, sequence })) in self.0.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma}{domain}-{server}-{sequence}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(text: &str) -> GtidPosition {
        GtidPosition::parse(text).unwrap()
    }

    #[test]
    fn positions_are_parsed() {
        for (text, shown) in [("", ""), ("0-1-5", "0-1-5"), ("1-2-3, 0-1-5", "0-1-5,1-2-3"), ("0-1-5,0-2-7", "0-2-7")] {
            assert_eq!(position(text).to_string(), shown);
        }
        for wrong in ["0", "0-1", "0-1-2-3", "a-1-2", "0-1-", "-1-1-1", "0-1-99999999999999999999999"] {
            assert_eq!(GtidPosition::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_history_that_has_diverged_is_noticed() {
        assert!(position("0-1-5").has_all_of(&position("0-1-5")) && position("0-2-6").has_all_of(&position("0-1-5")));
        assert!(!position("0-2-5").has_all_of(&position("0-1-5")) && !position("0-1-5").has_all_of(&position("1-1-1")));
        let state = GtidState::parse("0-1-10,0-2-12,1-1-3");
        assert!(state.has(&position("")) && state.has(&position("0-1-10,1-1-2")) && state.has(&position("0-2-12")));
        // The old primary has a transaction that the new one has not, and a smaller number.
        assert!(!state.has(&position("0-1-11")) && !state.has(&position("0-3-1")) && !state.has(&position("2-1-1")));
    }

    #[test]
    fn positions_are_compared_in_every_domain() {
        assert!(position("0-1-5").includes(&position("")));
        assert!(position("0-2-5").includes(&position("0-1-5")));
        assert!(!position("0-1-4").includes(&position("0-1-5")));
        assert!(!position("0-1-9").includes(&position("0-1-5,1-1-1")));
        assert!(position("0-1-9,1-1-1").includes(&position("0-1-5,1-1-1")));
        let mut all = position("0-1-5");
        all.extend(&position("0-2-4,1-1-1"));
        assert_eq!(all, position("0-1-5,1-1-1"));
    }
}
