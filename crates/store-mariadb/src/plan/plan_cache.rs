//! The plan cache of a table.
//!
//! A query that polls, value for value the same, finds its plan cached: choosing among ten indexes
//! took a tenth of the gateway's time. If indexes were compared by estimates
//! ([`crate::plan::index_choice_cache`]), the cached choice must still be the same. A query is
//! cached the second time it occurs, so that others cost no more than a lookup.

use crate::plan::access::{Access, AccessChoice};
use crate::plan::index_choice_cache::{Decisions, IndexChoiceCache};
use crate::plan::plan_texts::PlanTexts;
use crate::plan::planner_query::IndexOrder;
use ahash::{AHashMap, RandomState};
use query::ReadFields;
use query::predicate::{Node, Test};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{PlanFacts, Query};

/// Plans cached of a table; past this number all are evicted.
const PLANS_MAX: usize = 512;

/// Queries with longer keys are planned each time.
const KEY_BYTES_MAX: usize = 2_048;

/// Queries seen once: this many slots by a part of their hash, each for the last few. With one
/// query per slot, two that share it would always evict each other.
const SEEN_SLOTS: usize = 256;
const SEEN_PER_SLOT: usize = 4;

/// Everything cached about the plans of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanCache {
    /// Plans of repeated queries.
    pub plans: CachedPlans,
    /// The best index per shape of query.
    pub choices: IndexChoiceCache,
    /// Indexes whose keys did not give the requested values.
    pub undecodable: UndecodableIndexes,
}

impl PlanCache {
    /// Returns the part of the cache that is valid for a newer entry of the same table.
    /// `same_definition`: indexes and columns have not changed.
    pub fn inherited(&self, same_definition: bool) -> PlanCache {
        match same_definition {
            true => self.clone(),
            false => PlanCache { choices: self.choices.clone(), ..PlanCache::default() },
        }
    }
}

/// The names of indexes whose keys did not give the requested values: documents are read at once
/// next time.
#[derive(Clone, Debug, Default)]
pub(crate) struct UndecodableIndexes(Arc<Mutex<BTreeSet<String>>>);

impl UndecodableIndexes {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn contains(&self, index: &str) -> bool {
        self.lock().contains(index)
    }

    pub fn insert(&self, index: &str) {
        self.lock().insert(index.to_owned());
    }
}

/// The plans of a table's repeated queries.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedPlans {
    known: Arc<Mutex<Entries>>,
    state: RandomState,
}

#[derive(Debug, Default)]
struct Entries {
    seen: Vec<[u64; SEEN_PER_SLOT]>,
    plans: AHashMap<PlanKey, Arc<CollectionRecord>>,
}

/// A query, and everything else that its plan depends on besides the table's definition.
pub(crate) type PlanKey = SmallVec<[u8; 512]>;

/// An access path, and the index choices it is based on.
#[derive(Debug)]
pub(crate) struct CollectionRecord {
    access: Access,
    facts: PlanFacts,
    probe: Option<Arc<str>>,
    pub decisions: Decisions,
    /// Its statements, if it has one row source.
    pub written: Option<Arc<PlanTexts>>,
}

impl CollectionRecord {
    pub fn choice(&self) -> AccessChoice {
        (self.access.clone(), self.facts, self.probe.clone())
    }
}

impl CachedPlans {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn choice(&self, key: &PlanKey) -> Option<Arc<CollectionRecord>> {
        self.lock().plans.get(key).cloned()
    }

    /// Caches an access path, if the query was seen before.
    pub(crate) fn note(&self, key: PlanKey, (access, facts, probe): &AccessChoice, decisions: Decisions) {
        let hash = self.state.hash_one(&key);
        let mut known = self.lock();
        known.seen.resize(SEEN_SLOTS, Default::default());
        if let Some(seen) = known.seen.get_mut(hash as usize % SEEN_SLOTS)
            && !seen.contains(&hash)
        {
            seen.rotate_right(1);
            seen[0] = hash;
            return;
        }
        if known.plans.len() >= PLANS_MAX {
            known.plans.clear();
        }
        let written = matches!(access, Access::Rows(_)).then(Arc::default);
        let (access, probe) = (access.clone(), probe.clone());
        known.plans.insert(key, Arc::new(CollectionRecord { access, facts: *facts, probe, decisions, written }));
    }
}

/// Returns the key of a query; `None` for one that is planned each time: it has a hint, or a
/// condition that the key cannot represent.
pub(crate) fn key(has_long_documents: bool, query: &Query<'_>, order: IndexOrder) -> Option<PlanKey> {
    if query.hint.is_some() {
        return None;
    }
    let mut key = PlanKey::new();
    key.extend([u8::from(order == IndexOrder::Trusted), u8::from(has_long_documents)]);
    key.push(u8::from(query.limit.is_some()));
    key.extend(query.limit.unwrap_or_default().to_le_bytes());
    if let Some(sort) = query.sort {
        if !sort.collation().is_simple() {
            return None;
        }
        for part in sort.parts() {
            if part.meta.is_some() {
                return None;
            }
            write_name(&mut key, if part.ascending { 1 } else { 2 }, part.path.as_str());
        }
    }
    if has_long_documents {
        query.fields.into_iter().flat_map(ReadFields::names).for_each(|name| write_name(&mut key, 5, name));
    }
    write_node(&mut key, query.predicate.root())?;
    (key.len() <= KEY_BYTES_MAX).then_some(key)
}

