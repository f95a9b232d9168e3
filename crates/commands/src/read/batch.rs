//! A batch of documents in a reply under construction.

use document::{ArrayWriter, Doc, DocWriter, Kind};
use error::Result;

/// How many bytes of documents a reply holds; one document alone may be larger by the head room stores leave.
pub const REPLY_DOCUMENTS_BYTES_MAX: usize = document::DOCUMENT_BYTES_MAX;

/// `firstBatch` or `nextBatch`: takes documents until it has as many as were asked for, or as many bytes as a reply holds.
pub struct Batch<'b> {
    array: ArrayWriter<'b>,
    documents_max: usize,
    bytes: usize,
    /// Its documents go on within a pipeline, where they may be larger than a client's.
    internal: bool,
}

impl<'b> Batch<'b> {
    pub fn begin(cursor: &'b mut DocWriter<'_>, key: &str, documents_max: usize) -> Batch<'b> {
        Batch { array: cursor.array(key), documents_max, bytes: 0, internal: false }
    }

    /// A batch that no client will see.
    pub fn internal(holder: &'b mut DocWriter<'_>, documents_max: usize) -> Batch<'b> {
        Batch { internal: true, ..Batch::begin(holder, "", documents_max) }
    }

    /// Error 10334 where a pipeline's result is too large for a client.
    pub fn check_size(&self, document: Doc<'_>) -> Result<()> {
        if self.internal { Ok(()) } else { query::aggregate::check_size(document) }
    }

    pub fn len(&self) -> usize {
        self.array.len()
    }

    pub fn is_empty(&self) -> bool {
        self.array.is_empty()
    }

    /// How many more documents are wanted.
    pub fn room(&self) -> usize {
        self.documents_max.saturating_sub(self.array.len())
    }

    pub fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Takes a document; false when it does not fit any more.
    #[inline]
    pub fn push(&mut self, document: Doc<'_>) -> bool {
        if !self.fits(document.size()) {
            return false;
        }
        self.array.push_raw(Kind::Document, document.as_bytes());
        self.bytes += document.size();
        true
    }

    /// Takes a document that `write` puts at the end of the reply; false when it does not fit any more.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<bool> {
        let (bytes, empty) = (self.bytes, self.array.is_empty());
        let mut size = 0;
        let taken = self.array.try_push(Kind::Document, |out| {
            let start = out.len();
            write(out)?;
            size = out.len() - start;
            Ok::<bool, error::Error>(empty || bytes + size <= REPLY_DOCUMENTS_BYTES_MAX)
        })?;
        if taken {
            self.bytes += size;
        }
        Ok(taken)
    }

    /// The first document always fits, lest a reader get stuck before it.
    fn fits(&self, size: usize) -> bool {
        self.array.is_empty() || self.bytes + size <= REPLY_DOCUMENTS_BYTES_MAX
    }
}
