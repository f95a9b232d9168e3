//! Tests the cache beside a trivial store: a map behind a lock.

use crate::dependencies::{Aspect, Dependencies};
use crate::{Cache, CacheLookup, CacheObserver, CacheSettings, NotCached};
use document::path::Path;
use document::{Doc, DocBuf, array, doc};
use proptest::prelude::*;
use query::{Context, Predicate, Sort};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::{ChangeObserver, Changes, Namespace};

fn settings(bytes: usize) -> CacheSettings {
    CacheSettings {
        bytes,
        shards: 2,
        per_thread: false,
        soft_ttl_ms: None,
        hard_ttl_ms: None,
        stale_ms: None,
        invalidate_by_collection: false,
        ignore_concurrent_writes: false,
    }
}

fn namespace() -> Namespace {
    Namespace::new("d", "c")
}

fn predicate(filter: &DocBuf) -> Predicate {
    Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap()
}

fn dependencies(filter: &DocBuf, aspect: Aspect) -> Dependencies {
    Dependencies::matching(namespace(), predicate(filter), aspect)
}

fn store(cache: &Arc<Cache<u64>>, key: &str, dependencies: Dependencies) -> Result<(), NotCached> {
    match cache.look_up(key.as_bytes(), 0, false) {
        CacheLookup::Compute(permit) => permit.store(Arc::new(0), 100, dependencies, 0),
        _ => panic!("{key} cannot be computed"),
    }
}

fn change(cache: &Arc<Cache<u64>>, before: Option<Doc<'_>>, after: Option<Doc<'_>>) {
    let mut changes = Changes::default();
    changes.add_document(&namespace(), before, after);
    drop(CacheObserver(cache.clone()).begin_write(changes));
}

fn has(cache: &Arc<Cache<u64>>, key: &str) -> bool {
    cache.get(key.as_bytes(), 0).is_some()
}

#[test]
fn a_change_invalidates_only_the_entries_it_affects() {
    let cache = Cache::new(settings(1 << 20));
    store(&cache, "id 1", dependencies(&doc! { "_id": 1 }, Aspect::Documents)).unwrap();
    store(&cache, "id 2", dependencies(&doc! { "_id": 2 }, Aspect::Documents)).unwrap();
    store(&cache, "a 5", dependencies(&doc! { "a": 5 }, Aspect::Documents)).unwrap();
    store(&cache, "a 6", dependencies(&doc! { "a": 6.0 }, Aspect::Documents)).unwrap();
    store(&cache, "number of a 5", dependencies(&doc! { "a": 5 }, Aspect::Count)).unwrap();
    store(
        &cache,
        "values of b",
        dependencies(&doc! { "a": &doc! { "$gt": 1 } }, Aspect::DistinctValues(Path::new("b"))),
    )
    .unwrap();
    store(&cache, "elsewhere", Dependencies::all_documents(Namespace::new("d", "other"), vec![])).unwrap();
    let (before, after) = (doc! { "_id": 1, "a": 5, "b": 1, "x": 1 }, doc! { "_id": 1, "a": 5.0, "b": 1, "x": 2 });
    change(&cache, Some(before.as_doc()), Some(after.as_doc()));
    let left = |keys: &[&str]| keys.iter().map(|key| has(&cache, key)).collect::<Vec<_>>();
    assert_eq!(left(&["id 1", "id 2", "a 5", "a 6"]), [false, true, false, true]);
    assert_eq!(left(&["number of a 5", "values of b", "elsewhere"]), [true, true, true]);
    let moved = doc! { "_id": 1, "a": 6, "b": 2 };
    change(&cache, Some(after.as_doc()), Some(moved.as_doc()));
    assert_eq!(left(&["a 6", "number of a 5", "values of b", "elsewhere"]), [false, false, false, true]);
}

#[test]
fn invalidation_by_collection_removes_all_of_its_entries() {
    let cache = Cache::new(CacheSettings { invalidate_by_collection: true, ..settings(1 << 20) });
    store(&cache, "id 1", dependencies(&doc! { "_id": 1 }, Aspect::Documents)).unwrap();
    store(&cache, "id 2", dependencies(&doc! { "_id": 2 }, Aspect::Count)).unwrap();
    store(&cache, "elsewhere", Dependencies::all_documents(Namespace::new("d", "other"), vec![])).unwrap();
    change(&cache, None, Some(doc! { "_id": 3 }.as_doc()));
    assert!(!has(&cache, "id 1") && !has(&cache, "id 2") && has(&cache, "elsewhere"));
}

