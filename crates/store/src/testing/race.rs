//! Many sessions at once, each on a thread of its own: nothing may be lost, nothing may happen twice.

use super::*;
use document::doc;
use std::sync::Barrier;

const THREADS: i32 = 4;
const ROUNDS: i32 = 40;

pub fn run(engine: Arc<dyn Engine>, decode: Decode) {
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

#[derive(Default)]
struct Totals {
    upserted: usize,
    claimed: usize,
    numbers: Vec<i32>,
}

fn session(suite: &Suite, barrier: &Barrier, thread: i32) -> Totals {
    let mut totals = Totals::default();
    for round in 0..ROUNDS {
        barrier.wait();
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
        match drawn.as_doc().get("n") {
            Some(Value::Int32(number)) => totals.numbers.push(number),
            other => panic!("{other:?} drawn"),
        }
        // All claim the same unique value.
        let claim = doc! { "_id": format!("claim {thread} {round}").as_str(), "u": round };
        totals.claimed += usize::from(suite.write(inserts(&[claim.clone()]), true)[0].is_ok());
        // What was acknowledged is there, whoever looks.
        let found = suite.find(&doc! { "_id": &key });
        assert_eq!(found.len(), 1);
        let others = suite.find(&doc! { "u": round });
        assert_eq!(others.len(), 1);
    }
    totals
}
