//! Buffers that belong to the worker, lent to connections while they have something to read or to write.
//!
//! A connection that waits for its client owns no buffer, so thousands of idle connections cost little more than their tasks. A
//! buffer lent for reading comes back when the requests in it are done; one that a request's documents still point into (writes
//! under way, a cursor's filter) is given up instead and freed with them.

use bytes::BytesMut;
use std::cell::{Cell, RefCell};

/// What a read asks for when nothing of a message is there yet. Most requests fit several times.
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// Replies up to this size leave a buffer that is kept; larger ones leave at most one, for a while.
const REPLY_KEPT_BYTES: usize = 64 * 1024;

/// Buffers of either kind that are kept: as many as requests are commonly under way on one worker.
const KEPT: usize = 8;

#[derive(Default)]
pub(crate) struct Buffers {
    reads: RefCell<Vec<BytesMut>>,
    replies: RefCell<Vec<Vec<u8>>>,
    large_reply: RefCell<Option<Vec<u8>>>,
    large_used: Cell<bool>,
}

impl Buffers {
    /// An empty buffer of at least [`READ_BYTES`].
    pub fn take_read(&self) -> BytesMut {
        self.reads.borrow_mut().pop().unwrap_or_else(|| BytesMut::with_capacity(READ_BYTES))
    }

    /// Takes a read buffer back, if nothing points into it any more.
    pub fn give_read(&self, mut buffer: BytesMut) {
        let mut reads = self.reads.borrow_mut();
        buffer.clear();
        if reads.len() < KEPT && buffer.try_reclaim(READ_BYTES) && buffer.capacity() <= 2 * READ_BYTES {
            reads.push(buffer);
        }
    }

    /// An empty buffer for a reply; the large one, if it is there and free.
    pub fn take_reply(&self) -> Vec<u8> {
        let large = self.large_reply.borrow_mut().take();
        large.or_else(|| self.replies.borrow_mut().pop()).unwrap_or_default()
    }

    /// Takes a reply's buffer back, with the reply still in it.
    pub fn give_reply(&self, mut buffer: Vec<u8>) {
        if buffer.len() > REPLY_KEPT_BYTES {
            self.large_used.set(true);
        }
        buffer.clear();
        let mut replies = self.replies.borrow_mut();
        if buffer.capacity() > REPLY_KEPT_BYTES {
            *self.large_reply.borrow_mut() = Some(buffer);
        } else if replies.len() < KEPT && buffer.capacity() > 0 {
            replies.push(buffer);
        }
    }

    /// Lets go of the large buffer if no reply since the last call needed it.
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
    fn a_read_buffer_comes_back_unless_something_points_into_it() {
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
    fn one_large_reply_is_kept_until_nobody_needs_it() {
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
