//! Evaluation under the lock of a shard or a directory. It must not be suspended, since other tasks
//! of the thread would wait for the lock forever; so the number of its steps is bounded.

/// Steps after which an evaluation gives up: some hundred microseconds.
const STEPS_MAX: u64 = 10_000;

/// Evaluates a condition. Returns `None` if it fails or takes too many steps.
pub fn evaluate<E>(condition: impl FnOnce() -> Result<bool, E>) -> Option<bool> {
    steps::bounded(STEPS_MAX, condition).ok().and_then(Result::ok)
}
