//! The blocking sort: in memory while that suffices, in sorted runs on disk if allowed.

use super::Sort;
use crate::metadata::{Item, ItemBuf, MetadataBuf};
use document::Doc;
use error::{Code, Error, Result};
use std::collections::BinaryHeap;
use values::spill::{Budget, MergedRuns, Runs};

/// Keys and documents are stored in pieces of this size, so that growth never copies them.
const PIECE_BYTES: usize = 1024 * 1024;

/// A blocking, stable sort: accepts documents one by one and returns them in order.
#[derive(Debug)]
pub struct Sorter {
    sort: Sort,
    limit: usize,
    budget: Budget,
    memory_bytes: usize,
    buffer: SortBuffer,
    runs: Option<Runs>,
    /// The key of the current document.
    key: Vec<u8>,
    /// Its metadata, if the key is part of them.
    metadata: MetadataBuf,
    count: u64,
}

#[derive(Debug)]
enum SortBuffer {
    All(EntryArena),
    /// The first `limit` documents so far, the last of them on top.
    First(BinaryHeap<OwnedEntry>),
}

/// A document with its key; `number`, the order of arrival, keeps the sort stable.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OwnedEntry {
    key: Box<[u8]>,
    number: u64,
    /// The bytes of an [`ItemBuf`].
    item: Vec<u8>,
}

impl OwnedEntry {
    fn memory_bytes(&self) -> usize {
        size_of::<OwnedEntry>() + self.key.len() + self.item.len()
    }
}

/// Documents with their keys, side by side in few large pieces of memory.
#[derive(Debug, Default)]
struct EntryArena {
    pieces: Vec<Vec<u8>>,
    locations: Vec<EntryLocation>,
}

/// The location of a key, and of the document after it.
#[derive(Clone, Copy, Debug)]
struct EntryLocation {
    /// The key's first bytes, which decide most comparisons.
    prefix: u64,
    piece: u32,
    offset: u32,
    key_bytes: u32,
    item_bytes: u32,
}

impl EntryArena {
    /// Appends a document and returns the bytes by which memory grew.
    fn push(&mut self, key: &[u8], item: Item<'_>) -> usize {
        let (document, metadata) = (item.document.as_bytes(), item.metadata_bytes());
        let bytes = key.len() + document.len() + metadata.len();
        steps::bytes(bytes);
        let fits = |piece: &Vec<u8>| piece.capacity() - piece.len() >= bytes;
        if !self.pieces.last().is_some_and(fits) {
            self.pieces.push(Vec::with_capacity(bytes.max(PIECE_BYTES)));
        }
        let index = self.pieces.len() - 1;
        let Some(piece) = self.pieces.last_mut() else { return 0 };
        let location = EntryLocation {
            prefix: prefix(key),
            piece: index as u32,
            offset: piece.len() as u32,
            key_bytes: key.len() as u32,
            item_bytes: (document.len() + metadata.len()) as u32,
        };
        piece.extend_from_slice(key);
        piece.extend_from_slice(document);
        piece.extend_from_slice(metadata);
        self.locations.push(location);
        bytes + size_of::<EntryLocation>()
    }

    fn bytes(&self, location: EntryLocation) -> (&[u8], &[u8]) {
        let start = location.offset as usize;
        let middle = start + location.key_bytes as usize;
        let piece = self.pieces.get(location.piece as usize).map_or(&[][..], Vec::as_slice);
        (&piece[start..middle], &piece[middle..middle + location.item_bytes as usize])
    }

    fn sort(&mut self) {
        let mut locations = std::mem::take(&mut self.locations);
        locations.sort_unstable_by(|a, b| {
            steps::step();
            let whole = || {
                let (a, b) = (self.bytes(*a).0, self.bytes(*b).0);
                steps::bytes(a.len().min(b.len()));
                a.cmp(b)
            };
            // Pieces fill up in the order of arrival.
            a.prefix.cmp(&b.prefix).then_with(whole).then((a.piece, a.offset).cmp(&(b.piece, b.offset)))
        });
        self.locations = locations;
    }
}

