//! Measurements per target, printed as a table and written as JSON.

use crate::process::{Pid, cpu_time_of};
use crate::target::Target;
use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One measurement of one target. Values that do not apply are absent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    pub measure: String,
    pub target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<f64>,
    /// CPU time of the process that listens, per operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<f64>,
    /// CPU time of the backend processes, per operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_cpu_us: Option<f64>,
    /// CPU time of the client's process, per operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cpu_us: Option<f64>,
    /// Context switches of all processes, per operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<f64>,
    /// System calls of all processes, per operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mebibytes: Option<f64>,
    /// The row's main value (mebibytes, else operations per second, else mean time, else CPU time)
    /// divided by that of the first target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}

impl Row {
    pub fn new(measure: &str, target: &Target) -> Row {
        Row { measure: measure.to_owned(), target: target.name.clone(), ..Row::default() }
    }

    /// Returns the value that ratios are computed from.
    pub fn main_value(&self) -> Option<f64> {
        self.mebibytes.or(self.per_second).or(self.mean_ms).or(self.cpu_us)
    }
}

/// Times of one kind of operation on one target, with the CPU time spent on them.
pub struct Samples {
    /// In nanoseconds.
    times: Histogram<u64>,
    cpu: Option<Duration>,
    backend_cpu: Option<Duration>,
    /// Sum of the measured intervals of wall time.
    wall: Duration,
    /// Documents or operations per timed sample.
    per_sample: u64,
}

/// Longer times are recorded as ten minutes.
const TIME_NS_MAX: u64 = 600_000_000_000;

/// The clocks at the beginning of a measured interval.
pub struct Stopwatch {
    cpu: Option<Duration>,
    backend_cpu: Option<Duration>,
    at: std::time::Instant,
}

impl Samples {
    pub fn new() -> Result<Samples> {
        let times = Histogram::new_with_max(TIME_NS_MAX, 3)?;
        Ok(Samples {
            times,
            cpu: Some(Duration::ZERO),
            backend_cpu: Some(Duration::ZERO),
            wall: Duration::ZERO,
            per_sample: 1,
        })
    }

    /// Creates samples of which each is the time of several documents.
    pub fn of_many(per_sample: u64) -> Result<Samples> {
        Ok(Samples { per_sample, ..Samples::new()? })
    }

    /// Ends the interval that [`Stopwatch::start`] began.
    pub fn stop(&mut self, target: &Target, started: Stopwatch) {
        self.stop_after(|| (), target, started);
    }

    /// Like [`Samples::stop`], but reads the CPU clocks after `settle`, which leaves the server
    /// alone. The server's work meanwhile is CPU time of the operations, but no client waited for
    /// it.
    pub fn stop_after(&mut self, settle: impl FnOnce(), target: &Target, started: Stopwatch) {
        self.wall += started.at.elapsed();
        settle();
        let (cpu, backend_cpu) = clocks(target);
        self.cpu = spent(self.cpu, started.cpu, cpu);
        self.backend_cpu = spent(self.backend_cpu, started.backend_cpu, backend_cpu);
    }

    pub fn record(&mut self, time: Duration) {
        self.times.saturating_record(time.as_nanos() as u64);
    }

    /// Adds the times that another thread recorded, without their CPU and wall time.
    pub fn add_times(&mut self, other: &Samples) -> Result<()> {
        self.times.add(&other.times).context("adding up times")
    }

    /// Returns the number of samples.
    pub fn count(&self) -> u64 {
        self.times.len()
    }

    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        self.times.value_at_quantile(quantile) as f64 / 1e6
    }

    /// Returns times and CPU per operation; with `throughput`, also operations per second of
    /// measured wall time.
    pub fn row(&self, measure: &str, target: &Target, throughput: bool) -> Row {
        let operations = self.times.len() * self.per_sample;
        let per_operation = |cpu: Option<Duration>| cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / operations.max(1) as f64);
        Row {
            operations: Some(operations),
            mean_ms: Some(self.times.mean() / 1e6),
            p50_ms: Some(self.quantile_ms(0.5)),
            p99_ms: Some(self.quantile_ms(0.99)),
            cpu_us: per_operation(self.cpu),
            backend_cpu_us: per_operation(self.backend_cpu),
            per_second: throughput.then(|| operations as f64 / self.wall.as_secs_f64()),
            ..Row::new(measure, target)
        }
    }
}

impl Stopwatch {
    pub fn start(target: &Target) -> Stopwatch {
        let (cpu, backend_cpu) = clocks(target);
        Stopwatch { cpu, backend_cpu, at: std::time::Instant::now() }
    }

    /// Returns the CPU time that the server, and its backends, have spent since the start.
    pub fn spent(&self, target: &Target) -> (Option<Duration>, Option<Duration>) {
        let (cpu, backend_cpu) = clocks(target);
        let since = |before, after| spent(Some(Duration::ZERO), before, after);
        (since(self.cpu, cpu), since(self.backend_cpu, backend_cpu))
    }
}

