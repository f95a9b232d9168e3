//! A clock for durations, which no change of the system's time moves.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The first use of the clock, and the system's time then in milliseconds since 1970.
static START: LazyLock<(Instant, i64)> = LazyLock::new(|| {
    let wall_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    (Instant::now(), wall_ms)
});

/// Returns milliseconds that never go back or leap. They are those since 1970 as long as the
/// system's time is not set.
#[inline]
pub fn steady_ms() -> i64 {
    let (began, wall_ms) = &*START;
    wall_ms + began.elapsed().as_millis() as i64
}
