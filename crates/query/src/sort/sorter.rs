//! The blocking sort.

use super::Sort;
use document::{Doc, DocBuf};
use error::{Code, Error, Result};
use std::collections::{BinaryHeap, VecDeque};

/// A blocking sort: takes documents one by one, gives them back in order. Stable.
#[derive(Debug)]
pub struct Sorter {
    sort: Sort,
    limit: usize,
    memory_bytes_max: usize,
    memory_bytes: usize,
    kept: Kept,
    /// The key of the document in hand.
    key: Vec<u8>,
    count: u64,
}

#[derive(Debug)]
enum Kept {
    All(Vec<Entry>),
    /// The first ones so far, the last of them on top.
    First(BinaryHeap<Entry>),
}

/// A document with its key; the number in the order of arrival keeps the sort stable.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    key: Box<[u8]>,
    number: u64,
    document: Vec<u8>,
}

impl Entry {
    fn memory_bytes(&self) -> usize {
        size_of::<Entry>() + self.key.len() + self.document.len()
    }
}

impl Sorter {
    /// `limit`: how many documents will be asked for at the most, so that no more are kept; 0 keeps all, as `None`.
    /// `memory_bytes_max`: past it, [`Sorter::push`] fails with error 292.
    pub fn new(sort: Sort, limit: Option<usize>, memory_bytes_max: usize) -> Sorter {
        let limit = limit.filter(|limit| *limit > 0);
        let kept = if limit.is_some() { Kept::First(BinaryHeap::new()) } else { Kept::All(Vec::new()) };
        Sorter {
            sort,
            limit: limit.unwrap_or(usize::MAX),
            memory_bytes_max,
            memory_bytes: 0,
            kept,
            key: Vec::new(),
            count: 0,
        }
    }

    pub fn push(&mut self, document: Doc<'_>) -> Result<()> {
        self.key.clear();
        self.sort.key(document, &mut self.key)?;
        if let Kept::First(first) = &mut self.kept
            && first.len() >= self.limit
        {
            // Of equal keys the one that came first stays.
            match first.peek() {
                Some(last) if *self.key < *last.key => {}
                _ => return Ok(()),
            }
            self.memory_bytes -= first.pop().map_or(0, |last| last.memory_bytes());
        }
        let entry =
            Entry { key: self.key.as_slice().into(), number: self.count, document: document.as_bytes().to_vec() };
        self.count += 1;
        self.memory_bytes += entry.memory_bytes();
        if self.memory_bytes > self.memory_bytes_max {
            return Err(Error::new(
                Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                format!(
                    "Sort exceeded memory limit of {} bytes, but did not opt in to external sorting.",
                    self.memory_bytes_max
                ),
            ));
        }
        match &mut self.kept {
            Kept::All(entries) => entries.push(entry),
            Kept::First(first) => first.push(entry),
        }
        Ok(())
    }

    pub fn finish(self) -> VecDeque<DocBuf> {
        let entries = match self.kept {
            Kept::All(mut entries) => {
                entries.sort_unstable_by(|a, b| (&a.key, a.number).cmp(&(&b.key, b.number)));
                entries
            }
            Kept::First(first) => first.into_sorted_vec(),
        };
        entries.into_iter().filter_map(|entry| DocBuf::from_vec(entry.document)).collect()
    }
}
