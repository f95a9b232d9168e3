//! What operations on each collection came to, in number and time, and by which plans: for `top`, `$collStats` and `$indexStats`.
//!
//! Each worker counts its own; whoever asks adds them up.

mod latency;

use crate::command::current_op;
use crate::table::{Access, Spec};
use document::{Doc, DocBuf, DocWriter, Value};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use store::{BorrowedNamespace, Namespace, PlanSummary};

pub use latency::{Latencies, write_latencies};

/// A number of operations, and the time they took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    time: Duration,
    operations: u64,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.time += other.time;
        self.operations += other.operations;
    }
}

/// Names that clients think of are counted whether there are such collections or not, but not without end.
const NAMESPACES_MAX: usize = 10_000;

/// What is told apart, as `top` names it: all of it, what it did to the collection, and what kind of command it was.
const KINDS: [&str; 9] =
    ["total", "readLock", "writeLock", "queries", "getmore", "insert", "update", "remove", "commands"];
const TOTAL: usize = 0;
const READ_LOCK: usize = 1;
const WRITE_LOCK: usize = 2;

type Counts = [Count; KINDS.len()];

/// What came to one collection.
#[derive(Debug, Default)]
struct OfCollection {
    counts: Counts,
    latencies: Latencies,
    /// How often each plan was carried out, by its summary. A collection has few.
    plans: Vec<(PlanSummary, u64)>,
    /// When indexes with these keys were made, in milliseconds since 1970, where that was while the process runs.
    made: Vec<(DocBuf, i64)>,
}

/// Plans beyond so many different ones are not counted.
const PLANS_MAX: usize = 1_000;

/// One worker's counts.
#[derive(Debug, Default)]
pub struct Usage {
    collections: Mutex<HashMap<Namespace, OfCollection, ahash::RandomState>>,
    /// Of all commands, those about no collection among them.
    latencies: Mutex<Latencies>,
}

impl Usage {
    /// Counts a command that was carried out, and the plans by which it was.
    pub fn note(&self, spec: &Spec, body: Doc<'_>, time: Duration, plans: &[(PlanSummary, u64)]) {
        latency::lock(&self.latencies).note(spec.name, time);
        let Some(namespace) = collection(spec, body) else { return };
        let count = Count { time, operations: statements(spec, body) };
        let lock = match spec.access {
            Access::Read => READ_LOCK,
            Access::Write | Access::Admin => WRITE_LOCK,
            Access::Nothing => return,
        };
        let kind = kind_of(body);
        let add = |of: &mut OfCollection| {
            [TOTAL, lock, kind].into_iter().for_each(|kind| of.counts[kind].add(count));
            of.latencies.note(spec.name, time);
            // What goes on by a cursor is the plan that its first batch was counted for.
            if spec.name != "getMore" {
                of.note_plans(plans);
            }
        };
        let mut all = self.lock();
        if let Some(of) = all.get_mut(&namespace) {
            return add(of);
        }
        if all.len() < NAMESPACES_MAX {
            add(all.entry(Namespace::new(namespace.database, namespace.collection)).or_default());
        }
    }

    /// Forgets what is there no more.
    pub fn forget(&self, gone: impl Fn(&Namespace) -> bool) {
        self.lock().retain(|namespace, _| !gone(namespace));
    }

    /// An index with this key was made: what was read by one before it does not count any more.
    pub fn begin_index(&self, namespace: &Namespace, key: Doc<'_>, now_ms: i64) {
        let mut all = self.lock();
        if all.len() >= NAMESPACES_MAX && !all.contains_key(namespace) {
            return;
        }
        let of = all.entry(namespace.clone()).or_default();
        of.plans.retain(|(plan, _)| !plan.reads_by(key));
        of.made.retain(|(made, _)| made.as_doc() != key);
        of.made.push((key.to_owned(), now_ms));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Namespace, OfCollection, ahash::RandomState>> {
        latency::lock(&self.collections)
    }
}

impl OfCollection {
    fn note_plans(&mut self, plans: &[(PlanSummary, u64)]) {
        for (plan, times) in plans {
            if let Some((_, count)) = self.plans.iter_mut().find(|(known, _)| known == plan) {
                *count += times;
            } else if self.plans.len() < PLANS_MAX {
                self.plans.push((plan.clone(), *times));
            }
        }
    }
}

/// How often plans for which this holds were carried out on a collection.
pub fn plans<'u>(
    usages: impl Iterator<Item = &'u Usage>,
    namespace: &Namespace,
    which: impl Fn(&PlanSummary) -> bool,
) -> u64 {
    let of_one = |usage: &Usage| {
        let all = usage.lock();
        let plans = all.get(namespace).map_or([].as_slice(), |of| &of.plans);
        plans.iter().filter(|(plan, _)| which(plan)).map(|(_, times)| times).sum::<u64>()
    };
    usages.map(of_one).sum()
}

/// When an index was made, if that is known.
pub fn index_since<'u>(
    mut usages: impl Iterator<Item = &'u Usage>,
    namespace: &Namespace,
    key: Doc<'_>,
) -> Option<i64> {
    usages.find_map(|usage| {
        let all = usage.lock();
        let mut made = all.get(namespace)?.made.iter();
        made.find(|(made, _)| made.as_doc() == key).map(|(_, since)| *since)
    })
}

/// How long operations took: on one collection, or all of them.
pub fn latencies<'u>(usages: impl Iterator<Item = &'u Usage>, namespace: Option<&Namespace>) -> Latencies {
    let mut sum = Latencies::default();
    for usage in usages {
        match namespace {
            None => sum.add(&latency::lock(&usage.latencies)),
            Some(namespace) => usage.lock().get(namespace).into_iter().for_each(|of| sum.add(&of.latencies)),
        }
    }
    sum
}

/// Where the command's kind stands among [`KINDS`].
fn kind_of(body: Doc<'_>) -> usize {
    match current_op::kind(body) {
        "query" => 3,
        "getmore" => 4,
        "insert" => 5,
        "update" => 6,
        "remove" => 7,
        _ => 8,
    }
}

/// How many operations a command is: each update and each delete is one.
fn statements(spec: &Spec, body: Doc<'_>) -> u64 {
    let name = match spec.name {
        "update" => "updates",
        "delete" => "deletes",
        _ => return 1,
    };
    let inline = body.get(name).and_then(Value::as_array);
    inline.map_or(1, |statements| statements.elements().count() as u64)
}

/// The collection that a command is about, if it is about one.
fn collection<'a>(spec: &Spec, body: Doc<'a>) -> Option<BorrowedNamespace<'a>> {
    let first = body.first()?.value();
    let collection = match spec.name {
        "getMore" => body.get("collection")?.as_str()?,
        "drop" | "renameCollection" | "dataSize" => return None,
        _ => first.as_str()?,
    };
    (!collection.is_empty()).then_some(())?;
    Some(BorrowedNamespace { database: body.get("$db").and_then(Value::as_str)?, collection })
}

/// Writes the sums of all workers' counts, by namespace.
pub fn write<'u>(usages: impl Iterator<Item = &'u Usage>, writer: &mut DocWriter<'_>) {
    let mut sums: BTreeMap<String, Counts> = BTreeMap::new();
    for usage in usages {
        for (namespace, of) in usage.lock().iter() {
            let sum = sums.entry(namespace.to_string()).or_default();
            sum.iter_mut().zip(&of.counts).for_each(|(sum, count)| sum.add(*count));
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
