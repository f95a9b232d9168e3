//! Wall-clock time, in the unit documents keep it in.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01 UTC.
pub fn now_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_millis() as i64,
        Err(before) => -(before.duration().as_millis() as i64),
    }
}

/// Seconds since 1970-01-01 UTC, as ObjectIds and timestamps hold them.
pub fn now_seconds() -> u32 {
    (now_ms() / 1000) as u32
}
