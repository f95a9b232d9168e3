//! The statements of the open transaction, by which it can be executed again.

use super::command::Command;
use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Longer transactions, with their replies, are not kept.
const BYTES_MAX: usize = 1 << 20;

/// The statements of a transaction, in their order.
#[derive(Debug, Default)]
pub struct TransactionLog {
    entries: Vec<Rc<Entry>>,
    bytes: usize,
    /// Something is missing: the transaction cannot be executed again.
    is_incomplete: bool,
}

/// A statement, and what the client has seen of it.
#[derive(Debug)]
pub struct Entry {
    pub packet: Rc<[u8]>,
    /// The client's id of the prepared statement, and the packet that prepares it.
    pub prepared: Option<(u32, Rc<[u8]>)>,
    pub digest: u64,
    /// When it was executed, in microseconds since 1970.
    pub micros: u128,
}

/// What a statement has done to the transaction of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// No transaction is open.
    Outside,
    /// It has begun the open transaction.
    Begins,
    Continues,
    /// It cannot be executed again.
    Unrepeatable,
}

impl TransactionLog {
    /// Records a statement after its reply. `reply_bytes`: the length of the reply.
    pub fn record(&mut self, step: Step, command: &Command<'_>, digest: u64, reply_bytes: u64) {
        match step {
            Step::Outside => return self.clear(),
            Step::Begins => self.clear(),
            Step::Continues => {}
            Step::Unrepeatable => return self.spoil(),
        }
        let bytes = command.packet.len() + usize::try_from(reply_bytes).unwrap_or(usize::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > BYTES_MAX {
            self.spoil();
        }
        if self.is_incomplete {
            return;
        }
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let (packet, prepared) = (command.packet.into(), command.prepared.clone());
        self.entries.push(Rc::new(Entry { packet, prepared, digest, micros }));
    }

    pub fn clear(&mut self) {
        *self = TransactionLog::default();
    }

    /// Notes that the open transaction cannot be executed again.
    pub fn spoil(&mut self) {
        *self = TransactionLog { is_incomplete: true, ..TransactionLog::default() };
    }

    /// Returns whether the open transaction can be executed again.
    pub fn is_complete(&self) -> bool {
        !self.is_incomplete && !self.entries.is_empty()
    }

    pub fn entries(&self) -> Vec<Rc<Entry>> {
        self.entries.clone()
    }
}

/// Returns the digest of a reply, which does not depend on how it was split.
pub fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_kept_whole_or_not_at_all() {
        let mut log = TransactionLog::default();
        let command = Command::text(b"\x02\0\0\0\x03x");
        assert!(!log.is_complete());
        log.record(Step::Begins, &command, 1, 7);
        log.record(Step::Continues, &command, 2, 7);
        assert_eq!((log.is_complete(), log.entries().len()), (true, 2));
        log.record(Step::Begins, &command, 1, 7);
        assert_eq!(log.entries().len(), 1, "the one before is committed");
        log.record(Step::Unrepeatable, &command, 1, 7);
        log.record(Step::Continues, &command, 1, 7);
        assert!(!log.is_complete());
        log.record(Step::Outside, &command, 1, 7);
        log.record(Step::Begins, &command, 1, 7);
        assert!(log.is_complete());
        log.record(Step::Continues, &command, 1, BYTES_MAX as u64);
        log.record(Step::Continues, &command, 1, 7);
        assert!(!log.is_complete(), "it is too long");
    }

    #[test]
    fn digests_do_not_depend_on_chunks() {
        let bytes: Vec<u8> = (0..=255).collect();
        for chunk in [1, 3, 7, 100] {
            let mut hasher = DefaultHasher::new();
            bytes.chunks(chunk).for_each(|part| hasher.write(part));
            assert_eq!(hasher.finish(), digest(&bytes));
        }
    }
}
