//! Threads that call the library, which has data for each of them.

use crate::ffi;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of threads that have called the library and not ended. Stopping the library waits for
/// them.
static REGISTERED: AtomicUsize = AtomicUsize::new(0);

/// Registers the thread with the library, until dropped.
struct ThreadRegistration;

impl ThreadRegistration {
    fn begin() -> ThreadRegistration {
        // SAFETY: may be called from any thread after the library was started, or by the thread
        // that starts it.
        unsafe { ffi::mysql_thread_init() };
        REGISTERED.fetch_add(1, Ordering::AcqRel);
        ThreadRegistration
    }
}

impl Drop for ThreadRegistration {
    fn drop(&mut self) {
        // SAFETY: the thread has begun, and is about to end.
        unsafe { ffi::mysql_thread_end() };
        REGISTERED.fetch_sub(1, Ordering::AcqRel);
    }
}

thread_local! {
    static THREAD: ThreadRegistration = ThreadRegistration::begin();
}

/// Registers the thread. Must be called on each thread before any other function of the library.
#[inline]
pub fn enter() {
    THREAD.with(|_| {});
}

/// Returns the number of live threads that have called the library.
pub fn registered() -> usize {
    REGISTERED.load(Ordering::Acquire)
}
