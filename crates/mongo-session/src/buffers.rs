//! Buffers of a worker, lent to connections while they read or write.
//!
//! A connection that waits for its client owns no buffer, so thousands of idle connections cost
//! little more than their tasks. A read buffer returns when the requests in it are done. One that a
//! request's documents still point into (running writes, a cursor's filter) is given up instead,
//! and freed with them.

use bytes::BytesMut;
use std::cell::{Cell, RefCell};

/// The size of a read when no part of a message has arrived. Most requests fit several times.
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// A reply buffer up to this size is kept; of larger ones at most one is kept, for a while.
const SMALL_REPLY_BYTES: usize = 64 * 1024;

/// The most buffers of either kind that are kept: as many as a worker commonly has running
/// requests.
const BUFFERS_MAX: usize = 8;

#[derive(Default)]
pub(crate) struct Buffers {
    reads: RefCell<Vec<BytesMut>>,
    replies: RefCell<Vec<Vec<u8>>>,
    large_reply: RefCell<Option<Vec<u8>>>,
    large_used: Cell<bool>,
}

impl Buffers {
    /// Returns an empty buffer of at least [`READ_BYTES`].
    pub fn take_read(&self) -> BytesMut {
        self.reads.borrow_mut().pop().unwrap_or_else(|| BytesMut::with_capacity(READ_BYTES))
    }

    /// Takes a read buffer back, unless something still points into it.
    pub fn give_read(&self, mut buffer: BytesMut) {
        let mut reads = self.reads.borrow_mut();
        buffer.clear();
        if reads.len() < BUFFERS_MAX && buffer.try_reclaim(READ_BYTES) && buffer.capacity() <= 2 * READ_BYTES {
            reads.push(buffer);
        }
    }

    /// Returns an empty buffer for a reply: the large one if it is free.
    pub fn take_reply(&self) -> Vec<u8> {
        let large = self.large_reply.borrow_mut().take();
        large.or_else(|| self.replies.borrow_mut().pop()).unwrap_or_default()
    }

    /// Takes a reply's buffer back, with the reply still in it.
    pub fn give_reply(&self, mut buffer: Vec<u8>) {
        if buffer.len() > SMALL_REPLY_BYTES {
            self.large_used.set(true);
        }
        buffer.clear();
        let mut replies = self.replies.borrow_mut();
        if buffer.capacity() > SMALL_REPLY_BYTES {
            *self.large_reply.borrow_mut() = Some(buffer);
        } else if replies.len() < BUFFERS_MAX && buffer.capacity() > 0 {
            replies.push(buffer);
        }
    }

    /// Frees the large buffer if no reply since the last call needed it.
    pub fn trim(&self) {
        if !self.large_used.replace(false) {
            self.large_reply.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_buffer_is_reused_unless_something_points_into_it() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take_read();
        buffer.extend_from_slice(&[7; 100]);
        let message = buffer.split_to(100).freeze();
        buffers.give_read(buffer);
        assert!(buffers.reads.borrow().is_empty());

        let mut buffer = buffers.take_read();
        buffer.extend_from_slice(&[7; 100]);
        drop(buffer.split_to(100).freeze());
        buffers.give_read(buffer);
        assert_eq!(buffers.reads.borrow().len(), 1);
        assert!(buffers.take_read().capacity() >= READ_BYTES);
        assert_eq!(message[99], 7);
    }

    #[test]
    fn one_large_reply_buffer_is_kept_while_it_is_used() {
        let buffers = Buffers::default();
        buffers.give_reply(vec![0; 1_000_000]);
        buffers.give_reply(vec![0; 2_000_000]);
        buffers.trim();
        let again = buffers.take_reply();
        assert!(again.capacity() >= 2_000_000 && again.is_empty());
        assert_eq!(buffers.take_reply().capacity(), 0);
        buffers.give_reply(again);
        buffers.trim();
        assert_eq!(buffers.take_reply().capacity(), 0);
    }
}
