//! `selkie audit verify`: finds the first wrong line of an audit log.

use crate::cli::AuditVerifyArgs;
use crate::config::audit::key_of;
use anyhow::{Context, bail, ensure};
use audit::Key;
use audit::chain::{Head, Hex, Sealed, parse_hash};
use audit::destination::head_path;
use audit::verify::{Fault, Verifier};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Verifies a log and prints what it contains. Fails with the first wrong line.
pub fn verify(args: &AuditVerifyArgs) -> anyhow::Result<()> {
    let key = args.key.as_deref().map(key_of).transpose().map_err(anyhow::Error::msg)?;
    let wanted = match &args.contains {
        Some(hash) => Some(parse_hash(hash.as_bytes()).context("--contains: a hash has 64 hexadecimal digits")?),
        None => None,
    };
    let files = in_order(&args.files)?;
    ensure!(!files.is_empty(), "there is no log among the files");
    let recorded = recorded_head(&files, key.as_ref());
    let mut verifier = Verifier::new(key, args.from, recorded);
    let mut is_complete = true;
    let mut contains = wanted.is_none();
    let mut total = 0;
    for file in &files {
        let first = total;
        let mut lines = Lines::open(file)?;
        while let Some(complete) = lines.next()? {
            total += 1;
            is_complete = complete;
            if let Err((line, fault)) = verifier.line(&lines.line) {
                return Err(wrong(&files, file, line, first, &fault));
            }
            contains |= wanted.is_some() && verifier.head().map(|head| head.hash) == wanted;
        }
    }
    let last = files.last().map(PathBuf::as_path).unwrap_or(Path::new(""));
    let is_torn = verifier.end(is_complete).map_err(|(line, fault)| wrong(&files, last, line, 0, &fault))?;
    let Some(head) = verifier.head() else { bail!("the log has no entries") };
    ensure!(
        contains,
        "the log does not contain the entry with the hash {}",
        args.contains.as_deref().unwrap_or_default()
    );
    println!("The log is whole: entries {} to {}, hash {}", args.from, head.seq, Hex(&head.hash));
    if verifier.torn_lines > 0 {
        println!("{} lines are incomplete, because the process was killed while it wrote.", verifier.torn_lines);
    }
    if is_torn {
        println!("The last line is incomplete: the process was killed while it wrote, and has not been started since.");
    }
    if recorded.is_none() {
        println!(
            "There is no file with the log's head beside it: entries that were cut off at the end are not noticed."
        );
    }
    Ok(())
}

/// Returns the logs in the order of their entries, without files with heads.
fn in_order(files: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_none_or(|extension| extension != "head")) {
        let mut lines = Lines::open(file)?;
        let mut first = None;
        while first.is_none() && lines.next()?.is_some() {
            first = Sealed::parse(&lines.line).map(|sealed| sealed.seq);
        }
        logs.push((first.unwrap_or(u64::MAX), file.clone()));
    }
    logs.sort();
    Ok(logs.into_iter().map(|(_, file)| file).collect())
}

/// Returns the latest head that was recorded beside one of the logs.
fn recorded_head(files: &[PathBuf], key: Option<&Key>) -> Option<Head> {
    let heads = files.iter().filter_map(|file| Head::from_file(key, &std::fs::read(head_path(file)).ok()?));
    heads.max_by_key(|head| head.seq)
}

/// Returns the error about a line, which is counted over all files.
fn wrong(files: &[PathBuf], file: &Path, line: u64, first: u64, fault: &Fault) -> anyhow::Error {
    let moved = match fault {
        Fault::Missing { from, .. } => place_of(files, *from),
        _ => None,
    };
    let hint =
        moved.map(|(other, at)| format!("; entry {} is in {}:{at}: it was moved", missing(fault), other.display()));
    let line = line.checked_sub(first).filter(|line| *line > 0).unwrap_or(1);
    anyhow::anyhow!("{}:{line}: {fault}{}", file.display(), hint.unwrap_or_default())
}

fn missing(fault: &Fault) -> u64 {
    match fault {
        Fault::Missing { from, .. } => *from,
        _ => 0,
    }
}

/// Finds an entry by its number.
fn place_of(files: &[PathBuf], seq: u64) -> Option<(&Path, u64)> {
    files.iter().find_map(|file| {
        let mut lines = Lines::open(file).ok()?;
        let mut at = 0;
        while lines.next().ok()?.is_some() {
            at += 1;
            if Sealed::parse(&lines.line).is_some_and(|sealed| sealed.seq == seq) {
                return Some((file.as_path(), at));
            }
        }
        None
    })
}

/// The lines of a file.
struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    /// The line read last, without its line feed.
    line: Vec<u8>,
}

impl Lines {
    fn open(path: &Path) -> anyhow::Result<Lines> {
        let file = File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
        Ok(Lines { path: path.to_owned(), reader: BufReader::new(file), line: Vec::new() })
    }

    /// Reads the next line. Returns whether it ends with a line feed; `None` at the end.
    fn next(&mut self) -> anyhow::Result<Option<bool>> {
        self.line.clear();
        let read = self.reader.read_until(b'\n', &mut self.line);
        let bytes = read.with_context(|| format!("{} cannot be read", self.path.display()))?;
        if bytes == 0 {
            return Ok(None);
        }
        let is_complete = self.line.last() == Some(&b'\n');
        if is_complete {
            self.line.pop();
        }
        Ok(Some(is_complete))
    }
}
