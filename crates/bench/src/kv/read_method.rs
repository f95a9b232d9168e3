//! One way to the rows: connections over it, and what reading by them takes.

use super::calls::Counter;
use crate::dataset::SplitMix;
use crate::process::{Pid, context_switches, cpu_time, cpu_time_of};
use crate::report::{Row, Samples};
use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use std::time::{Duration, Instant};

/// Reads one row and looks whether it is the right one.
pub trait Reader: Send {
    fn read(&mut self, key: u64) -> Result<()>;
}

pub type Open = Box<dyn Fn() -> Result<Box<dyn Reader>>>;

/// Reads before anything is counted, by each connection.
const WARM_UP: u64 = 500;

/// Reads of which the system calls are counted.
const COUNTED: u64 = 1000;

pub struct Way {
    pub name: String,
    open: Open,
    /// The process that answers; none where that is this one.
    server: Option<Pid>,
    behind: Vec<Pid>,
    lanes: Vec<Lane>,
    samples: Samples,
    spent: Spent,
}

struct Lane {
    reader: Box<dyn Reader>,
    keys: SplitMix,
    rows: u64,
}

/// What went into all reads together.
#[derive(Clone, Copy, Default)]
struct Spent {
    wall: Duration,
    client_cpu: Duration,
    server_cpu: Duration,
    behind_cpu: Duration,
    switches: u64,
}

impl Way {
    pub fn new(name: &str, open: Open) -> Result<Way> {
        let (server, behind, lanes) = (None, Vec::new(), Vec::new());
        Ok(Way {
            name: name.to_owned(),
            open,
            server,
            behind,
            lanes,
            samples: Samples::new()?,
            spent: Spent::default(),
        })
    }

    pub fn of_process(self, pid: Pid) -> Way {
        Way { server: Some(pid), ..self }
    }

    pub fn with_behind(self, behind: Vec<Pid>) -> Way {
        Way { behind, ..self }
    }

    /// Opens so many connections, and warms them up.
    pub fn open(&mut self, connections: usize, rows: u64) -> Result<()> {
        for number in 0..connections as u64 {
            self.lanes.push(Lane { reader: (self.open)()?, keys: SplitMix(number), rows });
        }
        self.each(|lane| (0..WARM_UP).try_for_each(|_| lane.read())).map(drop)
    }

    /// Keeps all connections busy for that long.
    pub fn drive(&mut self, time: Duration) -> Result<()> {
        let before = self.now();
        let began = Instant::now();
        let times = self.each(|lane| {
            let mut times = Vec::new();
            let mut last = Instant::now();
            while last - began < time {
                lane.read()?;
                let now = Instant::now();
                times.push(now - last);
                last = now;
            }
            Ok(times)
        })?;
        let wall = began.elapsed();
        let after = self.now();
        let spent = &mut self.spent;
        spent.wall += wall;
        spent.client_cpu += after.client_cpu.saturating_sub(before.client_cpu);
        spent.server_cpu += after.server_cpu.saturating_sub(before.server_cpu);
        spent.behind_cpu += after.behind_cpu.saturating_sub(before.behind_cpu);
        spent.switches += after.switches.saturating_sub(before.switches);
        times.into_iter().flatten().for_each(|time| self.samples.record(time));
        Ok(())
    }

    /// Runs on a thread for each connection, never on this one: libmariadbd is slow on a process's first thread.
    fn each<T: Send>(&mut self, work: impl Fn(&mut Lane) -> Result<T> + Sync) -> Result<Vec<T>> {
        std::thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = self.lanes.iter_mut().map(|lane| scope.spawn(move || work(lane))).collect();
            threads.into_iter().map(|thread| thread.join().ok().context("a reader panicked")?).collect()
        })
    }

    fn now(&self) -> Spent {
        let own = getrusage(UsageWho::RUSAGE_SELF).ok();
        let own_switches = own.map_or(0, |own| own.voluntary_context_switches() + own.involuntary_context_switches());
        let others = self.server.iter().chain(&self.behind).filter_map(|&pid| context_switches(pid));
        Spent {
            wall: Duration::ZERO,
            client_cpu: cpu_time(std::process::id() as Pid).unwrap_or_default(),
            server_cpu: self.server.and_then(cpu_time).unwrap_or_default(),
            behind_cpu: cpu_time_of(&self.behind).unwrap_or_default(),
            switches: own_switches as u64 + others.sum::<u64>(),
        }
    }

    /// The figures; asks for some more rows to count system calls.
    pub fn row(&mut self, measure: &str) -> Result<Row> {
        let calls = self.count_calls()?;
        let count = self.samples.count().max(1) as f64;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / count;
        let spent = self.spent;
        Ok(Row {
            measure: measure.to_owned(),
            target: self.name.clone(),
            operations: Some(self.samples.count()),
            p50_ms: Some(self.samples.quantile_ms(0.5)),
            p99_ms: Some(self.samples.quantile_ms(0.99)),
            client_cpu_us: Some(each(spent.client_cpu)),
            cpu_us: self.server.map(|_| each(spent.server_cpu)),
            behind_cpu_us: (!self.behind.is_empty()).then(|| each(spent.behind_cpu)),
            switches: Some(spent.switches as f64 / count),
            system_calls: calls,
            per_second: Some(count / spent.wall.as_secs_f64()),
            ..Row::default()
        })
    }

    /// Per read, by one connection alone; `None` where nobody may look.
    fn count_calls(&mut self) -> Result<Option<f64>> {
        let own = std::process::id() as Pid;
        let pids: Vec<Pid> = [own].into_iter().chain(self.server).chain(self.behind.iter().copied()).collect();
        let Some(counter) = Counter::begin(&pids)? else { return Ok(None) };
        self.lanes.truncate(1);
        self.each(|lane| (0..COUNTED).try_for_each(|_| lane.read()))?;
        Ok(Some(counter.end()? as f64 / COUNTED as f64))
    }
}

impl Lane {
    fn read(&mut self) -> Result<()> {
        let key = self.keys.below(self.rows);
        self.reader.read(key)
    }
}
