//! A batch of documents: in a reply under construction, or in memory for the next part of a
//! pipeline.

use document::{ArrayWriter, Doc, DocBuf, DocWriter, Kind};
use error::{Error, Result};
use query::{Item, ItemBuf};

/// The most bytes of a reply up to its last document. A single document may be larger by the
/// headroom that stores leave.
const REPLY_BYTES_MAX: usize = document::DOCUMENT_BYTES_MAX;

/// The bytes of a message before a batch, without the batch's name: a header of 21 bytes and
/// `{cursor: {`.
const BEFORE_BATCH_BYTES: usize = 21 + 18;

/// `firstBatch` or `nextBatch`: takes documents up to the requested number, or until the reply is
/// full.
pub struct Batch<'b> {
    documents: Documents<'b>,
    documents_max: usize,
    /// The bytes beside the array: of a message, those before it; otherwise those of the documents
    /// in memory.
    other_bytes: usize,
    last_bytes: usize,
}

/// The destination of the documents.
enum Documents<'b> {
    Reply(ArrayWriter<'b>),
    /// They stay in memory with their metadata, and may exceed a client's limit.
    Collected(&'b mut Vec<ItemBuf>),
}

impl<'b> Batch<'b> {
    pub fn begin(cursor: &'b mut DocWriter<'_>, key: &str, documents_max: usize) -> Batch<'b> {
        Batch {
            documents: Documents::Reply(cursor.array(key)),
            documents_max,
            other_bytes: BEFORE_BATCH_BYTES + key.len(),
            last_bytes: 0,
        }
    }

    /// Creates a batch that is not sent to a client.
    pub fn collecting(items: &'b mut Vec<ItemBuf>, documents_max: usize) -> Batch<'b> {
        Batch { documents: Documents::Collected(items), documents_max, other_bytes: 0, last_bytes: 0 }
    }

    /// Fails with 10334 if a document is too large for a client.
    pub fn check_size(&self, document: Doc<'_>) -> Result<()> {
        match &self.documents {
            Documents::Reply(_) => aggregate::check_size(document),
            Documents::Collected(_) => Ok(()),
        }
    }

    pub fn len(&self) -> usize {
        match &self.documents {
            Documents::Reply(array) => array.len(),
            Documents::Collected(items) => items.len(),
        }
    }

    /// Returns the size of the batch so far: of a reply the whole array, with the names of its
    /// elements.
    fn bytes(&self) -> usize {
        match &self.documents {
            Documents::Reply(array) => array.size() + self.other_bytes,
            Documents::Collected(_) => self.other_bytes,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the metadata of documents is needed.
    pub fn keeps_metadata(&self) -> bool {
        matches!(self.documents, Documents::Collected(_))
    }

    /// Returns the number of documents still to be returned.
    pub fn room(&self) -> usize {
        self.documents_max.saturating_sub(self.len())
    }

    pub fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Adds a document; returns false if it does not fit.
    #[inline]
    pub fn push<'d>(&mut self, item: impl Into<Item<'d>>) -> bool {
        let item = item.into();
        let size = item.document.size();
        if !fits(self.is_empty(), self.bytes() + size) {
            return false;
        }
        match &mut self.documents {
            Documents::Reply(array) => array.push_raw(Kind::Document, item.document.as_bytes()),
            Documents::Collected(items) => {
                items.push(item.to_owned());
                self.other_bytes += size;
            }
        }
        self.last_bytes = size;
        true
    }

    /// Returns the last document of a batch in a reply.
    pub fn last(&self) -> Option<Doc<'_>> {
        match &self.documents {
            Documents::Reply(array) => Doc::from_bytes(array.end(self.last_bytes)),
            Documents::Collected(_) => None,
        }
    }

    /// Adds a document that `write` appends to the reply; returns false if it does not fit.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<bool> {
        let (bytes, empty) = (self.bytes(), self.is_empty());
        let mut size = 0;
        let taken = match &mut self.documents {
            Documents::Reply(array) => array.try_push(Kind::Document, |out| {
                let start = out.len();
                write(out)?;
                size = out.len() - start;
                Ok::<bool, Error>(fits(empty, bytes + size))
            })?,
            Documents::Collected(items) => {
                let mut document = Vec::new();
                write(&mut document)?;
                size = document.len();
                let fits = fits(empty, bytes + size);
                if fits {
                    items.push(DocBuf::from_vec(document).unwrap_or_default().into());
                    self.other_bytes += size;
                }
                fits
            }
        };
        if taken {
            self.last_bytes = size;
        }
        Ok(taken)
    }
}

/// Returns whether a document fits. The first one always does, or a reader could never pass it.
fn fits(first: bool, bytes: usize) -> bool {
    first || bytes <= REPLY_BYTES_MAX
}
