//! The latencies of operations, by kind.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/aggregation/collStats/#latencystats-document>

use document::{DocWriter, Value};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The names of the kinds. There are no transactions.
const KINDS: [&str; 4] = ["reads", "writes", "commands", "transactions"];

/// The lower bounds of the histogram's buckets in microseconds: powers of two, and from 2 ms to 2 s
/// one more between each two.
const BUCKETS: [u64; 51] = buckets();

const fn buckets() -> [u64; 51] {
    let mut bounds = [0; 51];
    let mut at = 1;
    let mut bound = 2;
    while at < bounds.len() {
        bounds[at] = bound;
        at += 1;
        if bound >= 2 << 10 && bound < 2 << 20 && at < bounds.len() {
            bounds[at] = bound + bound / 2;
            at += 1;
        }
        bound *= 2;
    }
    bounds
}

/// The latencies of one kind.
#[derive(Clone, Copy, Debug)]
struct Latency {
    time: Duration,
    operations: u64,
    histogram: [u32; BUCKETS.len()],
}

impl Default for Latency {
    fn default() -> Latency {
        Latency { time: Duration::ZERO, operations: 0, histogram: [0; BUCKETS.len()] }
    }
}

/// The latency statistic that a command counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyKind {
    Reads,
    Writes,
    Commands,
}

/// The latencies of all kinds.
#[derive(Clone, Debug, Default)]
pub struct Latencies([Latency; KINDS.len()]);

impl Latencies {
    pub fn record(&mut self, kind: LatencyKind, time: Duration) {
        let latency = &mut self.0[kind as usize];
        latency.time += time;
        latency.operations += 1;
        let micros = time.as_micros() as u64;
        let bucket = BUCKETS.partition_point(|bound| *bound <= micros).saturating_sub(1);
        latency.histogram[bucket] = latency.histogram[bucket].saturating_add(1);
    }

    pub fn add(&mut self, other: &Latencies) {
        for (sum, other) in self.0.iter_mut().zip(&other.0) {
            sum.time += other.time;
            sum.operations += other.operations;
            sum.histogram.iter_mut().zip(other.histogram).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
    }
}

/// Writes `{reads: {latency, ops}, …}`, with the histograms on request.
pub fn write_latencies(latencies: &Latencies, histograms: bool, writer: &mut DocWriter<'_>) {
    for (name, latency) in KINDS.iter().zip(&latencies.0) {
        let mut kind = writer.document(name);
        if histograms {
            let mut buckets = kind.array("histogram");
            for (bound, count) in BUCKETS.iter().zip(latency.histogram).filter(|(_, count)| *count > 0) {
                let mut bucket = buckets.document();
                bucket.append("micros", Value::Int64(*bound as i64));
                bucket.append("count", Value::Int64(i64::from(count)));
            }
        }
        kind.append("latency", Value::Int64(latency.time.as_micros() as i64));
        kind.append("ops", Value::Int64(latency.operations as i64));
    }
}

pub fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Latencies, LatencyKind};
    use std::time::Duration;

    #[test]
    fn buckets_ascend_and_include_their_lower_bound() {
        assert!(BUCKETS.is_sorted_by(|a, b| a < b));
        assert_eq!(BUCKETS[..14], [0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096]);
        let mut latencies = Latencies::default();
        for micros in [0, 1, 2, 3071, 3072, u64::MAX] {
            latencies.record(LatencyKind::Reads, Duration::from_micros(micros));
        }
        let reads = latencies.0[0].histogram;
        assert_eq!((reads[0], reads[1], reads[11], reads[12], reads[50]), (2, 1, 1, 1, 1));
    }
}
