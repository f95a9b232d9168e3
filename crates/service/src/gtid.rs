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

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether every transaction of `other` is also before this position, by the sequence
    /// numbers of each domain.
    pub fn includes(&self, other: &GtidPosition) -> bool {
        other.0.iter().all(|(domain, last)| self.0.get(domain).is_some_and(|own| own.sequence >= last.sequence))
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
