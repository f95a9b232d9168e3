//! A batch of documents: in a reply under construction, or at hand for the next part of a pipeline.

use document::{ArrayWriter, Doc, DocBuf, DocWriter, Kind};
use error::{Error, Result};
use query::{Item, ItemBuf};

/// How many bytes a reply holds up to its last document; one document alone may be larger by the head room stores leave.
const REPLY_BYTES_MAX: usize = document::DOCUMENT_BYTES_MAX;

/// What a message has before a batch, besides the batch's name: a header of 21 bytes and `{cursor: {`.
const BEFORE_BATCH_BYTES: usize = 21 + 18;

/// `firstBatch` or `nextBatch`: takes documents until it has as many as were asked for, or as many bytes as a reply holds.
pub struct Batch<'b> {
    documents: Documents<'b>,
    documents_max: usize,
    /// What takes room besides the array: of a message, what stands before it; the documents that go on within a pipeline.
    other_bytes: usize,
    last_bytes: usize,
}

/// Where the documents go.
enum Documents<'b> {
    Reply(ArrayWriter<'b>),
    /// They go on within a pipeline, with what is known of them, and may be larger than a client's.
    Kept(&'b mut Vec<ItemBuf>),
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

    /// A batch that no client will see.
    pub fn kept(items: &'b mut Vec<ItemBuf>, documents_max: usize) -> Batch<'b> {
        Batch { documents: Documents::Kept(items), documents_max, other_bytes: 0, last_bytes: 0 }
    }

    /// Error 10334 where a pipeline's result is too large for a client.
    pub fn check_size(&self, document: Doc<'_>) -> Result<()> {
        match &self.documents {
            Documents::Reply(_) => aggregate::check_size(document),
            Documents::Kept(_) => Ok(()),
        }
    }

    pub fn len(&self) -> usize {
        match &self.documents {
            Documents::Reply(array) => array.len(),
            Documents::Kept(items) => items.len(),
        }
    }

    /// What the batch takes so far: of a reply the whole array, with the names of its elements.
    fn bytes(&self) -> usize {
        match &self.documents {
            Documents::Reply(array) => array.size() + self.other_bytes,
            Documents::Kept(_) => self.other_bytes,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether what is known of documents beside their fields is of use to anyone.
    pub fn keeps_metadata(&self) -> bool {
        matches!(self.documents, Documents::Kept(_))
    }

    /// How many more documents are wanted.
    pub fn room(&self) -> usize {
        self.documents_max.saturating_sub(self.len())
    }

    pub fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Takes a document; false when it does not fit any more.
    #[inline]
    pub fn push<'d>(&mut self, item: impl Into<Item<'d>>) -> bool {
        let item = item.into();
        let size = item.document.size();
        if !fits(self.is_empty(), self.bytes() + size) {
            return false;
        }
        match &mut self.documents {
            Documents::Reply(array) => array.push_raw(Kind::Document, item.document.as_bytes()),
            Documents::Kept(items) => {
                items.push(item.to_owned());
                self.other_bytes += size;
            }
        }
        self.last_bytes = size;
        true
    }

    /// The document taken last, of a batch in a reply.
    pub fn last(&self) -> Option<Doc<'_>> {
        match &self.documents {
            Documents::Reply(array) => Doc::from_bytes(array.end(self.last_bytes)),
            Documents::Kept(_) => None,
        }
    }

    /// Takes a document that `write` puts at the end of the reply; false when it does not fit any more.
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
            Documents::Kept(items) => {
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

/// The first document always fits, lest a reader get stuck before it.
fn fits(first: bool, bytes: usize) -> bool {
    first || bytes <= REPLY_BYTES_MAX
}