#[test]
fn a_change_after_the_last_document_affects_nothing() {
    let cache = Cache::new(settings(1 << 20));
    let sort = Sort::parse(doc! { "n": -1 }.as_doc(), &Context::at(0)).unwrap();
    let mut last = Vec::new();
    sort.key(doc! { "n": 100 }.as_doc(), &mut last).unwrap();
    let first = Aspect::First { sort: Box::new(sort), last: last.into() };
    store(&cache, "top", dependencies(&doc! {}, first)).unwrap();
    change(&cache, None, Some(doc! { "_id": 1, "n": 99 }.as_doc()));
    assert!(has(&cache, "top"));
    change(&cache, Some(doc! { "_id": 2, "n": 100 }.as_doc()), None);
    assert!(!has(&cache, "top"));
}

#[test]
fn a_reply_with_a_concurrent_write_is_not_cached() {
    let cache = Cache::new(settings(1 << 20));
    let permit = |key: &str| match cache.look_up(key.as_bytes(), 0, false) {
        CacheLookup::Compute(permit) => permit,
        _ => panic!(),
    };
    let (one, two) = (permit("one"), permit("two"));
    let mut changes = Changes::default();
    changes.add_document(&namespace(), None, Some(doc! { "_id": 1 }.as_doc()));
    let under_way = CacheObserver(cache.clone()).begin_write(changes);
    let during = permit("during");
    let id = |id: i32| dependencies(&doc! { "_id": id }, Aspect::Documents);
    assert_eq!(one.store(Arc::new(0), 1, id(1), 0), Err(NotCached::ConcurrentWrite));
    assert_eq!(two.store(Arc::new(0), 1, id(2), 0), Ok(()));
    drop(under_way);
    assert_eq!(during.store(Arc::new(0), 1, id(1), 0), Err(NotCached::ConcurrentWrite));
    assert_eq!(permit("after").store(Arc::new(0), 1, id(1), 0), Ok(()));
}

#[test]
fn a_late_report_keeps_replies_that_include_the_change() {
    let cache = Cache::new(settings(1 << 20));
    let id = |id: i32| dependencies(&doc! { "_id": id }, Aspect::Documents);
    store(&cache, "before", id(1)).unwrap();
    let moment = Instant::now();
    std::thread::sleep(Duration::from_millis(1));
    store(&cache, "after", id(1)).unwrap();
    let CacheLookup::Compute(computing) = cache.look_up(b"computing", 0, false) else { panic!() };
    let mut changes = Changes::default();
    changes.add_document(&namespace(), None, Some(doc! { "_id": 1 }.as_doc()));
    changes.set_visible_since(moment);
    drop(CacheObserver(cache.clone()).begin_write(changes));
    assert!(!has(&cache, "before") && has(&cache, "after"));
    assert_eq!(computing.store(Arc::new(0), 1, id(1), 0), Ok(()));
}

#[test]
fn callers_of_one_key_wait_for_one_of_them() {
    let cache = Cache::<u64>::new(settings(1 << 20));
    let CacheLookup::Compute(permit) = cache.look_up(b"k", 0, false) else { panic!() };
    let CacheLookup::Wait(waiting) = cache.look_up(b"k", 0, false) else { panic!() };
    assert!(matches!(cache.look_up(b"k", 0, true), CacheLookup::Compute(_)));
    assert!(waiting.has_changed().is_ok());
    permit.store(Arc::new(7), 1, dependencies(&doc! {}, Aspect::Documents), 0).unwrap();
    assert!(waiting.has_changed().is_err());
    assert!(matches!(cache.look_up(b"k", 0, false), CacheLookup::Hit(reply) if *reply == 7));
    // A computation without a result lets the callers that wait go on.
    let CacheLookup::Compute(permit) = cache.look_up(b"l", 0, false) else { panic!() };
    drop(permit);
    assert!(matches!(cache.look_up(b"l", 0, false), CacheLookup::Compute(_)));
}

