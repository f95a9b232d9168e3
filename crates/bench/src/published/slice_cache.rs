//! The array slice cache, with and without documents that have their final size from the beginning.
//! Runs the program `simulate`, which must be beside this one.

use super::args::PublishedArgs;
use super::section::{Section, Table};
use anyhow::{Context, Result, bail};
use harness::report::three_digits;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const ABOUT: &str = "Published for MongoDB 3.0: a schema simulator with 4 processes of 50 connections each, 25 iterations of a second, 1000 users spread over each \
of them, each pushing a comment into a post that keeps the latest ten (`$push` with `$each` and `$slice: -10`), with posts that have ten comments at first \
(pre-allocated) and with posts that have none. Milliseconds. Here the same, but each user also inserts the comment into a collection, as a \
second step; compare the published numbers with the first step. Times run from a user's scheduled start.";

/// Storage engine, documents, mean and 99th percentile.
const PUBLISHED: [[&str; 4]; 3] = [
    ["MongoDB 3.0, MMAP", "pre-allocated / not", "0.67", "1.16 / 1.09"],
    ["MongoDB 3.0, WiredTiger", "pre-allocated", "0.76", "1.42"],
    ["MongoDB 3.0, WiredTiger", "not", "1.01", "2.19"],
];
const SCENARIOS: [(&str, &str); 2] = [("slice-cache-preallocated", "pre-allocated"), ("slice-cache", "not")];

pub fn commands(args: &PublishedArgs) -> Vec<Vec<String>> {
    let plots = args.out.display().to_string();
    let command = |(scenario, _): &(&str, &str)| {
        let mut words = vec!["simulate", scenario, "--plot", &plots];
        words.extend(args.quick.then_some("--quick"));
        args.command(&words)
    };
    SCENARIOS.iter().map(command).collect()
}

pub fn section(args: &PublishedArgs) -> Result<Section> {
    let (mut tables, mut notes) = (Vec::new(), Vec::new());
    for (command, (_, documents)) in commands(args).into_iter().zip(SCENARIOS) {
        let outcome = simulate(&command)?;
        notes.extend(texts(&outcome["warnings"]).map(|warning| format!("- {documents}: {warning}")));
        let plots = texts(&outcome["plots"]).map(PathBuf::from).collect();
        tables.push(Table { lines: lines(&outcome, documents), command, plots });
    }
    let notes = if notes.is_empty() { Vec::new() } else { vec![notes.join("\n")] };
    Ok(Section { title: "The array slice cache", about: ABOUT, tables, notes })
}

/// Runs the command and returns its JSON report.
fn simulate(command: &[String]) -> Result<Value> {
    let program = std::env::current_exe().context("finding this program")?.with_file_name("simulate");
    let file = tempfile::NamedTempFile::new()?;
    let status = Command::new(&program)
        .args(command.iter().skip(1))
        .args([Path::new("--json"), file.path()])
        .status()
        .with_context(|| format!("running {}", program.display()))?;
    // A check that does not hold is in the report, with the exit code of a failure.
    let report = std::fs::read(file.path())?;
    if report.is_empty() {
        bail!("{} ended with {status}", command.join(" "));
    }
    serde_json::from_slice(&report).context("reading the report of simulate")
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    items(value).filter_map(Value::as_str)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> String {
    value.as_f64().map(three_digits).unwrap_or_default()
}

/// The times of a step or of an operation, in the order of the table's columns.
const TIMES: [&str; 8] =
    ["mean_ms", "standard_deviation_ms", "p50_ms", "p75_ms", "p95_ms", "p99_ms", "min_ms", "max_ms"];

fn lines(outcome: &Value, documents: &str) -> Vec<Vec<String>> {
    let heads = [
        "server",
        "posts",
        "mean",
        "sd",
        "p50",
        "p75",
        "p95",
        "p99",
        "min",
        "max",
        "achieved/s",
        "simulator's CPU, % of a core",
    ];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for [server, posts, mean, p99] in PUBLISHED {
        if posts.contains(documents) {
            let cells = [&format!("{server} (published)"), posts, mean, "", "", "", "", p99, "", "", "", ""];
            lines.push(cells.map(str::to_owned).to_vec());
        }
    }
    for server in items(&outcome["servers"]) {
        let Some(comment) = items(&server["operations"]).next() else { continue };
        let steps = items(&comment["steps"]).map(|step| (text(&step["name"]), step));
        for (index, (name, times)) in steps.chain([("both steps", &comment["times"])]).enumerate() {
            let load = ["achieved_per_second", "own_cpu_percent"].map(|name| number(&server["load"][name]));
            let load = if index == 0 { load } else { [String::new(), String::new()] };
            let names = [format!("{}: {name}", text(&server["name"])), documents.to_owned()];
            lines.push(names.into_iter().chain(TIMES.map(|name| number(&times[name]))).chain(load).collect());
        }
    }
    lines
}
