//! MaxScale's document cache: five queries of 10,000 cars, without a cache, with a cache of result
//! sets, and with a cache of replies.

use super::args::{PublishedArgs, parse};
use super::section::{Section, Table, line};
use crate::cars::{CarsArgs, modes};
use anyhow::Result;
use harness::report::{Row, three_digits};
use harness::servers::MONGODB;

const ABOUT: &str = "Published for MaxScale's NoSQL protocol module (MongoDB 4.4.6, MariaDB 10.5, a laptop): 10,000 cars, 579 of them Toyotas, the \
mean of 100 runs over one connection, in milliseconds. In brackets the ratio to MongoDB in the same line. Selkie's \
embedded store has no result sets to cache. There is no index on `Make` in any of them.";

/// The query, and milliseconds with MongoDB, no cache, filter cache (result sets), internal cache
/// (replies).
const PUBLISHED: [(&str, &str, [f64; 4]); 5] = [
    ("first 101", "{find: \"cars\"}", [1.75, 13.25, 3.12, 3.03]),
    ("all 10,000", "{find: \"cars\", batchSize: 10000}", [70.12, 129.98, 119.59, 62.17]),
    ("Make = Toyota", "… filter: {Make: \"Toyota\"}", [11.47, 7.61, 7.22, 4.12]),
    ("_id $eq", "… filter: {_id: {$eq: 4711}}", [0.62, 0.63, 0.44, 0.40]),
    ("_id", "… filter: {_id: 4711}", [0.55, 0.56, 0.39, 0.35]),
];
const STORES: [&str; 2] = ["embedded", "MariaDB"];
const MODES: [&str; 3] = ["none", "results", "documents"];

pub fn command(args: &PublishedArgs) -> Vec<String> {
    let iterations = if args.quick { "5" } else { "100" };
    args.command(&["bench", "cars", "--modes", "all", "--iterations", iterations])
}

pub fn section(args: &PublishedArgs) -> Result<Section> {
    let command = command(args);
    let cars: CarsArgs = parse(&command)?;
    let report = modes::measure(&cars.modes, cars.mode_repetitions())?;
    let table = Table { lines: lines(&report.rows), command, plots: Vec::new() };
    Ok(Section { title: "A cache of documents", about: ABOUT, tables: vec![table], notes: Vec::new() })
}

fn lines(rows: &[Row]) -> Vec<Vec<String>> {
    let mut lines = vec![line(["query", "", MONGODB, "no cache", "result sets cached", "replies cached"])];
    let mean = |measure: &str, target: &str| {
        rows.iter().find(|row| row.measure == measure && row.target == target).and_then(|row| row.mean_ms)
    };
    for (measure, query, published) in &PUBLISHED {
        let published = published.map(Some);
        lines.push(cells(&format!("`{query}`"), "published", &published));
        for store in STORES {
            let modes = MODES.map(|mode| mean(measure, &format!("{store}, {mode}")));
            let values = [mean(measure, MONGODB), modes[0], modes[1], modes[2]];
            if modes.iter().any(Option::is_some) {
                lines.push(cells("", &format!("Selkie, {store}"), &values));
            }
        }
    }
    lines
}

fn cells(query: &str, server: &str, values: &[Option<f64>; 4]) -> Vec<String> {
    let base = values[0];
    let cells = values.iter().enumerate().map(|(column, milliseconds)| match (milliseconds, base) {
        (Some(milliseconds), Some(base)) if column > 0 => {
            format!("{} ({})", three_digits(*milliseconds), three_digits(milliseconds / base))
        }
        (Some(milliseconds), _) => three_digits(*milliseconds),
        (None, _) => String::new(),
    });
    [query.to_owned(), server.to_owned()].into_iter().chain(cells).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_line_after_the_published_numbers() {
        let row = |target: &str, mean| Row {
            measure: "_id".into(),
            target: target.into(),
            mean_ms: Some(mean),
            ..Row::default()
        };
        let lines = lines(&[row(MONGODB, 0.2), row("embedded, none", 0.1), row("embedded, documents", 0.05)]);
        let last = &lines[lines.len() - 2..];
        assert_eq!(last[0][2..], ["0.550", "0.560 (1.02)", "0.390 (0.709)", "0.350 (0.636)"]);
        assert_eq!(last[1][1..], ["Selkie, embedded", "0.200", "0.100 (0.500)", "", "0.050 (0.250)"]);
    }
}
