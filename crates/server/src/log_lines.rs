//! The most recent log lines, for `getLog`.

use std::collections::VecDeque;
use std::sync::Mutex;

/// The number of lines in each ring, as in MongoDB.
const LINES_MAX: usize = 1024;

/// Two rings: all lines, and the warnings of the start.
#[derive(Debug, Default)]
pub struct LogLines {
    global: Mutex<Ring>,
    startup_warnings: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    lines: VecDeque<String>,
    total: u64,
}

impl LogLines {
    /// Records a line.
    pub fn push(&self, line: &str) {
        lock(&self.global).push(line);
    }

    /// Records a warning of the start, in both rings.
    pub fn push_startup_warning(&self, line: &str) {
        lock(&self.startup_warnings).push(line);
        self.push(line);
    }

    /// Returns the total number of lines of a ring and the recent ones, oldest first; `None` for an
    /// unknown name.
    pub fn read(&self, name: &str) -> Option<(u64, Vec<String>)> {
        let ring = match name {
            "global" => lock(&self.global),
            "startupWarnings" => lock(&self.startup_warnings),
            _ => return None,
        };
        Some((ring.total, ring.lines.iter().cloned().collect()))
    }
}

impl Ring {
    fn push(&mut self, line: &str) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line.to_owned());
        self.total += 1;
    }
}

fn lock(ring: &Mutex<Ring>) -> std::sync::MutexGuard<'_, Ring> {
    ring.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Lets a log writer pass every formatted line to the ring.
impl std::io::Write for &LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.push(String::from_utf8_lossy(bytes).trim_end());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the process's recent lines. They are global because logging begins before any other
/// state exists.
pub fn recent() -> &'static LogLines {
    static RECENT: std::sync::LazyLock<LogLines> = std::sync::LazyLock::new(LogLines::default);
    &RECENT
}
