//! What the client/server protocol costs: reads of single rows by their key, all data in memory.

use super::{Programs, PublishedArgs, Section, Table, experiment, line};
use crate::Bench;
use crate::kv;
use crate::report::{Row, figure};
use crate::servers::MONGODB;
use anyhow::{Result, bail};

const ABOUT: &str = "Published: key-value reads with all data in memory, client and server on one machine. The library within the process read more than twice as much \
as any client of MySQL's servers, from which it was concluded that the protocol between client and server, rather than the parsing of SQL, is the larger \
cost. Compression cost NDB 25 to 30 %; Unix sockets were a little faster than TCP. In brackets each figure as a multiple of MongoDB's in the same column. \
MariaDB stands here for MySQL; there is no NDB.";

/// What was measured, what comes nearest to it here, and rows per second.
const PUBLISHED: [(&str, Option<&str>, f64); 5] = [
    ("MongoDB", Some("MongoDB"), 110_000.0),
    ("MySQL, MEMORY engine", Some("MariaDB, Unix socket, prepared, MEMORY"), 43_000.0),
    ("MySQL Cluster (NDB) by SQL, not compressed", None, 46_000.0),
    ("MySQL Cluster by its own library (NDBAPI)", None, 90_000.0),
    ("the embedded library, InnoDB", Some("MariaDB, embedded, prepared"), 115_000.0),
];

pub fn command(args: &PublishedArgs) -> Vec<String> {
    let words: &[&str] = match args.quick {
        true => &["kv", "--rows", "1000", "--seconds", "0.2", "--rounds", "1"],
        false => &["kv"],
    };
    args.command(words, Programs::All)
}

pub fn section(args: &PublishedArgs) -> Result<Section> {
    let command = command(args);
    let Bench::Kv(kv) = experiment(&command)? else { bail!("{command:?} is another experiment") };
    let rows = kv::measure(&kv)?;
    let embedded = rows.iter().any(|row| row.target.contains("embedded"));
    let table = Table { lines: lines(&rows), command, plots: Vec::new() };
    let note = "The program was built without libmariadbd, so that the library within the process is missing here; \
                `cargo build --release -p selkie --features embedded-mariadb` brings it.";
    let notes = if embedded { Vec::new() } else { vec![note.to_owned()] };
    Ok(Section { title: "What a protocol costs", about: ABOUT, tables: vec![table], notes })
}

/// What was published first, each with what comes nearest to it; then all that is measured here besides.
fn lines(rows: &[Row]) -> Vec<Vec<String>> {
    let mut lines =
        vec![line(["published", "here", "rows/s published", "rows/s here", "p50 ms", "cpu µs/row", "behind"])];
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
    let cell = |value: fn(&Row) -> Option<f64>| row.and_then(value).map(figure).unwrap_or_default();
    let here = row.map(|row| row.target.clone()).unwrap_or_default();
    let per_second = row.and_then(|row| row.per_second).map(|per_second| relative(per_second, base));
    let figures = [cell(|row| row.p50_ms), cell(|row| row.cpu_us), cell(|row| row.behind_cpu_us)];
    [name.to_owned(), here, published, per_second.unwrap_or_default()].into_iter().chain(figures).collect()
}

fn relative(per_second: f64, base: Option<f64>) -> String {
    match base {
        Some(base) => format!("{} ({})", figure(per_second), figure(per_second / base)),
        None => figure(per_second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_stands_beside_what_comes_nearest() {
        let row =
            |target: &str, per_second| Row { target: target.into(), per_second: Some(per_second), ..Row::default() };
        let lines = lines(&[row("MariaDB, TCP, text", 5000.0), row(MONGODB, 10_000.0)]);
        assert_eq!(lines[1][..4], ["MongoDB", "MongoDB", "110000 (1.00)", "10000 (1.00)"]);
        assert_eq!(lines[3][..4], ["MySQL Cluster (NDB) by SQL, not compressed", "", "46000 (0.418)", ""]);
        assert_eq!(lines[6][..4], ["", "MariaDB, TCP, text", "", "5000 (0.500)"]);
    }
}
