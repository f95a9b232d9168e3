//! Many sessions at once, each on a thread of its own: nothing may be lost, nothing may happen
//! twice.

use crate::suite::{Decode, Suite, delete, index, inserts, update};
use document::{DocBuf, Value, doc};
use std::sync::{Arc, Barrier};
use store::{Engine, ReturnImage, UpdateStatement};

const THREADS: i32 = 4;
const ROUNDS: i32 = 40;

pub fn run(engine: Arc<dyn Engine>, decode: Decode) {
    small_writes(engine.clone(), decode);
    pushes_to_one_document(engine.clone(), decode);
    large_writes_among_small_ones(engine, decode);
}

/// Updates of a whole collection, and of single documents at the same time.
fn large_writes_among_small_ones(engine: Arc<dyn Engine>, decode: Decode) {
    const DOCUMENTS: i32 = 2_500;
    let suite = Suite::open(engine.clone(), decode, "large_races");
    suite.run(suite.store.drop_database(&suite.namespace.database)).unwrap();
    let documents: Vec<DocBuf> = (0..DOCUMENTS).map(|id| doc! { "_id": id, "n": 0, "m": 0 }).collect();
    suite.insert(&documents);
    suite.create_index(index(doc! { "n": 1 }, doc! {})).unwrap();
    let increment =
        |filter: DocBuf, multi: bool| UpdateStatement { multi, ..update(filter, doc! { "$inc": &doc! { "n": 1 } }) };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let engine = engine.clone();
            scope.spawn(move || {
                let suite = Suite::open(engine, decode, "large_races");
                for round in 0..4 {
                    if thread < 2 {
                        // The filter needs a search; the index moves under the update.
                        let filter = doc! { "m": 0, "n": &doc! { "$gte": 0 } };
                        let outcome = suite.update(increment(filter, true)).unwrap();
                        assert_eq!(outcome.modified, DOCUMENTS as u64);
                        continue;
                    }
                    for at in 0..25 {
                        let id = (thread * 50 + round * 25 + at) * 7 % DOCUMENTS;
                        assert_eq!(suite.update(increment(doc! { "_id": id }, false)).unwrap().modified, 1);
                        let new = doc! { "_id": format!("{thread} {round} {at}").as_str(), "other": 1 };
                        suite.insert(&[new]);
                    }
                }
            });
        }
    });
    let total: i32 = suite.all().iter().map(|document| number(document).unwrap_or(0)).sum();
    assert_eq!(total, 2 * 4 * DOCUMENTS + 2 * 4 * 25, "no increment is lost or made twice");
    suite.assert_valid();
    let outcome = suite.delete(delete(doc! { "m": 0 }, false));
    assert_eq!(outcome.matched, DOCUMENTS as u64);
    assert_eq!(suite.documents_and_bytes().0, 2 * 4 * 25);
    suite.assert_valid();
    suite.run(suite.store.drop_database(&suite.namespace.database)).unwrap();
}

