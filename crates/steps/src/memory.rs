//! Memory limits: the bytes held by the process and by each request.
//!
//! The program's allocator calls [`allocated`] and [`freed`]. They count on the calling thread,
//! without an atomic: a thread's balance is added to the process's total once it has changed by
//! [`FLUSH_BYTES`]. A request holds the change of its thread's balance during its polls. Memory
//! that another thread frees stays on the request's account, so that number is an upper bound; the
//! process's total is exact except for balances that threads have not added yet.
//!
//! A request may hold [`Limits::request`], and at most the rest of the process's own limit. So when
//! memory gets short, the requests that hold most end first, and small ones continue: each may hold
//! [`Limits::floor`] in any case.

use crate::{LEFT, MODE, Mode, TAKEN};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// A thread's balance is added to the process's total when it has changed by this much.
pub const FLUSH_BYTES: i64 = 256 << 10;

/// The smallest and largest amount that a request may hold although the process is over its limit.
const FLOOR_BYTES: std::ops::RangeInclusive<i64> = 1 << 20..=64 << 20;

static LIVE: AtomicI64 = AtomicI64::new(0);
static PROCESS_MAX: AtomicI64 = AtomicI64::new(i64::MAX);
static REQUEST_MAX: AtomicI64 = AtomicI64::new(i64::MAX);

thread_local! {
    /// Bytes that the thread has allocated minus those it has freed, since it was last added to the
    /// process's total.
    static PENDING: Cell<i64> = const { Cell::new(0) };
    /// The same up to then.
    static FLUSHED: Cell<i64> = const { Cell::new(0) };
    /// The balance at which the request that is being polled would hold nothing.
    static BASE: Cell<Option<i64>> = const { Cell::new(None) };
}

/// Limits of the bytes held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub process: i64,
    pub request: i64,
}

impl Limits {
    /// Returns the bytes that each request may hold although the process is over its limit.
    pub fn floor(&self) -> i64 {
        (self.process / 64).clamp(*FLOOR_BYTES.start(), *FLOOR_BYTES.end())
    }
}

/// The limit that a request exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// It holds more than a request may.
    Request { held: i64, limit: i64 },
    /// It holds more than the process has left.
    Process { held: i64, limit: i64 },
}

/// Counts an allocation of this thread. Allocates nothing, so that allocators may call it.
#[inline]
pub fn allocated(bytes: usize) {
    note(bytes as i64);
}

/// Counts memory that this thread frees.
#[inline]
pub fn freed(bytes: usize) {
    note(-(bytes as i64));
}

/// Counts a change of an allocation's size on this thread.
#[inline]
pub fn resized(bytes: usize, new_bytes: usize) {
    note(new_bytes as i64 - bytes as i64);
}

#[inline]
fn note(change: i64) {
    PENDING.with(|pending| {
        let sum = pending.get() + change;
        pending.set(sum);
        if sum.unsigned_abs() > FLUSH_BYTES as u64 {
            flush();
        }
    });
}

#[cold]
#[inline(never)]
fn flush() {
    let pending = PENDING.replace(0);
    LIVE.fetch_add(pending, Relaxed);
    FLUSHED.set(FLUSHED.get() + pending);
    if pending > 0 && BASE.get().is_some() {
        look_soon();
    }
}

/// Makes the next step check the request's memory.
fn look_soon() {
    let left = LEFT.replace(0);
    // Steps are counted as if the check had come at its usual time.
    TAKEN.set(TAKEN.get().wrapping_sub(u64::from(left)));
    if let Mode::Bounded { left: budget } = MODE.get() {
        MODE.set(Mode::Bounded { left: budget.saturating_add(u64::from(left)) });
    }
}

pub fn set_limits(limits: Limits) {
    PROCESS_MAX.store(limits.process, Relaxed);
    REQUEST_MAX.store(limits.request, Relaxed);
}

/// Lowers the process's limit, because the system has no more memory: to seven eighths of the bytes
/// held now.
pub fn ran_out() {
    PROCESS_MAX.fetch_min(live() / 8 * 7, Relaxed);
    if BASE.get().is_some() {
        look_soon();
    }
}

pub fn limits() -> Limits {
    Limits { process: PROCESS_MAX.load(Relaxed), request: REQUEST_MAX.load(Relaxed) }
}

/// Returns the bytes that the process holds, as requested from the allocator.
pub fn live() -> i64 {
    LIVE.load(Relaxed) + PENDING.get()
}

/// Returns whether the process exceeds its limit.
pub fn is_short() -> bool {
    live() > PROCESS_MAX.load(Relaxed)
}

/// Returns the bytes that this thread has allocated minus those it has freed.
pub fn balance() -> i64 {
    FLUSHED.get() + PENDING.get()
}

/// Returns the bytes held by the request that is being polled on this thread; `None` outside of
/// one.
pub fn held() -> Option<i64> {
    Some(balance() - BASE.get()?)
}

/// Returns the limit that the request being polled on this thread exceeds.
pub fn exceeded() -> Option<Exceeded> {
    let held = held()?;
    let limits = limits();
    let left = limits.process.saturating_sub(live());
    if held > limits.request {
        Some(Exceeded::Request { held, limit: limits.request })
    } else if held > left.max(limits.floor()) {
        Some(Exceeded::Process { held, limit: limits.process })
    } else {
        None
    }
}

/// A request being polled on this thread. Dropping it restores the one before.
pub(crate) struct Entered(Option<i64>);

/// Starts counting the bytes that a request holds, beyond those it has held so far.
pub(crate) fn enter(held: i64) -> Entered {
    Entered(BASE.replace(Some(balance() - held)))
}

impl Drop for Entered {
    fn drop(&mut self) {
        BASE.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bounded, step, taken};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Keeps the process's total to one test at a time.
    fn alone() -> MutexGuard<'static, ()> {
        static TOTAL: Mutex<()> = Mutex::new(());
        TOTAL.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn a_request_holds_what_its_thread_gained() {
        let _alone = alone();
        assert_eq!(held(), None);
        let first = enter(0);
        allocated(1000);
        assert_eq!(held(), Some(1000));
        {
            let _second = enter(50);
            allocated(7);
            assert_eq!(held(), Some(57));
        }
        freed(300);
        assert_eq!(held(), Some(707));
        drop(first);
        allocated(1 << 20);
        freed(1 << 20);
        assert_eq!(held(), None);
    }

    #[test]
    fn all_threads_together_make_the_total() {
        let _alone = alone();
        let before = live();
        let thread = std::thread::spawn(|| allocated(64 << 20));
        thread.join().unwrap();
        allocated(64 << 20);
        assert!(live() - before >= (128 << 20) - 2 * FLUSH_BYTES);
        freed(128 << 20);
    }

    #[test]
    fn steps_are_counted_as_ever_when_a_look_comes_early() {
        let _alone = alone();
        let _entered = enter(0);
        let before = taken();
        for _ in 0..100 {
            (0..10).for_each(|_| step());
            allocated(FLUSH_BYTES as usize + 1);
        }
        freed(100 * (FLUSH_BYTES as usize + 1));
        assert_eq!(taken().wrapping_sub(before), 1000);
        let outcome = bounded(5000, || {
            for _ in 0..4000 {
                step();
                allocated(FLUSH_BYTES as usize + 1);
                freed(FLUSH_BYTES as usize + 1);
            }
        });
        assert_eq!(outcome, Ok(()));
    }
}
