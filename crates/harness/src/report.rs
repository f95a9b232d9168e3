//! Figures: collected per measure and target, printed as a table, written as JSON.

use crate::process::{Pid, cpu_time_of};
use crate::target::Target;
use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One measure on one target. What does not apply is absent.
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
    /// CPU time of the processes behind it, per operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind_cpu_us: Option<f64>,
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
    /// The row's main figure (mebibytes, else operations per second, else mean time, else CPU time) divided by the first target's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}

impl Row {
    pub fn new(measure: &str, target: &Target) -> Row {
        Row { measure: measure.to_owned(), target: target.name.clone(), ..Row::default() }
    }

    /// The figure that ratios are made of.
    pub fn main_figure(&self) -> Option<f64> {
        self.mebibytes.or(self.per_second).or(self.mean_ms).or(self.cpu_us)
    }
}

/// Times of one kind of operation on one target, with the CPU time that went into them.
pub struct Samples {
    /// In nanoseconds.
    times: Histogram<u64>,
    cpu: Option<Duration>,
    behind_cpu: Option<Duration>,
    /// Sum of the stretches of wall time that were measured.
    wall: Duration,
    /// Documents or operations per timed sample.
    per_sample: u64,
}

/// Longer times are counted as this: ten minutes.
const TIME_NS_MAX: u64 = 600_000_000_000;

/// The CPU clocks at the beginning of a stretch.
pub struct Started {
    cpu: Option<Duration>,
    behind_cpu: Option<Duration>,
    at: std::time::Instant,
}

impl Samples {
    pub fn new() -> Result<Samples> {
        let times = Histogram::new_with_max(TIME_NS_MAX, 3)?;
        Ok(Samples {
            times,
            cpu: Some(Duration::ZERO),
            behind_cpu: Some(Duration::ZERO),
            wall: Duration::ZERO,
            per_sample: 1,
        })
    }

    /// Samples of which each stands for several documents.
    pub fn of_many(per_sample: u64) -> Result<Samples> {
        Ok(Samples { per_sample, ..Samples::new()? })
    }

    pub fn start(target: &Target) -> Started {
        let (cpu, behind_cpu) = clocks(target);
        Started { cpu, behind_cpu, at: std::time::Instant::now() }
    }

    /// Ends a stretch that [`Samples::start`] began.
    pub fn stop(&mut self, target: &Target, started: Started) {
        self.stop_after(|| (), target, started);
    }

    /// As [`Samples::stop`], once `settle` has left the server alone: what it does meanwhile is CPU time of the operations, and
    /// nobody has waited for it.
    pub fn stop_after(&mut self, settle: impl FnOnce(), target: &Target, started: Started) {
        self.wall += started.at.elapsed();
        settle();
        let (cpu, behind_cpu) = clocks(target);
        self.cpu = spent(self.cpu, started.cpu, cpu);
        self.behind_cpu = spent(self.behind_cpu, started.behind_cpu, behind_cpu);
    }

    pub fn record(&mut self, time: Duration) {
        self.times.saturating_record(time.as_nanos() as u64);
    }

    /// Adds what somebody else has timed meanwhile; CPU and wall time are not theirs.
    pub fn absorb(&mut self, other: &Samples) -> Result<()> {
        self.times.add(&other.times).context("adding up times")
    }

    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.times.len()
    }

    /// The time that so large a part of the operations took at most.
    pub fn quantile_ms(&self, part: f64) -> f64 {
        self.times.value_at_quantile(part) as f64 / 1e6
    }

    /// Times and CPU per operation; with `throughput` also operations per second of measured wall time.
    pub fn row(&self, measure: &str, target: &Target, throughput: bool) -> Row {
        let operations = self.times.len() * self.per_sample;
        let per_operation = |cpu: Option<Duration>| cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / operations.max(1) as f64);
        Row {
            operations: Some(operations),
            mean_ms: Some(self.times.mean() / 1e6),
            p50_ms: Some(self.quantile_ms(0.5)),
            p99_ms: Some(self.quantile_ms(0.99)),
            cpu_us: per_operation(self.cpu),
            behind_cpu_us: per_operation(self.behind_cpu),
            per_second: throughput.then(|| operations as f64 / self.wall.as_secs_f64()),
            ..Row::new(measure, target)
        }
    }
}

impl Started {
    /// CPU time that the server, and those behind it, have spent since.
    pub fn spent_until_now(&self, target: &Target) -> (Option<Duration>, Option<Duration>) {
        let (cpu, behind_cpu) = clocks(target);
        let since = |before, after| spent(Some(Duration::ZERO), before, after);
        (since(self.cpu, cpu), since(self.behind_cpu, behind_cpu))
    }
}

fn clocks(target: &Target) -> (Option<Duration>, Option<Duration>) {
    let server: Vec<Pid> = target.server.into_iter().collect();
    (cpu_time_of(&server), cpu_time_of(&target.behind))
}

fn spent(so_far: Option<Duration>, before: Option<Duration>, after: Option<Duration>) -> Option<Duration> {
    Some(so_far? + after?.checked_sub(before?)?)
}

/// Everything one run found out.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub rows: Vec<Row>,
}

/// What the figures were made on.
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

impl Report {
    /// Adds rows, first target first, and sets their ratios.
    pub fn extend(&mut self, mut rows: Vec<Row>) {
        let mut first: HashMap<String, f64> = HashMap::new();
        for row in &mut rows {
            let Some(figure) = row.main_figure() else { continue };
            let base = *first.entry(row.measure.clone()).or_insert(figure);
            row.ratio = (base > 0.0).then(|| figure / base);
        }
        self.rows.extend(rows);
    }

    /// Prints the table of `rows` and writes the JSON file if one is wanted.
    pub fn publish(&self, json: Option<&Path>) -> Result<()> {
        println!("{}", table(&self.rows));
        let machine = &self.machine;
        println!("{} cores, {}, load average at the start {}", machine.cores, machine.cpu, machine.load_average);
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
    ("behind µs/op", |row| row.behind_cpu_us),
    ("switches/op", |row| row.switches),
    ("calls/op", |row| row.system_calls),
    ("per second", |row| row.per_second),
    ("MiB", |row| row.mebibytes),
    ("ratio", |row| row.ratio),
];

/// A Markdown table of the rows, without the columns that none of them has.
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
        let figures = columns.iter().map(|(_, value)| value(row).map(figure).unwrap_or_default());
        lines.push([row.measure.clone(), row.target.clone()].into_iter().chain(figures).collect());
    }
    markdown(&lines)
}

/// Lines of cells as a Markdown table whose columns line up; the first two are text, the rest are figures.
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

/// Three significant digits, or all digits before the point.
pub fn figure(value: f64) -> String {
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