fn small_writes(engine: Arc<dyn Engine>, decode: Decode) {
    let suite = Suite::open(engine.clone(), decode, "races");
    suite.run(suite.store.drop_database(&suite.namespace.database)).unwrap();
    suite.create_index(index(doc! { "u": 1 }, doc! { "unique": true, "sparse": true })).unwrap();
    let barrier = Barrier::new(THREADS as usize);
    let totals: Vec<Totals> = std::thread::scope(|scope| {
        let start = |thread| {
            let (engine, barrier) = (engine.clone(), &barrier);
            scope.spawn(move || session(&Suite::open(engine, decode, "races"), barrier, thread))
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let upserted: usize = totals.iter().map(|total| total.upserted).sum();
    assert_eq!(upserted, ROUNDS as usize, "each upsert inserts in one session alone");
    let claimed: usize = totals.iter().map(|total| total.claimed).sum();
    assert_eq!(claimed, ROUNDS as usize, "each unique value goes to one session");
    let mut numbers: Vec<i32> = totals.into_iter().flat_map(|total| total.numbers).collect();
    numbers.sort_unstable();
    let expected: Vec<i32> = (1..=THREADS * ROUNDS).collect();
    assert_eq!(numbers, expected, "each number is drawn once");
    suite.assert_valid();
    suite.run(suite.store.drop_database(&suite.namespace.database)).unwrap();
}

/// Sixteen sessions push to one document that keeps the last ten, and to one that keeps all.
fn pushes_to_one_document(engine: Arc<dyn Engine>, decode: Decode) {
    const SESSIONS: i32 = 16;
    const PUSHES: i32 = 25;
    let suite = Suite::open(engine.clone(), decode, "push_races");
    suite.run(suite.store.drop_database(&suite.namespace.database)).unwrap();
    suite.insert(&[doc! { "_id": "all" }, doc! { "_id": "last" }]);
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            let engine = engine.clone();
            scope.spawn(move || {
                let suite = Suite::open(engine, decode, "push_races");
                for number in 0..PUSHES {
                    let each = document::array![session * PUSHES + number];
                    let all = doc! { "$push": &doc! { "numbers": &doc! { "$each": &each } } };
                    let last = doc! { "$push": &doc! { "numbers": &doc! { "$each": &each, "$slice": -10 } } };
                    for change in [update(doc! { "_id": "all" }, all), update(doc! { "_id": "last" }, last)] {
                        assert_eq!(suite.update(change).unwrap().modified, 1);
                    }
                }
            });
        }
    });
    let pushed = |id: &str| -> Vec<i32> {
        let document = suite.find(&doc! { "_id": id }).remove(0);
        let Some(Value::Array(numbers)) = document.as_doc().get("numbers") else { panic!("{document:?}") };
        numbers.values().map(|number| if let Value::Int32(number) = number { number } else { -1 }).collect()
    };
    let mut all = pushed("all");
    for session in 0..SESSIONS {
        let of_session: Vec<i32> = all.iter().copied().filter(|number| number / PUSHES == session).collect();
        let expected: Vec<i32> = (session * PUSHES..(session + 1) * PUSHES).collect();
        assert_eq!(of_session, expected, "nothing is lost, and each session's come in its order");
    }
    all.sort_unstable();
    assert_eq!(all.len(), (SESSIONS * PUSHES) as usize, "nothing comes twice");
    let last = pushed("last");
    assert_eq!(last.len(), 10);
    for session in 0..SESSIONS {
        let of_session: Vec<i32> = last.iter().copied().filter(|number| number / PUSHES == session).collect();
        let expected: Vec<i32> = ((session + 1) * PUSHES - of_session.len() as i32..(session + 1) * PUSHES).collect();
        assert_eq!(of_session, expected, "the last ones are kept");
    }
    suite.run(suite.store.drop_database(&suite.namespace.database)).unwrap();
}

/// Returns the counter that all sessions increment.
fn number(document: &DocBuf) -> Option<i32> {
    match document.as_doc().get("n") {
        Some(Value::Int32(number)) => Some(number),
        _ => None,
    }
}

#[derive(Default)]
struct Totals {
    upserted: usize,
    claimed: usize,
    numbers: Vec<i32>,
}

/// A session's participation in the barrier at which all sessions begin a round. A session that
/// fails still waits there for its remaining rounds, so that the others end and the failure is
/// reported, instead of waiting for ever.
struct Participant<'a> {
    barrier: &'a Barrier,
    rounds_left: i32,
}

impl Participant<'_> {
    fn begin_round(&mut self) {
        self.rounds_left -= 1;
        self.barrier.wait();
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        while self.rounds_left > 0 {
            self.begin_round();
        }
    }
}

fn session(suite: &Suite, barrier: &Barrier, thread: i32) -> Totals {
    let mut totals = Totals::default();
    let mut participant = Participant { barrier, rounds_left: ROUNDS };
    for round in 0..ROUNDS {
        participant.begin_round();
        // All upsert the same key.
        let key = format!("round {round}");
        let upsert =
            UpdateStatement { upsert: true, ..update(doc! { "_id": &key }, doc! { "$inc": &doc! { "n": 1 } }) };
        totals.upserted += usize::from(suite.update(upsert).unwrap().upserted.is_some());
        // All draw numbers from one counter.
        let draw = UpdateStatement {
            upsert: true,
            image: ReturnImage::After,
            ..update(doc! { "_id": "counter" }, doc! { "$inc": &doc! { "n": 1 } })
        };
        let drawn = suite.update(draw).unwrap().image.unwrap();
        totals.numbers.push(number(&drawn).unwrap());
        // All claim the same unique value.
        let claim = doc! { "_id": format!("claim {thread} {round}").as_str(), "u": round };
        totals.claimed += usize::from(suite.write(inserts(std::slice::from_ref(&claim)), true)[0].is_ok());
        // Every session sees what was acknowledged. Others may write to the document between the
        // two reads, so the second may see a later state.
        let by_id = doc! { "_id": &key };
        let found = suite.scan(&by_id);
        assert_eq!(found.len(), 1);
        if let Some(looked_up) = suite.look_up(&by_id) {
            assert_eq!(looked_up.len(), 1);
            assert!(number(&looked_up[0]) >= number(&found[0]), "{looked_up:?} was read behind {found:?}");
        }
        let others = suite.find(&doc! { "u": round });
        assert_eq!(others.len(), 1);
    }
    totals
}
