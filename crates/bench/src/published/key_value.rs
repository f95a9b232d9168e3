//! The cost of the client/server protocol: reads of single rows by their key, all data in memory.

use super::args::{PublishedArgs, parse};
use super::section::{Section, Table, line};
use crate::kv::{self, KvArgs};
use anyhow::Result;
use harness::report::{Row, three_digits};
use harness::servers::MONGODB;

const ABOUT: &str = "Published: key-value reads with all data in memory, client and server on one machine. The library within the process read more than twice as much \
as any client of MySQL's servers, and the conclusion was that the protocol between client and server, not the parsing of SQL, is the larger \
cost. Compression cost NDB 25 to 30 %; Unix sockets were a little faster than TCP. In brackets the ratio to MongoDB in the same column. \
Here MariaDB replaces MySQL; there is no NDB.";

/// The published method, the nearest method here, and rows per second.
const PUBLISHED: [(&str, Option<&str>, f64); 5] = [
    ("MongoDB", Some("MongoDB"), 110_000.0),
    ("MySQL, MEMORY engine", Some("MariaDB, Unix socket, prepared, MEMORY"), 43_000.0),
    ("MySQL Cluster (NDB) by SQL, not compressed", None, 46_000.0),
    ("MySQL Cluster by its own library (NDBAPI)", None, 90_000.0),
    ("the embedded library, InnoDB", Some("MariaDB, embedded, prepared"), 115_000.0),
];

pub fn command(args: &PublishedArgs) -> Vec<String> {
    let words: &[&str] = match args.quick {
        true => &["bench", "kv", "--rows", "1000", "--seconds", "0.05", "--rounds", "1"],
        false => &["bench", "kv"],
    };
    args.command(words)
}

pub fn section(args: &PublishedArgs) -> Result<Section> {
    let command = command(args);
    let kv: KvArgs = parse(&command)?;
    let rows = kv::measure(&kv)?;
    let embedded = rows.iter().any(|row| row.target.contains("embedded"));
    let table = Table { lines: lines(&rows), command, plots: Vec::new() };
    let note = "The library within the process is missing, because this build has no libmariadbd. \
                `make embedded-mariadb` builds it.";
    let notes = if embedded { Vec::new() } else { vec![note.to_owned()] };
    Ok(Section { title: "What a protocol costs", about: ABOUT, tables: vec![table], notes })
}

/// Returns a line for each published number with its nearest result, then lines of the other
/// results.
fn lines(rows: &[Row]) -> Vec<Vec<String>> {
    let mut lines =
        vec![line(["published", "here", "rows/s published", "rows/s here", "p50 ms", "cpu µs/row", "backend"])];
    let find = |name: &str| rows.iter().find(|row| row.target == name);
    let base = find(MONGODB).and_then(|row| row.per_second);
    for (name, here, per_second) in PUBLISHED {
        let published = relative(per_second, Some(PUBLISHED[0].2));
        let row = here.and_then(find);
        lines.push(cells(name, published, row, base));
    }
    let others = rows.iter().filter(|row| !PUBLISHED.iter().any(|(_, here, _)| *here == Some(row.target.as_str())));
    lines.extend(others.map(|row| cells("", String::new(), Some(row), base)));
    lines
}

fn cells(name: &str, published: String, row: Option<&Row>, base: Option<f64>) -> Vec<String> {
    let cell = |value: fn(&Row) -> Option<f64>| row.and_then(value).map(three_digits).unwrap_or_default();
    let here = row.map(|row| row.target.clone()).unwrap_or_default();
    let per_second = row.and_then(|row| row.per_second).map(|per_second| relative(per_second, base));
    let values = [cell(|row| row.p50_ms), cell(|row| row.cpu_us), cell(|row| row.backend_cpu_us)];
    [name.to_owned(), here, published, per_second.unwrap_or_default()].into_iter().chain(values).collect()
}

fn relative(per_second: f64, base: Option<f64>) -> String {
    match base {
        Some(base) => format!("{} ({})", three_digits(per_second), three_digits(per_second / base)),
        None => three_digits(per_second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_numbers_are_beside_the_nearest_results() {
        let row =
            |target: &str, per_second| Row { target: target.into(), per_second: Some(per_second), ..Row::default() };
        let lines = lines(&[row("MariaDB, TCP, text", 5000.0), row(MONGODB, 10_000.0)]);
        assert_eq!(lines[1][..4], ["MongoDB", "MongoDB", "110000 (1.00)", "10000 (1.00)"]);
        assert_eq!(lines[3][..4], ["MySQL Cluster (NDB) by SQL, not compressed", "", "46000 (0.418)", ""]);
        assert_eq!(lines[6][..4], ["", "MariaDB, TCP, text", "", "5000 (0.500)"]);
    }
}
