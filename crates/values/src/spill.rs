//! Disk space for stages that exceed their memory: sorted runs on disk, merged when they are read
//! back.
//!
//! This crate does no I/O. A caller that allows the use of disk passes a [`SpillSpace`]. Data is
//! written to the [`SpillFile`]s that it opens, and deleted when they are dropped. Without one, a
//! stage that exceeds its memory fails with 292.

use error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// A source of files for data that does not fit into memory.
pub trait SpillSpace: fmt::Debug + Send + Sync {
    fn open(&self) -> Result<Box<dyn SpillFile>>;
}

/// A file that is appended to and read at any offset. Its contents are deleted when it is dropped.
pub trait SpillFile: Send {
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Reads the bytes from `offset` on, up to the buffer's length; returns how many were read.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize>;
}

/// The resources that a blocking stage may use.
#[derive(Clone, Default)]
pub struct Budget {
    /// Maximal number of bytes in memory.
    pub memory_bytes_max: usize,
    /// Files for more than that; `None` if the disk is not allowed.
    pub disk: Option<Arc<dyn SpillSpace>>,
}

impl From<usize> for Budget {
    fn from(memory_bytes_max: usize) -> Budget {
        Budget { memory_bytes_max, disk: None }
    }
}

impl Budget {
    /// A budget that spills to memory, for tests.
    pub fn spilling_to_memory(memory_bytes_max: usize) -> Budget {
        Budget { memory_bytes_max, disk: Some(Arc::new(MemorySpace)) }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("memory_bytes_max", &self.memory_bytes_max)
            .field("disk", &self.disk.is_some())
            .finish()
    }
}

/// Bytes that are gathered before they are written, and read at a time.
const CHUNK_BYTES: usize = 128 * 1024;

/// With more runs than this, neighbors are merged into one before they are read back.
const RUNS_MAX: usize = 64;

/// Sorted runs of entries: a key, by whose bytes a run is ordered, and a value.
pub struct Runs {
    file: Box<dyn SpillFile>,
    /// The start and the end of each run.
    runs: Vec<(u64, u64)>,
    written: u64,
    pending: Vec<u8>,
}

impl fmt::Debug for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runs").field("runs", &self.runs).finish_non_exhaustive()
    }
}

impl Runs {
    pub fn open(space: &dyn SpillSpace) -> Result<Runs> {
        Ok(Runs { file: space.open()?, runs: Vec::new(), written: 0, pending: Vec::new() })
    }

    /// Begins a run; the following entries belong to it.
    pub fn begin(&mut self) {
        let at = self.written + self.pending.len() as u64;
        self.runs.push((at, at));
    }

    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        steps::step();
        steps::bytes(key.len() + value.len());
        self.pending.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.pending.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.pending.extend_from_slice(key);
        self.pending.extend_from_slice(value);
        if self.pending.len() >= CHUNK_BYTES { self.flush() } else { Ok(()) }
    }

    /// Ends the run.
    pub fn end(&mut self) -> Result<()> {
        self.flush()?;
        if let Some((_, end)) = self.runs.last_mut() {
            *end = self.written;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.append(&self.pending)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Reads all runs as one in the order of their keys; of equal keys, those of earlier runs come
    /// first.
    pub fn merge(mut self) -> Result<MergedRuns> {
        while self.runs.len() > RUNS_MAX {
            let mut merged = Vec::new();
            let runs = std::mem::take(&mut self.runs);
            for some in runs.chunks(RUNS_MAX) {
                let mut readers = RunReaders::open(&mut *self.file, some)?;
                self.runs.clear();
                self.begin();
                while let Some(entry) = readers.next(&mut *self.file, Entry::copy)? {
                    self.push(&entry.key, &entry.value)?;
                }
                self.end()?;
                merged.append(&mut self.runs);
            }
            self.runs = merged;
        }
        let readers = RunReaders::open(&mut *self.file, &self.runs)?;
        Ok(MergedRuns { file: self.file, readers })
    }
}

/// An entry that was read back.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

impl Entry {
    fn copy(key: &[u8], value: &[u8]) -> Entry {
        Entry { key: key.to_vec(), value: value.to_vec() }
    }
}

/// All runs, merged while they are read back.
pub struct MergedRuns {
    file: Box<dyn SpillFile>,
    readers: RunReaders,
}

impl fmt::Debug for MergedRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Merge")
    }
}

impl MergedRuns {
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        self.next_with(Entry::copy)
    }

    /// Passes the key and the value of the next entry to `look`, without copying them.
    pub fn next_with<T>(&mut self, look: impl FnOnce(&[u8], &[u8]) -> T) -> Result<Option<T>> {
        self.readers.next(&mut *self.file, look)
    }
}

/// Several runs, merged while they are read back.
struct RunReaders {
    readers: Vec<RunReader>,
    /// The readers with a next entry, by its key in descending order; of equal keys, those of
    /// earlier runs come last.
    order: Vec<usize>,
    /// Whether the entry of the last in order has been returned.
    shown: bool,
}

