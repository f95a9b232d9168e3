//! The follower's thread: connects, resumes after a cut, and starts over if the log no longer has
//! the position. With a primary that changes, it goes on at the same position of the new primary's
//! log, if that has every transaction of the old one.

use crate::changes::Transaction;
use crate::followed::Followed;
use crate::freshness::{Freshness, State};
use crate::log_position::{is_read_only, log_end, log_has, log_identity};
use crate::options::FollowOptions;
use crate::receiver::Receiver;
use crate::requirements::{self, ServerSettings};
use crate::session::{self, Shared};
use crate::source::StreamEnd;
use crate::stream_position::StreamPosition;
use crate::visibility::Visibility;
use error::{Code, Error};
use mariadb_client::{Failure, PrimarySource, Result, ServerUrl, TextConnection};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// After this many sessions without progress, the next event of the log is assumed to end them, and
/// is skipped.
const WITHOUT_PROGRESS_MAX: u32 = 3;

/// How long the server that was the primary may take to show its last transactions.
const OLD_SERVER_TIMEOUT: Duration = Duration::from_secs(1);

/// Follows the binary log until dropped.
pub struct Follower {
    freshness: Freshness,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Connects, checks the server's configuration, then follows on a thread of its own. The first
    /// delivery is [`crate::Change::Everything`].
    ///
    /// Fails with 6 (no server), 18 (user or password refused) or 72 (the server is not configured
    /// for it, or the user lacks privileges). The message says in one sentence what to do.
    pub fn start(url: &str, options: FollowOptions, receiver: Box<dyn Receiver>) -> error::Result<Follower> {
        Follower::start_at(Followed::Server(ServerUrl::parse(url)?), options, receiver)
    }

    /// As [`Follower::start`], for the primary of servers that replicate.
    pub fn start_at_primary(
        primary: PrimarySource,
        options: FollowOptions,
        receiver: Box<dyn Receiver>,
    ) -> error::Result<Follower> {
        Follower::start_at(Followed::Primary(primary), options, receiver)
    }

