use crate::*;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn work_for(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        step();
    }
}

#[test]
fn a_long_poll_is_suspended_and_goes_on() {
    let polls = Cell::new(0);
    let work = pin!(async {
        // Ends only when it was suspended.
        while polls.get() < 4 {
            step();
        }
        Ok::<_, ()>(7)
    });
    let mut driven = pin!(Interruptible::new(work, || Ok(())));
    loop {
        polls.set(polls.get() + 1);
        if let Poll::Ready(outcome) = poll(driven.as_mut()) {
            break assert_eq!(outcome, Ok(7));
        }
    }
}

#[test]
fn two_take_turns() {
    let turn = Cell::new(0);
    let make = |own: u32| {
        let turn = &turn;
        Interruptible::new(
            Box::pin(async move {
                // Each waits in the middle of its work for the other one.
                for round in 0..3 {
                    while turn.get() != 2 * round + own {
                        step();
                    }
                    turn.set(turn.get() + 1);
                }
                Ok::<_, ()>(())
            }),
            || Ok(()),
        )
    };
    let (mut one, mut two) = (pin!(make(0)), pin!(make(1)));
    let (mut one_done, mut two_done) = (false, false);
    while !one_done || !two_done {
        one_done = one_done || poll(one.as_mut()).is_ready();
        two_done = two_done || poll(two.as_mut()).is_ready();
    }
    assert_eq!(turn.get(), 6);
}

#[test]
fn work_that_is_to_end_is_unwound() {
    let alive = Rc::new(());
    let held = alive.clone();
    let is_over = Cell::new(false);
    let work = Box::pin(async move {
        let _held = held;
        work_for(Duration::from_secs(3600));
        Ok(())
    });
    let mut driven = pin!(Interruptible::new(work, || if is_over.get() { Err("over") } else { Ok(()) }));
    assert!(poll(driven.as_mut()).is_pending());
    assert!(poll(driven.as_mut()).is_pending());
    is_over.set(true);
    assert_eq!(poll(driven.as_mut()), Poll::Ready(Err("over")));
    assert_eq!(Rc::strong_count(&alive), 1);
}

#[test]
fn dropped_in_the_middle_it_drops_what_it_holds() {
    let alive = Rc::new(());
    let held = alive.clone();
    let work = Box::pin(async move {
        let _held = held;
        work_for(Duration::from_secs(3600));
        Ok::<_, ()>(())
    });
    let mut driven = Box::pin(Interruptible::new(work, || Ok(())));
    assert!(poll(driven.as_mut()).is_pending());
    drop(driven);
    assert_eq!(Rc::strong_count(&alive), 1);
}

#[test]
fn waiting_is_passed_on() {
    let mut waits = 2;
    let work = pin!(poll_fn(|_| {
        waits -= 1;
        if waits == 0 { Poll::Ready(Ok::<_, ()>(5)) } else { Poll::Pending }
    }));
    let mut driven = pin!(Interruptible::new(work, || Ok(())));
    assert!(poll(driven.as_mut()).is_pending());
    assert_eq!(poll(driven.as_mut()), Poll::Ready(Ok(5)));
}

#[test]
fn a_panic_reaches_who_polls() {
    let work = pin!(async {
        work_for(SLICE * 3);
        if taken() > 0 {
            panic!("wrong");
        }
        Ok::<_, ()>(())
    });
    let mut driven = pin!(Interruptible::new(work, || Ok(())));
    let outcome =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| while poll(driven.as_mut()).is_pending() {}));
    assert!(outcome.is_err());
}

#[test]
fn bounded_work_is_given_up() {
    let endless = || -> u32 {
        loop {
            step();
        }
    };
    assert_eq!(bounded(10_000, endless), Err(TooLong));
    assert_eq!(bounded(10_000, || (0..5000).for_each(|_| step())), Ok(()));
    assert_eq!(bounded(1_000_000, || steps(2_000_000)), Err(TooLong));
    // Nested.
    assert_eq!(bounded(1_000_000, || bounded(10_000, endless)), Ok(Err(TooLong)));
}

#[test]
fn unbroken_work_is_not_suspended() {
    let work = pin!(async {
        unbroken(|| work_for(SLICE * 3));
        Ok::<_, ()>(())
    });
    let mut driven = pin!(Interruptible::new(work, || Ok(())));
    assert!(poll(driven.as_mut()).is_ready());
}

#[test]
fn steps_are_counted() {
    let before = taken();
    (0..5000).for_each(|_| step());
    steps(100_000);
    assert_eq!(taken() - before, 105_000);
}

#[test]
fn work_that_holds_too_much_is_ended() {
    let before = memory::limits();
    memory::set_limits(memory::Limits { process: i64::MAX, request: 8 << 20 });
    let alive = Rc::new(());
    let held = alive.clone();
    let work = Box::pin(async move {
        let _held = held;
        loop {
            step();
            memory::allocated(1 << 20);
        }
        #[expect(unreachable_code, reason = "it says what the work would give")]
        Ok(())
    });
    let check = || memory::exceeded().map_or(Ok(()), Err);
    let mut driven = pin!(Interruptible::new(work, check));
    let outcome = loop {
        if let Poll::Ready(outcome) = poll(driven.as_mut()) {
            break outcome;
        }
    };
    memory::set_limits(before);
    assert!(matches!(outcome, Err(memory::Exceeded::Request { held, .. }) if held < 16 << 20), "{outcome:?}");
    assert_eq!(Rc::strong_count(&alive), 1);
}
