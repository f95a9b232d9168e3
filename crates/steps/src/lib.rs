//! Divides long work, so that no request keeps others of its thread waiting.
//!
//! Code that processes data calls [`step`] once for each piece of it. The effect depends on where
//! the code runs:
//!
//! - In a future that an [`Interruptible`] drives, the work is suspended once it has taken longer
//!   than [`SLICE`]. Other tasks of the thread have their turn, and it continues where it was. Work
//!   that must end is unwound instead.
//! - In [`bounded`], the work is aborted after a number of steps.
//! - Anywhere else, and in [`unbroken`], there is no effect.

mod bounded;
pub mod clock;
mod counted;
mod interruptible;
pub mod memory;
mod stacks;

pub use bounded::{TooLong, bounded};
pub use counted::{Counted, bytes};
pub use interruptible::Interruptible;

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long work runs before other tasks have their turn.
pub const SLICE: Duration = Duration::from_millis(5);

/// Steps between two checks of the clock. A step is some ten nanoseconds of work, up to a
/// microsecond.
const STEPS_PER_LOOK: u32 = 1024;

/// What happens to work that has taken many steps.
#[derive(Clone, Copy)]
enum Mode {
    /// It continues.
    Free,
    /// It is suspended at the end of its slice, which begins at the first check.
    Suspends { began: Option<Instant>, coroutine: interruptible::Current },
    /// It is aborted after this many steps.
    Bounded { left: u64 },
}

thread_local! {
    /// Steps until the next check of [`MODE`].
    static LEFT: Cell<u32> = const { Cell::new(STEPS_PER_LOOK) };
    static MODE: Cell<Mode> = const { Cell::new(Mode::Free) };
    /// All steps taken, except those of the current [`LEFT`].
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Counts one step of work: a document, an element, a comparison, some ten bytes of text. May
/// suspend or abort the work, so the caller must not hold anything that other tasks of the thread
/// need: no lock, no borrow of shared state, no unfinished statement.
#[inline]
pub fn step() {
    LEFT.with(|left| match left.get() {
        0 => {
            look();
            left.set(STEPS_PER_LOOK - 1);
        }
        some => left.set(some - 1),
    });
}

/// Counts several steps at once.
#[inline]
pub fn steps(count: usize) {
    LEFT.with(|left| match u32::try_from(count).ok().and_then(|count| left.get().checked_sub(count)) {
        Some(rest) => left.set(rest),
        None => {
            // Steps beyond a check count, too.
            let beyond = (count as u64).saturating_sub(u64::from(left.get()));
            TAKEN.set(TAKEN.get().wrapping_add(beyond));
            if let Mode::Bounded { left } = MODE.get() {
                MODE.set(Mode::Bounded { left: left.saturating_sub(beyond) });
            }
            left.set(0);
            look();
        }
    });
}

/// Returns how many steps this thread has taken so far. Tests compare the steps of a larger input.
pub fn taken() -> u64 {
    TAKEN.get().wrapping_add(u64::from(STEPS_PER_LOOK - LEFT.get()))
}

/// Runs work that must not be suspended or aborted, because it holds something that other tasks of
/// the thread need. It must be short.
pub fn unbroken<T>(work: impl FnOnce() -> T) -> T {
    let _restored = Restored(MODE.replace(Mode::Free));
    work()
}

/// Restores the previous mode, also after a panic.
struct Restored(Mode);

impl Drop for Restored {
    fn drop(&mut self) {
        MODE.set(self.0);
    }
}

#[cold]
#[inline(never)]
fn look() {
    LEFT.set(STEPS_PER_LOOK);
    TAKEN.set(TAKEN.get().wrapping_add(u64::from(STEPS_PER_LOOK)));
    match MODE.get() {
        Mode::Free => {}
        Mode::Suspends { coroutine, .. } if memory::exceeded().is_some() => interruptible::suspend(coroutine),
        Mode::Suspends { began: None, coroutine } => {
            MODE.set(Mode::Suspends { began: Some(Instant::now()), coroutine });
        }
        Mode::Suspends { began: Some(began), coroutine } => {
            if began.elapsed() >= SLICE {
                interruptible::suspend(coroutine);
            }
        }
        Mode::Bounded { left } => match left.checked_sub(u64::from(STEPS_PER_LOOK)) {
            Some(left) => MODE.set(Mode::Bounded { left }),
            None => bounded::give_up(),
        },
    }
}

#[cfg(test)]
mod tests;
