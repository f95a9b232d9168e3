//! How long operations took, by what kind of operation they were.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/aggregation/collStats/#latencystats-document>

use document::{DocWriter, Value};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The kinds, as they are named. There are no transactions.
const KINDS: [&str; 4] = ["reads", "writes", "commands", "transactions"];

/// Where the histogram's buckets begin, in microseconds: powers of two, and between those that matter to people one more.
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

/// The operations of one kind.
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

/// The operations of all kinds.
#[derive(Clone, Debug, Default)]
pub struct Latencies([Latency; KINDS.len()]);

impl Latencies {
    pub fn note(&mut self, command: &str, time: Duration) {
        let latency = &mut self.0[kind_of(command)];
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

/// Where a command's kind stands among [`KINDS`].
fn kind_of(command: &str) -> usize {
    match command {
        "find" | "getMore" | "aggregate" | "count" | "distinct" => 0,
        "insert" | "update" | "delete" | "findAndModify" => 1,
        _ => 2,
    }
}

/// Writes `{reads: {latency, ops}, …}`, with the histograms if they are asked for.
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
    use super::*;

    #[test]
    fn buckets_rise_and_hold_what_begins_in_them() {
        assert!(BUCKETS.is_sorted_by(|a, b| a < b));
        assert_eq!(BUCKETS[..14], [0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096]);
        let mut latencies = Latencies::default();
        for micros in [0, 1, 2, 3071, 3072, u64::MAX] {
            latencies.note("find", Duration::from_micros(micros));
        }
        let reads = latencies.0[0].histogram;
        assert_eq!((reads[0], reads[1], reads[11], reads[12], reads[50]), (2, 1, 1, 1, 1));
    }
}
