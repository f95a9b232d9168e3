//! The cars: documents `{_id, Year, Make, Model, Category, createdAt, updatedAt}` of about 200 bytes, the same in every run.

use crate::client::Connection;
use crate::message::{Message, check_ok};
use anyhow::Result;
use document::{DocBuf, doc};

/// Of 10,000 cars this many are Toyotas, and in larger collections as large a part.
pub const TOYOTAS: u64 = 579;
pub const CARS: u64 = 10_000;

/// How many documents one insert command takes when a collection is loaded.
const LOAD_BATCH: u64 = 10_000;

const MAKES: [&str; 12] = [
    "Audi",
    "BMW",
    "Chevrolet",
    "Dodge",
    "Ford",
    "Honda",
    "Hyundai",
    "Mercedes-Benz",
    "Nissan",
    "Subaru",
    "Volkswagen",
    "Volvo",
];
const MODELS: [&str; 10] = [
    "Astrel",
    "Bravura Sport",
    "Corvane",
    "Delphin Touring",
    "Estrado 2500",
    "Fjord Cross Country",
    "Gallant",
    "Heron",
    "Isola Grand",
    "Juniper XL",
];
const CATEGORIES: [&str; 7] = [
    "SUV",
    "Sedan",
    "Pickup",
    "Coupe, Convertible",
    "Hatchback, Sedan, Coupe",
    "Van/Minivan",
    "Convertible, Sedan, Wagon",
];

/// The car with this number, which is its `_id`. The same number gives the same car, always.
pub fn car(number: u64) -> DocBuf {
    let toyota = (number + 1) * TOYOTAS / CARS > number * TOYOTAS / CARS;
    let mut random = SplitMix(number);
    let make = if toyota { "Toyota" } else { random.pick(&MAKES) };
    let model = random.pick(&MODELS);
    let created = format!("2020-01-{:02}T{:02}:44:{:02}.665Z", 1 + number % 28, number % 24, number % 60);
    let updated = format!("2020-02-{:02}T{:02}:12:{:02}.107Z", 1 + number % 28, number % 23, number % 59);
    doc! {
        "_id": number as i32,
        "Year": 1992 + (random.next() % 29) as i32,
        "Make": make,
        "Model": model,
        "Category": random.pick(&CATEGORIES),
        "createdAt": created.as_str(),
        "updatedAt": updated.as_str(),
    }
}

/// The cars `first..first + count`.
pub fn cars(first: u64, count: u64) -> Vec<DocBuf> {
    (first..first + count).map(car).collect()
}

/// The insert command for these documents.
pub fn insert(collection: &str, documents: &[DocBuf]) -> Message {
    Message::with_sequence(doc! { "insert": collection }, "documents", documents.iter().map(DocBuf::as_doc))
}

/// The insert command for the cars `first..first + count`.
pub fn insert_cars(collection: &str, first: u64, count: u64) -> Message {
    insert(collection, &cars(first, count))
}

/// Drops the collection and loads it with `count` cars.
pub fn load_cars(connection: &mut Connection, collection: &str, count: u64) -> Result<()> {
    drop_collection(connection, collection)?;
    let mut first = 0;
    while first < count {
        let batch = LOAD_BATCH.min(count - first);
        check_ok(connection.round_trip(&insert_cars(collection, first, batch))?)?;
        first += batch;
    }
    Ok(())
}

/// Drops the collection; that there is none is no error (older servers say 26).
pub fn drop_collection(connection: &mut Connection, collection: &str) -> Result<()> {
    connection.round_trip(&Message::command(doc! { "drop": collection })).map(drop)
}

/// A small generator of well-mixed numbers that stays the same between versions of libraries.
/// Source: <https://prng.di.unimi.it/splitmix64.c>
pub struct SplitMix(pub u64);

impl SplitMix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn pick<'t>(&mut self, table: &[&'t str]) -> &'t str {
        table[self.below(table.len() as u64) as usize]
    }
}

/// YCSB's scrambled zipfian distribution: a few of the numbers below a bound are drawn very often, and they lie scattered.
/// Source: <https://github.com/brianfrankcooper/YCSB/blob/master/core/src/main/java/site/ycsb/generator/ZipfianGenerator.java>
pub struct Zipfian {
    bound: u64,
    zeta: f64,
    eta: f64,
}

/// YCSB's constant.
const SKEW: f64 = 0.99;

impl Zipfian {
    pub fn below(bound: u64) -> Zipfian {
        let zeta_of = |count: u64| (1..=count).map(|rank| (rank as f64).powf(-SKEW)).sum::<f64>();
        let zeta = zeta_of(bound);
        let eta = (1.0 - (2.0 / bound as f64).powf(1.0 - SKEW)) / (1.0 - zeta_of(2) / zeta);
        Zipfian { bound, zeta, eta }
    }

    pub fn next(&self, random: &mut SplitMix) -> u64 {
        let uniform = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        let scaled = uniform * self.zeta;
        let rank = if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5f64.powf(SKEW) {
            1
        } else {
            (self.bound as f64 * (self.eta * uniform - self.eta + 1.0).powf(1.0 / (1.0 - SKEW))) as u64
        };
        SplitMix(rank).below(self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::Value;

    #[test]
    fn there_are_579_toyotas_among_10_000_cars_of_about_200_bytes() {
        let cars: Vec<_> = (0..CARS).map(car).collect();
        let toyotas = cars.iter().filter(|car| car.as_doc().get("Make") == Some(Value::String("Toyota"))).count();
        assert_eq!(toyotas as u64, TOYOTAS);
        let mean = cars.iter().map(|car| car.as_bytes().len()).sum::<usize>() / cars.len();
        assert!((150..250).contains(&mean), "{mean}");
        assert_eq!(car(4711), car(4711));
    }

    #[test]
    fn a_fifth_of_the_numbers_is_drawn_four_times_of_five() {
        let (zipfian, mut random) = (Zipfian::below(10_000), SplitMix(1));
        let mut counts = vec![0; 10_000];
        (0..200_000).for_each(|_| counts[zipfian.next(&mut random) as usize] += 1);
        counts.sort_by_key(|count| std::cmp::Reverse(*count));
        let share = counts[..2000].iter().sum::<u32>() as f64 / 200_000.0;
        assert!((0.75..0.9).contains(&share), "{share}");
    }
}