#[test]
fn stale_replies_are_returned_while_the_follower_is_lost() {
    let follower_lost = |stale_ms: Option<i64>| {
        let cache = Cache::new(CacheSettings { stale_ms, ..settings(1 << 20) });
        store(&cache, "k", dependencies(&doc! { "_id": 1 }, Aspect::Documents)).unwrap();
        store(&cache, "l", dependencies(&doc! { "_id": 2 }, Aspect::Documents)).unwrap();
        cache.set_follower_lost(true);
        cache
    };
    assert!(!has(&follower_lost(None), "k"));
    let cache = follower_lost(Some(100));
    assert!(has(&cache, "k") && matches!(cache.look_up(b"k", 0, false), CacheLookup::Hit(_)));
    assert!(matches!(cache.look_up(b"new", 0, false), CacheLookup::Bypass));
    change(&cache, None, Some(doc! { "_id": 2 }.as_doc()));
    assert!(!has(&cache, "l"), "an observed change invalidates as usual");
    std::thread::sleep(Duration::from_millis(120));
    assert!(!has(&cache, "k"));
    let cache = follower_lost(Some(60_000));
    cache.set_follower_lost(false);
    assert!(!has(&cache, "k"), "external writes meanwhile are not known");
}

#[test]
fn replies_expire() {
    let settings = CacheSettings { soft_ttl_ms: Some(10), hard_ttl_ms: Some(100), ..settings(1 << 20) };
    let cache = Cache::new(settings);
    store(&cache, "k", dependencies(&doc! {}, Aspect::Documents)).unwrap();
    assert!(cache.get(b"k", 9).is_some());
    assert!(cache.get(b"k", 10).is_none(), "a reader must recompute it");
    let CacheLookup::Compute(permit) = cache.look_up(b"k", 10, false) else { panic!("one reader recomputes it") };
    assert!(cache.get(b"k", 11).is_some(), "other readers get the old one");
    assert!(matches!(cache.look_up(b"k", 12, false), CacheLookup::Hit(_)));
    permit.store(Arc::new(1), 1, dependencies(&doc! {}, Aspect::Documents), 20).unwrap();
    assert_eq!(cache.get(b"k", 29).as_deref(), Some(&1));
    assert!(cache.get(b"k", 120).is_none());
    assert_eq!((cache.statistics().replacements, cache.statistics().expirations), (1, 1));
}

#[test]
fn memory_is_bounded_and_a_scan_evicts_no_hot_entries() {
    let cache = Cache::new(settings(200_000));
    let by_id = |id: i32| dependencies(&doc! { "_id": id }, Aspect::Documents);
    for round in 0..3 {
        for id in 0..50 {
            let key = format!("hot {id}");
            if !has(&cache, &key) {
                store(&cache, &key, by_id(id)).unwrap();
            }
            let _ = round;
        }
    }
    let before = (0..50).filter(|id| has(&cache, &format!("hot {id}"))).count();
    for id in 0..20_000 {
        store(&cache, &format!("scan {id}"), by_id(id)).unwrap();
        assert!(cache.statistics().bytes <= 200_000);
    }
    let after = (0..50).filter(|id| has(&cache, &format!("hot {id}"))).count();
    assert_eq!((before, after), (50, 50));
    assert!(cache.statistics().bytes > 180_000);
}

#[test]
fn entries_that_are_all_hot_are_evicted_too() {
    let cache = Cache::new(CacheSettings { shards: 1, ..settings(20_000) });
    for id in 0..2_000 {
        let key = format!("{id}");
        store(&cache, &key, dependencies(&doc! { "_id": id }, Aspect::Documents)).unwrap();
        // Every entry has been hit since it was stored.
        (0..=id).for_each(|id| drop(cache.get(format!("{id}").as_bytes(), 0)));
        assert!(cache.statistics().bytes <= 20_000);
    }
}

