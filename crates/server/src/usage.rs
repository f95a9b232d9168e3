//! The number, time and plans of operations on each collection: for `top`, `$collStats` and
//! `$indexStats`.
//!
//! Each worker counts its own operations; readers add the workers' counts.

mod latency;

use crate::operation::OperationKind;
use document::{Doc, DocBuf, DocWriter};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use store::{BorrowedNamespace, Namespace, PlanSummary};

pub use latency::{Latencies, LatencyKind, write_latencies};

/// The number of operations and their total time.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimedCount {
    time: Duration,
    operations: u64,
}

impl TimedCount {
    fn add(&mut self, other: TimedCount) {
        self.time += other.time;
        self.operations += other.operations;
    }
}

/// The most namespaces counted. Commands on collections that do not exist count, too, so a limit is
/// needed.
const NAMESPACES_MAX: usize = 10_000;

/// The counters of a collection, as `top` names them: the total, the lock taken, and the kind of
/// command.
const KINDS: [&str; 9] =
    ["total", "readLock", "writeLock", "queries", "getmore", "insert", "update", "remove", "commands"];
/// The lock that a command counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    Read,
    Write,
}

impl LockKind {
    fn counter(self) -> usize {
        match self {
            LockKind::Read => READ_LOCK,
            LockKind::Write => WRITE_LOCK,
        }
    }
}

/// What a command counts as.
#[derive(Clone, Copy)]
pub struct CommandUsage<'a> {
    pub kind: OperationKind,
    pub latency: LatencyKind,
    /// `None`: the command touches neither documents nor the catalog.
    pub lock: Option<LockKind>,
    /// The collection that the command is about.
    pub namespace: Option<BorrowedNamespace<'a>>,
    /// Each update and each delete is one operation.
    pub operations: u64,
}

/// Returns the index of a kind's counter.
fn counter_of(kind: OperationKind) -> usize {
    match kind {
        OperationKind::Query => 3,
        OperationKind::GetMore => 4,
        OperationKind::Insert => 5,
        OperationKind::Update => 6,
        OperationKind::Remove => 7,
        OperationKind::Command => 8,
    }
}

const TOTAL: usize = 0;
const READ_LOCK: usize = 1;
const WRITE_LOCK: usize = 2;

type Counts = [TimedCount; KINDS.len()];

/// The statistics of one collection.
#[derive(Debug, Default)]
struct CollectionUsage {
    counts: Counts,
    latencies: Latencies,
    /// How often each plan was executed, by its summary. A collection has few.
    plans: Vec<(PlanSummary, u64)>,
    /// When indexes with these keys were created, in milliseconds since 1970, if the process was
    /// running then.
    created: Vec<(DocBuf, i64)>,
}

/// The most different plans counted per collection.
const PLANS_MAX: usize = 1_000;

/// One worker's statistics.
#[derive(Debug, Default)]
pub struct UsageStatistics {
    collections: Mutex<HashMap<Namespace, CollectionUsage, ahash::RandomState>>,
    /// The latencies of all commands, including those without a collection.
    latencies: Mutex<Latencies>,
}

impl UsageStatistics {
    /// Counts an executed command and its plans.
    pub fn record(&self, command: &CommandUsage<'_>, time: Duration, plans: &[(PlanSummary, u64)]) {
        latency::lock(&self.latencies).record(command.latency, time);
        let Some((namespace, lock)) = command.namespace.zip(command.lock) else { return };
        let count = TimedCount { time, operations: command.operations };
        let add = |collection: &mut CollectionUsage| {
            for counter in [TOTAL, lock.counter(), counter_of(command.kind)] {
                collection.counts[counter].add(count);
            }
            collection.latencies.record(command.latency, time);
            // A cursor continues with the plan that was counted with its first batch.
            if command.kind != OperationKind::GetMore {
                collection.add_plans(plans);
            }
        };
        let mut all = self.lock();
        if let Some(collection) = all.get_mut(&namespace) {
            return add(collection);
        }
        if all.len() < NAMESPACES_MAX {
            add(all.entry(Namespace::new(namespace.database, namespace.collection)).or_default());
        }
    }