/// Returns the first eight bytes as a number that compares as they do.
fn prefix(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let count = key.len().min(8);
    bytes[..count].copy_from_slice(&key[..count]);
    u64::from_be_bytes(bytes)
}

impl Sorter {
    /// Returns a sorter that retains the first `limit` documents; with 0 or `None`, all of them.
    /// Past the budget's memory, [`Sorter::push`] writes a sorted run to disk, or fails with 292.
    pub fn new(sort: Sort, limit: Option<usize>, budget: impl Into<Budget>) -> Sorter {
        let limit = limit.filter(|limit| *limit > 0);
        let buffer =
            if limit.is_some() { SortBuffer::First(BinaryHeap::new()) } else { SortBuffer::All(EntryArena::default()) };
        Sorter {
            sort,
            limit: limit.unwrap_or(usize::MAX),
            budget: budget.into(),
            memory_bytes: 0,
            buffer,
            runs: None,
            key: Vec::new(),
            metadata: MetadataBuf::default(),
            count: 0,
        }
    }

    pub fn push<'d>(&mut self, item: impl Into<Item<'d>>) -> Result<()> {
        let item = item.into();
        if !self.sort.records_key {
            return self.push_with_prefix(item, |_| Ok(()));
        }
        let mut metadata = std::mem::take(&mut self.metadata);
        metadata.begin(item.metadata);
        self.sort.record_key(item.document, &mut metadata)?;
        self.push_with_prefix(Item { metadata: metadata.as_metadata(), ..item }, |_| Ok(()))?;
        self.metadata = metadata;
        Ok(())
    }

    /// Returns whether every document is retained, because fewer than `limit` have arrived.
    pub fn retains_all(&self) -> bool {
        matches!(&self.buffer, SortBuffer::First(first) if first.len() < self.limit)
    }

    /// Returns whether a document with these fields would be retained. They must include all fields
    /// that it is sorted by.
    pub fn would_retain(&mut self, document: Doc<'_>) -> Result<bool> {
        let SortBuffer::First(first) = &self.buffer else { return Ok(true) };
        if first.len() < self.limit {
            return Ok(true);
        }
        self.key.clear();
        self.sort.key(document, &mut self.key)?;
        Ok(first.peek().is_none_or(|last| *self.key < *last.key))
    }

    /// Like [`Sorter::push`]; `write_prefix` writes a key that sorts before the sort's own key.
    pub fn push_with_prefix<'d>(
        &mut self,
        item: impl Into<Item<'d>>,
        write_prefix: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let item = item.into();
        steps::step();
        self.key.clear();
        write_prefix(&mut self.key)?;
        self.sort.key(item, &mut self.key)?;
        match &mut self.buffer {
            SortBuffer::All(heap) => self.memory_bytes += heap.push(&self.key, item),
            SortBuffer::First(first) => {
                if first.len() >= self.limit {
                    // Of equal keys the first to arrive is retained.
                    match first.peek() {
                        Some(last) if *self.key < *last.key => {}
                        _ => return Ok(()),
                    }
                    self.memory_bytes -= first.pop().map_or(0, |last| last.memory_bytes());
                }
                let entry = OwnedEntry {
                    key: self.key.as_slice().into(),
                    number: self.count,
                    item: item.to_owned().into_vec(),
                };
                self.memory_bytes += entry.memory_bytes();
                first.push(entry);
            }
        }
        self.count += 1;
        if self.memory_bytes > self.budget.memory_bytes_max { self.spill() } else { Ok(()) }
    }

    /// Writes the documents in memory to disk as a sorted run.
    fn spill(&mut self) -> Result<()> {
        let Some(disk) = self.budget.disk.as_deref() else {
            return Err(memory_exceeded(self.budget.memory_bytes_max));
        };
        let runs = match &mut self.runs {
            Some(runs) => runs,
            none => none.insert(Runs::open(disk)?),
        };
        runs.begin();
        match std::mem::replace(&mut self.buffer, SortBuffer::All(EntryArena::default())) {
            SortBuffer::All(mut heap) => {
                heap.sort();
                for location in &heap.locations {
                    steps::step();
                    let (key, document) = heap.bytes(*location);
                    runs.push(key, document)?;
                }
            }
            SortBuffer::First(first) => {
                for entry in first.into_sorted_vec() {
                    steps::step();
                    runs.push(&entry.key, &entry.item)?;
                }
            }
        }
        runs.end()?;
        self.memory_bytes = 0;
        Ok(())
    }

    /// Returns the documents in order.
    pub fn finish(mut self) -> Result<Sorted> {
        if self.runs.is_some() {
            self.spill()?;
        }
        let source = match (self.runs, self.buffer) {
            (Some(runs), _) => SortedEntries::Disk(runs.merge()?),
            (None, SortBuffer::All(mut heap)) => {
                heap.sort();
                SortedEntries::Memory { heap, next: 0 }
            }
            (None, SortBuffer::First(first)) => SortedEntries::Limited(first.into_sorted_vec().into_iter()),
        };
        Ok(Sorted { source, remaining: self.limit })
    }
}

