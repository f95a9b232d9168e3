//! The follower's thread: connecting, going on after a cut, starting over where the log does not reach back.

use crate::changes::Transaction;
use crate::freshness::{Freshness, State};
use crate::log_position::{log_end, log_identity};
use crate::reach::Reach;
use crate::requirements::{self, Found};
use crate::session::{self, Shared};
use crate::source::Ended;
use crate::visibility::Visibility;
use error::{Code, Error};
use mariadb_client::{Failure, Result, ServerUrl, TextConnection};
use mariadb_wire::binlog::Gtid;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// After so many sessions that ended where they began, what comes next in the log is taken to be what ends them, and is left out.
const FRUITLESS_MAX: u32 = 3;

/// How to follow. The defaults will do.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// The number by which the server knows its replicas, another one for each. By default a large random one.
    pub server_id: Option<u32>,
    /// How often the server is heard of at the least; a cut is noticed after about twice this time.
    pub heartbeat: Duration,
    /// When changes come later than this, the stream counts as cut until it has caught up. Several times `heartbeat`, by which it is measured.
    pub behind_max: Duration,
    /// Lets writers wait until their changes have been handed on. Needs settings of the server, see `docs/mariadb/external-writes.md`.
    pub semi_sync: bool,
    /// Of a transaction with more bytes of rows only the tables are handed on.
    pub transaction_bytes_max: usize,
    pub connect_timeout: Duration,
    /// Pauses between attempts to connect: the first, and the longest that it grows to.
    pub retry: (Duration, Duration),
}

impl Default for FollowOptions {
    fn default() -> Self {
        FollowOptions {
            server_id: None,
            heartbeat: Duration::from_millis(500),
            behind_max: Duration::from_secs(2),
            semi_sync: false,
            transaction_bytes_max: 16 << 20,
            connect_timeout: Duration::from_secs(10),
            retry: (Duration::from_millis(100), Duration::from_secs(5)),
        }
    }
}

/// Who is told. Both functions run on the follower's thread, and nothing more is read until they return.
pub trait Receiver: Send {
    /// These were committed, in this order. Whoever starts reading now sees them, and when this function has returned
    /// nobody may be given anything older. May be called with the same transaction more than once.
    fn changes(&mut self, transactions: &[Transaction]);

    /// What is handed on begins behind this position, of this log; nothing is known of what came before, but that readers see it.
    fn begins(&mut self, log: &str, position: &[Gtid]) {
        let _ = (log, position);
    }

    /// Everything up to this position has been handed on, and readers see it.
    fn reached(&mut self, position: &[Gtid]) {
        let _ = position;
    }

    /// The stream began to flow, or was cut.
    fn state(&mut self, state: &State) {
        let _ = state;
    }
}

/// Follows until dropped.
pub struct Follower {
    freshness: Freshness,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Connects and checks the server's configuration, then follows on a thread of its own. The first thing handed on is
    /// [`super::Change::Everything`].
    ///
    /// Errors say in one sentence what to do: no server there (6), user or password refused (18), the server is not set up for it or the user
    /// has not the rights (72).
    pub fn start(url: &str, options: FollowOptions, receiver: Box<dyn Receiver>) -> error::Result<Follower> {
        let target = ServerUrl::parse(url)?;
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
            reach: None,
            fruitless: 0,
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

    /// For others to ask how old the knowledge is.
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

/// What the thread has.
struct Run {
    target: ServerUrl,
    server_id: u32,
    options: FollowOptions,
    receiver: Box<dyn Receiver>,
    freshness: Freshness,
    /// Who waits for the first outcome.
    started: Option<mpsc::Sender<error::Result<()>>>,
    /// How far we are; `None` before the first connection and when the log does not go back so far.
    reach: Option<Reach>,
    /// How many sessions in a row have got nowhere.
    fruitless: u32,
    /// The server as it was, and when it was asked.
    server: Option<(Found, Instant)>,
}

/// However the thread ends, by a receiver's panic too, nobody goes on believing it.
struct CutAtLast(Freshness);

impl Drop for CutAtLast {
    fn drop(&mut self) {
        let why = "the binary log is not followed any more".to_owned();
        self.0.set_state(State::Cut { since: Instant::now(), why });
    }
}

impl Run {
    fn on_thread(mut self, mut stopped: oneshot::Receiver<()>) {
        let _at_last = CutAtLast(self.freshness.clone());
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

    /// Ends only if the very first attempt fails.
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
                return self.report(Err(at_start(ended)));
            }
            let (why, starts_over) = match ended {
                Ended::Lost(message) => {
                    (format!("MariaDB's binary log does not go back to where it was read last: {message}"), true)
                }
                Ended::Failed(failure) => (failure.to_string(), false),
            };
            if starts_over {
                self.reach = None;
            }
            tracing::warn!("MariaDB's binary log is not followed: {why}");
            self.cut(why);
            if begun.elapsed() > longest {
                pause = first;
            }
            // A position that is lost is no reason to wait.
            if !starts_over || pause > first {
                tokio::time::sleep(pause.mul_f64(rand::random_range(0.8..1.2))).await;
            }
            pause = (pause * 2).min(longest);
        }
    }

