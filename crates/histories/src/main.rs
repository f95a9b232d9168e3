//! The program: reads histories from files and prints their anomalies.

use anyhow::{Context, Result, bail};
use clap::Parser;
use histories::anomaly::{Anomaly, Kind};
use histories::history::{History, Outcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Checks histories of transactions, and fails if one of them violates snapshot isolation
#[derive(Parser, Debug)]
#[command(name = "histories", version, arg_required_else_help = true)]
struct Args {
    /// Files with a history each: a line of JSON for each transaction and each change stream
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The number of anomalies of each kind to print
    #[arg(long, default_value_t = 3)]
    print: usize,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("histories: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let mut wrong = 0;
    for file in &args.files {
        wrong += usize::from(!check(file, args.print)?);
    }
    if wrong > 0 {
        bail!("anomalies in {wrong} of {} histories", args.files.len());
    }
    Ok(())
}

/// Prints the anomalies of a history. Returns whether there are none.
fn check(file: &Path, print: usize) -> Result<bool> {
    let name = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let history = History::parse(&text).with_context(|| format!("{name} is no history"))?;
    let anomalies = histories::check(&history);
    println!(
        "{name}: {} transactions committed, {} aborted, {} unknown; {} events; {} anomalies",
        history.count(Outcome::Committed),
        history.count(Outcome::Aborted),
        history.count(Outcome::Unknown),
        history.streams.iter().map(Vec::len).sum::<usize>(),
        anomalies.len()
    );
    let mut kinds: BTreeMap<Kind, Vec<&Anomaly>> = BTreeMap::new();
    anomalies.iter().for_each(|anomaly| kinds.entry(anomaly.kind).or_default().push(anomaly));
    for (kind, of_kind) in kinds {
        println!("{} of: {}", of_kind.len(), kind.name());
        of_kind.iter().take(print).for_each(|anomaly| println!("{}", anomaly.text(&history)));
    }
    Ok(anomalies.is_empty())
}
