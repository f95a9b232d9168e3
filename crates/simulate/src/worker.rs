//! One process of a simulation: a thread that starts users on schedule, over a pool of connections.
//!
//! A user that finds no free connection waits for one, and its time runs from its scheduled start.
//! So the results include the time that a slow server makes others wait ("coordinated omission"
//! would leave it out), and the lateness of this process.

use super::generator::Source;
use super::measurements::{Measurements, OperationCounts};
use super::scenario::{Operation, Run, Scenario};
use super::schedule::Schedule;
use super::stage::connect;
use super::user::{Next, Session, User, UserOutcome};
use anyhow::{Context, Result};
use harness::address::Address;
use harness::connection::Connection;
use rustix::event::{Timespec, epoll};
use rustix::time::{ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime};
use rustix::time::{timerfd_create, timerfd_settime};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The event of the timer; connections are numbered from 0.
const TIMER: u64 = u64::MAX;
/// The interval at which the end of the run is checked.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

pub struct Worker<'s> {
    scenario: &'s Scenario,
    run: Run,
    schedule: Schedule,
    source: Source,
    address: Address,
    connections: Vec<PooledConnection<'s>>,
    idle: Vec<usize>,
    epoll: OwnedFd,
    timer: OwnedFd,
    measurements: Measurements,
}

struct PooledConnection<'s> {
    connection: Connection,
    session: Session,
    user: Option<User<'s>>,
}

