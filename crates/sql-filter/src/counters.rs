//! Counters of a service's filters, for `serverStatus`.

use crate::shared_counter::SharedCounter;

/// The counters of all filters of a service.
#[derive(Debug, Default)]
pub struct Counters {
    /// Statements and result sets that were refused.
    pub blocked: SharedCounter,
    /// Statements that a filter would have refused, but for its mode.
    pub reported: SharedCounter,
    /// Statements that were replaced.
    pub rewritten: SharedCounter,
    /// Statements that had to wait.
    pub delayed: SharedCounter,
    /// Result sets with masked values.
    pub masked: SharedCounter,
    /// Commands that a second server has executed.
    pub mirrored: SharedCounter,
    /// Replies of a second server that differ.
    pub differences: SharedCounter,
    /// Lines that were given to a query log.
    pub logged: SharedCounter,
    /// Lines and statements that were dropped because a queue was full.
    pub dropped: SharedCounter,
}

impl Counters {
    /// Returns the counters with their names.
    pub fn all(&self) -> Vec<(&'static str, u64)> {
        [
            ("blocked", &self.blocked),
            ("reported", &self.reported),
            ("rewritten", &self.rewritten),
            ("delayed", &self.delayed),
            ("masked", &self.masked),
            ("mirrored", &self.mirrored),
            ("differences", &self.differences),
            ("logged", &self.logged),
            ("dropped", &self.dropped),
        ]
        .map(|(name, counter)| (name, counter.get()))
        .to_vec()
    }
}
