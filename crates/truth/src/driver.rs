//! Threads with many connections, each with one operation in flight.

use super::args::TruthArgs;
use super::connection::{CheckedConnection, ThreadState};
use super::model::{Model, Propagations, Source};
use super::sql::{SqlWriter, disconnect_replicas};
use super::tally::Tally;
use super::write;
use anyhow::{Context, Result, anyhow};
use harness::address::Address;
use harness::random::SplitMix;
use harness::sql_connection::SqlTarget;
use rustix::event::{Timespec, epoll};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// The counters of all threads, and the error that ended the run early, if there was one.
pub struct RunResult {
    pub tally: Tally,
    pub failure: Option<anyhow::Error>,
}

/// Runs all connections until the number of operations or the time limit is reached, one has
/// failed, or `stop` is set.
pub fn run_all(
    args: &TruthArgs,
    addresses: &[Address],
    sql: Option<&SqlTarget>,
    model: &Model,
    stop: &AtomicBool,
) -> RunResult {
    let done = AtomicBool::new(false);
    let threads = args.threads.min(args.connections);
    // A thread that fails ends the run.
    let ended = |outcome: Result<()>| outcome.inspect_err(|_| stop.store(true, Relaxed));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn(move || {
                    let mut tally = Tally::default();
                    let driven = ConnectionDriver::connect(args, addresses, model, &mut tally, number, threads)
                        .and_then(|mut driver| driver.drive(stop, args.operations.div_ceil(threads), args));
                    (tally, ended(driven))
                })
            })
            .collect();
        let writers: Vec<_> = sql
            .iter()
            .flat_map(|target| (0..args.sql_connections).map(move |number| (number, *target)))
            .map(|(number, target)| {
                let done = &done;
                let random = SplitMix(args.seed.wrapping_mul(1000).wrapping_add(500 + number));
                let pause = Duration::from_micros(args.sql_pause_us);
                let writer = SqlWriter { model, source: addresses.len(), random, pause };
                scope.spawn(move || {
                    let mut tally = Tally::default();
                    let driven = writer.run(target, done, &mut tally);
                    (tally, ended(driven))
                })
            })
            .collect();
        let disconnecter = sql.filter(|_| args.disconnect_ms > 0).map(|target| {
            let done = &done;
            scope.spawn(move || disconnect_replicas(target, Duration::from_millis(args.disconnect_ms), done))
        });
        let driven: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
        done.store(true, Relaxed);
        let written = writers.into_iter().map(ScopedJoinHandle::join);
        let mut all = RunResult { tally: Tally::default(), failure: None };
        for one in driven.into_iter().chain(written) {
            match one {
                Ok((tally, outcome)) => {
                    all.tally.add(tally);
                    all.failure = all.failure.or(outcome.err());
                }
                Err(_) => all.failure = Some(anyhow!("a thread panicked")),
            }
        }
        let disconnected =
            disconnecter.map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked"))));
        all.failure = all.failure.or(disconnected.and_then(|outcome| outcome.context("disconnecting replicas").err()));
        all
    })
}

struct ConnectionDriver<'m> {
    connections: Vec<Option<CheckedConnection>>,
    /// The server of each connection.
    endpoints: Vec<(Address, Source)>,
    epoll: OwnedFd,
    state: ThreadState<'m>,
    timers: DefinitionTimers,
}

/// The times of the next changes of definitions, which the first thread makes.
struct DefinitionTimers {
    moves: Option<(Instant, Duration)>,
    defines: Option<(Instant, Duration)>,
    index: bool,
}

/// The interval at which lost connections are reopened.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(100);

