//! The documents of one partition: in memory up to the budget, the rest on disk if allowed.

use document::Doc;
use error::{Code, Error, Result};
use query::{Item, ItemBuf};
use std::cell::RefCell;
use values::spill::{Budget, SpillFile};

/// Bytes that are gathered before they are written.
const CHUNK_BYTES: usize = 128 * 1024;

/// Documents by their position.
#[derive(Default)]
pub(super) struct WindowPartition {
    documents: Vec<ItemBuf>,
    memory_bytes: usize,
    spilled: Option<SpilledDocuments>,
}

/// The documents after those in memory.
struct SpilledDocuments {
    file: RefCell<Box<dyn SpillFile>>,
    /// The end of each document.
    ends: Vec<u64>,
    written: u64,
    pending: Vec<u8>,
}

/// A document of a partition, borrowed or read back.
pub(super) enum PartitionDocument<'p> {
    Held(Item<'p>),
    ReadBack(ItemBuf),
}

impl PartitionDocument<'_> {
    pub fn as_item(&self) -> Item<'_> {
        match self {
            PartitionDocument::Held(document) => *document,
            PartitionDocument::ReadBack(document) => document.as_item(),
        }
    }
}

impl WindowPartition {
    pub fn clear(&mut self) {
        *self = WindowPartition::default();
    }

    pub fn len(&self) -> usize {
        self.documents.len() + self.spilled.as_ref().map_or(0, |spilled| spilled.ends.len())
    }

    /// Appends a document. Fails with 5643011 if memory does not suffice and the disk is not
    /// allowed.
    pub fn push(&mut self, document: ItemBuf, budget: &Budget) -> Result<()> {
        if let Some(spilled) = &mut self.spilled {
            return spilled.push(document);
        }
        self.memory_bytes += document.size() + size_of::<ItemBuf>();
        if self.memory_bytes <= budget.memory_bytes_max {
            self.documents.push(document);
            return Ok(());
        }
        let Some(disk) = &budget.disk else {
            let message = "Exceeded max memory. Set 'allowDiskUse: true' to spill to disk";
            return Err(Error::new(Code(5643011), message));
        };
        let file = RefCell::new(disk.open()?);
        let spilled = SpilledDocuments { file, ends: Vec::new(), written: 0, pending: Vec::new() };
        self.spilled.insert(spilled).push(document)
    }

    /// Marks the partition as complete: its documents may be read.
    pub fn complete(&mut self) -> Result<()> {
        self.spilled.as_mut().map_or(Ok(()), SpilledDocuments::flush)
    }

    pub fn get(&self, index: usize) -> Result<PartitionDocument<'_>> {
        match (self.documents.get(index), &self.spilled) {
            (Some(document), _) => Ok(PartitionDocument::Held(document.as_item())),
            (None, Some(spilled)) => spilled.read(index - self.documents.len()).map(PartitionDocument::ReadBack),
            (None, None) => Ok(PartitionDocument::Held(Doc::EMPTY.into())),
        }
    }
}

impl SpilledDocuments {
    fn push(&mut self, document: ItemBuf) -> Result<()> {
        self.pending.append(&mut document.into_vec());
        self.ends.push(self.written + self.pending.len() as u64);
        if self.pending.len() < CHUNK_BYTES { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.get_mut().append(&self.pending)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    fn read(&self, index: usize) -> Result<ItemBuf> {
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(index).copied().unwrap_or(start);
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(0)];
        let mut at = 0;
        while at < bytes.len() {
            match self.file.borrow_mut().read_at(start + at as u64, &mut bytes[at..])? {
                0 => break,
                read => at += read,
            }
        }
        if at < bytes.len() {
            return Err(Error::internal("a spill file is shorter than the data written to it"));
        }
        Ok(ItemBuf::from_vec(bytes))
    }
}
