//! The clock by which certificates are valid or not. The program provides it.

use crate::error::TlsError;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use std::sync::Arc;

/// A source of the time, used when files are loaded and in every handshake.
pub type Clock = Arc<dyn TimeProvider>;

/// Returns the system's clock.
pub fn system_clock() -> Clock {
    Arc::new(DefaultTimeProvider)
}

/// Returns the time in seconds since 1970.
pub(crate) fn seconds(clock: &Clock) -> Result<i64, TlsError> {
    let now =
        clock.current_time().ok_or_else(|| TlsError::new("the time is unknown, and certificates depend on it"))?;
    Ok(i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
}

/// Returns a time as it is shown to people.
pub(crate) fn show(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| format!("{seconds} s"), |time| time.to_string())
}
