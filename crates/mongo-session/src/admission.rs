//! Admission of large messages: memory for those of which a part has arrived.
//!
//! A message's bytes are held from the first one on, and a client may take its time to send the
//! last. So a large message is read on only once there is memory for all of it: in the process's
//! memory, and in the part of it for unfinished messages.
//!
//! While a message waits for memory, clients that have stopped sending are disconnected. The last
//! message to arrive is admitted first: if it were the first, a client would wait for all messages
//! before it that are never finished.

use server::memory_pressure;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Messages up to this size need no admission. Ten thousand of them are 640 MB.
pub(crate) const SMALL_BYTES: usize = 64 * 1024;

/// The part of the process's memory for unfinished messages, and the least: more than the largest
/// message.
const PART: i64 = 4;
const BYTES_MIN: usize = 64 << 20;

/// How often the available memory is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The longest pause within a message while another message waits for memory.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// While another message waits, the least bytes per second that a client must have sent since its
/// message began, after the first seconds.
const BYTES_PER_SECOND_MIN: u64 = 64 * 1024;
const GRACE: Duration = Duration::from_secs(5);

/// The memory of the process's unfinished messages.
#[derive(Debug)]
pub(crate) struct Admission {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    /// Messages that wait, the oldest first.
    waiting: Vec<Waiting>,
    /// Messages that have a place among the unfinished ones and wait for memory.
    short_of_memory: usize,
}

#[derive(Debug)]
struct Waiting {
    bytes: usize,
    granted: oneshot::Sender<()>,
}

/// The reservation of one message, released when dropped.
#[derive(Debug)]
pub(crate) struct Reservation<'i> {
    admission: &'i Admission,
    bytes: usize,
}

impl Admission {
    pub fn new(process_bytes_max: i64) -> Admission {
        let part = usize::try_from(process_bytes_max / PART).unwrap_or_default();
        Admission { bytes_max: part.max(BYTES_MIN), state: Mutex::default() }
    }

    /// Waits for memory for a message of `bytes`. Returns `None` if there is none within `timeout`.
    pub async fn admit(&self, bytes: usize, timeout: Duration) -> Option<Reservation<'_>> {
        let until = Instant::now() + timeout;
        let reservation = self.reserve(bytes.min(self.bytes_max), until).await?;
        if !memory_pressure::has_room_for(bytes) {
            let _short = ShortOfMemory::new(self);
            while !memory_pressure::has_room_for(bytes) {
                if Instant::now() >= until {
                    return None;
                }
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        }
        Some(reservation)
    }

    /// Waits for a place among the unfinished messages.
    async fn reserve(&self, bytes: usize, until: Instant) -> Option<Reservation<'_>> {
        let mut granted = {
            let mut state = self.lock();
            if state.waiting.is_empty() && state.taken + bytes <= self.bytes_max {
                state.taken += bytes;
                return Some(Reservation { admission: self, bytes });
            }
            let (granted, is_granted) = oneshot::channel();
            state.waiting.push(Waiting { bytes, granted });
            is_granted
        };
        let outcome = tokio::time::timeout_at(until, &mut granted).await;
        granted.close();
        // It may have been granted just after the timeout.
        let is_granted = matches!(outcome, Ok(Ok(()))) || granted.try_recv().is_ok();
        is_granted.then(|| Reservation { admission: self, bytes })
    }

    /// Grants places to messages that wait, the last one first.
    fn grant(&self, state: &mut State) {
        state.waiting.retain(|waiting| !waiting.granted.is_closed());
        while let Some(last) = state.waiting.last() {
            let bytes = last.bytes;
            if state.taken + bytes > self.bytes_max {
                return;
            }
            let sent = state.waiting.pop().map(|last| last.granted.send(()));
            if sent == Some(Ok(())) {
                state.taken += bytes;
            }
        }
    }

    /// Returns whether a client that has sent `received` bytes of a message and has paused for
    /// `pause` must be disconnected in favour of others.
    pub fn is_too_slow(&self, began: Instant, received: usize, pause: Duration) -> bool {
        let elapsed = began.elapsed();
        let is_slow = elapsed >= GRACE && (received as u64) < BYTES_PER_SECOND_MIN.saturating_mul(elapsed.as_secs());
        (is_slow || pause >= PAUSE_MAX) && self.is_contended()
    }

    /// Returns whether a message waits for memory.
    fn is_contended(&self) -> bool {
        let state = self.lock();
        state.short_of_memory > 0 || state.waiting.iter().any(|waiting| !waiting.granted.is_closed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut state = self.admission.lock();
        state.taken -= self.bytes;
        self.admission.grant(&mut state);
    }
}

/// Counts a message that waits for memory.
struct ShortOfMemory<'i>(&'i Admission);

impl<'i> ShortOfMemory<'i> {
    fn new(admission: &'i Admission) -> Self {
        admission.lock().short_of_memory += 1;
        ShortOfMemory(admission)
    }
}

impl Drop for ShortOfMemory<'_> {
    fn drop(&mut self) {
        self.0.lock().short_of_memory -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 48 << 20;
    const TIMEOUT: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn stalled_messages_give_way() {
        let admission = Admission::new(0);
        let began = Instant::now();
        let first = admission.admit(LARGE, TIMEOUT).await.expect("one message fits");
        assert!(admission.admit(LARGE, Duration::from_secs(1)).await.is_none());
        assert!(!admission.is_too_slow(began, 0, TIMEOUT), "no message waits any more");
        let end_of_first = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            let pause = Duration::from_millis(100);
            assert!(admission.is_too_slow(began, 100, pause) && !admission.is_too_slow(began, 10 << 20, pause));
            assert!(admission.is_too_slow(began, 10 << 20, PAUSE_MAX));
            drop(first);
        };
        let (second, ()) = tokio::join!(admission.admit(LARGE, TIMEOUT), end_of_first);
        assert!(second.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_message_is_admitted_first_and_expired_ones_take_nothing() {
        let admission = Admission::new(0);
        let order = std::cell::RefCell::new(Vec::new());
        let first = admission.admit(LARGE, TIMEOUT).await;
        let wait = async |number: u32, timeouts: u64| {
            let reservation = admission.admit(LARGE, Duration::from_secs(timeouts)).await;
            order.borrow_mut().push((number, reservation.is_some()));
        };
        let release = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            drop(first);
        };
        tokio::join!(wait(1, 60), wait(2, 60), wait(3, 1), release);
        assert_eq!(*order.borrow(), [(3, false), (2, true), (1, true)]);
        assert_eq!(admission.lock().taken, 0);
    }
}