impl RunReaders {
    fn open(file: &mut dyn SpillFile, runs: &[(u64, u64)]) -> Result<RunReaders> {
        let readers = runs.iter().map(|(at, end)| RunReader::new(*at, *end)).collect();
        let mut readers = RunReaders { readers, order: Vec::with_capacity(runs.len()), shown: false };
        for index in 0..runs.len() {
            readers.advance(index, file)?;
        }
        Ok(readers)
    }

    /// Reads the next entry of a run and moves the run to its position in `order`.
    fn advance(&mut self, index: usize, file: &mut dyn SpillFile) -> Result<()> {
        let Some(reader) = self.readers.get_mut(index) else { return Ok(()) };
        if !reader.advance(file)? {
            return Ok(());
        }
        steps::step();
        let entry = |index: usize| (self.readers.get(index).map_or(&[][..], RunReader::key), index);
        let place = self.order.partition_point(|other| {
            steps::step();
            entry(*other) > entry(index)
        });
        self.order.insert(place, index);
        Ok(())
    }

    fn next<T>(&mut self, file: &mut dyn SpillFile, look: impl FnOnce(&[u8], &[u8]) -> T) -> Result<Option<T>> {
        if std::mem::take(&mut self.shown)
            && let Some(index) = self.order.pop()
        {
            self.advance(index, file)?;
        }
        let Some(reader) = self.order.last().and_then(|index| self.readers.get(*index)) else { return Ok(None) };
        self.shown = true;
        Ok(Some(look(reader.key(), reader.value())))
    }
}

/// One run that is being read back.
struct RunReader {
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    taken: usize,
    /// Lengths of the key and the value of the current entry, which end where the remaining bytes
    /// begin.
    key_bytes: usize,
    value_bytes: usize,
}

impl RunReader {
    fn new(at: u64, end: u64) -> RunReader {
        RunReader { at, end, buffer: Vec::new(), taken: 0, key_bytes: 0, value_bytes: 0 }
    }

    fn key(&self) -> &[u8] {
        let end = self.taken - self.value_bytes;
        self.buffer.get(end - self.key_bytes..end).unwrap_or_default()
    }

    fn value(&self) -> &[u8] {
        self.buffer.get(self.taken - self.value_bytes..self.taken).unwrap_or_default()
    }

    /// Advances to the next entry; returns false if there is none.
    fn advance(&mut self, file: &mut dyn SpillFile) -> Result<bool> {
        if self.taken == self.buffer.len() && self.at == self.end {
            return Ok(false);
        }
        self.make_room(8, file)?;
        let length = |bytes: Option<&[u8]>| {
            bytes.and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize
        };
        let (key, value) = (length(self.buffer.get(self.taken..)), length(self.buffer.get(self.taken + 4..)));
        self.make_room(8 + key + value, file)?;
        (self.key_bytes, self.value_bytes) = (key, value);
        self.taken += 8 + key + value;
        Ok(true)
    }

    /// Reads until this many bytes are buffered.
    fn make_room(&mut self, count: usize, file: &mut dyn SpillFile) -> Result<()> {
        while self.buffer.len() - self.taken < count {
            self.fill(count, file)?;
        }
        Ok(())
    }

    fn fill(&mut self, wanted: usize, file: &mut dyn SpillFile) -> Result<()> {
        steps::bytes(self.buffer.len());
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let held = self.buffer.len();
        self.buffer.resize(held + wanted.max(CHUNK_BYTES).min(left), 0);
        let read = file.read_at(self.at, &mut self.buffer[held..])?;
        self.buffer.truncate(held + read);
        self.at += read as u64;
        if read == 0 {
            return Err(Error::internal("a spill file is shorter than the data written to it"));
        }
        Ok(())
    }
}

/// A [`SpillSpace`] whose files are memory, for tests.
#[derive(Debug, Default)]
pub struct MemorySpace;

impl SpillSpace for MemorySpace {
    fn open(&self) -> Result<Box<dyn SpillFile>> {
        Ok(Box::new(Vec::new()))
    }
}

impl SpillFile for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_runs_are_read_as_one() {
        let mut runs = Runs::open(&MemorySpace).unwrap();
        for run in 0..200_u32 {
            runs.begin();
            for key in 0..50_u32 {
                let key = (key * 200 + run) / 100;
                runs.push(&key.to_be_bytes(), &vec![run as u8; run as usize * 40]).unwrap();
            }
            runs.end().unwrap();
        }
        let mut merge = runs.merge().unwrap();
        let mut entries = Vec::new();
        while let Some(entry) = merge.next_entry().unwrap() {
            entries.push(entry);
        }
        assert_eq!(entries.len(), 10_000);
        let in_order = |pair: &[Entry]| (&pair[0].key, pair[0].value.first()) <= (&pair[1].key, pair[1].value.first());
        assert!(entries.windows(2).all(in_order), "equal keys stay in the order of their runs");
    }

    #[test]
    fn runs_may_be_empty() {
        let mut runs = Runs::open(&MemorySpace).unwrap();
        runs.begin();
        runs.end().unwrap();
        assert_eq!(runs.merge().unwrap().next_entry().unwrap(), None);
    }
}