impl<'s> Worker<'s> {
    /// Opens the connections.
    pub fn prepare(
        scenario: &'s Scenario,
        run: &Run,
        process: u32,
        mut source: Source,
        address: &Address,
    ) -> Result<Worker<'s>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN)?;
        let mut connections = Vec::new();
        for number in 0..run.pool {
            let connection = connect(address)?;
            epoll::add(&epoll, &connection, epoll::EventData::new_u64(number.into()), epoll::EventFlags::IN)?;
            connections.push(PooledConnection { connection, session: Session::new(&mut source), user: None });
        }
        let counts = |operation: &Operation| OperationCounts::new(operation.steps.len(), run.iterations as usize);
        let measurements =
            Measurements { operations: scenario.operations.iter().map(counts).collect(), ..Measurements::default() };
        Ok(Worker {
            scenario,
            run: run.clone(),
            schedule: Schedule::new(run, process),
            source,
            address: address.clone(),
            idle: (0..connections.len()).rev().collect(),
            connections,
            epoll,
            timer,
            measurements,
        })
    }

    /// Runs from `start` until all users have finished or the time is over.
    pub fn run(mut self, start: Instant) -> Result<Measurements> {
        let cpu = cpu_time();
        let end = start + self.run.window();
        let over = end + Duration::from_secs(self.run.overtime_seconds.into());
        let mut next_user = 0;
        let mut events = [MaybeUninit::uninit(); 64];
        loop {
            next_user = self.start_users(start, next_user)?;
            let next = self.schedule.start_of(next_user).map(|user| start + user.after);
            let now = Instant::now();
            if next.is_none() && self.idle.len() == self.connections.len() || now > over {
                break;
            }
            if let Some(next) = next.filter(|_| !self.idle.is_empty()) {
                self.set_timer(next.saturating_duration_since(now))?;
            }
            let (ready, _) = epoll::wait(&self.epoll, &mut events, Some(&POLL_INTERVAL))?;
            for event in ready {
                match event.data.u64() {
                    TIMER => drop(rustix::io::read(&self.timer, &mut [0; 8])),
                    pooled => self.receive(pooled as usize, end)?,
                }
            }
        }
        self.abandon_remaining(next_user);
        self.measurements.runtime = start.elapsed();
        self.measurements.cpu = cpu_time().saturating_sub(cpu);
        Ok(self.measurements)
    }

    fn set_timer(&self, after: Duration) -> Result<()> {
        // Zero would disarm it.
        let after = after.max(Duration::from_nanos(1));
        let it_value = Timespec { tv_sec: after.as_secs() as i64, tv_nsec: after.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// Starts the users that are due, while there are free connections. Returns the number of the
    /// next.
    fn start_users(&mut self, start: Instant, mut next_user: u64) -> Result<u64> {
        while let Some(pooled) = self.idle.last().copied() {
            let Some(scheduled_start) = self.schedule.start_of(next_user) else { break };
            let scheduled = start + scheduled_start.after;
            if scheduled > Instant::now() {
                break;
            }
            next_user += 1;
            let index = pick(&self.scenario.operations, &mut self.source);
            let operation = &self.scenario.operations[index];
            match User::begin(operation, index, scheduled_start, scheduled, &mut self.source) {
                Ok(user) => {
                    self.idle.pop();
                    self.connections[pooled].user = Some(user);
                    self.send(pooled)?;
                }
                Err(message) => self.measurements.operations[index].fail(message),
            }
        }
        Ok(next_user)
    }

    /// Sends the next message of the connection's user.
    fn send(&mut self, number: usize) -> Result<()> {
        let pooled = &mut self.connections[number];
        let Some(user) = &mut pooled.user else { return Ok(()) };
        let first = user.step == 0 && user.retries == 0 && user.step_start == user.scheduled;
        match user.message(&mut self.source, &mut pooled.session) {
            Ok(message) => {
                if first {
                    user.sent = Instant::now();
                    self.measurements.lateness.record(user.sent.saturating_duration_since(user.scheduled));
                }
                if let Err(error) = pooled.connection.send(&message) {
                    self.replace_connection(number, &error)?;
                }
                Ok(())
            }
            Err(message) => {
                self.finish(number, UserOutcome::Failed(message), Instant::now());
                Ok(())
            }
        }
    }

    fn receive(&mut self, number: usize, end: Instant) -> Result<()> {
        let pooled = &mut self.connections[number];
        match pooled.connection.receive_some() {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => return self.replace_connection(number, &error),
        }
        let now = Instant::now();
        let Some(user) = &mut pooled.user else {
            pooled.connection.forget_reply();
            return Ok(());
        };
        let next = user.reply(pooled.connection.reply());
        pooled.connection.forget_reply();
        let (Next::Send(completed) | Next::Finished(_, completed)) = &next;
        if let Some(step) = completed {
            self.measurements.operations[user.index].steps[*step].record(now - user.step_start);
            user.step_start = now;
        }
        match next {
            Next::Send(_) => self.send(number),
            Next::Finished(outcome, _) => {
                self.measurements.finished_in_time += u64::from(now <= end);
                self.finish(number, outcome, now);
                Ok(())
            }
        }
    }

    /// Counts a user that has finished, and frees its connection.
    fn finish(&mut self, number: usize, outcome: UserOutcome, now: Instant) {
        let Some(user) = self.connections[number].user.take() else { return };
        self.idle.push(number);
        let counts = &mut self.measurements.operations[user.index];
        counts.retries += user.retries;
        match outcome {
            UserOutcome::Done => counts.done += 1,
            UserOutcome::Stopped => counts.stopped += 1,
            UserOutcome::Failed(message) => return counts.fail(message),
        }
        counts.times.record(now - user.scheduled);
        counts.times_from_sending.record(now - user.sent);
        if let Some(times) = counts.by_second.get_mut(user.start.iteration as usize) {
            times.record(now - user.scheduled);
        }
    }

    /// Handles a lost connection: its user has failed, and a new connection replaces it. Fails if
    /// none can be opened.
    fn replace_connection(&mut self, number: usize, error: &anyhow::Error) -> Result<()> {
        if self.connections[number].user.is_some() {
            self.finish(number, UserOutcome::Failed(format!("the connection was lost: {error:#}")), Instant::now());
        }
        let connection = connect(&self.address).context("after a connection was lost")?;
        epoll::add(&self.epoll, &connection, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
        self.connections[number].connection = connection;
        Ok(())
    }

    /// Counts the users that have not finished or not started.
    fn abandon_remaining(&mut self, mut next_user: u64) {
        for user in self.connections.iter().filter_map(|pooled| pooled.user.as_ref()) {
            self.measurements.operations[user.index].abandoned += 1;
        }
        while self.schedule.start_of(next_user).is_some() {
            next_user += 1;
            let index = pick(&self.scenario.operations, &mut self.source);
            self.measurements.operations[index].abandoned += 1;
        }
    }
}

impl OperationCounts {
    fn fail(&mut self, message: String) {
        self.failed += 1;
        *self.errors.entry(message).or_default() += 1;
    }
}

/// Picks an operation by weight.
fn pick(operations: &[Operation], source: &mut Source) -> usize {
    let total = operations.iter().map(|operation| operation.weight).sum();
    let mut left = source.random.below(total);
    for (index, operation) in operations.iter().enumerate() {
        if left < operation.weight {
            return index;
        }
        left -= operation.weight;
    }
    0
}

/// Returns the CPU time of this process so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
