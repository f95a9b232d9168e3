//! Room for large messages of which a part has come.
//!
//! A message's bytes are held from the first one on, and a client may take its time to send the
//! last. So a large message is read on only when there is room for all of it: in the process's
//! memory, and in the part of it that unfinished messages may take.
//!
//! While a message waits for room, clients that have stopped sending are disconnected. The message
//! that came last gets room first: were it the first, a client would wait for all those before it
//! that never finish theirs.

use commands::shortage;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Messages up to this size need no room.
pub(crate) const SMALL_BYTES: usize = 256 * 1024;

/// Unfinished messages may take this part of the process's memory, and no less than one of the
/// largest takes.
const PART: i64 = 4;
const BYTES_MIN: usize = 64 << 20;

/// How often it is looked whether there is memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a client may pause within a message while another message waits for room.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// While another message waits, a client must have sent so many bytes for each second since its
/// message began, but for the first seconds.
const BYTES_PER_SECOND_MIN: u64 = 64 * 1024;
const GRACE: Duration = Duration::from_secs(5);

/// What the unfinished messages of the process may take.
#[derive(Debug)]
pub(crate) struct Incoming {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    /// Messages that wait, the oldest first.
    waiting: Vec<Waiting>,
    /// Messages that have got their place among the unfinished ones and wait for memory.
    short: usize,
}

#[derive(Debug)]
struct Waiting {
    bytes: usize,
    granted: oneshot::Sender<()>,
}

/// Room for one message; given back when dropped.
#[derive(Debug)]
pub(crate) struct Room<'i> {
    incoming: &'i Incoming,
    bytes: usize,
}

impl Incoming {
    pub fn new(process_bytes_max: i64) -> Incoming {
        let part = usize::try_from(process_bytes_max / PART).unwrap_or_default();
        Incoming { bytes_max: part.max(BYTES_MIN), state: Mutex::default() }
    }

    /// Waits until there is room for a message of so many bytes; `None` if there is none for so
    /// long.
    pub async fn room_for(&self, bytes: usize, patience: Duration) -> Option<Room<'_>> {
        let until = Instant::now() + patience;
        let room = self.place_for(bytes.min(self.bytes_max), until).await?;
        if !shortage::leaves(bytes) {
            let _short = Short::new(self);
            while !shortage::leaves(bytes) {
                if Instant::now() >= until {
                    return None;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        Some(room)
    }

    /// Waits for a place among the unfinished messages.
    async fn place_for(&self, bytes: usize, until: Instant) -> Option<Room<'_>> {
        let mut granted = {
            let mut state = self.lock();
            if state.waiting.is_empty() && state.taken + bytes <= self.bytes_max {
                state.taken += bytes;
                return Some(Room { incoming: self, bytes });
            }
            let (granted, is_granted) = oneshot::channel();
            state.waiting.push(Waiting { bytes, granted });
            is_granted
        };
        let outcome = tokio::time::timeout_at(until, &mut granted).await;
        granted.close();
        // It may have been granted a moment after its time was up.
        let is_granted = matches!(outcome, Ok(Ok(()))) || granted.try_recv().is_ok();
        is_granted.then(|| Room { incoming: self, bytes })
    }

    /// Gives room to those that wait, the last one first.
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

    /// Whether a client that has sent so much of a message, and has paused for so long, is
    /// disconnected in favour of others.
    pub fn is_too_slow(&self, began: Instant, received: usize, pause: Duration) -> bool {
        let elapsed = began.elapsed();
        let is_slow = elapsed >= GRACE && (received as u64) < BYTES_PER_SECOND_MIN.saturating_mul(elapsed.as_secs());
        (is_slow || pause >= PAUSE_MAX) && self.is_crowded()
    }

    /// Whether a message waits for room.
    fn is_crowded(&self) -> bool {
        let state = self.lock();
        state.short > 0 || state.waiting.iter().any(|waiting| !waiting.granted.is_closed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let mut state = self.incoming.lock();
        state.taken -= self.bytes;
        self.incoming.grant(&mut state);
    }
}

/// Counts a message that waits for memory.
struct Short<'i>(&'i Incoming);

impl<'i> Short<'i> {
    fn new(incoming: &'i Incoming) -> Self {
        incoming.lock().short += 1;
        Short(incoming)
    }
}

impl Drop for Short<'_> {
    fn drop(&mut self) {
        self.0.lock().short -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 48 << 20;
    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn those_that_stall_make_room() {
        let incoming = Incoming::new(0);
        let began = Instant::now();
        let first = incoming.room_for(LARGE, PATIENCE).await.expect("there is room for one");
        assert!(incoming.room_for(LARGE, Duration::from_secs(1)).await.is_none());
        assert!(!incoming.is_too_slow(began, 0, PATIENCE), "nobody waits any more");
        let end_of_first = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            let pause = Duration::from_millis(100);
            assert!(incoming.is_too_slow(began, 100, pause) && !incoming.is_too_slow(began, 10 << 20, pause));
            assert!(incoming.is_too_slow(began, 10 << 20, PAUSE_MAX));
            drop(first);
        };
        let (second, ()) = tokio::join!(incoming.room_for(LARGE, PATIENCE), end_of_first);
        assert!(second.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_goes_first_and_who_has_left_takes_nothing() {
        let incoming = Incoming::new(0);
        let order = std::cell::RefCell::new(Vec::new());
        let first = incoming.room_for(LARGE, PATIENCE).await;
        let wait = async |number: u32, patience: u64| {
            let room = incoming.room_for(LARGE, Duration::from_secs(patience)).await;
            order.borrow_mut().push((number, room.is_some()));
        };
        let release = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            drop(first);
        };
        tokio::join!(wait(1, 60), wait(2, 60), wait(3, 1), release);
        assert_eq!(*order.borrow(), [(3, false), (2, true), (1, true)]);
        assert_eq!(incoming.lock().taken, 0);
    }
}