    fn start_at(target: Followed, options: FollowOptions, receiver: Box<dyn Receiver>) -> error::Result<Follower> {
        let freshness = Freshness::new();
        let (stop, stopped) = oneshot::channel();
        let (started, outcome) = mpsc::channel();
        let run = Run {
            target,
            server_id: options.server_id.unwrap_or_else(|| rand::random_range(1 << 31..u32::MAX)),
            options,
            receiver,
            freshness: freshness.clone(),
            started: Some(started),
            position_reached: None,
            without_progress: 0,
            server: None,
        };
        let internal = |what: &str| Error::internal(format!("cannot follow MariaDB's binary log: {what}"));
        let thread = std::thread::Builder::new()
            .name("binlog".into())
            .spawn(move || run.on_thread(stopped))
            .map_err(|error| internal(&error.to_string()))?;
        outcome.recv().unwrap_or_else(|_| Err(internal("its thread ended")))?;
        Ok(Follower { freshness, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns a handle that reads the age of the follower's knowledge.
    pub fn freshness(&self) -> Freshness {
        self.freshness.clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the follower's thread.
struct Run {
    target: Followed,
    server_id: u32,
    options: FollowOptions,
    receiver: Box<dyn Receiver>,
    freshness: Freshness,
    /// Receives the outcome of the first attempt.
    started: Option<mpsc::Sender<error::Result<()>>>,
    /// The position reached; `None` before the first connection, and if the log no longer has it.
    position_reached: Option<StreamPosition>,
    /// Number of consecutive sessions without progress.
    without_progress: u32,
    /// The server that was followed last.
    server: Option<KnownServer>,
}

/// A server, its settings, and when they were read.
struct KnownServer {
    url: ServerUrl,
    settings: ServerSettings,
    asked: Instant,
}

impl KnownServer {
    /// Returns whether a server with these settings is this one, and has restarted since.
    fn has_restarted(&self, found: &ServerSettings) -> bool {
        found.uptime + 2 < self.settings.uptime + self.asked.elapsed().as_secs()
    }
}

/// Marks the stream as cut when the thread ends, even by a panic of the receiver.
struct CutOnDrop(Freshness);

impl Drop for CutOnDrop {
    fn drop(&mut self) {
        let why = "the binary log is not followed any more".to_owned();
        self.0.set_state(State::Cut { since: Instant::now(), why });
    }
}

impl Run {
    fn on_thread(mut self, mut stopped: oneshot::Receiver<()>) {
        let _guard = CutOnDrop(self.freshness.clone());
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return self.report(Err(Error::internal(format!("cannot start a runtime: {error}")))),
        };
        runtime.block_on(async {
            tokio::select! {
                () = self.run() => {}
                _ = &mut stopped => {}
            }
        });
    }

    fn report(&mut self, outcome: error::Result<()>) {
        if let Some(started) = self.started.take() {
            let _ = started.send(outcome);
        }
    }

    /// Follows and reconnects; returns only if the very first attempt fails.
    async fn run(&mut self) {
        let (first, longest) = self.options.retry;
        let mut pause = first;
        loop {
            let begun = Instant::now();
            let ended = match self.attempt().await {
                Ok(never) => match never {},
                Err(ended) => ended,
            };
            if self.started.is_some() {
                return self.report(Err(startup_error(ended)));
            }
            let (why, must_start_over) = match ended {
                StreamEnd::PositionLost(message) => {
                    (format!("MariaDB's binary log no longer contains the position read last: {message}"), true)
                }
                StreamEnd::Failed(failure) => (failure.to_string(), false),
            };
            if must_start_over {
                self.position_reached = None;
            }
            tracing::warn!("MariaDB's binary log is not followed: {why}");
            Run::cut(&self.freshness, &mut *self.receiver, why);
            if begun.elapsed() > longest {
                pause = first;
            }
            // After a lost position the follower can start over at once.
            if !must_start_over || pause > first {
                self.target.pause(pause.mul_f64(rand::random_range(0.8..1.2))).await;
            }
            pause = (pause * 2).min(longest);
        }
    }

    fn cut(freshness: &Freshness, receiver: &mut dyn Receiver, why: String) {
        let since = match freshness.state() {
            State::Cut { since, .. } => since,
            State::Following { .. } => Instant::now(),
        };
        let state = State::Cut { since, why };
        if freshness.set_state(state.clone()) {
            receiver.state(&state);
        }
    }

    /// Connects, and follows until a failure.
    async fn attempt(&mut self) -> Result<std::convert::Infallible, StreamEnd> {
        let patience = self.options.heartbeat * 2 + Duration::from_millis(250);
        let patience = patience.max(Duration::from_secs(1));
        let target = self.target.present(|why| Run::cut(&self.freshness, &mut *self.receiver, why)).await;
        let mut queries = TextConnection::connect(&target, patience).await?;
        let found = requirements::check(&mut queries, self.options.semi_sync).await?;
        if let Followed::Primary(_) = self.target {
            requirements::check_gtids(&mut queries).await?;
        }
        if self.is_another_server(&found) && self.goes_on(&mut queries).await? {
            let log = log_identity(&mut queries).await?;
            let position = self.position_reached.as_ref().map(StreamPosition::position).unwrap_or_default();
            tracing::info!(
                "MariaDB's binary log is followed on another primary, where it has everything that was read"
            );
            self.receiver.started(&log, &position);
        } else if self.may_have_lost_transactions(&found) {
            self.position_reached = None;
        }
        let checksum = found.checksum;
        self.server = Some(KnownServer { url: target.clone(), settings: found, asked: Instant::now() });
        if self.without_progress >= WITHOUT_PROGRESS_MAX {
            self.without_progress = 0;
        }
        let mut position_reached = match self.position_reached.take() {
            Some(position_reached) => position_reached,
            None => self.start_over(&mut queries).await?,
        };
        let start = position_reached.text();
        let shared = Shared {
            position_reached: &mut position_reached,
            freshness: &self.freshness,
            receiver: &mut *self.receiver,
            options: &self.options,
        };
        let mut session = match session::open(&target, queries, self.server_id, checksum, shared).await {
            Ok(session) => session,
            Err(ended) => {
                self.position_reached = Some(position_reached);
                return Err(ended);
            }
        };
        if let Some(started) = self.started.take() {
            let _ = started.send(Ok(()));
        }
        let ended = tokio::select! {
            ended = session.follow() => ended,
            () = self.target.leaves(&target) => {
                StreamEnd::Failed(Failure::Lost("the server is no longer the primary".into()))
            }
        };
        let has_unproved = session.has_unproved();
        drop(session);
        self.without_progress = if position_reached.text() == start { self.without_progress + 1 } else { 0 };
        if !has_unproved && self.without_progress < WITHOUT_PROGRESS_MAX {
            self.position_reached = Some(StreamPosition::at(&position_reached.position()));
        }
        Err(ended)
    }

    /// Starts at the server's current position; earlier changes count as unknown.
    async fn start_over(&mut self, queries: &mut TextConnection) -> Result<StreamPosition> {
        let moment = Instant::now();
        let position = log_end(queries).await?;
        let log = log_identity(queries).await?;
        Visibility::wait_for_log_end(queries).await?;
        self.receiver.changes(&[Transaction::everything()]);
        self.receiver.started(&log, &position);
        self.freshness.advance(moment);
        Ok(StreamPosition::at(&position))
    }

    /// Returns whether the server may have lost transactions: it is another server, or it recovered
    /// from a crash without a durable log. The sequence numbers of lost transactions are used
    /// again, so the position does not show the loss.
    fn may_have_lost_transactions(&self, found: &ServerSettings) -> bool {
        let Some(before) = &self.server else { return false };
        self.is_another_server(found) || (before.has_restarted(found) && !found.is_durable)
    }

    fn is_another_server(&self, found: &ServerSettings) -> bool {
        self.server.as_ref().is_some_and(|before| before.settings.server_id != found.server_id)
    }

    /// Returns whether another server's log has every transaction that readers may have seen on the
    /// server before it. That has to answer: if it was lost, its last transactions may be lost with
    /// it, and cached replies may show them.
    async fn goes_on(&mut self, queries: &mut TextConnection) -> Result<bool> {
        let Some(before) = &self.server else { return Ok(false) };
        let asked = async {
            let mut old = TextConnection::connect(&before.url, OLD_SERVER_TIMEOUT).await?;
            let settings = requirements::check(&mut old, false).await?;
            let is_read_only = is_read_only(&mut old).await?;
            let is_same = settings.server_id == before.settings.server_id && !before.has_restarted(&settings);
            Ok::<_, Failure>((is_same && is_read_only).then_some(log_end(&mut old).await?))
        };
        // It may be gone.
        let Ok(Ok(Some(old_end))) = tokio::time::timeout(OLD_SERVER_TIMEOUT, asked).await else { return Ok(false) };
        log_has(queries, &old_end).await
    }
}

fn startup_error(ended: StreamEnd) -> Error {
    match ended {
        StreamEnd::PositionLost(message) => Error::new(Code::INVALID_OPTIONS, message),
        StreamEnd::Failed(Failure::Lost(message)) => Error::new(Code::HOST_UNREACHABLE, message),
        StreamEnd::Failed(failure) => failure.into(),
    }
}
