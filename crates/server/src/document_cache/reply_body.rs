//! The body of a kept reply, as it lies until it is sent again.

use bytes::Bytes;
use mongo_wire::op_msg::body_to_send;
use selkie_runtime::zero_copy::{PagedBytes, splice};
use std::ops::{Deref, RangeBounds};

const PAGE_BYTES: usize = 4096;

/// One BSON document, or the beginning of one.
#[derive(Clone)]
pub enum Body {
    /// Copied into the socket.
    Bytes(Bytes),
    /// Sent from where it is.
    Paged(PagedBytes),
}

impl Body {
    pub fn new(body: &[u8]) -> Body {
        let paged = splice::BYTES.contains(&body.len()).then(|| PagedBytes::copy_of(body, splice::PAGE_OFFSET));
        match paged {
            Some(Ok(paged)) => Body::Paged(paged),
            _ => Body::Bytes(body_to_send(body)),
        }
    }

    /// What it takes in memory.
    pub fn bytes_held(&self) -> usize {
        match self {
            Body::Bytes(bytes) => bytes.len(),
            Body::Paged(paged) => (splice::PAGE_OFFSET + paged.len()).next_multiple_of(PAGE_BYTES),
        }
    }

    pub fn slice(&self, range: impl RangeBounds<usize>) -> Body {
        match self {
            Body::Bytes(bytes) => Body::Bytes(bytes.slice(range)),
            Body::Paged(paged) => Body::Paged(paged.slice(range)),
        }
    }

    pub fn into_bytes(self) -> Bytes {
        match self {
            Body::Bytes(bytes) => bytes,
            Body::Paged(paged) => paged.into_bytes(),
        }
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Body::Bytes(bytes) => bytes,
            Body::Paged(paged) => paged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bodies_lie_in_pages() {
        let std::ops::Range { start, end } = splice::BYTES;
        for (length, is_paged) in [(5, false), (start - 1, false), (start, true), (end - 1, true), (end, false)] {
            let bytes: Vec<u8> = (0..length).map(|number: usize| number as u8).collect();
            let body = Body::new(&bytes);
            assert_eq!(matches!(body, Body::Paged(_)), is_paged);
            assert_eq!(*body, *bytes);
            assert_eq!(*body.slice(..length - 2), bytes[..length - 2]);
            assert!((length..length + 2 * PAGE_BYTES).contains(&body.bytes_held()));
            assert_eq!(body.into_bytes(), bytes);
        }
    }
}
