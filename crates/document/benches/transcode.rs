//! The cost of reading, comparing, indexing and transcoding a document, on documents like those of
//! the `cars` data set.
//!
//! `cargo bench -p document` prints the best of several runs; `-- json_to_bson` runs only those
//! with that name, for use under `valgrind --tool=callgrind`.

use document::path::{End, Path};
use document::{Doc, DocBuf, ObjectId, Value, compare, doc, json, key, validate};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

const DOCUMENTS: usize = 10_000;

fn car(number: usize) -> DocBuf {
    let makes = ["Toyota", "Volkswagen", "Mercedes-Benz", "Škoda", "Ford"];
    let id = ObjectId::from_parts(1_700_000_000 + number as u32, [1, 2, 3, 4, 5], number as u32);
    doc! {
        "_id": id,
        "Make": makes[number % makes.len()],
        "Model": ["Corolla", "Golf Variant", "C 220 T", "Octavia Combi", "Focus"][number % 5],
        "Year": 1990 + (number % 35) as i32,
        "Price": 1999.95 + number as f64 / 4.0,
        "Registered": Value::DateTime(1_500_000_000_000 + number as i64 * 86_399_123),
        "Description": "One owner, full service history, winter tyres on a second set of rims included."
    }
}

/// Runs `work` over all documents a few times and prints the best.
fn measure(name: &str, bytes: usize, mut work: impl FnMut()) {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    if wanted.is_some_and(|wanted| !name.contains(&wanted)) {
        return;
    }
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed());
    }
    let per_document = best.as_nanos() as f64 / DOCUMENTS as f64;
    let rate = bytes as f64 / best.as_secs_f64() / 1e6;
    println!("{name:24} {per_document:8.1} ns per document  {rate:8.0} MB/s");
}

fn main() {
    let cars: Vec<DocBuf> = (0..DOCUMENTS).map(car).collect();
    let texts: Vec<Vec<u8>> = cars
        .iter()
        .map(|car| {
            let mut text = Vec::new();
            json::bson_to_json(car.as_doc(), &mut text);
            text
        })
        .collect();
    let bson_bytes: usize = cars.iter().map(|car| car.as_bytes().len()).sum();
    let json_bytes: usize = texts.iter().map(Vec::len).sum();
    println!("{DOCUMENTS} documents of {} bytes as BSON, {} as JSON", bson_bytes / DOCUMENTS, json_bytes / DOCUMENTS);
    println!("{}", String::from_utf8_lossy(&texts[7]));

    let mut out = Vec::new();
    measure("json_to_bson", json_bytes, || {
        out.clear();
        texts.iter().for_each(|text| json::json_to_bson(text, &mut out).unwrap_or_default());
        black_box(&out);
    });
    measure("bson_to_json", json_bytes, || {
        out.clear();
        cars.iter().for_each(|car| json::bson_to_json(car.as_doc(), &mut out));
        black_box(&out);
    });
    measure("check", bson_bytes, || {
        assert!(cars.iter().all(|car| validate::check(black_box(car.as_bytes())).is_ok()));
    });
    let make = Path::new("Make");
    measure("path to second field", bson_bytes, || {
        assert!(count_toyotas(&make, &cars) > 0);
    });
    let last = Path::new("Description");
    measure("path to last field", bson_bytes, || {
        assert_eq!(count_toyotas(&last, &cars), 0);
    });
    measure("key of every field", bson_bytes, || {
        out.clear();
        for car in &cars {
            car.as_doc().values().for_each(|value| key::encode(value, &mut out));
        }
        black_box(&out);
    });
    measure("compare every field", bson_bytes, || {
        for pair in cars.windows(2) {
            let both = pair[0].as_doc().values().zip(pair[1].as_doc().values());
            both.for_each(|(a, b)| {
                black_box(compare(a, b));
            });
        }
    });
    measure("walk", bson_bytes, || {
        let mut count = 0;
        for car in &cars {
            count += Doc::from_prefix(black_box(car.as_bytes())).map_or(0, |car| car.elements().count());
        }
        black_box(count);
    });
}

fn count_toyotas(path: &Path, cars: &[DocBuf]) -> usize {
    let wanted = Value::String("Toyota");
    let matches = |car: &&DocBuf| {
        path.visit(car.as_doc(), End::Expanded, &mut |reached| match reached.value {
            Some(value) if document::equal(value, wanted) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
        .is_break()
    };
    cars.iter().filter(matches).count()
}
