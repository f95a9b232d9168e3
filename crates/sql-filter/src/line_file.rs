//! A file to which lines are appended by a thread of its own, through a bounded queue.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

/// Lines in the queue.
const LINES_MAX: usize = 10_000;

/// A file to which lines are appended. The rest of the queue is written when it is dropped.
#[derive(Debug)]
pub struct LineFile {
    queue: Option<SyncSender<Entry>>,
    writer: Option<std::thread::JoinHandle<()>>,
}

enum Entry {
    Line(String),
    Reopen,
}

impl LineFile {
    /// Opens the file, which is created if it does not exist, and starts the thread.
    pub fn open(path: &Path) -> io::Result<LineFile> {
        let file = append_to(path)?;
        let (queue, entries) = sync_channel(LINES_MAX);
        let path = path.to_owned();
        let writer = std::thread::Builder::new()
            .name("filter-file".to_owned())
            .spawn(move || write_lines(&path, file, &entries))?;
        Ok(LineFile { queue: Some(queue), writer: Some(writer) })
    }

    /// Appends a line, without its end. Returns false if the queue is full.
    pub fn push(&self, line: String) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.try_send(Entry::Line(line)).is_ok())
    }

    /// Opens the file again, after the lines in the queue. It may have been moved.
    pub fn reopen(&self) {
        // The queue may be full: then this waits until the thread has written a line.
        let _ = self.queue.as_ref().map(|queue| queue.send(Entry::Reopen));
    }
}

impl Drop for LineFile {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.map_err(|error| io::Error::new(error.kind(), format!("{} cannot be opened: {error}", path.display())))
}

/// Writes lines until the queue is closed. Whenever the queue is empty, all lines are in the file.
fn write_lines(path: &Path, file: File, entries: &Receiver<Entry>) {
    let mut out = BufWriter::new(file);
    let mut has_failed = false;
    loop {
        let entry = match entries.try_recv() {
            Ok(entry) => entry,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                note(out.flush(), path, &mut has_failed);
                match entries.recv() {
                    Ok(entry) => entry,
                    Err(_) => break,
                }
            }
        };
        match entry {
            Entry::Line(line) => note(writeln!(out, "{line}"), path, &mut has_failed),
            Entry::Reopen => {
                note(out.flush(), path, &mut has_failed);
                match append_to(path) {
                    Ok(file) => out = BufWriter::new(file),
                    Err(error) => tracing::error!("{error}"),
                }
            }
        }
    }
    note(out.flush(), path, &mut has_failed);
}

/// Logs the first of several failures.
fn note(outcome: io::Result<()>, path: &Path, has_failed: &mut bool) {
    if let Err(error) = &outcome
        && !*has_failed
    {
        tracing::error!("lines for {} are lost: {error}", path.display());
    }
    *has_failed = outcome.is_err();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_on_in_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("log"), folder.path().join("log.1"));
        let file = LineFile::open(&path).unwrap();
        assert!(file.push("one".into()));
        std::fs::rename(&path, &moved).unwrap();
        file.reopen();
        assert!(file.push("two".into()));
        drop(file);
        assert_eq!(std::fs::read_to_string(moved).unwrap(), "one\n");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "two\n");
        assert!(LineFile::open(folder.path()).is_err());
    }
}
