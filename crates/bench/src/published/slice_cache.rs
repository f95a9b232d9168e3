//! The array slice cache, with and without documents that have their final size from the beginning.

use super::{Programs, PublishedArgs, Section, Table, experiment};
use crate::Bench;
use crate::report::figure;
use crate::simulate::{self, Outcome};
use anyhow::{Result, bail};

const ABOUT: &str = "Published for MongoDB 3.0: a schema simulator with 4 processes of 50 connections each, 25 iterations of a second, 1000 users spread over each \
of them, who push a comment into a post that keeps the latest ten (`$push` with `$each` and `$slice: -10`), with posts that have ten comments at first \
(pre-allocated) and with posts that have none. Milliseconds. Here the same, and each user inserts the comment into a collection as well, which is the \
second step; the published figures are to be compared with the first one. Times run from when a user should have begun.";

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
        // Built without plots, there is no such option.
        words.truncate(if cfg!(feature = "plot") { 4 } else { 2 });
        words.extend(args.quick.then_some("--quick"));
        args.command(&words, Programs::All)
    };
    SCENARIOS.iter().map(command).collect()
}

pub fn section(args: &PublishedArgs) -> Result<Section> {
    let (mut tables, mut notes) = (Vec::new(), Vec::new());
    for (command, (_, documents)) in commands(args).into_iter().zip(SCENARIOS) {
        let Bench::Simulate(simulate) = experiment(&command)? else { bail!("{command:?} is another experiment") };
        let outcome = simulate::perform(&simulate)?;
        let plots = simulate::draw(&simulate, &outcome)?;
        notes.extend(outcome.warnings().map(|warning| format!("- {documents}: {warning}")));
        tables.push(Table { lines: lines(&outcome, documents), command, plots });
    }
    let notes = if notes.is_empty() { Vec::new() } else { vec![notes.join("\n")] };
    Ok(Section { title: "The array slice cache", about: ABOUT, tables, notes })
}

fn lines(outcome: &Outcome, documents: &str) -> Vec<Vec<String>> {
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
    for server in &outcome.servers {
        let Some(comment) = server.operations.first() else { continue };
        let all = [("both steps", &comment.times)].into_iter();
        let steps = comment.steps.iter().map(|step| (step.name.as_str(), &step.times));
        for (number, (name, times)) in steps.chain(all).enumerate() {
            let load = [server.load.achieved_per_second, server.load.own_cpu_percent].map(figure);
            let load = if number == 0 { load } else { [String::new(), String::new()] };
            let names = [format!("{}: {name}", server.name), documents.to_owned()];
            lines.push(names.into_iter().chain(times.columns().map(figure)).chain(load).collect());
        }
    }
    lines
}
