//! Measures the evaluator on one thread, in CPU nanoseconds per document: `cargo run --release -p
//! update --example measure`.

use aggregate::Pipeline;
use document::{Doc, DocBuf, ObjectId, Value, array, doc};
use query::{Context, MatchDetails};
use update::Update;

const DOCUMENTS: i32 = 200_000;
const ROUNDS: u32 = 5;

/// About 200 bytes, ten fields.
fn documents() -> Vec<DocBuf> {
    (0..DOCUMENTS)
        .map(|number| {
            doc! {
                "_id": ObjectId::from_parts(1_600_000_000, [1; 5], number as u32),
                "name": format!("document number {number}").as_str(),
                "group": number % 100,
                "amount": f64::from(number % 1000) / 8.0,
                "count": i64::from(number % 17),
                "flag": number % 2 == 0,
                "city": "Springfield",
                "note": "some text that makes it longer",
                "nested": &doc! { "x": number, "y": 1.5 },
                "last": number,
            }
        })
        .collect()
}

/// Returns the CPU time of this thread, which a busy machine disturbs less than the clock. Linux
/// only.
fn cpu_nanoseconds() -> f64 {
    let status = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    status.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(f64::NAN)
}

fn report(name: &str, work: impl Fn()) {
    let best = (0..ROUNDS)
        .map(|_| {
            let start = cpu_nanoseconds();
            work();
            (cpu_nanoseconds() - start) / f64::from(DOCUMENTS)
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:50} {best:8.1} ns/document");
}

fn main() {
    let documents = documents();
    println!("{} documents of {} bytes", documents.len(), documents[0].as_bytes().len());
    let context = Context::at(0);
    let pipeline = |name: &str, stages: document::ValueBuf| {
        let stages = stages.as_value().as_array().unwrap_or(Doc::EMPTY);
        let pipeline = match Pipeline::parse(stages, &context) {
            Ok(pipeline) => pipeline,
            Err(error) => return println!("{name}: {error}"),
        };
        report(name, || {
            let mut execution = pipeline.start(usize::MAX);
            for document in &documents {
                if execution.push(document.as_doc()).is_err() {
                    return;
                }
                while execution.pop().is_some() {}
            }
            let _ = execution.finish();
        });
    };
    pipeline(
        "$group by int32 field, $sum + $avg",
        array![&doc! { "$group": &doc! {
            "_id": "$group", "total": &doc! { "$sum": "$amount" }, "mean": &doc! { "$avg": "$count" },
        } }],
    );
    pipeline(
        "$group by string field, $sum: 1",
        array![&doc! { "$group": &doc! { "_id": "$city", "n": &doc! { "$sum": 1 } } }],
    );
    pipeline(
        "$match + $group null, $sum",
        array![
            &doc! { "$match": &doc! { "flag": true } },
            &doc! { "$group": &doc! { "_id": Value::Null, "s": &doc! { "$sum": "$nested.x" } } },
        ],
    );
    pipeline("$sort by a string field", array![&doc! { "$sort": &doc! { "name": -1 } }]);
    pipeline("$sort by an int32 and a double field", array![&doc! { "$sort": &doc! { "group": 1, "amount": -1 } }]);
    pipeline("$sort + $limit 10", array![&doc! { "$sort": &doc! { "amount": 1, "last": -1 } }, &doc! { "$limit": 10 }]);
    pipeline(
        "$setWindowFields, $sum over 3 documents",
        array![&doc! { "$setWindowFields": &doc! {
            "partitionBy": "$group", "sortBy": &doc! { "last": 1 },
            "output": &doc! { "s": &doc! { "$sum": "$amount", "window": &doc! { "documents": &array![-1, 1] } } },
        } }],
    );
    pipeline("$count", array![&doc! { "$count": "n" }]);
    pipeline("$set of one field", array![&doc! { "$set": &doc! { "x": "$amount" } }]);
    pipeline("$project of two fields", array![&doc! { "$project": &doc! { "name": 1, "amount": 1 } }]);
    let update = |name: &str, spec: DocBuf| {
        let Ok(update) = Update::parse((&spec).into(), None, &context) else { return };
        report(name, || {
            let mut out = Vec::with_capacity(512);
            for document in &documents {
                out.clear();
                let _ = update.apply(document.as_doc(), &MatchDetails::default(), &mut out);
            }
        });
    };
    update("update $set of one field", doc! { "$set": &doc! { "last": -1 } });
    update("update $inc of two fields", doc! { "$inc": &doc! { "group": 1, "nested.x": 1 } });
    update("update $set of a new field", doc! { "$set": &doc! { "new": 1 } });
}
