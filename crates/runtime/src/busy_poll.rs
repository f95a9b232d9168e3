//! Busy polling: polls again for a moment instead of going to sleep, where a wait is usually short.
//!
//! Waking a thread that sleeps costs tens of microseconds on a virtual machine, more than many
//! requests take. So a wait that is expected to be short begins by polling, for no longer than a
//! configured window. The expectation comes from earlier waits for the same thing: for a client's
//! next request, for the reply to a prepared statement, or for the embedded store's writer. This is
//! the competitive spinning of Karlin, Li, Manasse and Owicki (1991), with the counter of a branch
//! predictor; Seastar's `idle-poll-time-us` and Linux's `busy_poll` do the same.
//!
//! Polling takes a core, so it is done only where one is likely to be free. It is off on a machine
//! with one core. It serves one conversation at a time: not while another client's request has
//! arrived or waits for a backend. And it is only for clients in a hurry. With a client that pauses
//! between requests (a person at a screen, a periodic job) the difference cannot be seen, and with
//! enough of them the core would poll most of the time.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The default of the configuration.
pub const DEFAULT_WINDOW: Duration = Duration::from_micros(100);

/// The window in nanoseconds; zero: off. It belongs to the process, since it concerns the process's
/// share of the machine.
static WINDOW: AtomicU64 = AtomicU64::new(0);

/// For how many windows a wait for a backend polls. Every query waits for one, and a hundred
/// documents by an index take two to three windows; a client may take any time before its next
/// request.
const WINDOWS_BEHIND: u32 = 3;

/// A client is in a hurry if its next request arrives within this many windows. Then polling for a
/// backend takes only a part of the time that its requests take anyway, and may show in its
/// throughput.
const WINDOWS_OF_HURRY: u32 = 10;

/// The number of requests that wait for a backend.
static WAITING_BEHIND: AtomicUsize = AtomicUsize::new(0);

/// The client whose request arrived last, by its [`BusyPoll::id`].
static SERVED_LAST: AtomicU32 = AtomicU32::new(0);

/// Whether that client is in a hurry.
static HURRIES: AtomicBool = AtomicBool::new(false);

static IDS: AtomicU32 = AtomicU32::new(1);

/// The expectation of the next wait for the same thing: a counter, to which a short wait adds one,
/// and from which a wait that was long or not alone takes two.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expectation(u8);

impl Expectation {
    const CERTAIN: u8 = 7;
    /// From this value on, polling is worthwhile.
    const WORTH_IT: u8 = 4;

    fn is_short(self) -> bool {
        self.0 >= Self::WORTH_IT
    }

    fn learn(&mut self, was_short: bool) {
        self.0 = if was_short { (self.0 + 1).min(Self::CERTAIN) } else { self.0.saturating_sub(2) };
    }
}

/// Sets the window.
pub(crate) fn set_window(window: Duration) {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let window = if cores == 1 { Duration::ZERO } else { window };
    WINDOW.store(window.as_nanos().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The next request of a client.
    Client,
    /// The reply of a backend, or of the thread of the embedded store's writer.
    ServerBehind,
}

/// The waits on one connection.
#[derive(Debug)]
pub struct BusyPoll {
    awaited: Awaited,
    id: u32,
    wait: Option<Wait>,
}

/// A wait in progress.
#[derive(Clone, Copy, Debug)]
struct Wait {
    since: Instant,
    /// It has polled.
    looked: bool,
    /// It has slept.
    slept: bool,
    /// The client whose request had arrived last when it began.
    served_last: u32,
}

impl BusyPoll {
    pub fn new(awaited: Awaited) -> Self {
        // Only clients need an identity.
        let id = match awaited {
            Awaited::Client => IDS.fetch_add(1, Ordering::Relaxed),
            Awaited::ServerBehind => 0,
        };
        BusyPoll { awaited, id, wait: None }
    }

    /// Takes the result of a poll. If it is pending and polling is worthwhile, wakes the task at
    /// once, behind all others that are ready.
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
                    // Other threads that the system would run on this core go first.
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
        // A wait that slept includes the wake-up, which takes about as long as the window: that is
        // how its default was chosen.
        let waking = if wait.slept && !wait.looked { set } else { Duration::ZERO };
        let bound = self.window(set) + waking;
        let took = wait.since.elapsed();
        expectation.learn(self.is_alone(wait) && took < bound);
        match self.awaited {
            Awaited::Client => {
                // Loaded first: with a single client, the cache line stays as it is.
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

    /// Returns whether the client whose request this wait serves would notice the difference. A
    /// client whose next request is expected at once is in a hurry.
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

    /// Polls that find nothing at first; returns whether the wait polled again at once.
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

    /// One test, since the window belongs to the process.
    #[test]
    fn short_waits_poll_and_long_ones_sleep() {
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