fn value() -> impl Strategy<Value = document::ValueBuf> {
    use document::Value;
    let leaf = prop_oneof![
        (0..4_i32).prop_map(|number| Value::Int32(number).to_owned()),
        (0..4_i64).prop_map(|number| Value::Int64(number).to_owned()),
        (0..8_i32).prop_map(|half| Value::Double(f64::from(half) / 2.0).to_owned()),
        "[abkKs]{0,5}".prop_map(|text| Value::String(&text).to_owned()),
        Just(Value::Null.to_owned()),
    ];
    (prop::collection::vec(leaf, 1..4), 0..5_u8).prop_map(|(leaves, shape)| match shape {
        0..2 => leaves[0].clone(),
        2 => doc_of("x", &leaves[0]).as_doc().to_value(),
        3 => array_of(&[array_of(&leaves), leaves[0].clone()]),
        _ => array_of(&leaves[1..]),
    })
}

trait ToValue {
    fn to_value(self) -> document::ValueBuf;
}

impl ToValue for Doc<'_> {
    fn to_value(self) -> document::ValueBuf {
        document::Value::Document(self).to_owned()
    }
}

fn doc_of(key: &str, value: &document::ValueBuf) -> DocBuf {
    DocBuf::build(|writer| writer.append(key, value))
}

fn array_of(values: &[document::ValueBuf]) -> document::ValueBuf {
    let array = DocBuf::build(|writer| {
        values.iter().enumerate().for_each(|(at, value)| writer.append(&at.to_string(), value));
    });
    document::Value::Array(array.as_doc()).to_owned()
}

fn random_document() -> impl Strategy<Value = DocBuf> {
    (0..3_i32, prop::option::of(value()), prop::option::of(value())).prop_map(|(id, a, b)| {
        DocBuf::build(|writer| {
            writer.append("_id", id);
            let fields = [("a", a), ("b", b)].into_iter().filter_map(|(name, value)| Some((name, value?)));
            fields.for_each(|(name, value)| writer.append(name, &value));
        })
    })
}

fn random_test() -> impl Strategy<Value = DocBuf> {
    let orderings = prop::collection::vec((prop::sample::select(vec!["$gt", "$gte", "$lt", "$lte"]), value()), 1..4);
    let path = prop::sample::select(vec!["_id", "a", "a.x", "a.0", "b"]);
    let pattern = "[ab^]?[abks]{1,4}([.]?[*+?]|[|]|[$])?[abks]{0,3}";
    (path, orderings, prop::bool::ANY, 0..13_u8, pattern).prop_map(|(path, orderings, is_element, kind, pattern)| {
        let (_, value) = &orderings[0];
        let tests = DocBuf::build(|writer| orderings.iter().for_each(|(name, value)| writer.append(name, value)));
        let operators = match kind {
            0 => return doc_of(path, value),
            1 => doc! { "$in": &array_of(std::slice::from_ref(value)) },
            2 => doc! { "$in": &array_of(&orderings.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>()) },
            3 => doc! { "$ne": value },
            4 => doc! { "$regex": if is_element { "^a" } else { "b" } },
            5 => doc! { "$exists": is_element },
            6 => doc! { "$type": if is_element { "string" } else { "null" } },
            7 => doc! { "$size": i32::from(is_element) },
            8 => doc! { "$regex": &*pattern, "$options": if is_element { "i" } else { "" } },
            9 => {
                let literal = doc! { "$literal": value };
                return doc! { "$expr": &doc! { "$eq": &array![&*format!("${path}"), &literal] } };
            }
            _ if is_element => doc! { "$elemMatch": &tests },
            _ => tests,
        };
        doc_of(path, &operators.as_doc().to_value())
    })
}

fn random_filter() -> impl Strategy<Value = DocBuf> {
    (prop::collection::vec(random_test(), 1..4), 0..4_u8).prop_map(|(tests, join)| {
        let join = ["$and", "$and", "$or", "$nor"][usize::from(join)];
        DocBuf::build(|writer| {
            let mut array = writer.array(join);
            tests.iter().for_each(|test| array.push(test));
        })
    })
}

