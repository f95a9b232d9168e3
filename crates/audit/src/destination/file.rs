//! The log's file, and the file beside it with the head of the chain.
//!
//! The head says which entry was written last, so that a log that was cut is recognized. It also
//! continues the chain in a new file. It is written after the entries, so it may be older than the
//! log after a crash, but never newer.

use crate::chain::{Head, Key, Sealed};
use crate::line::calendar;
use crate::verify::torn_param;
use document::DocBuf;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How far from its end a log is searched for its last entry, at first and at most.
const TAIL_BYTES_MIN: u64 = 64 << 10;
const TAIL_BYTES_MAX: u64 = 256 << 20;

/// More than the file with the head ever has.
const HEAD_BYTES_MAX: u64 = 1024;

/// A log that is open for appending.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    head_file: File,
}

/// The state of a log when it is opened.
pub(crate) struct Opened {
    /// The end of the chain that the log continues.
    pub head: Head,
    /// The parameters of the event about bytes behind the last entry.
    pub torn: Option<DocBuf>,
    /// Whether the log ends with a line feed.
    has_line_feed: bool,
    /// A warning about a log that is continued nevertheless.
    pub warning: Option<String>,
}

/// Returns the path of the file with the head.
pub fn head_path(path: &Path) -> PathBuf {
    with_suffix(path, ".head")
}

/// Returns the path that a log gets when it is rotated, as in MongoDB.
pub fn rotated_path(path: &Path, now_ms: i64) -> PathBuf {
    let [year, month, day, hour, minute, second, _] = calendar(now_ms).unwrap_or_default();
    let name = format!(".{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}");
    let rotated = with_suffix(path, &name);
    match (2..).map(|n| with_suffix(&rotated, &format!("-{n}"))).find(|other| !other.exists()) {
        Some(other) if rotated.exists() => other,
        _ => rotated,
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl LogFile {
    /// Opens a log, or creates it. Fails if another process writes to it.
    pub fn open(path: &Path, key: Option<&Key>) -> io::Result<(LogFile, Opened)> {
        let head_file = private_file(&head_path(path), false)?;
        flock(&head_file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::other("another process writes to it"))?;
        let mut file = private_file(path, true)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut content = Vec::new();
        (&head_file).take(HEAD_BYTES_MAX).read_to_end(&mut content)?;
        let recorded = Head::from_file(key, &content);
        let mut found = read_end(&mut file, key)?;
        if recorded.is_none() && !content.is_empty() {
            found.warning = Some("the file with its head is damaged, or was written with another key".to_owned());
        }
        if let Some(recorded) = recorded.filter(|recorded| recorded.seq > found.head.seq) {
            let is_new = file.metadata()?.len() == 0;
            found.warning = found.warning.or((!is_new).then(|| {
                let (last, written) = (found.head.seq, recorded.seq);
                format!("it ends with entry {last}, but {written} entries were written: it was cut")
            }));
            found.head = recorded;
        }
        let mut log = LogFile { path: path.to_owned(), file, head_file };
        if !found.has_line_feed {
            log.file.write_all(b"\n")?;
        }
        Ok((log, found))
    }

    /// Writes as much as possible; returns how many bytes.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.file.write(lines)
    }

    pub fn record_head(&mut self, head: Head, key: Option<&Key>) -> io::Result<()> {
        let content = head.to_file(key);
        self.head_file.write_all_at(content.as_bytes(), 0)?;
        self.head_file.set_len(content.len() as u64)
    }

    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.head_file.sync_data()
    }

    /// Renames the file and begins a new one, which continues the chain. A file that was renamed or
    /// removed by another program is only closed.
    pub fn rotate(&mut self, now_ms: i64) -> io::Result<()> {
        let is_ours = is_same_file(&self.path, &self.file);
        let rotated = rotated_path(&self.path, now_ms);
        if is_ours {
            std::fs::rename(&self.path, &rotated)?;
        }
        match private_file(&self.path, true) {
            Ok(file) => {
                self.file = file;
                Ok(())
            }
            Err(error) => {
                if is_ours {
                    std::fs::rename(&rotated, &self.path)?;
                }
                Err(error)
            }
        }
    }
}

fn is_same_file(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let at_path = std::fs::metadata(path).map(identity).ok();
    at_path.is_some() && at_path == file.metadata().map(identity).ok()
}

fn private_file(path: &Path, append: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(!append).append(append).create(true).truncate(false).mode(0o600).open(path)
}

