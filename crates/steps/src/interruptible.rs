//! A future whose polls can be suspended in the middle.

use crate::{MODE, Mode, Restored, memory, stacks};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// The coroutine that runs on this thread.
#[derive(Clone, Copy)]
pub(crate) struct Current(*const Yielder<(), ()>);

/// Drives a future on a stack of its own, where [`crate::step`] suspends a poll that takes too
/// long. The future is then pending and woken at once, so that its thread's other tasks have their
/// turn.
///
/// `check` is called before it continues. If that fails, the future never continues: its stack is
/// unwound, which runs all destructors, and the error is the outcome.
pub struct Interruptible<F: Future, C> {
    /// A suspended poll. It uses the future, so it must be dropped first: fields are dropped in
    /// this order.
    suspended: Option<Coroutine<(), (), Poll<F::Output>, DefaultStack>>,
    future: F,
    check: C,
    /// The bytes that the future holds; see [`memory`].
    held: i64,
}

impl<F: Future + Unpin, C> Interruptible<F, C> {
    pub fn new(future: F, check: C) -> Interruptible<F, C> {
        Interruptible { suspended: None, future, check, held: 0 }
    }

    /// Begins a poll on another stack.
    fn begin(
        &mut self,
        context: &Context<'_>,
        stack: DefaultStack,
    ) -> Coroutine<(), (), Poll<F::Output>, DefaultStack> {
        let future: *mut F = &mut self.future;
        // The poll may outlive the context, so it has a waker of its own.
        let waker = context.waker().clone();
        let poll = move |yielder: &Yielder<(), ()>, ()| {
            MODE.set(Mode::Suspends { began: None, coroutine: Current(yielder) });
            // SAFETY: the future stays where it is while the coroutine lives: `Interruptible` is
            // pinned from its first poll on, drops the coroutine before the future, and uses the
            // future nowhere else.
            let future = unsafe { &mut *future };
            Pin::new(future).poll(&mut Context::from_waker(&waker))
        };
        // SAFETY: what the closure borrows outlives the coroutine, as said above; the coroutine
        // never leaves its thread, as it is not `Send`.
        unsafe { Coroutine::with_stack_unchecked(stack, poll) }
    }
}

impl<F, C, T, E> Future for Interruptible<F, C>
where
    F: Future<Output = Result<T, E>> + Unpin,
    C: FnMut() -> Result<(), E>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, E>> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let _entered = memory::enter(this.held);
        let polled = this.poll_on(context);
        this.held = memory::held().unwrap_or_default();
        polled
    }
}

impl<F, C, T, E> Interruptible<F, C>
where
    F: Future<Output = Result<T, E>> + Unpin,
    C: FnMut() -> Result<(), E>,
{
    fn poll_on(&mut self, context: &mut Context<'_>) -> Poll<Result<T, E>> {
        let was_suspended = self.suspended.is_some();
        let mut coroutine = match self.suspended.take() {
            Some(suspended) => {
                if let Err(error) = (self.check)() {
                    end(suspended);
                    return Poll::Ready(Err(error));
                }
                suspended
            }
            None => match stacks::take() {
                Ok(stack) => self.begin(context, stack),
                // There is no memory for a stack: the poll cannot be suspended.
                Err(_) => return Pin::new(&mut self.future).poll(context),
            },
        };
        let restored = Restored(MODE.get());
        let result = coroutine.resume(());
        drop(restored);
        match result {
            CoroutineResult::Yield(()) => {
                // Continuing would find it over its limit again.
                if memory::exceeded().is_some()
                    && let Err(error) = (self.check)()
                {
                    end(coroutine);
                    return Poll::Ready(Err(error));
                }
                self.suspended = Some(coroutine);
                // Wakes after the next look at arrived events; `wake_by_ref` would delay these by
                // dozens of slices.
                let _ = pin!(tokio::task::yield_now()).poll(context);
                Poll::Pending
            }
            CoroutineResult::Return(polled) => {
                stacks::give_back(coroutine.into_stack());
                // The future's wakers are those of the poll's beginning.
                if was_suspended && polled.is_pending() {
                    context.waker().wake_by_ref();
                }
                polled
            }
        }
    }
}

impl<F: Future, C> Drop for Interruptible<F, C> {
    fn drop(&mut self) {
        if let Some(suspended) = self.suspended.take() {
            end(suspended);
        }
    }
}

impl<F: Future, C> fmt::Debug for Interruptible<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interruptible").field("suspended", &self.suspended.is_some()).finish_non_exhaustive()
    }
}

/// Unwinds a suspended poll.
fn end<T>(mut suspended: Coroutine<(), (), T, DefaultStack>) {
    let restored = Restored(MODE.replace(Mode::Free));
    suspended.force_unwind();
    drop(restored);
    stacks::give_back(suspended.into_stack());
}

/// Suspends the coroutine until it is polled again.
pub(crate) fn suspend(current: Current) {
    // Destructors that run during unwinding are not suspended.
    if std::thread::panicking() {
        return;
    }
    // SAFETY: it is this thread's running coroutine; its yielder lives as long as it runs.
    let yielder = unsafe { &*current.0 };
    yielder.suspend(());
    MODE.set(Mode::Suspends { began: None, coroutine: current });
}