/// Two images, which have all but one of their fields in common half of the time.
fn random_change() -> impl Strategy<Value = (DocBuf, DocBuf)> {
    (random_document(), random_document(), any::<bool>(), 0..4_usize).prop_map(|(before, other, is_alike, changed)| {
        if !is_alike {
            return (before, other);
        }
        let after = DocBuf::build(|writer| {
            for (number, (element, value)) in before.as_doc().elements().zip(other.as_doc().elements()).enumerate() {
                let value = if number == changed { value.value() } else { element.value() };
                writer.append(element.key(), value);
            }
        });
        (before, after)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// A change removes the entries that it affects, and no others.
    #[test]
    fn an_entry_is_invalidated_only_if_a_change_affects_it(
        filters in prop::collection::vec(random_filter(), 1..30),
        changes in prop::collection::vec(random_change(), 1..4),
        others in 0..20,
    ) {
        let cache = Cache::<u64>::new(settings(1 << 20));
        for number in 0..others {
            let filter = doc_of(&format!("other{number}"), &document::Value::Int32(1).to_owned());
            store(&cache, &format!("other {number}"), dependencies(&filter, Aspect::Documents)).unwrap();
        }
        let parse = |filter: DocBuf| Predicate::parse(filter.as_doc(), &Context::at(0)).ok().map(|parsed| (filter, parsed));
        let mut cached: Vec<_> = filters.into_iter().filter_map(parse).enumerate().collect();
        for (number, (_, predicate)) in &cached {
            let dependencies = Dependencies::matching(namespace(), predicate.clone(), Aspect::Documents);
            store(&cache, &number.to_string(), dependencies).unwrap();
        }
        for (before, after) in changes {
            let matters = |predicate: &Predicate| {
                predicate.matches(before.as_doc()).unwrap() || predicate.matches(after.as_doc()).unwrap()
            };
            change(&cache, Some(before.as_doc()), Some(after.as_doc()));
            for (number, (filter, predicate)) in &cached {
                prop_assert_eq!(has(&cache, &number.to_string()), !matters(predicate), "{:?}", filter);
            }
            cached.retain(|(_, (_, predicate))| !matters(predicate));
        }
        let is_cached = |number: i32| has(&cache, &format!("other {number}"));
        prop_assert!((0..others).all(is_cached));
    }

    /// The same for a change of which only the `_id` is known: entries that it may affect go.
    #[test]
    fn an_entry_is_invalidated_if_the_document_with_an_id_may_affect_it(filter in random_filter(), document in random_document()) {
        let Ok(predicate) = Predicate::parse(filter.as_doc(), &Context::at(0)) else { return Ok(()) };
        let cache = Cache::<u64>::new(settings(1 << 20));
        store(&cache, "k", Dependencies::matching(namespace(), predicate.clone(), Aspect::Documents)).unwrap();
        let mut changes = Changes::default();
        changes.add_id(&namespace(), document.as_doc().get("_id").unwrap());
        drop(CacheObserver(cache.clone()).begin_write(changes));
        prop_assert!(!has(&cache, "k") || !predicate.matches(document.as_doc()).unwrap());
    }
}

/// Of filters that a document's values do not distinguish, a change is checked against a limited
/// number.
#[test]
fn false_positives_are_bounded() {
    let cache = Cache::new(CacheSettings { shards: 1, ..settings(64 << 20) });
    type Filter = fn(i32) -> DocBuf;
    let filters: [(&str, Filter); 14] = [
        ("two-sided", |i| doc! { "n": &doc! { "$gte": i, "$lt": i + 1 } }),
        ("one-sided", |i| doc! { "m": &doc! { "$gt": i } }),
        ("in a crowd", |i| doc! { "k": 1, "n": &doc! { "$gte": i, "$lt": i + 1 } }),
        ("of values in expressions", |i| doc! { "$expr": &doc! { "$eq": &array!["$u", i + 6] } }),
        ("of texts of any case", |i| doc! { "t": &doc! { "$regex": &*format!("{i}.abc"), "$options": "i" } }),
        ("beside another condition", |i| doc! { "k": 1, "u": &doc! { "$not": &doc! { "$lt": i + 10 } } }),
        ("of texts", |i| doc! { "t": &doc! { "$regex": &*format!("x{i}$") } }),
        ("of beginnings", |i| doc! { "t": &doc! { "$regex": &*format!("^{i} ") } }),
        ("on a field of its own", |i| DocBuf::build(|writer| writer.append(&format!("f{i}"), 1))),
        ("there", |i| DocBuf::build(|writer| writer.append(&format!("f{i}"), &doc! { "$exists": true }))),
        ("of a type", |i| DocBuf::build(|writer| writer.append(&format!("f{i}"), &doc! { "$type": "string" }))),
        ("one of several", |i| doc! { "k": &doc! { "$in": &array![2 * i + 2, 2 * i + 3] } }),
        (
            "branches",
            |i| doc! { "$or": &array![&doc! { "k": i + 2 }, &doc! { "n": &doc! { "$gt": i, "$lt": i + 2 } }] },
        ),
        ("without a place", |i| doc! { "t": &doc! { "$exists": false }, "u": &doc! { "$ne": i } }),
    ];
    for (name, filter) in &filters {
        (0..3_000)
            .for_each(|i| store(&cache, &format!("{name} {i}"), dependencies(&filter(i), Aspect::Documents)).unwrap());
    }
    let document = doc! { "_id": 1, "n": -1, "m": -1, "k": 1, "t": "-1 y", "u": 5 };
    let before = cache.statistics();
    change(&cache, Some(document.as_doc()), Some(document.as_doc()));
    let after = cache.statistics();
    assert_eq!(after.invalidations, before.invalidations);
    assert!(before.entries > 11 * 3_000, "{}", before.entries);
    assert!(
        after.entries_examined - before.entries_examined < 200,
        "{}",
        after.entries_examined - before.entries_examined
    );
    assert!(has(&cache, "two-sided 7") && has(&cache, "in a crowd 7") && has(&cache, "of beginnings 7"));
}

/// A text on which a pattern backtracks too long may match.
#[test]
fn an_entry_whose_filter_fails_is_invalidated() {
    let cache = Cache::new(settings(64 << 20));
    let filter = doc! { "t": &doc! { "$regex": "x*x*x*x*x*needle" } };
    store(&cache, "k", dependencies(&filter, Aspect::Documents)).unwrap();
    let document = doc! { "_id": 1, "t": &*("x".repeat(5000) + "e") };
    assert!(predicate(&filter).matches(document.as_doc()).is_err());
    change(&cache, None, Some(document.as_doc()));
    assert!(!has(&cache, "k"));
}

#[test]
fn substrings_of_a_long_text_are_found() {
    let cache = Cache::new(settings(64 << 20));
    let regex = |text: &str| dependencies(&doc! { "t": &doc! { "$regex": &*format!("{text}.") } }, Aspect::Documents);
    for number in 0..2000 {
        store(&cache, &number.to_string(), regex(&format!("q{number:04}"))).unwrap();
    }
    let text = format!("{} Q0777 q1234 {}", "lorem ipsum ".repeat(1000), "dolor sit amet ".repeat(1000));
    let before = cache.statistics();
    change(&cache, None, Some(doc! { "_id": 1, "t": &*text }.as_doc()));
    let after = cache.statistics();
    assert!(!has(&cache, "1234") && has(&cache, "777") && has(&cache, "1235"));
    assert_eq!(after.invalidations - before.invalidations, 1);
    assert!(
        after.entries_examined - before.entries_examined < 200,
        "{}",
        after.entries_examined - before.entries_examined
    );
}

/// The unindexed entries that are hit stay.
#[test]
fn unindexed_entries_stay_while_they_are_hit() {
    let cache = Cache::new(CacheSettings { shards: 1, ..settings(64 << 20) });
    let unlike = |number: i32| doc! { "t": &doc! { "$exists": false }, "u": &doc! { "$ne": number } };
    store(&cache, "asked for", dependencies(&unlike(-1), Aspect::Documents)).unwrap();
    for number in 0..1000 {
        assert!(has(&cache, "asked for"), "{number}");
        store(&cache, &number.to_string(), dependencies(&unlike(number), Aspect::Documents)).unwrap();
    }
    assert!(has(&cache, "999") && !has(&cache, "0"));
    assert!(cache.statistics().entries < 100);
}

/// Runs readers and writers of a few counters. Each reply is compared with the writes
/// acknowledged before the lookup. Returns the number of stale replies.
fn stale_reads(settings: CacheSettings, time: Duration) -> u64 {
    const KEYS: i32 = 4;
    let ignore_concurrent_writes = settings.ignore_concurrent_writes;
    let cache = Cache::<u64>::new(settings);
    let stored: Arc<Mutex<BTreeMap<i32, u64>>> = Arc::default();
    let acknowledged: Arc<Vec<AtomicU64>> = Arc::new((0..KEYS).map(|_| AtomicU64::new(0)).collect());
    let (stale, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut threads = Vec::new();
    for id in 0..KEYS {
        let (cache, stored, acknowledged, over) = (cache.clone(), stored.clone(), acknowledged.clone(), over.clone());
        threads.push(std::thread::spawn(move || {
            let mut version = 0;
            while !over.load(Ordering::Relaxed) {
                let (before, after) = (doc! { "_id": id, "v": version }, doc! { "_id": id, "v": version + 1 });
                version += 1;
                let mut changes = Changes::default();
                changes.add_document(&namespace(), Some(before.as_doc()), Some(after.as_doc()));
                let announced = CacheObserver(cache.clone()).begin_write(changes);
                stored.lock().unwrap().insert(id, version as u64);
                drop(announced);
                acknowledged[id as usize].store(version as u64, Ordering::SeqCst);
                std::thread::yield_now();
            }
        }));
    }
    for reader in 0..2_i32 {
        let (cache, stored, acknowledged, over) = (cache.clone(), stored.clone(), acknowledged.clone(), over.clone());
        let stale = stale.clone();
        threads.push(std::thread::spawn(move || {
            let mut id = reader;
            while !over.load(Ordering::Relaxed) {
                id = (id + 1) % KEYS;
                let least = acknowledged[id as usize].load(Ordering::SeqCst);
                let key = id.to_le_bytes();
                let version = match cache.look_up(&key, 0, true) {
                    CacheLookup::Hit(version) => *version,
                    CacheLookup::Compute(permit) => {
                        let version = stored.lock().unwrap().get(&id).copied().unwrap_or(0);
                        std::thread::yield_now();
                        let dependencies = dependencies(&doc! { "_id": id }, Aspect::Documents);
                        let _ = permit.store(Arc::new(version), 8, dependencies, 0);
                        version
                    }
                    _ => continue,
                };
                if version < least {
                    stale.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }
    let began = Instant::now();
    while began.elapsed() < time && !(ignore_concurrent_writes && stale.load(Ordering::Relaxed) > 0) {
        std::thread::sleep(Duration::from_millis(5));
    }
    over.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    stale.load(Ordering::Relaxed)
}

#[test]
fn no_read_is_stale_under_concurrency() {
    assert_eq!(stale_reads(settings(1 << 20), Duration::from_secs(2)), 0);
    assert_eq!(stale_reads(CacheSettings { per_thread: true, ..settings(1 << 20) }, Duration::from_secs(2)), 0);
    let of_several_directories = CacheSettings { shards: 18, ..settings(1 << 20) };
    assert_eq!(stale_reads(of_several_directories, Duration::from_secs(2)), 0);
    // Only one or two of the four replies fit.
    assert_eq!(stale_reads(settings(1500), Duration::from_secs(2)), 0);
}

#[test]
fn threads_have_shards_of_their_own_if_configured() {
    let cache = Cache::new(CacheSettings { per_thread: true, ..settings(1 << 20) });
    let aside =
        |work: fn(&Arc<Cache<u64>>) -> bool| std::thread::scope(|scope| scope.spawn(|| work(&cache)).join().unwrap());
    store(&cache, "k", dependencies(&doc! { "_id": 1 }, Aspect::Documents)).unwrap();
    // Of two new threads one has the other shard.
    let seen = [aside(|cache| has(cache, "k")), aside(|cache| has(cache, "k"))];
    assert!(has(&cache, "k") && seen.contains(&false), "{seen:?}");
    aside(|cache| {
        change(cache, Some(doc! { "_id": 1 }.as_doc()), None);
        true
    });
    assert!(!has(&cache, "k"));
}

/// The same test detects replies that are cached despite a concurrent write.
#[test]
fn a_planted_bug_is_detected() {
    let buggy = CacheSettings { ignore_concurrent_writes: true, ..settings(1 << 20) };
    assert!(stale_reads(buggy, Duration::from_secs(60)) > 0);
}
