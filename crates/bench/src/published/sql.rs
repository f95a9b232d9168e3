//! MaxScale's performance: SELECTs of single rows, directly and through the proxy, over a growing number of connections.

use super::{Programs, PublishedArgs, Section, Table, experiment, line};
use crate::Bench;
use crate::report::{Row, figure};
use crate::sql_load::{self, CACHED, DIRECT, THROUGH};
use anyhow::{Result, bail};
use std::path::PathBuf;

const ABOUT: &str = "Published for MaxScale 2.1: sysbench's read-only test, 100 simple SELECTs per iteration without a transaction, 4 servers and 16 threads, \
direct (the client takes one server after the other) against the routers readconnroute and readwritesplit, each with and without the cache filter. \
It gave curves and no figures: readwritesplit more than doubled from 2.1.0 to 2.1.3; the cache helped under 64 connections, and at every number of \
them once it was not checked whether a SELECT may be cached.\n\nSelkie has no routers to several servers, so that the experiment as it was cannot be \
made. What comes nearest is its listener for SQL clients in front of one MariaDB, without a cache and with one of result sets, over TCP: the same \
table, the same SELECT by primary key as text, each connection with one SELECT under way. Whether a SELECT may be cached is always checked.";

pub fn command(args: &PublishedArgs) -> Vec<String> {
    let words: &[&str] = match args.quick {
        true => &["sql", "--connections", "1,4", "--seconds", "0.3", "--rows", "500"],
        false => &["sql", "--connections", "1,2,4,8,16,32,64", "--seconds", "3"],
    };
    args.command(words, Programs::WithoutMongod)
}

pub fn section(args: &PublishedArgs) -> Result<Section> {
    let command = command(args);
    let Bench::Sql(sql) = experiment(&command)? else { bail!("{command:?} is another experiment") };
    let rows = sql_load::measure(&sql)?;
    let plots = draw(args, &sql.connections, &rows)?;
    let table = Table { lines: lines(&sql.connections, &rows), command, plots };
    let note = "SELECTs per second, in brackets as a multiple of those without Selkie between, and CPU time per SELECT of mariadbd and of Selkie in \
                microseconds. Client, Selkie and MariaDB share the machine's cores.";
    Ok(Section { title: "SQL through the gateway", about: ABOUT, tables: vec![table], notes: vec![note.to_owned()] })
}

const WAYS: [&str; 3] = [DIRECT, THROUGH, CACHED];

/// The rows of one number of connections, in the order of [`WAYS`].
fn by_way(rows: &[Row], number: usize) -> [Option<&Row>; 3] {
    let of_number = rows.get(number * WAYS.len()..).unwrap_or_default();
    let of_number = of_number.get(..WAYS.len()).unwrap_or_default();
    WAYS.map(|way| of_number.iter().find(|row| row.target == way))
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
        let ways = by_way(rows, number);
        let base = ways[0].and_then(|row| row.per_second);
        let mut cells = vec![connections.to_string(), "SELECTs per second".to_owned()];
        for (way, row) in ways.iter().enumerate() {
            let speed = row.and_then(|row| row.per_second);
            cells.push(match (speed, base) {
                (Some(speed), Some(base)) if way > 0 => format!("{} ({})", figure(speed), figure(speed / base)),
                (speed, _) => speed.map(figure).unwrap_or_default(),
            });
            let cpu = row.and_then(|row| row.cpu_us).map(figure);
            let behind = row.and_then(|row| row.behind_cpu_us).map(figure);
            cells.push([cpu, behind].into_iter().flatten().collect::<Vec<_>>().join(", "));
        }
        lines.push(cells);
    }
    lines
}

#[cfg(not(feature = "plot"))]
fn draw(_: &PublishedArgs, _: &[usize], _: &[Row]) -> Result<Vec<PathBuf>> {
    Ok(Vec::new())
}

#[cfg(feature = "plot")]
fn draw(args: &PublishedArgs, connections: &[usize], rows: &[Row]) -> Result<Vec<PathBuf>> {
    use crate::plot::{self, COLORS, Line};
    use plotters::prelude::{BitMapBackend, IntoDrawingArea, WHITE};
    plot::prepare()?;
    let curve = |(way, name): (usize, &&str)| {
        let points = connections.iter().enumerate().filter_map(|(number, connections)| {
            Some(((*connections as f64).log2(), by_way(rows, number)[way]?.per_second?))
        });
        Line { name: (*name).to_owned(), color: COLORS[way], bold: true, points: points.collect() }
    };
    let curves: Vec<Line> = WAYS.iter().enumerate().map(curve).collect();
    let last = connections.iter().max().map_or(1.0, |most| (*most as f64).log2()).max(1.0);
    let spelled = |log: f64| if log.fract().abs() < 1e-6 { log.exp2().to_string() } else { String::new() };
    let path = args.out.join("sql.png");
    let area = BitMapBackend::new(&path, (800, 480)).into_drawing_area();
    area.fill(&WHITE).map_err(plot::failed)?;
    plot::chart(&area, "SELECTs per second by the number of connections", (0.0..last, &spelled), &curves)?;
    area.present().map_err(plot::failed)?;
    drop(area);
    Ok(vec![path])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_per_number_of_connections() {
        let row = |target: &str, speed, behind| Row {
            target: target.into(),
            per_second: Some(speed),
            cpu_us: Some(20.0),
            behind_cpu_us: behind,
            ..Row::default()
        };
        let rows = [row(DIRECT, 1000.0, None), row(THROUGH, 500.0, Some(30.0)), row(CACHED, 2000.0, Some(0.5))];
        let lines = lines(&[1], &rows);
        assert_eq!(lines[1][2..], ["1000", "20", "500 (0.500)", "20, 30", "2000 (2.00)", "20, 0.500"]);
    }
}
