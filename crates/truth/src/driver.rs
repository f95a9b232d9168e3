//! A thread with many lanes, each of which has one operation under way.

use super::args::TruthArgs;
use super::lane::{Lane, Shared};
use super::model::{Later, Model, Source};
use super::sql::{SqlWriter, cut_replicas};
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

/// What all threads have counted, and why the run ended before its time, if it did.
pub struct Driven {
    pub tally: Tally,
    pub failure: Option<anyhow::Error>,
}

/// Drives all connections until there were enough operations, the time is over, one has failed, or `stop` is set.
pub fn drive_all(
    args: &TruthArgs,
    addresses: &[Address],
    sql: Option<&SqlTarget>,
    model: &Model,
    stop: &AtomicBool,
) -> Driven {
    let done = AtomicBool::new(false);
    let threads = args.threads.min(args.connections);
    // One that has failed ends the run.
    let ended = |outcome: Result<()>| outcome.inspect_err(|_| stop.store(true, Relaxed));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn(move || {
                    let mut tally = Tally::default();
                    let driven = Crowd::connect(args, addresses, model, &mut tally, number, threads)
                        .and_then(|mut crowd| crowd.drive(stop, args.operations.div_ceil(threads), args));
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
                    let driven = writer.drive(target, done, &mut tally);
                    (tally, ended(driven))
                })
            })
            .collect();
        let cutter = sql.filter(|_| args.cut_ms > 0).map(|target| {
            let done = &done;
            scope.spawn(move || cut_replicas(target, Duration::from_millis(args.cut_ms), done))
        });
        let driven: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
        done.store(true, Relaxed);
        let written = writers.into_iter().map(ScopedJoinHandle::join);
        let mut all = Driven { tally: Tally::default(), failure: None };
        for one in driven.into_iter().chain(written) {
            match one {
                Ok((tally, outcome)) => {
                    all.tally.add(tally);
                    all.failure = all.failure.or(outcome.err());
                }
                Err(_) => all.failure = Some(anyhow!("a thread panicked")),
            }
        }
        let cut = cutter.map(|cutter| cutter.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked"))));
        all.failure = all.failure.or(cut.and_then(|outcome| outcome.context("cutting replicas off").err()));
        all
    })
}

struct Crowd<'m> {
    lanes: Vec<Option<Lane>>,
    /// Where each lane is connected to.
    ways: Vec<(Address, Source)>,
    epoll: OwnedFd,
    shared: Shared<'m>,
    clocks: Clocks,
}

/// When definitions are changed next; the first thread changes them.
struct Clocks {
    moves: Option<(Instant, Duration)>,
    defines: Option<(Instant, Duration)>,
    index: bool,
}

/// How often lost connections are tried again.
const AGAIN: Duration = Duration::from_millis(100);

