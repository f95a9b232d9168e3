//! What one thread has counted.

use super::kind::Kind;

pub struct Tally {
    counts: Vec<u64>,
    pub violations: Vec<String>,
    pub violation_count: u64,
    /// Reads that the server gave up for a reason that is no fault.
    pub refused: u64,
    /// Writes of documents of which nobody knows whether they were made, since the connection was lost.
    pub unknown: u64,
}

/// So many violations are kept to be shown.
const SHOWN: usize = 10;

impl Default for Tally {
    fn default() -> Self {
        let counts = vec![0; Kind::ALL.len()];
        Tally { counts, violations: Vec::new(), violation_count: 0, refused: 0, unknown: 0 }
    }
}

impl Tally {
    pub fn count(&mut self, kind: Kind, judged: Result<(), String>) {
        self.counts[kind as usize] += 1;
        if let Err(violation) = judged {
            self.violation_count += 1;
            if self.violations.len() < SHOWN {
                self.violations.push(violation);
            }
        }
    }

    pub fn of(&self, kind: Kind) -> u64 {
        self.counts[kind as usize]
    }

    pub fn operations(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub fn add(&mut self, other: Tally) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, count)| *sum += count);
        self.violations.extend(other.violations);
        self.violations.truncate(SHOWN);
        self.violation_count += other.violation_count;
        self.refused += other.refused;
        self.unknown += other.unknown;
    }
}
