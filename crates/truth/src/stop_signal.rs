//! Ends the run when it is asked to (SIGINT, SIGTERM), so that it still says what it has found.

use anyhow::Result;
use nix::sys::signal::{SigSet, Signal};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set once a signal has come. Threads that are started later leave signals to the one that waits for them; a second signal ends the
/// process at once.
pub fn stop_at_signal() -> Result<&'static AtomicBool> {
    static STOP: AtomicBool = AtomicBool::new(false);
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    signals.thread_block()?;
    std::thread::spawn(move || {
        while signals.wait().is_ok() {
            if STOP.swap(true, Relaxed) {
                std::process::exit(1);
            }
            eprintln!("stopping: what is under way is waited for; a second signal leaves at once");
        }
    });
    Ok(&STOP)
}
