//! The most recent log lines, kept for `getLog`.

use std::collections::VecDeque;
use std::sync::Mutex;

/// How many lines each ring keeps, as MongoDB does.
const LINES_MAX: usize = 1024;

/// Two rings: everything, and the warnings given while starting.
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
    /// Records a line of the log.
    pub fn push(&self, line: &str) {
        lock(&self.global).push(line);
    }

    /// Records a warning given while starting; also part of the log as a whole.
    pub fn push_startup_warning(&self, line: &str) {
        lock(&self.startup_warnings).push(line);
        self.push(line);
    }

    /// The lines of a ring, oldest first, and how many it has seen in all; `None` for a name that is none.
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

/// So that a log writer can hand every formatted line to the ring.
impl std::io::Write for &LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.push(String::from_utf8_lossy(bytes).trim_end());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The process's recent lines. Logging begins before anything else is there, so they are the process's own.
pub fn recent() -> &'static LogLines {
    static RECENT: std::sync::LazyLock<LogLines> = std::sync::LazyLock::new(LogLines::default);
    &RECENT
}
