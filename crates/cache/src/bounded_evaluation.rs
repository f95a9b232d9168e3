//! Work under the lock of a shard or a directory. It is not suspended, as others of the thread
//! would wait for the lock for good; so what is evaluated there is bounded.

/// Steps after which an evaluation is given up: some hundred microseconds.
const STEPS_MAX: u64 = 10_000;

/// Evaluates a condition; `None` where the outcome is not known, as it fails or takes too long.
pub fn evaluate<E>(condition: impl FnOnce() -> Result<bool, E>) -> Option<bool> {
    steps::bounded(STEPS_MAX, condition).ok().and_then(Result::ok)
}