impl<'m> ConnectionDriver<'m> {
    fn connect(
        args: &TruthArgs,
        addresses: &[Address],
        model: &'m Model,
        tally: &'m mut Tally,
        number: u64,
        threads: u64,
    ) -> Result<ConnectionDriver<'m>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let own = (number..args.connections).step_by(threads as usize);
        // Consecutive connections go to different gateways.
        let endpoints = own.map(|connection| (connection / threads) as usize % addresses.len());
        let endpoints: Vec<_> = endpoints.map(|source| (addresses[source].clone(), source)).collect();
        let every = |ms: u64| (number == 0 && ms > 0).then(|| (Instant::now(), Duration::from_millis(ms)));
        let timers =
            DefinitionTimers { moves: every(args.rename_ms), defines: every(args.definition_ms), index: false };
        let random = SplitMix(args.seed.wrapping_mul(1000).wrapping_add(number));
        let state = ThreadState {
            model,
            random,
            tally,
            propagations: Propagations::default(),
            reads: args.reads,
            due: None,
            defining: false,
        };
        let mut driver = ConnectionDriver { connections: Vec::new(), endpoints, epoll, state, timers };
        for at in 0..driver.endpoints.len() {
            let connection = driver.open(at)?;
            driver.connections.push(Some(connection));
        }
        Ok(driver)
    }

    fn open(&self, at: usize) -> Result<CheckedConnection> {
        let (address, source) = &self.endpoints[at];
        let connection = CheckedConnection::open(address, *source)?;
        let data = epoll::EventData::new_u64(at as u64);
        epoll::add(&self.epoll, &connection.connection, data, epoll::EventFlags::IN)?;
        Ok(connection)
    }

    fn drive(&mut self, stop: &AtomicBool, operations: u64, args: &TruthArgs) -> Result<()> {
        let end = args.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
        let patience = Duration::from_secs(args.reconnect_seconds);
        let mut in_flight = 0;
        let mut last_reply = Instant::now();
        for at in 0..self.connections.len() {
            in_flight += usize::from(self.step(at, patience, CheckedConnection::begin_next)?);
        }
        let mut events = [MaybeUninit::uninit(); 64];
        loop {
            let now = Instant::now();
            let over =
                stop.load(Relaxed) || self.state.tally.operations() >= operations || end.is_some_and(|end| now >= end);
            if over && in_flight == 0 {
                return Ok(());
            }
            self.timers.schedule_due(&mut self.state, now);
            let pause = Timespec { tv_sec: 0, tv_nsec: RECONNECT_INTERVAL.as_nanos() as i64 };
            let (ready, _) = epoll::wait(&self.epoll, &mut events, Some(&pause))?;
            let ready: Vec<usize> = ready.iter().map(|event| event.data.u64() as usize).collect();
            for at in ready {
                last_reply = now;
                in_flight -= 1;
                let is_in_flight = self.step(at, patience, |connection, state| connection.receive(state, over))?;
                in_flight += usize::from(is_in_flight);
            }
            if !over && self.connections.iter().any(Option::is_none) {
                in_flight += self.connect_again(last_reply, patience)?;
            }
        }
    }

    /// Calls `action` on a connection and returns whether it has an operation in flight then.
    /// Removes a connection that is lost, if lost connections are reopened.
    fn step(
        &mut self,
        at: usize,
        patience: Duration,
        action: impl FnOnce(&mut CheckedConnection, &mut ThreadState<'m>) -> Result<bool>,
    ) -> Result<bool> {
        let Some(connection) = &mut self.connections[at] else { return Ok(false) };
        match action(connection, &mut self.state) {
            Ok(in_flight) => Ok(in_flight),
            Err(error) if !patience.is_zero() && is_lost(&error) => {
                connection.abandon(&mut self.state);
                self.connections[at] = None;
                Ok(false)
            }
            Err(error) => Err(error.context(self.endpoints[at].0.to_string())),
        }
    }

    /// Tries to reopen each lost connection once; returns how many have an operation in flight
    /// then.
    fn connect_again(&mut self, last_reply: Instant, patience: Duration) -> Result<usize> {
        let mut in_flight = 0;
        for at in 0..self.connections.len() {
            if self.connections[at].is_some() {
                continue;
            }
            match self.open(at) {
                Ok(connection) => {
                    self.connections[at] = Some(connection);
                    in_flight += usize::from(self.step(at, patience, CheckedConnection::begin_next)?);
                }
                Err(error) if last_reply.elapsed() > patience => {
                    return Err(error).context(format!("{} does not accept connections", self.endpoints[at].0));
                }
                // The other connections fail too.
                Err(_) => break,
            }
        }
        Ok(in_flight)
    }
}

impl DefinitionTimers {
    fn schedule_due(&mut self, state: &mut ThreadState<'_>, now: Instant) {
        if state.due.is_some() {
            return;
        }
        if let Some((due, every)) = self.defines.as_mut().filter(|(due, _)| *due <= now && !state.defining) {
            *due = now + *every;
            state.defining = true;
            state.due = Some(write::definition(&mut state.random, &mut self.index));
        } else if let Some((due, every)) = self.moves.as_mut().filter(|(due, _)| *due <= now) {
            *due = now + *every;
            state.due = write::lifecycle_write(state.model, &mut state.random);
        }
    }
}

impl CheckedConnection {
    fn begin_next(&mut self, state: &mut ThreadState<'_>) -> Result<bool> {
        self.begin(state).map(|()| true)
    }

    /// Reads from the socket. Once the reply is complete, checks it and begins the next operation,
    /// unless the run is over.
    fn receive(&mut self, state: &mut ThreadState<'_>, over: bool) -> Result<bool> {
        if !self.connection.receive_some()? || !self.finish(state)? {
            return Ok(true);
        }
        if over {
            return Ok(false);
        }
        self.begin_next(state)
    }
}

/// Returns whether the connection failed, as opposed to a wrong reply.
fn is_lost(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<std::io::Error>()) || error.to_string().contains("closed the connection")
}
