//! A record beside the write-ahead log: how far it was written, synced and checkpointed.
//!
//! SQLite ends a log where its chain of checksums breaks, and cannot distinguish a damaged frame
//! from an unfinished commit. The record can. It is written after each commit and not synced: it
//! survives a crash of the process, and after a crash of the machine its number of synced bytes may
//! be too small, never too great.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const BYTES: usize = 96;
const TAG: &[u8; 8] = b"SLKMARK1";

/// Offsets in the log are ends of commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The salts of the log's header; a reset log has others.
    pub salts: [u8; 8],
    pub written: u64,
    pub synced: u64,
    pub checkpointed: u64,
}

/// A record stored by an earlier process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredMark {
    pub mark: Mark,
    /// The machine has not been restarted since.
    pub same_boot: bool,
}

pub struct MarkFile {
    file: File,
    boot: [u8; 36],
}

pub fn path(database: &Path) -> PathBuf {
    database.with_extension("wal-mark")
}

/// Reads the record; `None` if it is missing or damaged.
pub fn read(database: &Path) -> Option<StoredMark> {
    let bytes = std::fs::read(path(database)).ok()?;
    decode(&bytes, &boot_id())
}

fn boot_id() -> [u8; 36] {
    let text = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.first_chunk().copied().unwrap_or([0; 36])
}

impl MarkFile {
    /// Opens or creates the record.
    pub fn open(database: &Path) -> std::io::Result<MarkFile> {
        let file = File::options().write(true).create(true).truncate(false).open(path(database))?;
        Ok(MarkFile { file, boot: boot_id() })
    }

    /// Writes the record. A failure is not fatal: an outdated record hides damage but invents none.
    pub fn write(&mut self, mark: &Mark, sync: bool) {
        let written = self.file.write_all_at(&encode(mark, &self.boot), 0);
        if let Err(error) = written.and_then(|()| if sync { self.file.sync_data() } else { Ok(()) }) {
            tracing::debug!(%error, "the log's end could not be recorded");
        }
    }
}

fn encode(mark: &Mark, boot: &[u8; 36]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(TAG);
    bytes[8..16].copy_from_slice(&mark.salts);
    bytes[16..24].copy_from_slice(&mark.written.to_le_bytes());
    bytes[24..32].copy_from_slice(&mark.synced.to_le_bytes());
    bytes[32..40].copy_from_slice(&mark.checkpointed.to_le_bytes());
    bytes[40..76].copy_from_slice(boot);
    let sum = crc32c::crc32c(&bytes[..BYTES - 4]).to_le_bytes();
    bytes[BYTES - 4..].copy_from_slice(&sum);
    bytes
}

fn decode(bytes: &[u8], boot: &[u8; 36]) -> Option<StoredMark> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    if !content.starts_with(TAG) || crc32c::crc32c(content).to_le_bytes() != *sum {
        return None;
    }
    let number = |at: usize| Some(u64::from_le_bytes(*content.get(at..)?.first_chunk()?));
    let mark = Mark {
        salts: *content.get(8..)?.first_chunk()?,
        written: number(16)?,
        synced: number(24)?,
        checkpointed: number(32)?,
    };
    // If the system does not say, it may have been restarted.
    let same_boot = content.get(40..76) == Some(boot) && boot != &[0; 36];
    Some(StoredMark { mark, same_boot })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mark = Mark { salts: *b"12345678", written: 99, synced: 50, checkpointed: 7 };
        let bytes = encode(&mark, &[b'a'; 36]);
        assert_eq!(decode(&bytes, &[b'a'; 36]), Some(StoredMark { mark, same_boot: true }));
        assert_eq!(decode(&bytes, &[b'b'; 36]), Some(StoredMark { mark, same_boot: false }));
        for at in 0..bytes.len() {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged, &[b'a'; 36]), None);
        }
        assert_eq!(decode(&bytes[..BYTES - 1], &[b'a'; 36]), None);
    }
}
