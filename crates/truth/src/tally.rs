//! The counters of one thread.

use super::kind::OperationKind;

pub struct Tally {
    counts: Vec<u64>,
    pub violations: Vec<String>,
    pub violation_count: u64,
    /// Reads that the server killed for a valid reason.
    pub killed_reads: u64,
    /// Documents whose last write has an unknown outcome, because the connection was lost.
    pub unknown_writes: u64,
}

/// Violations that are printed.
const PRINTED_MAX: usize = 10;

impl Default for Tally {
    fn default() -> Self {
        let counts = vec![0; OperationKind::ALL.len()];
        Tally { counts, violations: Vec::new(), violation_count: 0, killed_reads: 0, unknown_writes: 0 }
    }
}

impl Tally {
    pub fn count(&mut self, kind: OperationKind, judged: Result<(), String>) {
        self.counts[kind as usize] += 1;
        if let Err(violation) = judged {
            self.violation_count += 1;
            if self.violations.len() < PRINTED_MAX {
                self.violations.push(violation);
            }
        }
    }

    pub fn of(&self, kind: OperationKind) -> u64 {
        self.counts[kind as usize]
    }

    pub fn operations(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub fn add(&mut self, other: Tally) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, count)| *sum += count);
        self.violations.extend(other.violations);
        self.violations.truncate(PRINTED_MAX);
        self.violation_count += other.violation_count;
        self.killed_reads += other.killed_reads;
        self.unknown_writes += other.unknown_writes;
    }
}
