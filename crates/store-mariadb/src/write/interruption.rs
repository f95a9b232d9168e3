//! Interrupts a batch whose command is killed or exceeds its time limit.
//!
//! Dropping the future of a batch ends most of its work: reads have no effect, and an uncommitted
//! transaction is rolled back when its session is killed. Only a statement that is a transaction of
//! its own, and a `COMMIT`, may take effect after that. So the batch waits for their answer, after
//! killing them. If the server does not answer, the outcome is unknown, as after a network error.

use error::Result;
use mariadb_client::Connection;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use store::Progress;

/// How long to wait for the answer of a killed statement.
const GRACE: Duration = Duration::from_millis(500);

/// The session that executes a statement which may take effect, while it does.
#[derive(Clone, Default)]
pub(crate) struct Interruption(Rc<Cell<Option<u64>>>);

impl Interruption {
    /// Waits for a statement of this session; `None`: its effect can be undone.
    pub async fn during<T>(&self, session: Option<u64>, work: impl Future<Output = T>) -> T {
        let _reset = Reset(&self.0);
        self.0.set(session);
        work.await
    }
}

/// Returns the session whose next statement cannot be undone. A client's transaction is rolled back
/// as a whole if its statement is abandoned.
pub(super) fn lasting(connection: &Connection) -> Option<u64> {
    (!connection.is_in_client_transaction()).then(|| connection.session())
}

struct Reset<'s>(&'s Cell<Option<u64>>);

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

/// Executes a batch until its command is stopped; then fails with the reason, unless the batch
/// finishes in time.
pub(crate) async fn until_stopped<T>(
    kill: impl Fn(u64),
    progress: &Progress,
    interruption: &Interruption,
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
        let Some(session) = interruption.0.get() else { return Poll::Ready(Err(reason)) };
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
    fn work_that_can_be_undone_is_abandoned_at_once() {
        let began = Instant::now();
        let work = std::future::pending::<Result<()>>();
        let outcome = run(until_stopped(|_| {}, &stopped(), &Interruption::default(), work));
        assert_eq!(outcome.unwrap_err().code(), Code::MAX_TIME_MS_EXPIRED);
        assert!(began.elapsed() < GRACE);
    }

    #[test]
    fn statements_that_take_effect_are_awaited() {
        let interruption = Interruption::default();
        let outcome = |waits: Duration| {
            let work = interruption.during(Some(7), async move {
                tokio::time::sleep(waits).await;
                Ok(waits)
            });
            run(async { until_stopped(|_| {}, &stopped(), &interruption, work).await })
        };
        assert!(outcome(GRACE / 10).is_ok());
        assert!(outcome(GRACE * 20).is_err());
        assert_eq!(interruption.0.get(), None);
    }
}
