//! One method to read rows: its connections, and the measurement of reading over them.

use super::calls::Counter;
use anyhow::{Context, Result};
use harness::process::{Pid, context_switches, cpu_time, cpu_time_of};
use harness::random::SplitMix;
use harness::report::{Row, Samples};
use nix::sys::resource::{UsageWho, getrusage};
use std::time::{Duration, Instant};

/// Reads one row and checks it.
pub trait Reader: Send {
    fn read(&mut self, key: u64) -> Result<()>;
}

pub type Open = Box<dyn Fn() -> Result<Box<dyn Reader>>>;

/// Reads of each connection before the measurement.
const WARM_UP: u64 = 500;

/// Reads for which system calls are counted.
const COUNTED: u64 = 1000;

pub struct ReadMethod {
    pub name: String,
    open: Open,
    /// The server's process; `None` if rows are read within this process.
    server: Option<Pid>,
    backends: Vec<Pid>,
    connections: Vec<ReadConnection>,
    samples: Samples,
    spent: Resources,
}

struct ReadConnection {
    reader: Box<dyn Reader>,
    keys: SplitMix,
    rows: u64,
}

/// Resources spent on all reads together.
#[derive(Clone, Copy, Default)]
struct Resources {
    wall: Duration,
    client_cpu: Duration,
    server_cpu: Duration,
    backend_cpu: Duration,
    switches: u64,
}

impl ReadMethod {
    pub fn new(name: &str, open: Open) -> Result<ReadMethod> {
        let (server, backends, connections) = (None, Vec::new(), Vec::new());
        Ok(ReadMethod {
            name: name.to_owned(),
            open,
            server,
            backends,
            connections,
            samples: Samples::new()?,
            spent: Resources::default(),
        })
    }

    pub fn with_server(self, pid: Pid) -> ReadMethod {
        ReadMethod { server: Some(pid), ..self }
    }

    pub fn with_backends(self, backends: Vec<Pid>) -> ReadMethod {
        ReadMethod { backends, ..self }
    }

    /// Opens the connections, and warms them up.
    pub fn open(&mut self, connections: usize, rows: u64) -> Result<()> {
        for number in 0..connections as u64 {
            self.connections.push(ReadConnection { reader: (self.open)()?, keys: SplitMix(number), rows });
        }
        self.on_each(|connection| (0..WARM_UP).try_for_each(|_| connection.read())).map(drop)
    }

    /// Reads over all connections for `time`.
    pub fn run(&mut self, time: Duration) -> Result<()> {
        let before = self.now();
        let start = Instant::now();
        let times = self.on_each(|connection| {
            let mut times = Vec::new();
            let mut last = Instant::now();
            while last - start < time {
                connection.read()?;
                let now = Instant::now();
                times.push(now - last);
                last = now;
            }
            Ok(times)
        })?;
        let wall = start.elapsed();
        let after = self.now();
        let spent = &mut self.spent;
        spent.wall += wall;
        spent.client_cpu += after.client_cpu.saturating_sub(before.client_cpu);
        spent.server_cpu += after.server_cpu.saturating_sub(before.server_cpu);
        spent.backend_cpu += after.backend_cpu.saturating_sub(before.backend_cpu);
        spent.switches += after.switches.saturating_sub(before.switches);
        times.into_iter().flatten().for_each(|time| self.samples.record(time));
        Ok(())
    }

    /// Runs `work` on a thread per connection. Not on the main thread, where libmariadbd is slow.
    fn on_each<T: Send>(&mut self, work: impl Fn(&mut ReadConnection) -> Result<T> + Sync) -> Result<Vec<T>> {
        std::thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> =
                self.connections.iter_mut().map(|connection| scope.spawn(move || work(connection))).collect();
            threads.into_iter().map(|thread| thread.join().ok().context("a reader panicked")?).collect()
        })
    }

    fn now(&self) -> Resources {
        let own = getrusage(UsageWho::RUSAGE_SELF).ok();
        let own_switches = own.map_or(0, |own| own.voluntary_context_switches() + own.involuntary_context_switches());
        let others = self.server.iter().chain(&self.backends).filter_map(|&pid| context_switches(pid));
        Resources {
            wall: Duration::ZERO,
            client_cpu: cpu_time(std::process::id() as Pid).unwrap_or_default(),
            server_cpu: self.server.and_then(cpu_time).unwrap_or_default(),
            backend_cpu: cpu_time_of(&self.backends).unwrap_or_default(),
            switches: own_switches as u64 + others.sum::<u64>(),
        }
    }

    /// Returns the results; reads some more rows to count system calls.
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
            backend_cpu_us: (!self.backends.is_empty()).then(|| each(spent.backend_cpu)),
            switches: Some(spent.switches as f64 / count),
            system_calls: calls,
            per_second: Some(count / spent.wall.as_secs_f64()),
            ..Row::default()
        })
    }

    /// Returns the system calls per read of a single connection; `None` if processes may not be
    /// traced.
    fn count_calls(&mut self) -> Result<Option<f64>> {
        let own = std::process::id() as Pid;
        let pids: Vec<Pid> = [own].into_iter().chain(self.server).chain(self.backends.iter().copied()).collect();
        let Some(counter) = Counter::begin(&pids)? else { return Ok(None) };
        self.connections.truncate(1);
        self.on_each(|connection| (0..COUNTED).try_for_each(|_| connection.read()))?;
        Ok(Some(counter.end()? as f64 / COUNTED as f64))
    }
}

impl ReadConnection {
    fn read(&mut self) -> Result<()> {
        let key = self.keys.below(self.rows);
        self.reader.read(key)
    }
}
