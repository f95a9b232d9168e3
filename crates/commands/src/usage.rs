//! What operations on each collection came to, in number and time: for `top`.
//!
//! Each worker counts its own; whoever asks adds them up.

use crate::command::current_op;
use crate::table::{Access, Spec};
use document::{Doc, DocWriter, Value};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use store::{BorrowedNamespace, Namespace};

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

/// One worker's counts.
#[derive(Debug, Default)]
pub struct Usage(Mutex<HashMap<Namespace, Counts, ahash::RandomState>>);

impl Usage {
    /// Counts a command that was carried out.
    pub fn note(&self, spec: &Spec, body: Doc<'_>, time: Duration) {
        let Some(namespace) = collection(spec, body) else { return };
        let count = Count { time, operations: statements(spec, body) };
        let lock = match spec.access {
            Access::Read => READ_LOCK,
            Access::Write | Access::Admin => WRITE_LOCK,
            Access::Nothing => return,
        };
        let kind = kind_of(body);
        let add = |counts: &mut Counts| [TOTAL, lock, kind].into_iter().for_each(|kind| counts[kind].add(count));
        let mut all = self.lock();
        if let Some(counts) = all.get_mut(&namespace) {
            return add(counts);
        }
        if all.len() < NAMESPACES_MAX {
            add(all.entry(Namespace::new(namespace.database, namespace.collection)).or_default());
        }
    }

    /// Forgets what is there no more.
    pub fn forget(&self, gone: impl Fn(&Namespace) -> bool) {
        self.lock().retain(|namespace, _| !gone(namespace));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Namespace, Counts, ahash::RandomState>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
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
        for (namespace, counts) in usage.lock().iter() {
            let sum = sums.entry(namespace.to_string()).or_default();
            sum.iter_mut().zip(counts).for_each(|(sum, count)| sum.add(*count));
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
