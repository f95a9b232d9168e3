//! Files of the log that were opened already, of one server.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogFile {
    pub created: u32,
    /// The log begins with it, so that nothing was purged.
    pub is_first: bool,
}

/// Files by their names.
#[derive(Default)]
pub(super) struct KnownFiles(Mutex<HashMap<String, LogFile>>);

impl KnownFiles {
    /// Forgets all files: another log may use their names.
    pub fn clear(&self) {
        locked(&self.0).clear();
    }

    pub fn get(&self, name: &str) -> Option<LogFile> {
        locked(&self.0).get(name).copied()
    }

    pub fn insert(&self, name: &str, file: LogFile) {
        locked(&self.0).insert(name.to_owned(), file);
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
