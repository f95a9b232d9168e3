//! The body of a cached reply, in the form in which it is stored until it is sent again.

use bytes::Bytes;
use mongo_wire::op_msg::body_to_send;
use selkie_runtime::zero_copy::{PagedBytes, splice};
use std::ops::{Deref, RangeBounds};

const PAGE_BYTES: usize = 4096;

/// One BSON document, or a part of one.
#[derive(Clone)]
pub enum ReplyBody {
    /// Copied into the socket.
    Bytes(Bytes),
    /// Sent from where it is stored, without a copy.
    Paged(PagedBytes),
}

impl ReplyBody {
    pub fn new(body: &[u8]) -> ReplyBody {
        let paged = splice::BYTES.contains(&body.len()).then(|| PagedBytes::copy_of(body, splice::PAGE_OFFSET));
        match paged {
            Some(Ok(paged)) => ReplyBody::Paged(paged),
            _ => ReplyBody::Bytes(body_to_send(body)),
        }
    }

    /// Returns the memory that it takes, in bytes.
    pub fn bytes_held(&self) -> usize {
        match self {
            ReplyBody::Bytes(bytes) => bytes.len(),
            ReplyBody::Paged(paged) => (splice::PAGE_OFFSET + paged.len()).next_multiple_of(PAGE_BYTES),
        }
    }

    pub fn slice(&self, range: impl RangeBounds<usize>) -> ReplyBody {
        match self {
            ReplyBody::Bytes(bytes) => ReplyBody::Bytes(bytes.slice(range)),
            ReplyBody::Paged(paged) => ReplyBody::Paged(paged.slice(range)),
        }
    }

    pub fn into_bytes(self) -> Bytes {
        match self {
            ReplyBody::Bytes(bytes) => bytes,
            ReplyBody::Paged(paged) => paged.into_bytes(),
        }
    }
}

impl Deref for ReplyBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            ReplyBody::Bytes(bytes) => bytes,
            ReplyBody::Paged(paged) => paged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bodies_are_stored_in_pages() {
        let std::ops::Range { start, end } = splice::BYTES;
        for (length, is_paged) in [(5, false), (start - 1, false), (start, true), (end - 1, true), (end, false)] {
            let bytes: Vec<u8> = (0..length).map(|number: usize| number as u8).collect();
            let body = ReplyBody::new(&bytes);
            assert_eq!(matches!(body, ReplyBody::Paged(_)), is_paged);
            assert_eq!(*body, *bytes);
            assert_eq!(*body.slice(..length - 2), bytes[..length - 2]);
            assert!((length..length + 2 * PAGE_BYTES).contains(&body.bytes_held()));
            assert_eq!(body.into_bytes(), bytes);
        }
    }
}
