//! Plots of a run: for each operation the waiting time of users by quantile and by the second of
//! the run. A PNG each, and an HTML page with all of them and the tables.

use super::outcome::{Operation, Outcome, Server};
use anyhow::{Context, Result};
use charts::plotters::coord::Shift;
use charts::plotters::prelude::*;
use charts::{COLORS, Line, chart, failed, slug, write_png};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const SIZE: (u32, u32) = (1200, 480);
/// The number of nines of the largest percentage.
const NINES: f64 = 4.0;

/// Writes the page and the images into the folder, which is created if necessary. Returns their
/// paths, the page first.
pub fn write(outcome: &Outcome, folder: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    charts::prepare()?;
    let (mut paths, mut drawings) = (Vec::new(), Vec::new());
    for index in 0..outcome.servers.first().map_or(0, |server| server.operations.len()) {
        let plot = Plot::of(outcome, index);
        let path = folder.join(format!("{}.png", slug(&format!("{} {}", outcome.scenario, plot.name))));
        write_png(&path, SIZE, |area| plot.draw(area))?;
        let mut drawing = String::new();
        plot.draw(&SVGBackend::with_string(&mut drawing, SIZE).into_drawing_area())?;
        paths.push(path);
        drawings.push(drawing);
    }
    let path = folder.join(format!("{}.html", slug(&outcome.scenario)));
    std::fs::write(&path, page(outcome, &drawings)).with_context(|| format!("writing {}", path.display()))?;
    paths.insert(0, path);
    Ok(paths)
}

/// One operation on all servers that served a user.
struct Plot<'o> {
    name: &'o str,
    lines: Vec<(&'o str, &'o Operation, RGBColor)>,
}

impl<'o> Plot<'o> {
    fn of(outcome: &'o Outcome, index: usize) -> Plot<'o> {
        let lines = outcome.servers.iter().enumerate().filter_map(|(number, server): (usize, &'o Server)| {
            let operation = &server.operations[index];
            let served = operation.times.count > 0;
            served.then_some((server.name.as_str(), operation, COLORS[number % COLORS.len()]))
        });
        let name = outcome.servers.first().map_or("", |server| server.operations[index].name.as_str());
        Plot { name, lines: lines.collect() }
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<()> {
        area.fill(&WHITE).map_err(failed)?;
        let (left, right) = area.split_horizontally(SIZE.0 / 2);
        let quantiles = self.lines.iter().map(|(name, operation, color)| {
            let points = operation.quantiles.iter().map(|(part, ms)| (-(1.0 - part).log10(), *ms));
            Line { name: (*name).to_owned(), color: *color, bold: true, points: points.collect() }
        });
        let percent = |nines: f64| match nines {
            _ if nines.fract().abs() > 1e-6 => String::new(),
            0.0 => "0 %".to_owned(),
            nines => format!("{} %", 100.0 * (1.0 - 10f64.powf(-nines.round()))),
        };
        let title = format!("{}: ms by quantile", self.name);
        chart(&left, &title, (0.0..NINES, &percent), &quantiles.collect::<Vec<_>>())?;
        let seconds = self.lines.iter().map(|(_, operation, _)| operation.by_second.len()).max().unwrap_or(1);
        let by_second = self.lines.iter().flat_map(|(name, operation, color)| {
            let points = |value: fn(&super::measurements::Summary) -> f64| {
                let served = operation.by_second.iter().enumerate().filter(|(_, summary)| summary.count > 0);
                served.map(|(second, summary)| (second as f64, value(summary))).collect::<Vec<_>>()
            };
            [
                Line { name: format!("{name}, p99"), color: *color, bold: true, points: points(|one| one.p99_ms) },
                Line { name: format!("{name}, p50"), color: *color, bold: false, points: points(|one| one.p50_ms) },
            ]
        });
        let title = format!("{}: ms by the second of the scheduled start", self.name);
        let last = (seconds as f64 - 1.0).max(1.0);
        chart(&right, &title, (0.0..last, &|second| format!("{second:.0}")), &by_second.collect::<Vec<_>>())?;
        area.present().map_err(failed)
    }
}

fn page(outcome: &Outcome, drawings: &[String]) -> String {
    let run = &outcome.run;
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>\nbody {{ font: 15px sans-serif; \
         margin: 2em }}\ntable {{ border-collapse: collapse; margin: 1em 0 }}\ntd, th {{ padding: .2em .7em; border-bottom: 1px solid #ddd; \
         text-align: right }}\ntd:nth-child(-n+2), th:nth-child(-n+2) {{ text-align: left }}\nsvg {{ max-width: 100%; height: auto }}\n</style>\n\
         <h1>{title}</h1>\n<p>{about}</p>\n<p>{} processes with {} connections each; {} iterations of a second; {} users a second, in slices of \
         {} ms. {} cores, {}.</p>\n",
        run.processes,
        run.pool,
        run.iterations,
        run.users_per_second,
        run.slice_ms,
        outcome.machine.cores,
        escape(&outcome.machine.cpu),
        title = escape(&outcome.scenario),
        about = escape(&outcome.about),
    );
    for warning in outcome.warnings() {
        writeln!(page, "<p><strong>{}</strong></p>", escape(&warning)).ok();
    }
    for drawing in drawings {
        // The XML header before the picture is for separate files.
        page += drawing.find("<svg").map_or("", |at| &drawing[at..]);
    }
    for table in [Some(outcome.times()), Some(outcome.loads()), outcome.checks()].into_iter().flatten() {
        page += &html_table(&table);
    }
    page + "</html>\n"
}

fn html_table(lines: &[Vec<String>]) -> String {
    let mut table = String::from("<table>\n");
    for (number, line) in lines.iter().enumerate() {
        let tag = if number == 0 { "th" } else { "td" };
        let cells: String = line.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        writeln!(table, "<tr>{cells}</tr>").ok();
    }
    table + "</table>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::outcome;

    #[test]
    fn a_page_and_an_image_per_operation() {
        let folder = tempfile::tempdir().unwrap();
        let paths = write(&outcome(1000), &folder.path().join("new")).unwrap();
        let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a-test.html", "a-test-read.png"]);
        assert!(std::fs::read(&paths[1]).unwrap().starts_with(b"\x89PNG"));
        let page = std::fs::read_to_string(&paths[0]).unwrap();
        assert!(page.contains("<svg") && page.contains("<td>one</td>") && page.contains("1 &lt; 2"), "{page}");
    }

    #[test]
    fn an_operation_without_served_users_is_plotted() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(write(&outcome(0), folder.path()).unwrap().len(), 2);
    }
}
