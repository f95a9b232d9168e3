//! The profiler (`system.profile`) and the slow log: operations that took long, or that are
//! profiled on request.
//!
//! An operation collects [`OperationStats`](crate::operation::OperationStats) while it runs, at no
//! extra cost. When it ends, its time decides whether it is recorded at all
//! ([`Profiling::may_record`]). Only then is a document built ([`record`]), logged, and queued for
//! the [`writer`], which stores it in `system.profile` in the background.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/database-profiler/>

pub mod levels;
mod queue;
mod record;
mod writer;

pub use levels::{DatabaseProfiling, Profiling};
pub use record::{CompletedOperation, record};
pub use writer::{ensure_profile, flush_before_read, run};

/// The collection of profiles, one in each profiled database.
pub const COLLECTION: &str = "system.profile";
