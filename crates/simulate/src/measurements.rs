//! The counts and times of a process, and how those of several processes are added up.

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Times in nanoseconds, to three digits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Vec<(u64, u64)>", try_from = "Vec<(u64, u64)>")]
pub struct Times(Histogram<u64>);

/// Longer times are recorded as an hour.
const TIME_NS_MAX: u64 = 3_600_000_000_000;

/// The outcomes and times of the users of one operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OperationCounts {
    /// Users that completed all steps.
    pub done: u64,
    /// Users that ended after a step, as the scenario defines.
    pub stopped: u64,
    pub failed: u64,
    /// Users that had not started or not finished when the time was over.
    pub abandoned: u64,
    /// Transactions that were restarted.
    pub retries: u64,
    /// From the scheduled start until the user was done or had stopped.
    pub times: Times,
    /// The same from when the first message was sent: the times without regard to the schedule.
    pub times_from_sending: Times,
    /// The same as `times`, by the second of the scheduled start.
    pub by_second: Vec<Times>,
    /// Each step, from the end of the previous one.
    pub steps: Vec<Times>,
    /// The errors of failed users, and the number of each.
    pub errors: BTreeMap<String, u64>,
}

/// The measurements of one process, or of all of them together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measurements {
    pub operations: Vec<OperationCounts>,
    /// The lateness of the first message.
    pub lateness: Times,
    /// Users that finished before the last second was over.
    pub finished_in_time: u64,
    /// CPU time of the process.
    pub cpu: Duration,
    /// From the start until the last user finished.
    pub runtime: Duration,
}

/// Statistics of times, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub count: u64,
    pub mean_ms: f64,
    pub standard_deviation_ms: f64,
    pub p50_ms: f64,
    pub p75_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub min_ms: f64,
    pub max_ms: f64,
}

impl Summary {
    /// Returns all values, in the order of the columns of tables.
    pub fn columns(&self) -> [f64; 8] {
        let Summary { mean_ms, standard_deviation_ms, p50_ms, p75_ms, p95_ms, p99_ms, min_ms, max_ms, .. } = *self;
        [mean_ms, standard_deviation_ms, p50_ms, p75_ms, p95_ms, p99_ms, min_ms, max_ms]
    }
}

impl Default for Times {
    fn default() -> Self {
        // The bounds are constants, and a test covers them.
        #[expect(clippy::expect_used, reason = "the bounds are constants")]
        let times = Histogram::new_with_bounds(1, TIME_NS_MAX, 3).expect("bounds that a histogram can have");
        Times(times)
    }
}

impl From<Times> for Vec<(u64, u64)> {
    fn from(times: Times) -> Self {
        times.0.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
    }
}

impl TryFrom<Vec<(u64, u64)>> for Times {
    type Error = String;

    fn try_from(values: Vec<(u64, u64)>) -> Result<Self, String> {
        let mut times = Times::default();
        for (value, count) in values {
            times.0.record_n(value.min(TIME_NS_MAX), count).map_err(|error| error.to_string())?;
        }
        Ok(times)
    }
}

impl Times {
    pub fn record(&mut self, time: Duration) {
        self.0.saturating_record(time.as_nanos() as u64);
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        milliseconds(self.0.value_at_quantile(quantile) as f64)
    }

    pub fn add(&mut self, other: &Times) -> Result<()> {
        self.0.add(&other.0).context("adding up times")
    }

    pub fn summary(&self) -> Summary {
        Summary {
            count: self.count(),
            mean_ms: milliseconds(self.0.mean()),
            standard_deviation_ms: milliseconds(self.0.stdev()),
            p50_ms: self.quantile_ms(0.5),
            p75_ms: self.quantile_ms(0.75),
            p95_ms: self.quantile_ms(0.95),
            p99_ms: self.quantile_ms(0.99),
            min_ms: if self.count() == 0 { 0.0 } else { milliseconds(self.0.min() as f64) },
            max_ms: milliseconds(self.0.max() as f64),
        }
    }
}

fn milliseconds(nanoseconds: f64) -> f64 {
    nanoseconds / 1e6
}