fn clocks(target: &Target) -> (Option<Duration>, Option<Duration>) {
    let server: Vec<Pid> = target.server_pid.into_iter().collect();
    (cpu_time_of(&server), cpu_time_of(&target.backend_pids))
}

fn spent(so_far: Option<Duration>, before: Option<Duration>, after: Option<Duration>) -> Option<Duration> {
    Some(so_far? + after?.checked_sub(before?)?)
}

/// All measurements of one run.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub rows: Vec<Row>,
}

/// The machine of a run.
#[derive(Debug, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub load_average: String,
    pub unix_seconds: u64,
}

impl Default for Machine {
    fn default() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
        Machine {
            cpu: model.trim_start_matches([' ', '\t', ':']).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_average: read("/proc/loadavg").split_whitespace().take(3).collect::<Vec<_>>().join(" "),
            unix_seconds: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cores, {}, load average at the start {}", self.cores, self.cpu, self.load_average)
    }
}

impl Report {
    /// Adds rows, those of the first target first, and sets their ratios.
    pub fn extend(&mut self, mut rows: Vec<Row>) {
        let mut first: HashMap<String, f64> = HashMap::new();
        for row in &mut rows {
            let Some(value) = row.main_value() else { continue };
            let base = *first.entry(row.measure.clone()).or_insert(value);
            row.ratio = (base > 0.0).then(|| value / base);
        }
        self.rows.extend(rows);
    }

    /// Prints the rows as a table, and writes the JSON file if one is given.
    pub fn publish(&self, json: Option<&Path>) -> Result<()> {
        println!("{}", table(&self.rows));
        println!("{}", self.machine);
        self.write_json(json)
    }

    pub fn write_json(&self, json: Option<&Path>) -> Result<()> {
        let Some(path) = json else { return Ok(()) };
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))
    }
}

type Column = (&'static str, fn(&Row) -> Option<f64>);

const COLUMNS: [Column; 13] = [
    ("operations", |row| row.operations.map(|count| count as f64)),
    ("mean ms", |row| row.mean_ms),
    ("p50 ms", |row| row.p50_ms),
    ("p95 ms", |row| row.p95_ms),
    ("p99 ms", |row| row.p99_ms),
    ("client µs/op", |row| row.client_cpu_us),
    ("cpu µs/op", |row| row.cpu_us),
    ("backend µs/op", |row| row.backend_cpu_us),
    ("switches/op", |row| row.switches),
    ("calls/op", |row| row.system_calls),
    ("per second", |row| row.per_second),
    ("MiB", |row| row.mebibytes),
    ("ratio", |row| row.ratio),
];

/// Returns the rows as a Markdown table, without the columns that are empty in all of them.
pub fn table(rows: &[Row]) -> String {
    let columns: Vec<&Column> =
        COLUMNS.iter().filter(|(_, value)| rows.iter().any(|row| value(row).is_some())).collect();
    let mut lines = vec![
        ["measure", "server"]
            .iter()
            .chain(columns.iter().map(|(name, _)| name))
            .map(|s| (*s).to_owned())
            .collect::<Vec<_>>(),
    ];
    for row in rows {
        let cells = columns.iter().map(|(_, value)| value(row).map(three_digits).unwrap_or_default());
        lines.push([row.measure.clone(), row.target.clone()].into_iter().chain(cells).collect());
    }
    markdown(&lines)
}

/// Returns lines of cells as an aligned Markdown table. The first two columns are text, the others
/// are numbers.
pub fn markdown(lines: &[Vec<String>]) -> String {
    let count = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut out = String::new();
    for (index, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        out += &format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
        if index == 0 {
            let rule = widths.iter().enumerate().map(|(column, &width)| {
                if column < 2 { "-".repeat(width) } else { "-".repeat(width.saturating_sub(1)) + ":" }
            });
            out += &format!("| {} |\n", rule.collect::<Vec<_>>().join(" | "));
        }
    }
    out
}

/// Formats a number with three significant digits, or all digits before the point.
pub fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 100.0 || (value.fract() == 0.0 && magnitude >= 10.0) {
        format!("{value:.0}")
    } else if magnitude >= 10.0 {
        format!("{value:.1}")
    } else if magnitude >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_to_the_first_target_of_a_measure() {
        let row = |measure: &str, target: &str, mean| Row {
            measure: measure.into(),
            target: target.into(),
            mean_ms: Some(mean),
            ..Row::default()
        };
        let mut report = Report::default();
        report.extend(vec![row("a", "x", 2.0), row("a", "y", 1.0), row("b", "x", 3.0), row("b", "y", 12.0)]);
        let ratios: Vec<_> = report.rows.iter().map(|row| row.ratio.unwrap()).collect();
        assert_eq!(ratios, [1.0, 0.5, 1.0, 4.0]);
        assert!(table(&report.rows).contains("| a       | y      |    1.00 | 0.500 |"), "{}", table(&report.rows));
    }
}
