//! Plans of queries that are asked again and again, value for value, as clients do that poll.
//!
//! Planning takes a tenth of such a query's time in the gateway. What is remembered is a choice and all that it was made by: it goes with the
//! table's definition, and where indexes were compared ([`crate::plan::index_choice_cache`]), that comparison has to say the same again. A query is remembered
//! the second time that it comes, so that those which never do again cost no more than looking.

use crate::plan::access::{Access, Choice};
use crate::plan::index_choice_cache::Decisions;
use crate::plan::plan_texts::Written;
use crate::plan::planner_query::Order;
use ahash::{AHashMap, RandomState};
use query::ReadFields;
use query::predicate::{Node, Test};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{PlanFacts, Query};

/// Choices remembered of a table; past it they are forgotten.
const PLANS_MAX: usize = 512;

/// Longer queries are planned each time.
const KEY_BYTES_MAX: usize = 2_048;

/// Queries that are known to have come once: so many places by a part of their hash, for the last few of each. With one to a place, two that
/// share it would drive each other out for ever.
const SEEN_PLACES: usize = 256;
const SEEN_AT_A_PLACE: usize = 4;

/// What is remembered of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeated {
    known: Arc<Mutex<Known>>,
    state: RandomState,
}

#[derive(Debug, Default)]
struct Known {
    seen: Vec<[u64; SEEN_AT_A_PLACE]>,
    plans: AHashMap<Key, Arc<CollectionRecord>>,
}

/// A query, and all that its plan depends on besides the table's definition.
pub(crate) type Key = SmallVec<[u8; 512]>;

/// A choice, and what it was decided by.
#[derive(Debug)]
pub(crate) struct CollectionRecord {
    access: Access,
    facts: PlanFacts,
    probe: Option<Arc<str>>,
    pub decisions: Decisions,
    /// Where one statement is all there is.
    pub written: Option<Arc<Written>>,
}

impl CollectionRecord {
    pub fn choice(&self) -> Choice {
        (self.access.clone(), self.facts, self.probe.clone())
    }
}

impl Repeated {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn choice(&self, key: &Key) -> Option<Arc<CollectionRecord>> {
        self.lock().plans.get(key).cloned()
    }

    /// Remembers a choice that nothing has been carried out by yet.
    pub(crate) fn note(&self, key: Key, (access, facts, probe): &Choice, decisions: Decisions) {
        let hash = self.state.hash_one(&key);
        let mut known = self.lock();
        known.seen.resize(SEEN_PLACES, Default::default());
        if let Some(seen) = known.seen.get_mut(hash as usize % SEEN_PLACES)
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

/// Returns the key of a query; `None` for one that is planned each time: by a hint, or with a condition that says more than its bytes do here.
pub(crate) fn key(has_long_documents: bool, query: &Query<'_>, order: Order) -> Option<Key> {
    if query.hint.is_some() {
        return None;
    }
    let mut key = Key::new();
    key.extend([u8::from(order == Order::ByIndex), u8::from(has_long_documents)]);
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

fn write_node(key: &mut Key, node: &Node) -> Option<()> {
    match node {
        Node::And(all) => {
            key.push(4);
            write_length(key, all.len());
            all.iter().try_for_each(|node| write_node(key, node))
        }
        // What ids are looked up by is made sooner than found here.
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

/// Lengths in front, so that no two queries are the same bytes.
fn write_name(key: &mut Key, what: u8, name: &str) {
    key.push(what);
    write_length(key, name.len());
    key.extend_from_slice(name.as_bytes());
}

fn write_length(key: &mut Key, length: usize) {
    key.extend_from_slice(&(length as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{DocBuf, ValueBuf, array, doc};
    use query::{Context, Predicate, Sort};
    use std::collections::HashSet;

    fn key_for(filter: &DocBuf, sort: &DocBuf, limit: Option<u64>) -> Option<Key> {
        let context = Context::at(0);
        let predicate = Predicate::parse(filter.as_doc(), &context).expect("a filter");
        let sort = Sort::parse(sort.as_doc(), &context).expect("a sort");
        key(false, &Query { predicate: &predicate, sort: Some(&sort), limit, hint: None, fields: None }, Order::ByIndex)
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
                    let key = key_for(filter, sort, limit).expect("a query whose values say all");
                    assert!(keys.insert(key), "{filter:?} {sort:?} {limit:?}");
                    assert_eq!(key_for(filter, sort, limit), key_for(filter, sort, limit));
                }
            }
        }
    }

    #[test]
    fn what_is_looked_at_matters_where_documents_are_long() {
        let (filter, both) = (doc! { "a": 1 }, doc! { "_id": 0, "a": 1, "b": 1 });
        let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).expect("a filter");
        let fields = ReadFields::of_find(filter.as_doc(), document::Doc::EMPTY, both.as_doc());
        let all = Query::of(&predicate);
        let some = Query { fields: fields.as_ref(), ..all };
        for is_long in [false, true] {
            let key = |query| key(is_long, query, Order::ByIndex).expect("a query whose values say all");
            assert_eq!(key(&some) != key(&all), is_long);
        }
    }

    #[test]
    fn what_values_do_not_tell_is_planned_each_time() {
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
    fn a_query_is_remembered_when_it_comes_again() {
        let repeated = Repeated::default();
        let choice = (Access::Nothing, PlanFacts::default(), None);
        let key = |number: u64| Key::from_slice(&number.to_le_bytes());
        for times in 0..2 {
            assert!(repeated.choice(&key(7)).is_none(), "{times}");
            repeated.note(key(7), &choice, Decisions::new());
        }
        assert!(repeated.choice(&key(7)).is_some());

        let (repeated, many) = (Repeated::default(), PLANS_MAX as u64 / 2);
        for _ in 0..2 {
            (0..many).for_each(|number| repeated.note(key(number), &choice, Decisions::new()));
        }
        let known = (0..many).filter(|number| repeated.choice(&key(*number)).is_some()).count() as u64;
        assert!(known > many * 9 / 10, "{known} of {many} that come in turns");

        for number in 0..2 * PLANS_MAX as u64 {
            (0..2).for_each(|_| repeated.note(key(number), &choice, Decisions::new()));
        }
        assert!(repeated.lock().plans.len() <= PLANS_MAX);
    }
}
