//! The cars: documents `{_id, Year, Make, Model, Category, createdAt, updatedAt}` of about 200
//! bytes, the same in every run.

use anyhow::Result;
use document::{DocBuf, doc};
use harness::connection::Connection;
use harness::message::{Message, check_ok};
use harness::random::SplitMix;

/// The number of Toyotas among 10,000 cars; larger collections have the same proportion.
pub const TOYOTAS: u64 = 579;
pub const CARS: u64 = 10_000;

/// Documents per insert command when a collection is loaded.
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

/// Returns the car with this number, which is its `_id`. A number always returns the same car.
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

/// Returns the cars `first..first + count`.
pub fn cars(first: u64, count: u64) -> Vec<DocBuf> {
    (first..first + count).map(car).collect()
}

/// Encodes the insert command for these documents.
pub fn insert(collection: &str, documents: &[DocBuf]) -> Message {
    Message::with_sequence(doc! { "insert": collection }, "documents", documents.iter().map(DocBuf::as_doc))
}

/// Encodes the insert command for the cars `first..first + count`.
pub fn insert_cars(collection: &str, first: u64, count: u64) -> Message {
    insert(collection, &cars(first, count))
}

/// Drops the collection and loads it with `count` cars.
pub fn load_cars(connection: &mut Connection, collection: &str, count: u64) -> Result<()> {
    connection.drop_collection(collection)?;
    let mut first = 0;
    while first < count {
        let batch = LOAD_BATCH.min(count - first);
        check_ok(connection.round_trip(&insert_cars(collection, first, batch))?)?;
        first += batch;
    }
    Ok(())
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
}
