//! The filter of a stream: a leading `$match`, by which events are kept from it.

use super::super::options::{FullDocument, View};
use document::path::Path;
use document::{Collation, Doc, Value, ValueBuf, compare};
use query::predicate::{Node, Test};
use query::{Context, Predicate};
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

/// The most values of a condition by which groups are found.
const VALUES_MAX: usize = 100;

/// The condition of events that a stream may show.
#[derive(Clone, Debug)]
pub struct Filter {
    pub predicate: Arc<Predicate>,
    pub key: FilterKey,
    /// The events that it reads.
    pub view: View,
}

/// Filters with the same key are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FilterKey {
    /// The pipeline.
    Stages(Arc<[u8]>),
    Unique(u64),
}

impl Filter {
    /// Returns the filter of a pipeline with this leading `$match`. There is none if a second
    /// evaluation may have another result: expressions may be random.
    pub fn of(predicate: &Arc<Predicate>, stages: Doc<'_>, context: &Context, view: View) -> Option<Filter> {
        static UNIQUE: AtomicU64 = AtomicU64::new(0);
        if predicate.has_expression() {
            return None;
        }
        let key = match context.collation == Collation::SIMPLE {
            true => FilterKey::Stages(stages.as_bytes().into()),
            false => FilterKey::Unique(UNIQUE.fetch_add(1, Relaxed)),
        };
        // What the filter does not read is left out, unless the stream fails without it.
        let full_document = match view.full_document {
            FullDocument::UpdateLookup | FullDocument::WhenAvailable if !reads_full_document(predicate.root()) => {
                FullDocument::Default
            }
            other => other,
        };
        Some(Filter { predicate: predicate.clone(), key, view: View { full_document, ..view } })
    }

    /// Returns a path, and the hashes of the values there of which an event must have one. There
    /// is none with a collation, by which other values are equal too.
    pub fn needed_values(&self) -> Option<(Path, Vec<u64>)> {
        if let FilterKey::Unique(_) = self.key {
            return None;
        }
        let nodes = match self.predicate.root() {
            Node::And(all) => all.as_slice(),
            node => std::slice::from_ref(node),
        };
        nodes.iter().find_map(|node| {
            let Node::Path { path, test } = node else { return None };
            let hashes = match test {
                Test::Equal(value) => hashes(std::slice::from_ref(value)),
                Test::In(list) if list.regexes().is_empty() => hashes(list.values()),
                _ => None,
            };
            Some((path.clone(), hashes?))
        })
    }
}

/// Returns the hashes of values; `None` if they are many, or equal to more than themselves.
fn hashes(values: &[ValueBuf]) -> Option<Vec<u64>> {
    let hash = |value: Value<'_>| match value {
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::String(_) | Value::ObjectId(_) => {
            Some(value_hash(value))
        }
        Value::Boolean(_) | Value::DateTime(_) | Value::Binary { .. } => Some(value_hash(value)),
        _ => None,
    };
    let few = Some(values).filter(|values| values.len() <= VALUES_MAX);
    few?.iter().map(|value| hash(value.as_value())).collect()
}

fn reads_full_document(node: &Node) -> bool {
    steps::step();
    match node {
        Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => branches.iter().any(reads_full_document),
        Node::Path { path, .. } => path.first() == "fullDocument",
        Node::Never => false,
        _ => true,
    }
}

/// Returns the hash of a value: equal values have equal hashes.
pub fn value_hash(value: Value<'_>) -> u64 {
    static STATE: LazyLock<ahash::RandomState> = LazyLock::new(ahash::RandomState::new);
    let mut hasher = STATE.build_hasher();
    compare::hash_value(value, &mut hasher);
    hasher.finish()
}
