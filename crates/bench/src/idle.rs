//! Waits until the machine is idle, so that pending work of one measurement is not part of the
//! next.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// /proc/stat counts hundredths of a second.
const WINDOW: Duration = Duration::from_millis(200);
/// A window counts as idle up to this share of the time of all processors.
const BUSY_MAX: f64 = 0.05;

/// Waits until the processors were idle for a window, but no longer than `at_most`. Waits for one
/// window if the system does not report processor time.
pub fn wait_until_idle(at_most: Duration) {
    let end = Instant::now() + at_most;
    let mut before = processor_time();
    loop {
        sleep(WINDOW.min(at_most));
        let now = processor_time();
        let busy = before.zip(now).map(|(before, now)| now.busy_share_since(before));
        if busy.is_none_or(|busy| busy <= BUSY_MAX) || Instant::now() >= end {
            return;
        }
        before = now;
    }
}

/// Time of all processors since the system's start, in hundredths of a second.
#[derive(Clone, Copy)]
struct ProcessorTime {
    all: u64,
    idle: u64,
}

impl ProcessorTime {
    fn busy_share_since(self, before: ProcessorTime) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        let idle = self.idle.saturating_sub(before.idle).min(all);
        (all - idle) as f64 / all as f64
    }
}

fn processor_time() -> Option<ProcessorTime> {
    parse(&fs::read_to_string("/proc/stat").ok()?)
}

/// Parses the line of all processors: user, nice, system, idle, iowait, irq, … (`man 5 proc_stat`).
/// Guest time is included in the first two.
fn parse(text: &str) -> Option<ProcessorTime> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let times: Vec<u64> = line.split_whitespace().take(8).map(|time| time.parse().ok()).collect::<Option<_>>()?;
    Some(ProcessorTime { all: times.iter().sum(), idle: times.get(3)? + times.get(4)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_time() {
        let before = parse("cpu  10 0 10 100 5 0 0 0 7 7\ncpu0 1 2 3\n").unwrap();
        let after = parse("cpu  20 0 15 150 40 0 0 0 9 9\n").unwrap();
        assert_eq!(after.busy_share_since(before), 0.15);
        assert!(parse("").is_none() && parse("cpu  1 2\n").is_none());
    }
}
