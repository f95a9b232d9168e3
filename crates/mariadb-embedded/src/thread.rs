//! Threads that call the library: it has data of its own for each.

use crate::ffi;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that have called and not ended. The library waits for them when it is stopped.
static KNOWN: AtomicUsize = AtomicUsize::new(0);

struct Known;

impl Known {
    fn begin() -> Known {
        // SAFETY: may be called from any thread at any time after the library was started, or by the thread that starts it.
        unsafe { ffi::mysql_thread_init() };
        KNOWN.fetch_add(1, Ordering::AcqRel);
        Known
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        // SAFETY: the thread has begun, and is about to end.
        unsafe { ffi::mysql_thread_end() };
        KNOWN.fetch_sub(1, Ordering::AcqRel);
    }
}

thread_local! {
    static THREAD: Known = Known::begin();
}

/// To be called before anything else of the library on each thread.
#[inline]
pub fn enter() {
    THREAD.with(|_| {});
}

/// Threads that have called and live.
pub fn known() -> usize {
    KNOWN.load(Ordering::Acquire)
}