/// The documents of a finished sort, in order.
#[derive(Debug)]
pub struct Sorted {
    source: SortedEntries,
    remaining: usize,
}

#[derive(Debug)]
enum SortedEntries {
    Memory { heap: EntryArena, next: usize },
    Limited(std::vec::IntoIter<OwnedEntry>),
    Disk(MergedRuns),
}

impl Sorted {
    /// Returns the next document; `None` after the last.
    pub fn take_next(&mut self) -> Result<Option<ItemBuf>> {
        Ok(self.next_with_key()?.map(|(_, item)| item))
    }

    /// Returns the next document, with its sort key.
    pub fn next_with_key(&mut self) -> Result<Option<(Vec<u8>, ItemBuf)>> {
        if self.remaining == 0 {
            return Ok(None);
        }
        let (key, item) = match &mut self.source {
            SortedEntries::Memory { heap, next } => {
                let Some(location) = heap.locations.get(*next) else { return Ok(None) };
                *next += 1;
                let (key, document) = heap.bytes(*location);
                (key.to_vec(), document.to_vec())
            }
            SortedEntries::Limited(entries) => match entries.next() {
                Some(entry) => (entry.key.into_vec(), entry.item),
                None => return Ok(None),
            },
            SortedEntries::Disk(merge) => match merge.next_entry()? {
                Some(entry) => (entry.key, entry.value),
                None => return Ok(None),
            },
        };
        self.remaining -= 1;
        Ok(Some((key, ItemBuf::from_vec(item))))
    }

    /// Passes the next document to `look` without copying it.
    pub fn next_with<T>(&mut self, look: impl FnOnce(Item<'_>) -> T) -> Result<Option<T>> {
        if self.remaining == 0 {
            return Ok(None);
        }
        if let SortedEntries::Memory { heap, next } = &mut self.source {
            let Some(location) = heap.locations.get(*next) else { return Ok(None) };
            *next += 1;
            self.remaining -= 1;
            return Ok(Some(look(Item::from_bytes(heap.bytes(*location).1))));
        }
        if let SortedEntries::Disk(merge) = &mut self.source {
            let looked = merge.next_with(|_, item| look(Item::from_bytes(item)))?;
            self.remaining -= usize::from(looked.is_some());
            return Ok(looked);
        }
        Ok(self.take_next()?.map(|document| look(document.as_item())))
    }
}

/// Returns the error for an exceeded memory limit.
fn memory_exceeded(memory_bytes_max: usize) -> Error {
    let message =
        format!("Sort exceeded memory limit of {memory_bytes_max} bytes, but did not opt in to external sorting.");
    Error::new(Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED, message)
}
