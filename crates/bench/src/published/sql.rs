//! MaxScale's performance: SELECTs of single rows, directly and through the proxy, over a growing
//! number of connections.

use super::args::{PublishedArgs, parse};
use super::section::{Section, Table, line};
use crate::sql::{self as select, CACHED, DIRECT, SqlArgs, THROUGH};
use anyhow::Result;
use charts::plotters::prelude::WHITE;
use charts::{COLORS, Line};
use harness::report::{Row, three_digits};
use std::path::PathBuf;

const ABOUT: &str = "Published for MaxScale 2.1: sysbench's read-only test, 100 simple SELECTs per iteration without a transaction, 4 servers and 16 threads, \
direct (the client takes one server after the other) compared with the routers readconnroute and readwritesplit, each with and without the cache filter. \
It has curves and no numbers: readwritesplit more than doubled from 2.1.0 to 2.1.3; the cache helped under 64 connections, and at every number of \
them once it was not checked whether a SELECT may be cached.\n\nThe published experiment needs a machine for each server. On one machine, the nearest \
equivalent is the listener for SQL clients in front of one MariaDB, without a cache and with a cache of result sets, over TCP: the same \
table, the same SELECT by primary key as text, each connection with one SELECT in flight. Selkie always checks whether a SELECT may be cached.";

pub fn command(args: &PublishedArgs) -> Vec<String> {
    let words: &[&str] = match args.quick {
        true => &["bench", "sql", "--connections", "1,4", "--seconds", "0.1", "--rows", "500"],
        false => &["bench", "sql", "--connections", "1,2,4,8,16,32,64", "--seconds", "3"],
    };
    args.command_without_mongod(words)
}

pub fn section(args: &PublishedArgs) -> Result<Section> {
    let command = command(args);
    let sql: SqlArgs = parse(&command)?;
    let rows = select::measure(&sql)?;
    let plots = draw(args, &sql.connections, &rows)?;
    let table = Table { lines: lines(&sql.connections, &rows), command, plots };
    let note = "SELECTs per second, in brackets the ratio to those without Selkie, and CPU time per SELECT of mariadbd and of Selkie in \
                microseconds. Client, Selkie and MariaDB share the machine's cores.";
    Ok(Section { title: "SQL through the gateway", about: ABOUT, tables: vec![table], notes: vec![note.to_owned()] })
}

const SERVERS: [&str; 3] = [DIRECT, THROUGH, CACHED];

/// Returns the rows of one number of connections, in the order of [`SERVERS`].
fn by_server(rows: &[Row], number: usize) -> [Option<&Row>; 3] {
    let of_number = rows.get(number * SERVERS.len()..).unwrap_or_default();
    let of_number = of_number.get(..SERVERS.len()).unwrap_or_default();
    SERVERS.map(|server| of_number.iter().find(|row| row.target == server))
}

fn lines(connections: &[usize], rows: &[Row]) -> Vec<Vec<String>> {
    let mut lines = vec![line([
        "connections",
        "",
        DIRECT,
        "CPU",
        THROUGH,
        "CPU of Selkie, of mariadbd",
        CACHED,
        "CPU of Selkie, of mariadbd",
    ])];
    for (number, connections) in connections.iter().enumerate() {
        let by_server = by_server(rows, number);
        let base = by_server[0].and_then(|row| row.per_second);
        let mut cells = vec![connections.to_string(), "SELECTs per second".to_owned()];
        for (server, row) in by_server.iter().enumerate() {
            let speed = row.and_then(|row| row.per_second);
            cells.push(match (speed, base) {
                (Some(speed), Some(base)) if server > 0 => {
                    format!("{} ({})", three_digits(speed), three_digits(speed / base))
                }
                (speed, _) => speed.map(three_digits).unwrap_or_default(),
            });
            let cpu = row.and_then(|row| row.cpu_us).map(three_digits);
            let backend_cpu = row.and_then(|row| row.backend_cpu_us).map(three_digits);
            cells.push([cpu, backend_cpu].into_iter().flatten().collect::<Vec<_>>().join(", "));
        }
        lines.push(cells);
    }
    lines
}

fn draw(args: &PublishedArgs, connections: &[usize], rows: &[Row]) -> Result<Vec<PathBuf>> {
    charts::prepare()?;
    let curve = |(server, name): (usize, &&str)| {
        let points = connections.iter().enumerate().filter_map(|(number, connections)| {
            Some(((*connections as f64).log2(), by_server(rows, number)[server]?.per_second?))
        });
        Line { name: (*name).to_owned(), color: COLORS[server], bold: true, points: points.collect() }
    };
    let curves: Vec<Line> = SERVERS.iter().enumerate().map(curve).collect();
    let last = connections.iter().max().map_or(1.0, |most| (*most as f64).log2()).max(1.0);
    let label = |log: f64| if log.fract().abs() < 1e-6 { log.exp2().to_string() } else { String::new() };
    let path = args.out.join("sql.png");
    charts::write_png(&path, (800, 480), |area| {
        area.fill(&WHITE).map_err(charts::failed)?;
        charts::chart(area, "SELECTs per second by the number of connections", (0.0..last, &label), &curves)
    })?;
    Ok(vec![path])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_per_number_of_connections() {
        let row = |target: &str, speed, backend_cpu_us| Row {
            target: target.into(),
            per_second: Some(speed),
            cpu_us: Some(20.0),
            backend_cpu_us,
            ..Row::default()
        };
        let rows = [row(DIRECT, 1000.0, None), row(THROUGH, 500.0, Some(30.0)), row(CACHED, 2000.0, Some(0.5))];
        let lines = lines(&[1], &rows);
        assert_eq!(lines[1][2..], ["1000", "20", "500 (0.500)", "20, 30", "2000 (2.00)", "20, 0.500"]);
    }
}
