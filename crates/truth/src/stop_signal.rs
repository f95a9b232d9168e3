//! Stops the run on SIGINT and SIGTERM, so that it still prints its result.

use anyhow::Result;
use nix::sys::signal::{SigSet, Signal};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Returns a flag that is set by the first signal; a second signal ends the process at once.
/// Threads started later block the signals, which one thread waits for.
pub fn stop_at_signal() -> Result<&'static AtomicBool> {
    static STOP: AtomicBool = AtomicBool::new(false);
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    signals.thread_block()?;
    std::thread::spawn(move || {
        while signals.wait().is_ok() {
            if STOP.swap(true, Relaxed) {
                std::process::exit(1);
            }
            eprintln!("stopping: waiting for requests in flight; a second signal exits at once");
        }
    });
    Ok(&STOP)
}
