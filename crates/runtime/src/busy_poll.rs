//! Looking again for a moment instead of going to sleep, where what is waited for usually comes at once.
//!
//! A thread that sleeps has to be woken, which on a virtual machine costs tens of microseconds, more than many requests. So a wait
//! that is expected to be short begins by looking again, for no longer than the window that was set; and what is expected of a wait
//! is what the ones before it for the same thing were: for a client's next request, for the answer to one prepared statement, or for
//! the embedded store's writer.
//! The competitive spinning of Karlin, Li, Manasse and Owicki (1991), with the counter of a branch predictor; Seastar's
//! `idle-poll-time-us` and Linux' `busy_poll` do the same.
//!
//! It takes a core, so it is done only where a core is likely to be free: not on a machine that has one, and for one conversation
//! at a time: not where another client's request has come in meanwhile, or waits for a server behind. And only for clients that are
//! in a hurry: of one that lets a moment pass between two requests, as people at a screen and those who ask every so often do, nobody would see
//! the difference, and with enough of them the core would be looking most of the time.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// What is set where the configuration says nothing.
pub const DEFAULT_WINDOW: Duration = Duration::from_micros(100);

/// In nanoseconds; zero: never. The process has it, as it is about the process's share of the machine.
static WINDOW: AtomicU64 = AtomicU64::new(0);

/// For how many windows it is worth looking for a server's answer. Every query waits for one, and a hundred documents by an index take
/// two to three windows; what a client does before its next request may take any time.
const WINDOWS_BEHIND: u32 = 3;

/// A client is in a hurry when it asks within so many windows of the answer before: looking for a server's answer then takes a part of the time
/// that carrying out its requests takes anyway, and may be seen in what it gets done.
const WINDOWS_OF_HURRY: u32 = 10;

/// How many requests wait for a server behind.
static WAITING_BEHIND: AtomicUsize = AtomicUsize::new(0);

/// The client whose request came in last, by its [`BusyPoll::id`].
static SERVED_LAST: AtomicU32 = AtomicU32::new(0);

/// Whether it was in a hurry.
static HURRIES: AtomicBool = AtomicBool::new(false);

static IDS: AtomicU32 = AtomicU32::new(1);

/// What is expected of the next wait for the same thing: a counter, to which a short wait adds one, and from which one that was long
/// or not alone takes two.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expectation(u8);

impl Expectation {
    const CERTAIN: u8 = 7;
    /// From here on it is worth looking again.
    const WORTH_IT: u8 = 4;

    fn is_short(self) -> bool {
        self.0 >= Self::WORTH_IT
    }

    fn learn(&mut self, was_short: bool) {
        self.0 = if was_short { (self.0 + 1).min(Self::CERTAIN) } else { self.0.saturating_sub(2) };
    }
}

