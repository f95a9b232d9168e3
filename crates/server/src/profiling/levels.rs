//! The settings of the profiler and the slow log.

use super::queue::ProfileQueue;
use document::DocBuf;
use hashbrown::HashMap;
use query::Predicate;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Operations below this time are not examined by the fast paths of dispatch, unless profiling asks
/// for them.
const NOTICED_MS: i64 = 10;

/// A database's profiling level and filter.
#[derive(Clone, Debug, Default)]
pub struct DatabaseProfiling {
    pub level: i32,
    /// The filter as `profile` shows it, and its predicate.
    pub filter: Option<(DocBuf, Arc<Predicate>)>,
}

/// The profiling settings of the process.
#[derive(Debug)]
pub struct Profiling {
    slow_ms: AtomicI64,
    pub(super) slow_log: bool,
    /// The bits of a double.
    sample_rate: AtomicU64,
    databases: Mutex<HashMap<String, DatabaseProfiling, ahash::RandomState>>,
    /// Whether any database is profiled or filtered, or `slow_ms` is below [`NOTICED_MS`].
    records_fast: AtomicBool,
    pub(super) queue: ProfileQueue,
}

impl Profiling {
    pub fn new(slow_ms: i64, slow_log: bool) -> Profiling {
        Profiling {
            slow_ms: AtomicI64::new(slow_ms),
            slow_log,
            sample_rate: AtomicU64::new(1_f64.to_bits()),
            databases: Mutex::default(),
            records_fast: AtomicBool::new(slow_log && slow_ms < NOTICED_MS),
            queue: ProfileQueue::default(),
        }
    }

    /// Returns whether operations may be recorded although they are fast.
    #[inline]
    pub fn records_fast_operations(&self) -> bool {
        self.records_fast.load(Relaxed)
    }

    /// Returns whether an operation that took this long may have to be profiled or logged.
    #[inline]
    pub fn may_record(&self, elapsed: Duration) -> bool {
        self.records_fast_operations() || milliseconds(elapsed) > self.slow_ms.load(Relaxed)
    }

    pub fn slow_ms(&self) -> i64 {
        self.slow_ms.load(Relaxed)
    }

    pub fn sample_rate(&self) -> f64 {
        f64::from_bits(self.sample_rate.load(Relaxed))
    }

    /// Returns the settings of a database.
    pub fn of_database(&self, database: &str) -> DatabaseProfiling {
        self.lock().get(database).cloned().unwrap_or_default()
    }

    pub fn set_database(&self, database: &str, settings: DatabaseProfiling) {
        self.lock().insert(database.to_owned(), settings);
        self.update_records_fast();
    }

    pub fn set_slow_ms(&self, slow_ms: i64) {
        self.slow_ms.store(slow_ms, Relaxed);
        self.update_records_fast();
    }

    pub fn set_sample_rate(&self, rate: f64) {
        self.sample_rate.store(rate.to_bits(), Relaxed);
    }

    fn update_records_fast(&self) {
        let profiled = self.lock().values().any(|settings| settings.level > 0 || settings.filter.is_some());
        self.records_fast.store(profiled || self.slow_log && self.slow_ms() < NOTICED_MS, Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, DatabaseProfiling, ahash::RandomState>> {
        self.databases.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn is_sampled(&self) -> bool {
        let rate = self.sample_rate();
        rate >= 1.0 || rand::random::<f64>() < rate
    }
}

/// Returns a duration in whole milliseconds.
pub(super) fn milliseconds(time: Duration) -> i64 {
    (time.as_secs() as i64).saturating_mul(1000) + i64::from(time.subsec_millis())
}