impl OperationCounts {
    pub fn new(steps: usize, seconds: usize) -> OperationCounts {
        OperationCounts {
            by_second: vec![Times::default(); seconds],
            steps: vec![Times::default(); steps],
            ..OperationCounts::default()
        }
    }

    /// Returns the number of users of this operation that were scheduled.
    pub fn users(&self) -> u64 {
        self.done + self.stopped + self.failed + self.abandoned
    }

    fn add(&mut self, other: &OperationCounts) -> Result<()> {
        self.done += other.done;
        self.stopped += other.stopped;
        self.failed += other.failed;
        self.abandoned += other.abandoned;
        self.retries += other.retries;
        self.times.add(&other.times)?;
        self.times_from_sending.add(&other.times_from_sending)?;
        self.by_second.iter_mut().zip(&other.by_second).try_for_each(|(own, other)| own.add(other))?;
        self.steps.iter_mut().zip(&other.steps).try_for_each(|(own, other)| own.add(other))?;
        for (error, count) in &other.errors {
            *self.errors.entry(error.clone()).or_default() += count;
        }
        Ok(())
    }
}

impl Measurements {
    /// Adds up the measurements of all processes.
    pub fn sum(processes: Vec<Measurements>) -> Result<Measurements> {
        let mut processes = processes.into_iter();
        let mut sum = processes.next().context("no process")?;
        for other in processes {
            sum.operations.iter_mut().zip(&other.operations).try_for_each(|(own, other)| own.add(other))?;
            sum.lateness.add(&other.lateness)?;
            sum.finished_in_time += other.finished_in_time;
            sum.cpu += other.cpu;
            sum.runtime = sum.runtime.max(other.runtime);
        }
        Ok(sum)
    }

    pub fn done(&self) -> Vec<u64> {
        self.operations.iter().map(|counts| counts.done).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(milliseconds: impl IntoIterator<Item = u64>) -> Times {
        let mut times = Times::default();
        milliseconds.into_iter().for_each(|one| times.record(Duration::from_millis(one)));
        times
    }

    #[test]
    fn percentiles() {
        let summary = times(1..=1000).summary();
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.002, "{found} {expected}");
        near(summary.mean_ms, 500.5);
        near(summary.standard_deviation_ms, 288.67);
        near(summary.p50_ms, 500.0);
        near(summary.p75_ms, 750.0);
        near(summary.p95_ms, 950.0);
        near(summary.p99_ms, 990.0);
        near(summary.min_ms, 1.0);
        near(summary.max_ms, 1000.0);
        assert_eq!(Times::default().summary(), Summary::default());
    }

    #[test]
    fn measurements_of_processes_add_up() {
        let measurements = |milliseconds: std::ops::RangeInclusive<u64>| {
            let mut counts = OperationCounts { done: 2, ..OperationCounts::new(1, 1) };
            counts.times = times(milliseconds);
            counts.errors.insert("11000".to_owned(), 1);
            Measurements {
                operations: vec![counts],
                cpu: Duration::from_secs(1),
                finished_in_time: 2,
                ..Measurements::default()
            }
        };
        let both = Measurements::sum(vec![measurements(1..=500), measurements(501..=1000)]).unwrap();
        assert_eq!(both.operations[0].times.summary(), times(1..=1000).summary());
        assert_eq!((both.operations[0].done, both.operations[0].errors["11000"], both.finished_in_time), (4, 2, 4));
        assert_eq!(both.cpu, Duration::from_secs(2));
        assert!(Measurements::sum(Vec::new()).is_err());
    }

    #[test]
    fn times_are_the_same_after_serialization() {
        let sent = times([0, 1, 1, 7, 5000]);
        let text = serde_json::to_string(&sent).unwrap();
        let received: Times = serde_json::from_str(&text).unwrap();
        assert_eq!(received.summary(), sent.summary());
        let long = times([100_000_000]);
        assert_eq!(serde_json::from_str::<Times>(&serde_json::to_string(&long).unwrap()).unwrap().count(), 1);
    }
}
