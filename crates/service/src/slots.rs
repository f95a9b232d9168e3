//! The limit of a server's connections, and the sessions that wait for one, in their order.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The most sessions that wait for a connection to one server. Others are refused at once.
pub const QUEUE_MAX: usize = 1000;

/// The connections of a server.
#[derive(Clone, Debug)]
pub struct Slots(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    used: usize,
    max: usize,
    queue: VecDeque<oneshot::Sender<Slot>>,
}

/// The right to a connection, returned when it is dropped.
#[derive(Debug)]
pub struct Slot(Option<Slots>);

/// Too many sessions wait already.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueFull;

impl Slots {
    /// `max`: the most connections; `None`: no limit.
    pub fn new(max: Option<usize>) -> Slots {
        let max = max.unwrap_or(usize::MAX);
        Slots(Arc::new(Mutex::new(State { used: 0, max, queue: VecDeque::new() })))
    }

    /// Changes the limit. Connections above a lower one stay.
    pub fn set_max(&self, max: Option<usize>) {
        let mut state = self.lock();
        state.max = max.unwrap_or(usize::MAX);
        self.serve_queue(&mut state);
    }

    pub fn is_full(&self) -> bool {
        let state = self.lock();
        state.used >= state.max
    }

    pub fn used(&self) -> usize {
        self.lock().used
    }

    pub fn queued(&self) -> usize {
        self.lock().queue.iter().filter(|waiter| !waiter.is_closed()).count()
    }

    /// Takes a slot if one is free and no session waits for it.
    pub fn try_take(&self) -> Option<Slot> {
        let mut state = self.lock();
        (state.used < state.max).then(|| self.take(&mut state))
    }

    /// Takes a slot, waiting for one where necessary.
    pub async fn wait(&self) -> Result<Slot, QueueFull> {
        let waiting = {
            let mut state = self.lock();
            if state.used < state.max {
                return Ok(self.take(&mut state));
            }
            state.queue.retain(|waiter| !waiter.is_closed());
            if state.queue.len() >= QUEUE_MAX {
                return Err(QueueFull);
            }
            let (sender, receiver) = oneshot::channel();
            state.queue.push_back(sender);
            receiver
        };
        waiting.await.map_err(|_| QueueFull)
    }

    fn take(&self, state: &mut State) -> Slot {
        state.used += 1;
        Slot(Some(self.clone()))
    }

    /// Gives free slots to those that wait.
    fn serve_queue(&self, state: &mut State) {
        while state.used < state.max
            && let Some(waiter) = state.queue.pop_front()
        {
            // A waiter that has left returns its slot, without the lock that is held here.
            if let Err(mut slot) = waiter.send(self.take(state)) {
                mem::take(&mut slot.0);
                state.used -= 1;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(slots) = self.0.take() {
            let mut state = slots.lock();
            state.used -= 1;
            slots.serve_queue(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn slots_go_to_those_that_wait_in_their_order() {
        let slots = Slots::new(Some(1));
        let first = slots.try_take().unwrap();
        assert!(slots.try_take().is_none());
        let (mut second, mut third) = (pin!(slots.wait()), pin!(slots.wait()));
        assert!(poll(second.as_mut()).is_none() && poll(third.as_mut()).is_none());
        assert_eq!((slots.used(), slots.queued()), (1, 2));
        drop(first);
        assert!(slots.try_take().is_none(), "it belongs to the second");
        assert!(poll(third.as_mut()).is_none());
        let second = poll(second.as_mut()).unwrap().unwrap();
        drop(second);
        drop(poll(third.as_mut()).unwrap().unwrap());
        assert_eq!((slots.used(), slots.queued()), (0, 0));
    }

    #[test]
    fn a_waiter_that_leaves_takes_no_slot_with_it() {
        let slots = Slots::new(Some(1));
        let first = slots.try_take().unwrap();
        {
            let mut given_and_dropped = pin!(slots.wait());
            assert!(poll(given_and_dropped.as_mut()).is_none());
            drop(first);
        }
        let first = slots.try_take().unwrap();
        {
            let mut left = pin!(slots.wait());
            assert!(poll(left.as_mut()).is_none());
        }
        drop(first);
        assert_eq!((slots.used(), slots.queued()), (0, 0));
    }

    #[test]
    fn the_limit_can_change_and_the_queue_is_bounded() {
        let slots = Slots::new(None);
        let taken: Vec<Slot> = (0..5).filter_map(|_| slots.try_take()).collect();
        slots.set_max(Some(2));
        assert!(slots.try_take().is_none());
        let mut waiting: Vec<_> = (0..QUEUE_MAX).map(|_| Box::pin(slots.wait())).collect();
        assert!(waiting.iter_mut().all(|waiter| poll(waiter.as_mut()).is_none()));
        assert_eq!(poll(pin!(slots.wait())).unwrap().unwrap_err(), QueueFull);
        slots.set_max(Some(6));
        assert!(poll(waiting[0].as_mut()).unwrap().is_ok());
        drop(waiting);
        drop(taken);
        assert_eq!(slots.used(), 0);
    }
}
