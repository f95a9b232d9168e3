//! Retries of changes and reads that conflict with other clients: their number, and the pauses
//! between them.

use std::time::Duration;

/// How often a change of a definition may start over, and a read that such a change has ended.
pub(crate) const ATTEMPTS_MAX: u32 = 30;

/// The longest pause before that.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// Pauses before another attempt, longer the more there were.
pub(crate) async fn pause(attempt: u32) {
    let most = Duration::from_millis(4 << attempt.min(8)).min(PAUSE_MAX);
    tokio::time::sleep(most.mul_f64(rand::random_range(0.2..1.0))).await;
}
