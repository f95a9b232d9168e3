//! One process of a simulation: a thread that begins users when it is time, over a pool of connections.
//!
//! A user who finds no connection free waits for one, and its time runs from when it should have begun. So what a slow server makes
//! others wait is in the measurements ("coordinated omission" leaves it out), and so is what this process is late itself.

use super::generator::Source;
use super::measurements::{Measurements, Tally};
use super::scenario::{Operation, Run, Scenario};
use super::schedule::Schedule;
use super::stage::connect;
use super::user::{Next, Outcome, Session, User};
use anyhow::{Context, Result};
use harness::address::Address;
use harness::connection::Connection;
use rustix::event::{Timespec, epoll};
use rustix::time::{ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime};
use rustix::time::{timerfd_create, timerfd_settime};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// What tells the timer from connections, which are numbered from 0.
const TIMER: u64 = u64::MAX;
/// How often it is looked whether time is over.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

pub struct Worker<'s> {
    scenario: &'s Scenario,
    run: Run,
    schedule: Schedule,
    source: Source,
    address: Address,
    lanes: Vec<Lane<'s>>,
    idle: Vec<usize>,
    epoll: OwnedFd,
    timer: OwnedFd,
    measurements: Measurements,
}

struct Lane<'s> {
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
        let mut lanes = Vec::new();
        for number in 0..run.pool {
            let connection = connect(address)?;
            epoll::add(&epoll, &connection, epoll::EventData::new_u64(number.into()), epoll::EventFlags::IN)?;
            lanes.push(Lane { connection, session: Session::new(&mut source), user: None });
        }
        let tally = |operation: &Operation| Tally::new(operation.steps.len(), run.iterations as usize);
        let measurements =
            Measurements { operations: scenario.operations.iter().map(tally).collect(), ..Measurements::default() };
        Ok(Worker {
            scenario,
            run: run.clone(),
            schedule: Schedule::new(run, process),
            source,
            address: address.clone(),
            idle: (0..lanes.len()).rev().collect(),
            lanes,
            epoll,
            timer,
            measurements,
        })
    }

    /// Runs from `start` on until everybody is through or time is over.
    pub fn run(mut self, start: Instant) -> Result<Measurements> {
        let cpu = cpu_time();
        let end = start + self.run.window();
        let over = end + Duration::from_secs(self.run.overtime_seconds.into());
        let mut upcoming = 0;
        let mut events = [MaybeUninit::uninit(); 64];
        loop {
            upcoming = self.begin_users(start, upcoming)?;
            let next = self.schedule.beginning(upcoming).map(|beginning| start + beginning.after);
            let now = Instant::now();
            if next.is_none() && self.idle.len() == self.lanes.len() || now > over {
                break;
            }
            if let Some(next) = next.filter(|_| !self.idle.is_empty()) {
                self.set_timer(next.saturating_duration_since(now))?;
            }
            let (ready, _) = epoll::wait(&self.epoll, &mut events, Some(&LOOK))?;
            for event in ready {
                match event.data.u64() {
                    TIMER => drop(rustix::io::read(&self.timer, &mut [0; 8])),
                    lane => self.receive(lane as usize, end)?,
                }
            }
        }
        self.give_up(upcoming);
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

    /// Begins those whose time has come, as far as there are connections for them. Gives who is next.
    fn begin_users(&mut self, start: Instant, mut upcoming: u64) -> Result<u64> {
        while let Some(lane) = self.idle.last().copied() {
            let Some(beginning) = self.schedule.beginning(upcoming) else { break };
            let intended = start + beginning.after;
            if intended > Instant::now() {
                break;
            }
            upcoming += 1;
            let place = pick(&self.scenario.operations, &mut self.source);
            let operation = &self.scenario.operations[place];
            match User::begin(operation, place, beginning, intended, &mut self.source) {
                Ok(user) => {
                    self.idle.pop();
                    self.lanes[lane].user = Some(user);
                    self.send(lane)?;
                }
                Err(message) => self.measurements.operations[place].fail(message),
            }
        }
        Ok(upcoming)
    }

    /// Has the lane's user send what is next.
    fn send(&mut self, number: usize) -> Result<()> {
        let lane = &mut self.lanes[number];
        let Some(user) = &mut lane.user else { return Ok(()) };
        let first = user.step == 0 && user.retries == 0 && user.step_began == user.intended;
        match user.message(&mut self.source, &mut lane.session) {
            Ok(message) => {
                if first {
                    user.sent = Instant::now();
                    self.measurements.lateness.record(user.sent.saturating_duration_since(user.intended));
                }
                if let Err(error) = lane.connection.send(&message) {
                    self.lose(number, &error)?;
                }
                Ok(())
            }
            Err(message) => {
                self.finish(number, Outcome::Failed(message), Instant::now());
                Ok(())
            }
        }
    }

    fn receive(&mut self, number: usize, end: Instant) -> Result<()> {
        let lane = &mut self.lanes[number];
        match lane.connection.receive_some() {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => return self.lose(number, &error),
        }
        let now = Instant::now();
        let Some(user) = &mut lane.user else {
            lane.connection.forget_reply();
            return Ok(());
        };
        let next = user.reply(lane.connection.reply());
        lane.connection.forget_reply();
        let (Next::Send(behind) | Next::Over(_, behind)) = &next;
        if let Some(step) = behind {
            self.measurements.operations[user.place].steps[*step].record(now - user.step_began);
            user.step_began = now;
        }
        match next {
            Next::Send(_) => self.send(number),
            Next::Over(outcome, _) => {
                self.measurements.in_time += u64::from(now <= end);
                self.finish(number, outcome, now);
                Ok(())
            }
        }
    }

    /// Counts a user who is through, and frees the connection.
    fn finish(&mut self, number: usize, outcome: Outcome, now: Instant) {
        let Some(user) = self.lanes[number].user.take() else { return };
        self.idle.push(number);
        let tally = &mut self.measurements.operations[user.place];
        tally.retries += user.retries;
        match outcome {
            Outcome::Done => tally.done += 1,
            Outcome::Stopped => tally.stopped += 1,
            Outcome::Failed(message) => return tally.fail(message),
        }
        tally.times.record(now - user.intended);
        tally.times_from_sending.record(now - user.sent);
        if let Some(times) = tally.by_second.get_mut(user.beginning.iteration as usize) {
            times.record(now - user.intended);
        }
    }

    /// A connection has failed: so has its user, and a new one takes its place. It is an error only if there is none to be had.
    fn lose(&mut self, number: usize, error: &anyhow::Error) -> Result<()> {
        if self.lanes[number].user.is_some() {
            self.finish(number, Outcome::Failed(format!("the connection was lost: {error:#}")), Instant::now());
        }
        let connection = connect(&self.address).context("after a connection was lost")?;
        epoll::add(&self.epoll, &connection, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
        self.lanes[number].connection = connection;
        Ok(())
    }

    /// Counts those who are not through, under way or not yet begun.
    fn give_up(&mut self, mut upcoming: u64) {
        for user in self.lanes.iter().filter_map(|lane| lane.user.as_ref()) {
            self.measurements.operations[user.place].given_up += 1;
        }
        while self.schedule.beginning(upcoming).is_some() {
            upcoming += 1;
            let place = pick(&self.scenario.operations, &mut self.source);
            self.measurements.operations[place].given_up += 1;
        }
    }
}

impl Tally {
    fn fail(&mut self, message: String) {
        self.failed += 1;
        *self.errors.entry(message).or_default() += 1;
    }
}

/// Picks an operation by weight.
fn pick(operations: &[Operation], source: &mut Source) -> usize {
    let total = operations.iter().map(|operation| operation.weight).sum();
    let mut left = source.random.below(total);
    for (place, operation) in operations.iter().enumerate() {
        if left < operation.weight {
            return place;
        }
        left -= operation.weight;
    }
    0
}

/// CPU time of this process so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