    /// Discards the statistics of dropped collections.
    pub fn forget(&self, dropped: impl Fn(&Namespace) -> bool) {
        self.lock().retain(|namespace, _| !dropped(namespace));
    }

    /// Records that an index with this key was created: reads by an earlier index with the same key
    /// no longer count.
    pub fn reset_index(&self, namespace: &Namespace, key: Doc<'_>, now_ms: i64) {
        let mut all = self.lock();
        if all.len() >= NAMESPACES_MAX && !all.contains_key(namespace) {
            return;
        }
        let collection = all.entry(namespace.clone()).or_default();
        collection.plans.retain(|(plan, _)| !plan.reads_by(key));
        collection.created.retain(|(created, _)| created.as_doc() != key);
        collection.created.push((key.to_owned(), now_ms));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Namespace, CollectionUsage, ahash::RandomState>> {
        latency::lock(&self.collections)
    }
}

impl CollectionUsage {
    fn add_plans(&mut self, plans: &[(PlanSummary, u64)]) {
        for (plan, times) in plans {
            if let Some((_, count)) = self.plans.iter_mut().find(|(known, _)| known == plan) {
                *count += times;
            } else if self.plans.len() < PLANS_MAX {
                self.plans.push((plan.clone(), *times));
            }
        }
    }
}

/// Returns how often matching plans were executed on a collection.
pub fn plans<'u>(
    usages: impl Iterator<Item = &'u UsageStatistics>,
    namespace: &Namespace,
    matches: impl Fn(&PlanSummary) -> bool,
) -> u64 {
    let of_one = |usage: &UsageStatistics| {
        let all = usage.lock();
        let plans = all.get(namespace).map_or([].as_slice(), |collection| &collection.plans);
        plans.iter().filter(|(plan, _)| matches(plan)).map(|(_, times)| times).sum::<u64>()
    };
    usages.map(of_one).sum()
}

/// Returns when an index was created, if the process knows.
pub fn index_since<'u>(
    mut usages: impl Iterator<Item = &'u UsageStatistics>,
    namespace: &Namespace,
    key: Doc<'_>,
) -> Option<i64> {
    usages.find_map(|usage| {
        let all = usage.lock();
        let mut created = all.get(namespace)?.created.iter();
        created.find(|(created, _)| created.as_doc() == key).map(|(_, since)| *since)
    })
}

/// Returns the latencies of operations, on one collection or in total.
pub fn latencies<'u>(usages: impl Iterator<Item = &'u UsageStatistics>, namespace: Option<&Namespace>) -> Latencies {
    let mut sum = Latencies::default();
    for usage in usages {
        match namespace {
            None => sum.add(&latency::lock(&usage.latencies)),
            Some(namespace) => {
                usage.lock().get(namespace).into_iter().for_each(|collection| sum.add(&collection.latencies))
            }
        }
    }
    sum
}

/// Writes the sums of all workers' counts, by namespace.
pub fn write<'u>(usages: impl Iterator<Item = &'u UsageStatistics>, writer: &mut DocWriter<'_>) {
    let mut sums: BTreeMap<String, Counts> = BTreeMap::new();
    for usage in usages {
        for (namespace, collection) in usage.lock().iter() {
            let sum = sums.entry(namespace.to_string()).or_default();
            sum.iter_mut().zip(&collection.counts).for_each(|(sum, count)| sum.add(*count));
        }
    }
    for (namespace, counts) in &sums {
        let mut entry = writer.document(namespace);
        for (name, count) in KINDS.iter().zip(counts) {
            let mut counted = entry.document(name);
            store::explain::append_count("time", count.time.as_micros() as u64, &mut counted);
            store::explain::append_count("count", count.operations, &mut counted);
        }
    }
}