fn write_node(key: &mut PlanKey, node: &Node) -> Option<()> {
    match node {
        Node::And(all) => {
            key.push(4);
            write_length(key, all.len());
            all.iter().try_for_each(|node| write_node(key, node))
        }
        // A lookup by ids is planned faster than found here.
        Node::Path { path, test: Test::Equal(_) | Test::In(_) } if *path == *"_id" => None,
        Node::Path { path, test } => {
            write_name(key, 3, path.as_str());
            let (operator, values) = match test {
                Test::Equal(value) => (1, std::slice::from_ref(value)),
                Test::Less(value) => (2, std::slice::from_ref(value)),
                Test::LessOrEqual(value) => (3, std::slice::from_ref(value)),
                Test::Greater(value) => (4, std::slice::from_ref(value)),
                Test::GreaterOrEqual(value) => (5, std::slice::from_ref(value)),
                Test::In(list) if list.regexes().is_empty() => (6, list.values()),
                Test::Exists => (7, [].as_slice()),
                _ => return None,
            };
            key.push(operator);
            write_length(key, values.len());
            for value in values {
                key.push(value.kind() as u8);
                write_length(key, value.raw_value().len());
                key.extend_from_slice(value.raw_value());
                if key.len() > KEY_BYTES_MAX {
                    return None;
                }
            }
            Some(())
        }
        _ => None,
    }
}

/// Writes a name with its length, so that different queries never have equal keys.
fn write_name(key: &mut PlanKey, what: u8, name: &str) {
    key.push(what);
    write_length(key, name.len());
    key.extend_from_slice(name.as_bytes());
}

fn write_length(key: &mut PlanKey, length: usize) {
    key.extend_from_slice(&(length as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{DocBuf, ValueBuf, array, doc};
    use query::{Context, Predicate, Sort};
    use std::collections::HashSet;

    fn key_for(filter: &DocBuf, sort: &DocBuf, limit: Option<u64>) -> Option<PlanKey> {
        let context = Context::at(0);
        let predicate = Predicate::parse(filter.as_doc(), &context).expect("a filter");
        let sort = Sort::parse(sort.as_doc(), &context).expect("a sort");
        key(
            false,
            &Query { predicate: &predicate, sort: Some(&sort), limit, hint: None, fields: None },
            IndexOrder::Trusted,
        )
    }

    #[test]
    fn queries_that_differ_have_different_keys() {
        let range = |low: i32| doc! { "a": &doc! { "$gt": low } };
        let list = |values: ValueBuf| doc! { "a": &doc! { "$in": &values } };
        let filters = [
            doc! {},
            doc! { "a": 1 },
            doc! { "a": 1i64 },
            doc! { "a": "1" },
            doc! { "b": 1 },
            doc! { "a": 1, "b": 1 },
            doc! { "a": &doc! { "$exists": true } },
            doc! { "a": &doc! { "$lt": 1 } },
            range(1),
            range(2),
            list(array![1, 2]),
            list(array![1, 3]),
        ];
        let sorts = [doc! {}, doc! { "a": 1 }, doc! { "a": -1 }, doc! { "a": 1, "b": 1 }];
        let mut keys = HashSet::new();
        for filter in &filters {
            for sort in &sorts {
                for limit in [None, Some(0), Some(1)] {
                    let key = key_for(filter, sort, limit).expect("a query with a key");
                    assert!(keys.insert(key), "{filter:?} {sort:?} {limit:?}");
                    assert_eq!(key_for(filter, sort, limit), key_for(filter, sort, limit));
                }
            }
        }
    }

    #[test]
    fn read_fields_are_part_of_the_key_if_documents_are_long() {
        let (filter, both) = (doc! { "a": 1 }, doc! { "_id": 0, "a": 1, "b": 1 });
        let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).expect("a filter");
        let fields = ReadFields::of_find(filter.as_doc(), document::Doc::EMPTY, both.as_doc());
        let all = Query::of(&predicate);
        let some = Query { fields: fields.as_ref(), ..all };
        for is_long in [false, true] {
            let key = |query| key(is_long, query, IndexOrder::Trusted).expect("a query with a key");
            assert_eq!(key(&some) != key(&all), is_long);
        }
    }

    #[test]
    fn queries_without_a_key_are_planned_each_time() {
        let none = doc! {};
        for filter in [
            doc! { "_id": 1 },
            doc! { "$expr": true },
            doc! { "a": &doc! { "$not": &doc! { "$gt": 1 } } },
            doc! { "a": "x".repeat(KEY_BYTES_MAX).as_str() },
        ] {
            assert_eq!(key_for(&filter, &none, None), None, "{filter:?}");
        }
    }

    #[test]
    fn a_query_is_cached_the_second_time() {
        let cached = CachedPlans::default();
        let choice = (Access::Nothing, PlanFacts::default(), None);
        let key = |number: u64| PlanKey::from_slice(&number.to_le_bytes());
        for times in 0..2 {
            assert!(cached.choice(&key(7)).is_none(), "{times}");
            cached.note(key(7), &choice, Decisions::new());
        }
        assert!(cached.choice(&key(7)).is_some());

        let (cached, many) = (CachedPlans::default(), PLANS_MAX as u64 / 2);
        for _ in 0..2 {
            (0..many).for_each(|number| cached.note(key(number), &choice, Decisions::new()));
        }
        let known = (0..many).filter(|number| cached.choice(&key(*number)).is_some()).count() as u64;
        assert!(known > many * 9 / 10, "{known} of {many} that come in turns");

        for number in 0..2 * PLANS_MAX as u64 {
            (0..2).for_each(|_| cached.note(key(number), &choice, Decisions::new()));
        }
        assert!(cached.lock().plans.len() <= PLANS_MAX);
    }
}
