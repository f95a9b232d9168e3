//! Measures how many documents a filter tests per second: `cargo run --release -p query --example
//! match_speed`.
//!
//! Counts allocations too: rejecting a document must not allocate.

use document::{DocBuf, doc};
use query::{Context, Predicate};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: forwards all calls to the system's allocator; counting does not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ROUNDS: usize = 1000;

fn main() {
    let makes = ["Toyota", "Honda", "Ford", "Volkswagen", "Renault", "Skoda", "Fiat", "Opel", "Nissan", "Kia"];
    let cars: Vec<DocBuf> = (0..1000)
        .map(|number| {
            doc! {
                "_id": document::ObjectId::from_parts(number, [1; 5], number), "Make": makes[number as usize % 10], "Model": "Model name 12",
                "Year": 1990 + number as i32 % 30, "Engine": "2.0 l petrol", "Power": 77.5 + f64::from(number), "Doors": 5,
                "Color": "metallic blue", "Owner": "Somebody Somewhere", "Price": 12345_i64, "Used": true,
            }
        })
        .collect();
    println!("documents of {} bytes", cars[0].as_bytes().len());
    let filters = [
        doc! { "Make": "Toyota" },
        doc! { "Year": &doc! { "$gte": 2000, "$lt": 2005 } },
        doc! { "Make": &doc! { "$in": &document::array!["Toyota", "Kia", "Opel"] } },
        doc! { "Model": &doc! { "$regex": "^Model name 9" } },
        doc! { "Owner": &doc! { "$regex": "SOME.*nowhere", "$options": "i" } },
        doc! { "missing.field": 1 },
        doc! { "Make": "Toyota", "Year": 2000, "Used": true },
    ];
    for filter in &filters {
        let predicate = match Predicate::parse(filter.as_doc(), &Context::at(0)) {
            Ok(predicate) => predicate,
            Err(error) => return eprintln!("{error}"),
        };
        let (allocations, start) = (ALLOCATIONS.load(Ordering::Relaxed), Instant::now());
        let mut matched = 0;
        for _ in 0..ROUNDS {
            matched += cars.iter().filter(|car| predicate.matches(car.as_doc()) == Ok(true)).count();
        }
        let nanoseconds = start.elapsed().as_nanos() as f64 / (ROUNDS * cars.len()) as f64;
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
        println!(
            "{nanoseconds:7.1} ns  {:5.1} M/s  {allocations} allocations  {matched} matched  {filter:?}",
            1000.0 / nanoseconds
        );
    }
}