    fn cut(&mut self, why: String) {
        let since = match self.freshness.state() {
            State::Cut { since, .. } => since,
            State::Following { .. } => Instant::now(),
        };
        let state = State::Cut { since, why };
        if self.freshness.set_state(state.clone()) {
            self.receiver.state(&state);
        }
    }

    /// Connects, and follows until something breaks.
    async fn attempt(&mut self) -> Result<std::convert::Infallible, Ended> {
        let patience = self.options.heartbeat * 2 + Duration::from_millis(250);
        let mut helper = TextConnection::connect(&self.target, patience.max(Duration::from_secs(1))).await?;
        let found = requirements::check(&mut helper, self.options.semi_sync).await?;
        if self.may_have_forgotten(&found) {
            self.reach = None;
        }
        let checksum = found.checksum;
        self.server = Some((found, Instant::now()));
        if self.fruitless >= FRUITLESS_MAX {
            self.fruitless = 0;
        }
        let mut reach = match self.reach.take() {
            Some(reach) => reach,
            None => self.start_over(&mut helper).await?,
        };
        let start = reach.text();
        let shared = Shared {
            reach: &mut reach,
            freshness: &self.freshness,
            receiver: &mut *self.receiver,
            options: &self.options,
        };
        let mut session = match session::open(&self.target, helper, self.server_id, checksum, shared).await {
            Ok(session) => session,
            Err(ended) => {
                self.reach = Some(reach);
                return Err(ended);
            }
        };
        if let Some(started) = self.started.take() {
            let _ = started.send(Ok(()));
        }
        let ended = session.follow().await;
        let owes = session.owes();
        drop(session);
        self.fruitless = if reach.text() == start { self.fruitless + 1 } else { 0 };
        if !owes && self.fruitless < FRUITLESS_MAX {
            self.reach = Some(Reach::at(&reach.position()));
        }
        Err(ended)
    }

    /// From where the server is now, with everything before that unknown.
    async fn start_over(&mut self, helper: &mut TextConnection) -> Result<Reach> {
        let moment = Instant::now();
        let position = log_end(helper).await?;
        let log = log_identity(helper).await?;
        Visibility::settle(helper).await?;
        self.receiver.changes(&[Transaction::everything()]);
        self.receiver.begins(&log, &position);
        self.freshness.advance(moment);
        Ok(Reach::at(&position))
    }

    /// Whether the server may lack transactions that it had: another server, or one that came back from a crash and had not
    /// written its log to disk. The numbers of lost transactions are given away again, so the position would not tell.
    fn may_have_forgotten(&self, found: &Found) -> bool {
        let Some((before, asked)) = &self.server else { return false };
        let has_restarted = found.uptime + 2 < before.uptime + asked.elapsed().as_secs();
        before.server_id != found.server_id || (has_restarted && !found.is_durable)
    }
}

fn at_start(ended: Ended) -> Error {
    match ended {
        Ended::Lost(message) => Error::new(Code::INVALID_OPTIONS, message),
        Ended::Failed(Failure::Lost(message)) => Error::new(Code::HOST_UNREACHABLE, message),
        Ended::Failed(failure) => failure.into(),
    }
}
