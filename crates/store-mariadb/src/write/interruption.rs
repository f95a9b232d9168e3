//! Ending a batch whose command is killed or over time.
//!
//! Most of a batch's time can be cut short by dropping its future: what is read is nobody's loss,
//! and a transaction that is not committed yet is rolled back when its session is killed. Only a
//! statement that is a transaction by itself, and a `COMMIT`, may take effect after that. So their
//! answer is waited for, after the server was asked to end them. A server that does not answer at
//! all leaves the outcome unknown, as a network error does.

use error::Result;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use store::Progress;

/// How long an answer is waited for after the server was asked to end a statement.
const GRACE: Duration = Duration::from_millis(500);

/// The session that executes a statement whose outcome counts, while it does.
#[derive(Clone, Default)]
pub(crate) struct Settling(Rc<Cell<Option<u64>>>);

impl Settling {
    /// Waits for a statement after which something is written for good.
    pub async fn during<T>(&self, session: u64, work: impl Future<Output = T>) -> T {
        let _reset = Reset(&self.0);
        self.0.set(Some(session));
        work.await
    }
}

struct Reset<'s>(&'s Cell<Option<u64>>);

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

/// Carries a batch out until its command is to stop; then fails with the reason, unless the batch
/// comes to its end in time.
pub(crate) async fn until_stopped<T>(
    kill: impl Fn(u64),
    progress: &Progress,
    settling: &Settling,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let mut work = pin!(work);
    let mut grace: Option<Pin<Box<tokio::time::Sleep>>> = None;
    poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        let Err(reason) = progress.check() else { return polled };
        if let Poll::Ready(outcome) = polled {
            return Poll::Ready(outcome.map_err(|_| reason));
        }
        let Some(session) = settling.0.get() else { return Poll::Ready(Err(reason)) };
        let grace = grace.get_or_insert_with(|| {
            kill(session);
            Box::pin(tokio::time::sleep(GRACE))
        });
        grace.as_mut().poll(context).map(|()| Err(reason))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use error::{Code, Error};
    use std::time::Instant;

    fn stopped() -> Progress {
        let progress = Progress::default();
        progress.stop(Error::new(Code::MAX_TIME_MS_EXPIRED, "over"));
        progress
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work)
    }

    #[test]
    fn what_can_be_undone_is_given_up_at_once() {
        let began = Instant::now();
        let work = std::future::pending::<Result<()>>();
        let outcome = run(until_stopped(|_| {}, &stopped(), &Settling::default(), work));
        assert_eq!(outcome.unwrap_err().code(), Code::MAX_TIME_MS_EXPIRED);
        assert!(began.elapsed() < GRACE);
    }

    #[test]
    fn what_is_written_for_good_is_waited_for() {
        let settling = Settling::default();
        let outcome = |waits: Duration| {
            let work = settling.during(7, async move {
                tokio::time::sleep(waits).await;
                Ok(waits)
            });
            run(async { until_stopped(|_| {}, &stopped(), &settling, work).await })
        };
        assert!(outcome(GRACE / 10).is_ok());
        assert!(outcome(GRACE * 20).is_err());
        assert_eq!(settling.0.get(), None);
    }
}