impl<'m> Crowd<'m> {
    fn connect(
        args: &TruthArgs,
        addresses: &[Address],
        model: &'m Model,
        tally: &'m mut Tally,
        number: u64,
        threads: u64,
    ) -> Result<Crowd<'m>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let own = (number..args.connections).step_by(threads as usize);
        // Neighbours go to different gateways.
        let ways = own.map(|connection| (connection / threads) as usize % addresses.len());
        let ways: Vec<_> = ways.map(|source| (addresses[source].clone(), source)).collect();
        let every = |ms: u64| (number == 0 && ms > 0).then(|| (Instant::now(), Duration::from_millis(ms)));
        let clocks = Clocks { moves: every(args.move_ms), defines: every(args.define_ms), index: false };
        let random = SplitMix(args.seed.wrapping_mul(1000).wrapping_add(number));
        let shared =
            Shared { model, random, tally, later: Later::default(), reads: args.reads, due: None, defining: false };
        let mut crowd = Crowd { lanes: Vec::new(), ways, epoll, shared, clocks };
        for at in 0..crowd.ways.len() {
            let lane = crowd.open(at)?;
            crowd.lanes.push(Some(lane));
        }
        Ok(crowd)
    }

    fn open(&self, at: usize) -> Result<Lane> {
        let (address, source) = &self.ways[at];
        let lane = Lane::open(address, *source)?;
        let data = epoll::EventData::new_u64(at as u64);
        epoll::add(&self.epoll, &lane.connection, data, epoll::EventFlags::IN)?;
        Ok(lane)
    }

    fn drive(&mut self, stop: &AtomicBool, operations: u64, args: &TruthArgs) -> Result<()> {
        let end = args.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
        let patience = Duration::from_secs(args.ride_out);
        let mut under_way = 0;
        let mut last_heard = Instant::now();
        for at in 0..self.lanes.len() {
            under_way += usize::from(self.step(at, patience, Lane::begin_alone)?);
        }
        let mut events = [MaybeUninit::uninit(); 64];
        loop {
            let now = Instant::now();
            let over =
                stop.load(Relaxed) || self.shared.tally.operations() >= operations || end.is_some_and(|end| now >= end);
            if over && under_way == 0 {
                return Ok(());
            }
            self.clocks.strike(&mut self.shared, now);
            let pause = Timespec { tv_sec: 0, tv_nsec: AGAIN.as_nanos() as i64 };
            let (ready, _) = epoll::wait(&self.epoll, &mut events, Some(&pause))?;
            let ready: Vec<usize> = ready.iter().map(|event| event.data.u64() as usize).collect();
            for at in ready {
                last_heard = now;
                under_way -= 1;
                let going_on = self.step(at, patience, |lane, shared| lane.hear(shared, over))?;
                under_way += usize::from(going_on);
            }
            if !over && self.lanes.iter().any(Option::is_none) {
                under_way += self.connect_again(last_heard, patience)?;
            }
        }
    }

    /// Does something with a lane, and gives whether it has an operation under way then. One whose connection is lost meanwhile is taken
    /// away if it is to be ridden out.
    fn step(
        &mut self,
        at: usize,
        patience: Duration,
        what: impl FnOnce(&mut Lane, &mut Shared<'m>) -> Result<bool>,
    ) -> Result<bool> {
        let Some(lane) = &mut self.lanes[at] else { return Ok(false) };
        match what(lane, &mut self.shared) {
            Ok(under_way) => Ok(under_way),
            Err(error) if !patience.is_zero() && is_lost(&error) => {
                lane.abandon(&mut self.shared);
                self.lanes[at] = None;
                Ok(false)
            }
            Err(error) => Err(error.context(self.ways[at].0.to_string())),
        }
    }

    /// Tries the lost connections once; gives how many have an operation under way then.
    fn connect_again(&mut self, last_heard: Instant, patience: Duration) -> Result<usize> {
        let mut under_way = 0;
        for at in 0..self.lanes.len() {
            if self.lanes[at].is_some() {
                continue;
            }
            match self.open(at) {
                Ok(lane) => {
                    self.lanes[at] = Some(lane);
                    under_way += usize::from(self.step(at, patience, Lane::begin_alone)?);
                }
                Err(error) if last_heard.elapsed() > patience => {
                    return Err(error).context(format!("{} does not come back", self.ways[at].0));
                }
                // The others are not there either.
                Err(_) => break,
            }
        }
        Ok(under_way)
    }
}

impl Clocks {
    fn strike(&mut self, shared: &mut Shared<'_>, now: Instant) {
        if shared.due.is_some() {
            return;
        }
        if let Some((due, every)) = self.defines.as_mut().filter(|(due, _)| *due <= now && !shared.defining) {
            *due = now + *every;
            shared.defining = true;
            shared.due = Some(write::definition(&mut shared.random, &mut self.index));
        } else if let Some((due, every)) = self.moves.as_mut().filter(|(due, _)| *due <= now) {
            *due = now + *every;
            shared.due = write::moved(shared.model, &mut shared.random);
        }
    }
}

impl Lane {
    fn begin_alone(&mut self, shared: &mut Shared<'_>) -> Result<bool> {
        self.begin(shared).map(|()| true)
    }

    /// Takes what has arrived; once the reply is whole, judges it and begins the next operation, unless it is over.
    fn hear(&mut self, shared: &mut Shared<'_>, over: bool) -> Result<bool> {
        if !self.connection.receive_some()? || !self.finish(shared)? {
            return Ok(true);
        }
        if over {
            return Ok(false);
        }
        self.begin_alone(shared)
    }
}

/// The connection has failed, rather than the server having answered with something wrong.
fn is_lost(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<std::io::Error>()) || error.to_string().contains("closed the connection")
}
