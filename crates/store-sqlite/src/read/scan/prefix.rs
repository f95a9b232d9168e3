//! Large documents, looked at by their first fields: most of what a sink has no use for need not be read then.
//!
//! SQLite keeps the beginning of a large row with its number, and the rest in a chain of other pages, which a statement that
//! gives the row puts together into one piece. A blob handle reads as much as it is asked for.

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

/// From this mean size on, documents lie on several pages.
const LARGE_BYTES: i64 = 4096;

/// How much of a document is looked at: at first, and at the most.
const BYTES_MIN: usize = 512;
const BYTES_MAX: usize = 2048;

/// After so many verdicts it is asked what they were good for.
const VERDICTS_PER_DECISION: u32 = 32;

/// How many documents are shown whole after verdicts that were good for little.
const PAUSE: u32 = 512;

/// What a scan has found verdicts to be good for.
#[derive(Debug)]
pub struct PrefixHabit {
    bytes: usize,
    verdicts: u32,
    unclear: u32,
    passed: u32,
    /// Documents still to be shown whole.
    pause: u32,
}

impl Default for PrefixHabit {
    fn default() -> Self {
        PrefixHabit { bytes: BYTES_MIN, verdicts: 0, unclear: 0, passed: 0, pause: 0 }
    }
}

impl PrefixHabit {
    /// How much of the next document is to be looked at before the whole of it, if anything.
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

/// What reads the beginnings of a collection's documents.
#[derive(Default)]
pub(super) struct PrefixReader<'c> {
    blob: Option<Blob<'c>>,
    bytes: Vec<u8>,
    beginning: Vec<u8>,
}

impl<'c> PrefixReader<'c> {
    /// The fields that are whole in the first `count` bytes. `None` where they cannot be had: whoever reads the row will say why.
    fn read(&mut self, connection: &'c Connection, collection: &Collection, seq: i64, count: usize) -> Option<Doc<'_>> {
        let blob = match self.blob.take() {
            Some(mut blob) => blob.reopen(seq).map(|()| blob),
            None => connection.blob_open(rusqlite::MAIN_DB, collection.sql.table.as_str(), "doc", seq, true),
        };
        let blob = self.blob.insert(blob.ok()?);
        self.bytes.resize(count, 0);
        let read = blob.read_at(&mut self.bytes, 0).ok()?;
        Some(Doc::of_beginning(self.bytes.get(..read)?, &mut self.beginning))
    }
}

/// Whether documents of a scan are to be looked at by their beginnings, as far as the collection and the index go.
pub(super) fn is_possible(
    visitor: &dyn Visitor,
    collection: &Collection,
    scan: &IndexScan,
    earlier: &[IndexScan],
) -> bool {
    let documents = collection.documents() as i64;
    // Of other indexes it takes more than their fields to tell which key of a document is the first.
    let by_fields = scan.index.as_ref().is_none_or(|index| index.kind == IndexKind::Ordered && index.partial.is_none());
    visitor.filters_by_prefix() != PrefixFiltering::Never
        && earlier.is_empty()
        && scan.distinct_field.is_none()
        && (by_fields || !scan.is_multikey())
        && collection.data_bytes() as i64 >= documents.saturating_mul(LARGE_BYTES)
}

impl Slice<'_, '_> {
    /// Whether the beginning of a document tells that it is not to be given. It has been counted then.
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
    fn looks_at_more_where_little_does_not_tell() {
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
    fn pauses_where_glances_are_good_for_nothing() {
        let mut prefix_habit = PrefixHabit::default();
        after(&mut prefix_habit, &[PrefixVerdict::Wanted]);
        assert_eq!((prefix_habit.bytes, prefix_habit.pause), (BYTES_MIN, PAUSE));
        assert_eq!((0..PAUSE + 1).filter(|_| prefix_habit.next_bytes().is_none()).count(), PAUSE as usize);
    }
}
