//! Work with a limit of steps.

use crate::{LEFT, MODE, Mode, Restored, STEPS_PER_LOOK};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The work exceeded its limit of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the work took too many steps")
    }
}

impl std::error::Error for TooLong {}

/// Runs `work`, and aborts it after about this many steps, by unwinding its stack. The work must be
/// pure, or the caller must undo its effects. Panics of the work are passed on.
pub fn bounded<T>(steps: u64, work: impl FnOnce() -> T) -> Result<T, TooLong> {
    // The next look subtracts those that were counted before.
    let limit = steps.saturating_add(u64::from(STEPS_PER_LOOK - LEFT.get()));
    let restored = Restored(MODE.replace(Mode::Bounded { left: limit }));
    let outcome = catch_unwind(AssertUnwindSafe(work));
    drop(restored);
    outcome.or_else(|payload| match payload.downcast::<TooLong>() {
        Ok(_) => Err(TooLong),
        Err(panic) => resume_unwind(panic),
    })
}

/// Aborts the work that [`bounded`] runs. While a panic is unwinding already, the work continues.
pub(crate) fn give_up() {
    if !std::thread::panicking() {
        // Without the panic hook: this is no error.
        resume_unwind(Box::new(TooLong));
    }
}
