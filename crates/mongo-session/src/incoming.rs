//! Room for large messages of which a part has come.
//!
//! A message's bytes are held from the first one on, and a client may take its time to send the last. So a large message is read
//! on only when there is room for all of it: in the process's memory, and in the part of it that unfinished messages may take.
//! Messages get room in the order in which they ask. While one waits, clients that have stopped sending are disconnected.

use commands::shortage;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// Messages up to this size need no room.
pub(crate) const SMALL_BYTES: usize = 256 * 1024;

/// Unfinished messages may take this part of the process's memory, and no less than one of the largest takes.
const PART: i64 = 4;
const BYTES_MIN: i64 = 64 << 20;

/// The unit in which room is given.
const UNIT_BYTES: usize = 1024;

/// How often it is looked whether there is memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// While others wait for room, a client must have sent so many bytes for each second since its message began, but for the first
/// seconds.
const BYTES_PER_SECOND_MIN: u64 = 64 * 1024;
const GRACE: Duration = Duration::from_secs(5);

/// What the unfinished messages of the process may take.
#[derive(Debug)]
pub(crate) struct Incoming {
    room: Semaphore,
    units: u32,
    waiting: AtomicUsize,
}

impl Incoming {
    pub fn new(process_bytes_max: i64) -> Incoming {
        let bytes = (process_bytes_max / PART).max(BYTES_MIN);
        let units = u32::try_from(bytes / UNIT_BYTES as i64).unwrap_or(u32::MAX);
        Incoming { room: Semaphore::new(units as usize), units, waiting: AtomicUsize::new(0) }
    }

    /// Waits until there is room for a message of so many bytes; `None` if there is none for so long.
    pub async fn room_for(&self, bytes: usize, patience: Duration) -> Option<SemaphorePermit<'_>> {
        let _waiting = Waiting::new(&self.waiting);
        let until = Instant::now() + patience;
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(self.units);
        let permit = tokio::time::timeout_at(until, self.room.acquire_many(units)).await.ok()?.ok()?;
        while !shortage::leaves(bytes) {
            if Instant::now() >= until {
                return None;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Some(permit)
    }

    /// Whether a message waits for room.
    fn is_crowded(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// Whether a client has sent so little of a message since it began that others go before.
    pub fn is_too_slow(&self, began: Instant, received: usize) -> bool {
        let elapsed = began.elapsed();
        self.is_crowded()
            && elapsed >= GRACE
            && (received as u64) < BYTES_PER_SECOND_MIN.saturating_mul(elapsed.as_secs())
    }
}

/// Counts one that waits.
struct Waiting<'w>(&'w AtomicUsize);

impl<'w> Waiting<'w> {
    fn new(waiting: &'w AtomicUsize) -> Self {
        waiting.fetch_add(1, Relaxed);
        Waiting(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn messages_wait_for_one_another() {
        let incoming = Incoming::new(0);
        let began = Instant::now();
        let first = incoming.room_for(48 << 20, Duration::from_secs(1)).await.expect("there is room for one");
        assert!(incoming.room_for(48 << 20, Duration::from_secs(1)).await.is_none());
        assert!(!incoming.is_too_slow(began, 0), "nobody waits");
        let second = incoming.room_for(48 << 20, Duration::from_secs(60));
        let end_of_first = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert!(incoming.is_too_slow(began, 100) && !incoming.is_too_slow(began, 10 << 20));
            drop(first);
        };
        let (second, ()) = tokio::join!(second, end_of_first);
        assert!(second.is_some());
    }
}
