//! Tracks the progress of an index build, which is one long statement, as MariaDB reports it.

use crate::catalog::statistics;
use crate::catalog::table::Table;
use crate::index::Index;
use crate::store::MariaDbStore;
use mariadb_client::{Connection, Event, Failure, Result, server_error};
use mariadb_wire::Param;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Namespace, Progress};

/// How often it is checked whether the build must stop.
const CHECK_EVERY: Duration = Duration::from_millis(250);

/// How often progress is logged.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// How often the server is asked for progress, and how long it may take to answer.
const POLL_EVERY: Duration = Duration::from_millis(500);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// A killed statement is abandoned after this time.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Selects the progress in thousandths; the stages of a statement count alike.
const PROGRESS: &str = "SELECT CAST(LEAST(1000, (GREATEST(stage, 1) - 1 + progress / 100) / GREATEST(max_stage, 1) * 1000) AS UNSIGNED) \
                       FROM information_schema.PROCESSLIST WHERE id = ?";

/// Runs an index build until it is stopped. The statement that builds ends by itself; if the build
/// waits for something else, such as a locked table, it is abandoned a little later.
pub(crate) async fn until_stopped<T>(progress: &Progress, work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut work = pin!(work);
    let mut grace: Option<Pin<Box<tokio::time::Sleep>>> = None;
    poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        let Err(reason) = progress.check() else { return polled };
        if polled.is_ready() {
            return polled;
        }
        let grace = grace.get_or_insert_with(|| Box::pin(tokio::time::sleep(STOP_TIMEOUT + 2 * CHECK_EVERY)));
        grace.as_mut().poll(context).map(|()| Err(reason.into()))
    })
    .await
}

/// A running index build.
pub(crate) struct Build<'b> {
    store: &'b MariaDbStore,
    namespace: &'b Namespace,
    names: String,
    progress: &'b Progress,
    documents: u64,
    /// MariaDB's id of the connection that builds.
    connection: u64,
    begun: Instant,
}

impl<'b> Build<'b> {
    pub async fn begin(
        store: &'b MariaDbStore,
        connection: &mut Connection,
        table: &Table,
        namespace: &'b Namespace,
        wanted: &[Index],
        progress: &'b Progress,
    ) -> Result<Build<'b>> {
        let documents = statistics::documents(connection, table).await?;
        let names: Vec<&str> = wanted.iter().map(|index| index.spec.name.as_str()).collect();
        let names = names.join(", ");
        let connection = number(connection, "SELECT CONNECTION_ID()", &[]).await?.unwrap_or_default();
        progress.begin(documents);
        if documents > 0 {
            tracing::info!(index = %names, %namespace, documents, "index build begins");
        }
        Ok(Build { store, namespace, names, progress, documents, connection, begun: Instant::now() })
    }

    /// Waits for the statement that builds. If the build must stop, kills the statement and fails
    /// with the reason.
    pub async fn run<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let mut work = pin!(work);
        let (mut logged_at, mut polled_at, mut stopped) = (Instant::now(), Instant::now(), None);
        loop {
            if let Ok(done) = tokio::time::timeout(CHECK_EVERY, work.as_mut()).await {
                let interrupted = |failure: &Failure| failure.sql_code() == Some(server_error::QUERY_INTERRUPTED);
                return match self.progress.check() {
                    Err(reason) if done.as_ref().is_err_and(interrupted) => Err(reason.into()),
                    _ => done,
                };
            }
            if let Err(reason) = self.progress.check() {
                // The session of an abandoned connection is killed.
                if stopped.get_or_insert_with(Instant::now).elapsed() > STOP_TIMEOUT {
                    return Err(reason.into());
                }
                self.store.pool.kill_query(self.connection);
                continue;
            }
            // A failed poll is ignored: the statement goes on.
            if polled_at.elapsed() < POLL_EVERY {
                continue;
            }
            let polled = tokio::time::timeout(ANSWER_TIMEOUT, self.poll_progress()).await;
            polled_at = Instant::now();
            let Ok(Ok(Some(thousandths))) = polled else { continue };
            self.progress.set(self.documents * thousandths.min(1000) / 1000);
            if logged_at.elapsed() >= LOG_EVERY {
                logged_at = Instant::now();
                let (names, namespace, percent) = (&self.names, self.namespace, self.progress.percent());
                tracing::info!(index = %names, %namespace, percent, "index build goes on");
            }
        }
    }

    async fn poll_progress(&self) -> Result<Option<u64>> {
        // All other connections may be waiting for this build.
        let Some(mut lease) = self.store.pool.lease_if_free().await else { return Ok(None) };
        number(&mut lease, PROGRESS, &[Param::Unsigned(self.connection)]).await
    }

    pub fn end(self) {
        self.progress.set(self.documents);
        if self.documents > 0 {
            let milliseconds = self.begun.elapsed().as_millis() as u64;
            tracing::info!(index = %self.names, namespace = %self.namespace, milliseconds, "index built");
        }
    }
}

async fn number(connection: &mut Connection, sql: &str, params: &[Param<'_>]) -> Result<Option<u64>> {
    connection.queue_execute(&Arc::from(sql), params);
    let mut number = None;
    while let Event::Row(range) = connection.next().await? {
        number = Some(connection.row(range)?.next_u64()?);
    }
    Ok(number)
}