/// Sets for how long a wait may look again before it sleeps.
pub(crate) fn set_window(window: Duration) {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let window = if cores == 1 { Duration::ZERO } else { window };
    WINDOW.store(window.as_nanos().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Who is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A client, for its next request.
    Client,
    /// A server, or a thread that serves, for its answer to a request.
    ServerBehind,
}

/// The waits on one connection.
#[derive(Debug)]
pub struct BusyPoll {
    awaited: Awaited,
    id: u32,
    wait: Option<Wait>,
}

/// A wait that is under way.
#[derive(Clone, Copy, Debug)]
struct Wait {
    since: Instant,
    /// It was worth looking again.
    looked: bool,
    /// It was not, or no longer.
    slept: bool,
    /// Whose request had come in last when it began.
    served_last: u32,
}

impl BusyPoll {
    pub fn new(awaited: Awaited) -> Self {
        // Only clients are told apart.
        let id = match awaited {
            Awaited::Client => IDS.fetch_add(1, Ordering::Relaxed),
            Awaited::ServerBehind => 0,
        };
        BusyPoll { awaited, id, wait: None }
    }

    /// Takes what looking for it gave. Where that is nothing and it is worth looking again at once, the task is woken
    /// for it, behind all others that can go on.
    pub fn poll<T>(&mut self, context: &mut Context<'_>, expectation: &mut Expectation, found: Poll<T>) -> Poll<T> {
        let set = Duration::from_nanos(WINDOW.load(Ordering::Relaxed));
        let window = self.window(set);
        match &found {
            Poll::Ready(_) => self.end(set, expectation),
            Poll::Pending if window.is_zero() => {}
            Poll::Pending => {
                let mut wait = self.begin();
                let worth_it = expectation.is_short() && self.is_alone(wait) && self.is_for_a_hurry();
                if worth_it && wait.since.elapsed() < window {
                    wait.looked = true;
                    // Whoever else the system would run on this core goes first.
                    std::thread::yield_now();
                    let _ = pin!(tokio::task::yield_now()).poll(context);
                } else {
                    wait.slept = true;
                }
                self.wait = Some(wait);
            }
        }
        found
    }

    fn window(&self, set: Duration) -> Duration {
        match self.awaited {
            Awaited::Client => set,
            Awaited::ServerBehind => set * WINDOWS_BEHIND,
        }
    }

    fn begin(&mut self) -> Wait {
        let awaited = self.awaited;
        *self.wait.get_or_insert_with(|| {
            if awaited == Awaited::ServerBehind {
                WAITING_BEHIND.fetch_add(1, Ordering::Relaxed);
            }
            Wait {
                since: Instant::now(),
                looked: false,
                slept: false,
                served_last: SERVED_LAST.load(Ordering::Relaxed),
            }
        })
    }

    fn end(&mut self, set: Duration, expectation: &mut Expectation) {
        let Some(wait) = self.wait.take() else { return };
        // Who slept was woken first, which takes about as long as is set: that is how it is chosen.
        let waking = if wait.slept && !wait.looked { set } else { Duration::ZERO };
        let bound = self.window(set) + waking;
        let took = wait.since.elapsed();
        expectation.learn(self.is_alone(wait) && took < bound);
        match self.awaited {
            Awaited::Client => {
                // Asked first, as the only one there is leaves the line as it is.
                if SERVED_LAST.load(Ordering::Relaxed) != self.id {
                    SERVED_LAST.store(self.id, Ordering::Relaxed);
                }
                let hurries = took < set * WINDOWS_OF_HURRY;
                if HURRIES.load(Ordering::Relaxed) != hurries {
                    HURRIES.store(hurries, Ordering::Relaxed);
                }
            }
            Awaited::ServerBehind => self.leave(),
        }
    }

    fn leave(&self) {
        WAITING_BEHIND.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether whoever this is for would see the difference. A client whose next request is expected at once is in a hurry.
    fn is_for_a_hurry(&self) -> bool {
        self.awaited == Awaited::Client || HURRIES.load(Ordering::Relaxed)
    }

    fn is_alone(&self, wait: Wait) -> bool {
        let own = usize::from(self.awaited == Awaited::ServerBehind);
        WAITING_BEHIND.load(Ordering::Relaxed) <= own && SERVED_LAST.load(Ordering::Relaxed) == wait.served_last
    }
}

impl Drop for BusyPoll {
    fn drop(&mut self) {
        if self.wait.is_some() && self.awaited == Awaited::ServerBehind {
            self.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::task::{Wake, Waker};

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits that find nothing at first, and whether they looked again at once.
    fn looks_again((waits, expectation): &mut (BusyPoll, Expectation), pause: Duration) -> bool {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(wakes.clone());
        let mut context = Context::from_waker(&waker);
        assert!(waits.poll(&mut context, expectation, Poll::<()>::Pending).is_pending());
        let again = wakes.0.load(Ordering::Relaxed) > 0;
        std::thread::sleep(pause);
        assert!(waits.poll(&mut context, expectation, Poll::Ready(())).is_ready());
        again
    }

    fn waits(awaited: Awaited) -> (BusyPoll, Expectation) {
        (BusyPoll::new(awaited), Expectation::default())
    }

    /// One test, as the window is the process's.
    #[test]
    fn short_waits_look_again_and_long_ones_sleep() {
        let (short, long) = (Duration::ZERO, Duration::from_millis(1200));
        let mut client = waits(Awaited::Client);
        assert!(!(0..20).any(|_| looks_again(&mut client, short)), "nothing is set");

        WINDOW.store(Duration::from_secs(1).as_nanos() as u64, Ordering::Relaxed);
        let mut client = waits(Awaited::Client);
        let learning: Vec<bool> = (0..6).map(|_| looks_again(&mut client, short)).collect();
        assert_eq!(learning, [false, false, false, false, true, true]);

        assert!(HURRIES.load(Ordering::Relaxed));
        let mut behind = waits(Awaited::ServerBehind);
        for _ in 0..8 {
            looks_again(&mut behind, short);
        }
        let mut other = waits(Awaited::ServerBehind);
        assert!(other.0.poll(&mut Context::from_waker(Waker::noop()), &mut other.1, Poll::<()>::Pending).is_pending());
        assert!(!looks_again(&mut behind, short), "another request needs the core");
        assert!(!looks_again(&mut client, short), "another request needs the core");
        drop(other);
        assert!(looks_again(&mut behind, short));
        (0..2).for_each(|_| assert!(looks_again(&mut behind, long)));
        assert!(looks_again(&mut behind, short), "a server's answer is worth more than one window");

        let mut client = waits(Awaited::Client);
        let mut another = waits(Awaited::Client);
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..20 {
            for (client, expectation) in [&mut client, &mut another] {
                let _ = client.poll(&mut context, expectation, Poll::Ready(()));
                assert!(client.poll(&mut context, expectation, Poll::<()>::Pending).is_pending());
                assert!(!expectation.is_short(), "two clients in turns");
            }
        }
        drop(another);
        for _ in 0..8 {
            looks_again(&mut client, short);
        }
        assert!(looks_again(&mut client, long));
        assert!(looks_again(&mut client, long), "one long wait among many short ones");
        assert!(!looks_again(&mut client, short), "long waits sleep");

        let mut sleeper = (BusyPoll::new(Awaited::Client), Expectation(Expectation::WORTH_IT - 1));
        assert!(!looks_again(&mut sleeper, long));
        assert!(looks_again(&mut sleeper, short), "what it slept for has its own waking up in it");

        WINDOW.store(Duration::from_millis(10).as_nanos() as u64, Ordering::Relaxed);
        looks_again(&mut client, Duration::from_millis(200));
        assert!(!looks_again(&mut behind, short), "nobody is in a hurry");
        looks_again(&mut client, short);
        assert!(looks_again(&mut behind, short), "what is expected of the server is as before");
    }
}
