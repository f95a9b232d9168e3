//! The memory limits of blocking stages.

/// The memory limit of a blocking stage (sort, group), as in MongoDB.
pub const BLOCKING_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Returns the limit in effect: at most a third of what a request may hold, so that the stage
/// spills to disk before the request is ended.
pub fn blocking_bytes_max() -> usize {
    let request = usize::try_from(steps::memory::limits().request).unwrap_or(usize::MAX);
    BLOCKING_BYTES_MAX.min(request / 3)
}