/// Finds the last entry of a log, and the bytes behind it.
fn read_end(file: &mut File, key: Option<&Key>) -> io::Result<Opened> {
    let length = file.metadata()?.len();
    let mut tail = Vec::new();
    let mut tail_bytes = TAIL_BYTES_MIN;
    loop {
        let start = length.saturating_sub(tail_bytes);
        file.seek(SeekFrom::Start(start))?;
        tail.clear();
        file.take(tail_bytes).read_to_end(&mut tail)?;
        if start == 0 || tail_bytes >= TAIL_BYTES_MAX || last_entry(&tail).is_some() {
            break;
        }
        tail_bytes *= 4;
    }
    let mut found = Opened { head: Head::EMPTY, torn: None, has_line_feed: true, warning: None };
    let mut behind = 0;
    if let Some((last, end)) = last_entry(&tail) {
        found.head = last.head();
        behind = end;
        if !last.is_intact(key) {
            found.warning =
                Some(format!("its last entry, {}, was changed, or it was written with another key", last.seq));
        }
    } else if !tail.is_empty() {
        found.warning = Some("it has no entries of an audit log at its end".to_owned());
    }
    let rest = tail.get(behind..).unwrap_or_default();
    found.has_line_feed = tail.last().is_none_or(|last| *last == b'\n');
    let torn = rest.strip_prefix(b"\n").unwrap_or(rest);
    let torn = torn.strip_suffix(b"\n").unwrap_or(torn);
    found.torn = (!torn.is_empty()).then(|| torn_param(torn));
    Ok(found)
}

/// Returns the last entry and the offset of its end, without its line feed.
fn last_entry(tail: &[u8]) -> Option<(Sealed<'_>, usize)> {
    let mut end = tail.len();
    loop {
        let line = tail.get(..end)?;
        let start = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |feed| feed + 1);
        if let Some(sealed) = line.get(start..).and_then(Sealed::parse) {
            return Some((sealed, end));
        }
        end = start.checked_sub(1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Subject};
    use crate::verify::Verifier;

    fn append(log: &mut LogFile, found: &mut Opened, kind: &'static str, param: &DocBuf) {
        let (subject, param) = (Subject::system([0; 16]), param.clone());
        let mut line = Vec::new();
        crate::line::write_open(&Event { kind, ts_ms: 0, subject, param, result: 0 }, &mut line);
        found.head.seal(None, 0, &mut line);
        assert_eq!(log.write(&line).unwrap(), line.len());
        log.record_head(found.head, None).unwrap();
    }

    fn verified(paths: &[PathBuf]) -> (u64, u64) {
        let recorded = std::fs::read(head_path(&paths[paths.len() - 1])).unwrap();
        let mut verifier = Verifier::new(None, 1, Head::from_file(None, &recorded));
        for path in paths {
            let content = std::fs::read(path).unwrap();
            content
                .strip_suffix(b"\n")
                .unwrap()
                .split(|byte| *byte == b'\n')
                .for_each(|line| verifier.line(line).unwrap());
        }
        verifier.end(true).unwrap();
        (verifier.entries, verifier.torn_lines)
    }

    #[test]
    fn a_log_is_continued_after_each_possible_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let (mut log, mut found) = LogFile::open(&path, None).unwrap();
        assert!(LogFile::open(&path, None).is_err(), "only one process may write");
        append(&mut log, &mut found, "startup", &DocBuf::new());
        let before = std::fs::read(&path).unwrap();
        let head_before = std::fs::read(head_path(&path)).unwrap();
        append(&mut log, &mut found, "logout", &document::doc! { "a": 1 });
        drop(log);
        let whole = std::fs::read(&path).unwrap();
        for cut in before.len()..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            std::fs::write(head_path(&path), &head_before).unwrap();
            let (mut log, mut found) = LogFile::open(&path, None).unwrap();
            assert_eq!(found.warning, None);
            let torn = cut > before.len() && cut < whole.len() - 1;
            assert_eq!(found.torn.is_some(), torn, "cut at {cut}");
            if let Some(param) = found.torn.clone() {
                append(&mut log, &mut found, "tornLine", &param);
            }
            append(&mut log, &mut found, "startup", &DocBuf::new());
            drop(log);
            assert_eq!(
                verified(std::slice::from_ref(&path)),
                (if cut == before.len() { 2 } else { 3 }, u64::from(torn))
            );
        }
    }

    #[test]
    fn rotation_continues_the_chain_in_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let (mut log, mut found) = LogFile::open(&path, None).unwrap();
        let mut paths = Vec::new();
        for _ in 0..3 {
            append(&mut log, &mut found, "logout", &DocBuf::new());
            paths.push(rotated_path(&path, 1_740_658_549_013));
            log.rotate(1_740_658_549_013).unwrap();
        }
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(name(&paths[0]), "audit.log.2025-02-27T12-15-49");
        assert_eq!(name(&paths[2]), "audit.log.2025-02-27T12-15-49-3");
        // A rotation by another program: the file is gone, the process starts again.
        append(&mut log, &mut found, "logout", &DocBuf::new());
        drop(log);
        std::fs::rename(&path, folder.path().join("audit.log.1")).unwrap();
        let (mut log, mut found) = LogFile::open(&path, None).unwrap();
        append(&mut log, &mut found, "startup", &DocBuf::new());
        paths.extend([folder.path().join("audit.log.1"), path.clone()]);
        assert_eq!(verified(&paths), (5, 0));
        // A log that was cut is continued, but never whole again.
        let content = std::fs::read(&path).unwrap();
        append(&mut log, &mut found, "logout", &DocBuf::new());
        drop(log);
        std::fs::write(&path, content).unwrap();
        let (_, found) = LogFile::open(&path, None).unwrap();
        assert!(found.warning.unwrap().contains("cut"));
        assert_eq!(found.head.seq, 6);
    }
}
