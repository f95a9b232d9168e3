//! Damage to the write-ahead log, detected before SQLite reads the log.
//!
//! SQLite ends the log with the last commit before the first frame with a wrong checksum, and
//! silently drops the rest. That is right for an interrupted commit. If commits follow, or [`mark`]
//! says that there were some, acknowledged writes would be lost.

use super::mark::{self, StoredMark};
use super::{FRAME_HEADER_BYTES, LOG_HEADER_BYTES};
use ahash::AHashSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The content of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Log {
    pub salts: [u8; 8],
    pub page_bytes: u64,
    /// The end of the last commit that SQLite uses; 0 if there is none.
    pub end: u64,
    pub frames: u64,
    pub commits: u64,
    /// Frames of the same log behind that, and the commits among them.
    pub frames_behind: u64,
    pub commits_behind: u64,
}

/// A log, and a sentence about what is lost of it.
#[derive(Debug, Default)]
pub struct Inspection {
    pub log: Log,
    pub left: Option<StoredMark>,
    pub damage: Option<String>,
    /// Pages of the database that SQLite reads from the log.
    pub pages: AHashSet<u32>,
}

pub fn path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Reads a database's log as SQLite will.
pub fn inspect(database: &Path) -> std::io::Result<Inspection> {
    let left = mark::read(database);
    let mut pages = AHashSet::new();
    let (length, log) = match File::open(path(database)) {
        Ok(file) => (file.metadata()?.len(), read(BufReader::with_capacity(1 << 16, file), &mut pages)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => (0, None),
        Err(error) => return Err(error),
    };
    let damage = damage(length, log.as_ref(), left.as_ref());
    Ok(Inspection { log: log.unwrap_or_default(), left, damage, pages })
}

/// Returns a description of the loss, if there is one.
fn damage(length: u64, log: Option<&Log>, left: Option<&StoredMark>) -> Option<String> {
    // After a crash of the machine, only synced commits must be present.
    let expected = left.map(|left| if left.same_boot { left.mark.written } else { left.mark.synced });
    let Some(log) = log else {
        return match (length, expected) {
            (0, Some(expected)) if expected > LOG_HEADER_BYTES => {
                Some("it is missing or empty, and had commits".into())
            }
            (length, _) if length > LOG_HEADER_BYTES => {
                Some("its header is damaged, so that nothing in it can be read".into())
            }
            _ => None,
        };
    };
    let behind = format!(
        "its first {} commits are whole ({} frames), then a frame is damaged or missing; behind it are {} commits ({} frames)",
        log.commits, log.frames, log.commits_behind, log.frames_behind
    );
    match left.filter(|left| left.mark.salts == log.salts).and(expected) {
        Some(expected) if log.end.max(LOG_HEADER_BYTES) < expected => {
            let missing = (expected - log.end.max(LOG_HEADER_BYTES)) / (FRAME_HEADER_BYTES + log.page_bytes);
            Some(format!("{behind}, and {missing} frames of acknowledged commits would be lost"))
        }
        Some(_) => None,
        None if log.commits_behind > 0 => Some(behind),
        None => None,
    }
}

/// Returns `None` if the header is missing or damaged.
fn read(mut from: impl Read, pages: &mut AHashSet<u32>) -> std::io::Result<Option<Log>> {
    let mut header = [0; LOG_HEADER_BYTES as usize];
    if !fill(&mut from, &mut header)? {
        return Ok(None);
    }
    let magic = word(&header, 0);
    let big_endian = match magic {
        0x377f_0682 => false,
        0x377f_0683 => true,
        _ => return Ok(None),
    };
    let page_bytes = word(&header, 8) as usize;
    let mut sums = checksum((0, 0), &header[..24], big_endian);
    if sums != (word(&header, 24), word(&header, 28))
        || !page_bytes.is_power_of_two()
        || !(512..=65536).contains(&page_bytes)
    {
        return Ok(None);
    }
    let salts: [u8; 8] = header[16..24].try_into().unwrap_or_default();
    let mut log = Log { salts, page_bytes: page_bytes as u64, ..Log::default() };
    let mut frame = vec![0; page_bytes + FRAME_HEADER_BYTES as usize];
    let (mut frames, mut broken, mut uncommitted) = (0, false, Vec::new());
    while fill(&mut from, &mut frame)? {
        frames += 1;
        let same_log = frame[8..16] == salts;
        let ends_commit = word(&frame, 4) != 0;
        if !broken {
            sums = checksum(sums, &frame[..8], big_endian);
            sums = checksum(sums, &frame[FRAME_HEADER_BYTES as usize..], big_endian);
            broken = !same_log || word(&frame, 0) == 0 || sums != (word(&frame, 16), word(&frame, 20));
        }
        if !broken {
            uncommitted.push(word(&frame, 0));
        }
        if !broken && ends_commit {
            pages.extend(uncommitted.drain(..));
            log.commits += 1;
            log.frames = frames;
            log.end = LOG_HEADER_BYTES + frames * frame.len() as u64;
        } else if broken && same_log {
            log.frames_behind += 1;
            log.commits_behind += u64::from(ends_commit);
        }
    }
    Ok(Some(log))
}

/// Fills a buffer. Returns false if there are fewer bytes.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Computes the log's checksum (SQLite's file format, section 4.2). The number of bytes is a
/// multiple of eight.
fn checksum((mut first, mut second): (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    let word = |bytes: [u8; 4]| if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    let (pairs, _) = bytes.as_chunks::<8>();
    for [a, b, c, d, e, f, g, h] in pairs.iter().copied() {
        first = first.wrapping_add(word([a, b, c, d])).wrapping_add(second);
        second = second.wrapping_add(word([e, f, g, h])).wrapping_add(first);
    }
    (first, second)
}

/// Copies a damaged log aside. If the database file is ahead of the intact part of the log, removes
/// the log: its older pages would replace newer ones. Returns the copy's path.
pub fn set_aside(database: &Path, inspection: &Inspection) -> std::io::Result<Option<PathBuf>> {
    let log = path(database);
    if !log.exists() {
        return Ok(None);
    }
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut copy = log.as_os_str().to_owned();
    copy.push(format!(".damaged-{seconds}"));
    let copy = PathBuf::from(copy);
    std::fs::copy(&log, &copy)?;
    File::open(&copy)?.sync_all()?;
    let same_log = |left: &&StoredMark| left.mark.salts == inspection.log.salts || inspection.log.page_bytes == 0;
    let checkpointed = inspection.left.as_ref().filter(same_log).map_or(0, |left| left.mark.checkpointed);
    if checkpointed > inspection.log.end {
        std::fs::remove_file(&log)?;
    }
    Ok(Some(copy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::mark::Mark;
    use rusqlite::Connection;

    /// Returns a log of 20 commits, as left by a process that was killed.
    fn written() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.sqlite");
        let connection = Connection::open(&database).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        connection.execute_batch("CREATE TABLE t(a)").unwrap();
        for number in 0..19 {
            connection.execute("INSERT INTO t VALUES(?1)", [number]).unwrap();
        }
        std::fs::read(path(&database)).unwrap()
    }

    fn left(log: &Log, same_boot: bool, synced: u64) -> StoredMark {
        let mark = Mark { salts: log.salts, written: log.end, synced, checkpointed: 0 };
        StoredMark { mark, same_boot }
    }

    #[test]
    fn a_whole_log_is_read_to_its_end() {
        let bytes = written();
        let log = read(&*bytes, &mut AHashSet::new()).unwrap().unwrap();
        assert_eq!((log.commits, log.end, log.frames_behind), (20, bytes.len() as u64, 0));
        assert_eq!(damage(bytes.len() as u64, Some(&log), None), None);
        assert_eq!(damage(bytes.len() as u64, Some(&log), Some(&left(&log, true, 0))), None);
    }

    #[test]
    fn a_damaged_byte_is_reported_with_the_loss() {
        let mut bytes = written();
        let whole = read(&*bytes, &mut AHashSet::new()).unwrap().unwrap();
        let frame_bytes = (whole.page_bytes + FRAME_HEADER_BYTES) as usize;
        bytes[LOG_HEADER_BYTES as usize + 5 * frame_bytes + 100] ^= 4;
        let log = read(&*bytes, &mut AHashSet::new()).unwrap().unwrap();
        assert_eq!(log.commits + log.commits_behind, whole.commits);
        assert!(damage(bytes.len() as u64, Some(&log), None).is_some());
        assert!(damage(bytes.len() as u64, Some(&log), Some(&left(&whole, true, 0))).is_some());
        assert!(damage(bytes.len() as u64, Some(&log), Some(&left(&whole, false, whole.end))).is_some());
        // Never synced, and the machine crashed: no promise is broken.
        assert_eq!(damage(bytes.len() as u64, Some(&log), Some(&left(&whole, false, 0))), None);
    }

    #[test]
    fn truncation_differs_from_an_unfinished_commit() {
        let mut bytes = written();
        let whole = read(&*bytes, &mut AHashSet::new()).unwrap().unwrap();
        bytes.extend_from_within(32..2000);
        let log = read(&*bytes, &mut AHashSet::new()).unwrap().unwrap();
        assert_eq!(damage(bytes.len() as u64, Some(&log), Some(&left(&whole, true, whole.end))), None);
        bytes.truncate(bytes.len() / 2);
        let log = read(&*bytes, &mut AHashSet::new()).unwrap().unwrap();
        assert_eq!(damage(bytes.len() as u64, Some(&log), None), None, "nothing tells");
        assert!(damage(bytes.len() as u64, Some(&log), Some(&left(&whole, true, 0))).is_some());
        assert!(damage(0, None, Some(&left(&whole, true, 0))).is_some());
    }

    #[test]
    fn a_damaged_header_is_reported() {
        let mut bytes = written();
        for at in 0..32 {
            bytes[at] ^= 1;
            assert_eq!(read(&*bytes, &mut AHashSet::new()).unwrap(), None);
            assert!(damage(bytes.len() as u64, None, None).is_some());
            bytes[at] ^= 1;
        }
        assert_eq!(damage(0, None, None), None);
    }
}
