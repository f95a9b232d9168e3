//! The part of a worker that other threads read.

use crate::logical_session::LogicalSessions;
use crate::operation::OperationRegistry;
use crate::statistics::Statistics;
use crate::usage::UsageStatistics;

/// A worker's counters, sessions and operations. Its locks are contended only while another thread
/// reads them.
#[derive(Debug)]
pub struct WorkerShared {
    pub statistics: Statistics,
    pub sessions: LogicalSessions,
    pub operations: OperationRegistry,
    pub usage: UsageStatistics,
}

impl WorkerShared {
    pub fn new(command_count: usize) -> WorkerShared {
        WorkerShared {
            statistics: Statistics::new(command_count),
            sessions: LogicalSessions::default(),
            operations: OperationRegistry::default(),
            usage: UsageStatistics::default(),
        }
    }
}
