//! Checking the first fields of large documents, so that most documents which a sink rejects are
//! not read whole.
//!
//! SQLite stores the beginning of a large row with its number, and the rest in a chain of other
//! pages, which a statement that returns the row joins into one piece. A blob handle reads only as
//! much as requested.

use super::{Slice, Visitor};
use crate::catalog::Collection;
use crate::failure::Attempt;
use crate::plan::IndexScan;
use crate::read::scan::key_walk::Entry;
use document::Doc;
use rusqlite::Connection;
use rusqlite::blob::Blob;
use store::index_kind::IndexKind;
use store::{PrefixFiltering, PrefixVerdict};

/// From this average size on, documents take several pages.
const LARGE_BYTES: i64 = 4096;

/// The length of the prefix: at first, and at most.
const BYTES_MIN: usize = 512;
const BYTES_MAX: usize = 2048;

/// The strategy is reconsidered after this many verdicts.
const VERDICTS_PER_DECISION: u32 = 32;

/// After useless prefix checks, this many documents are read whole.
const PAUSE: u32 = 512;

/// Statistics of a scan's prefix checks.
#[derive(Debug)]
pub struct PrefixHabit {
    bytes: usize,
    verdicts: u32,
    unclear: u32,
    passed: u32,
    /// The number of documents still to be read whole.
    pause: u32,
}

impl Default for PrefixHabit {
    fn default() -> Self {
        PrefixHabit { bytes: BYTES_MIN, verdicts: 0, unclear: 0, passed: 0, pause: 0 }
    }
}

impl PrefixHabit {
    /// Returns how much of the next document to check before reading it whole, if anything.
    fn next_bytes(&mut self) -> Option<usize> {
        if self.pause == 0 {
            return Some(self.bytes);
        }
        self.pause -= 1;
        None
    }

    fn note(&mut self, verdict: PrefixVerdict) {
        self.verdicts += 1;
        self.unclear += u32::from(verdict == PrefixVerdict::Undecided);
        self.passed += u32::from(verdict == PrefixVerdict::Rejected);
        if self.verdicts < VERDICTS_PER_DECISION {
            return;
        }
        *self = match (self.unclear > VERDICTS_PER_DECISION / 4, self.bytes < BYTES_MAX) {
            (true, true) => PrefixHabit { bytes: self.bytes * 2, ..PrefixHabit::default() },
            _ if self.passed < VERDICTS_PER_DECISION / 8 => PrefixHabit { pause: PAUSE, ..PrefixHabit::default() },
            _ => PrefixHabit { bytes: self.bytes, ..PrefixHabit::default() },
        };
    }
}

/// Reads the prefixes of a collection's documents.
#[derive(Default)]
pub(super) struct PrefixReader<'c> {
    blob: Option<Blob<'c>>,
    bytes: Vec<u8>,
    beginning: Vec<u8>,
}

impl<'c> PrefixReader<'c> {
    /// Returns the fields that are complete in the first `count` bytes. `None` if they cannot be
    /// read; reading the row will report why.
    fn read(&mut self, connection: &'c Connection, collection: &Collection, seq: i64, count: usize) -> Option<Doc<'_>> {
        let blob = match self.blob.take() {
            Some(mut blob) => blob.reopen(seq).map(|()| blob),
            None => connection.blob_open(rusqlite::MAIN_DB, collection.sql.table.as_str(), "doc", seq, true),
        };
        let blob = self.blob.insert(blob.ok()?);
        self.bytes.resize(count, 0);
        let read = blob.read_at(&mut self.bytes, 0).ok()?;
        Some(Doc::from_truncated(self.bytes.get(..read)?, &mut self.beginning))
    }
}

/// Returns whether the collection and the index allow a scan to check prefixes.
pub(super) fn is_possible(
    visitor: &dyn Visitor,
    collection: &Collection,
    scan: &IndexScan,
    earlier: &[IndexScan],
) -> bool {
    let documents = collection.documents() as i64;
    // For other kinds of index, the first key of a document does not follow from its fields alone.
    let by_fields = scan.index.as_ref().is_none_or(|index| index.kind == IndexKind::Ordered && index.partial.is_none());
    visitor.filters_by_prefix() != PrefixFiltering::Never
        && earlier.is_empty()
        && scan.distinct_field.is_none()
        && (by_fields || !scan.is_multikey())
        && collection.data_bytes() as i64 >= documents.saturating_mul(LARGE_BYTES)
}

impl Slice<'_, '_> {
    /// Returns whether the document's prefix rejects it. A rejected document has been counted.
    pub(super) fn is_rejected_by_prefix(&mut self, scan: &IndexScan, entry: &Entry<'_>) -> Attempt<bool> {
        if self.visit.filters_by_prefix() != PrefixFiltering::Now {
            return Ok(false);
        }
        let Some(count) = self.visit.prefix_habit().and_then(PrefixHabit::next_bytes) else { return Ok(false) };
        let mut prefix_reader = std::mem::take(&mut self.prefix_reader);
        let verdict = match prefix_reader.read(self.connection, self.collection, entry.seq, count) {
            None => Ok(PrefixVerdict::Undecided),
            Some(prefix) => self.check_prefix(prefix, scan, entry.key),
        };
        self.prefix_reader = prefix_reader;
        let verdict = verdict?;
        if let Some(prefix_habit) = self.visit.prefix_habit() {
            prefix_habit.note(verdict);
        }
        let passed = verdict == PrefixVerdict::Rejected;
        self.examined.documents += u64::from(passed);
        Ok(passed)
    }

    fn check_prefix(&mut self, prefix: Doc<'_>, scan: &IndexScan, key: &[u8]) -> Attempt<PrefixVerdict> {
        if scan.is_multikey() {
            let mut names = scan.fields(self.collection).iter().filter_map(|field| field.path.split('.').next());
            if !names.all(|name| prefix.element(name).is_some()) {
                return Ok(PrefixVerdict::Undecided);
            }
            if !self.is_first_key(0, prefix, key, scan, &[])? {
                return Ok(PrefixVerdict::Rejected);
            }
        }
        Ok(self.visit.check_prefix(prefix)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(prefix_habit: &mut PrefixHabit, verdicts: &[PrefixVerdict]) {
        verdicts.iter().cycle().take(VERDICTS_PER_DECISION as usize).for_each(|&verdict| prefix_habit.note(verdict));
    }

    #[test]
    fn reads_longer_prefixes_if_short_ones_do_not_decide() {
        let mut prefix_habit = PrefixHabit::default();
        after(&mut prefix_habit, &[PrefixVerdict::Undecided]);
        assert_eq!((prefix_habit.bytes, prefix_habit.pause), (1024, 0));
        after(&mut prefix_habit, &[PrefixVerdict::Rejected, PrefixVerdict::Wanted]);
        assert_eq!((prefix_habit.bytes, prefix_habit.pause), (1024, 0));
        after(&mut prefix_habit, &[PrefixVerdict::Undecided, PrefixVerdict::Rejected]);
        after(&mut prefix_habit, &[PrefixVerdict::Undecided, PrefixVerdict::Rejected]);
        assert_eq!((prefix_habit.bytes, prefix_habit.pause), (2048, 0));
    }

    #[test]
    fn pauses_if_prefixes_reject_too_few_documents() {
        let mut prefix_habit = PrefixHabit::default();
        after(&mut prefix_habit, &[PrefixVerdict::Wanted]);
        assert_eq!((prefix_habit.bytes, prefix_habit.pause), (BYTES_MIN, PAUSE));
        assert_eq!((0..PAUSE + 1).filter(|_| prefix_habit.next_bytes().is_none()).count(), PAUSE as usize);
    }
}
