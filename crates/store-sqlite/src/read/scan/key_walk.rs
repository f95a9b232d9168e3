//! Scans that examine an index's keys before documents, and those that examine only keys.

use super::covered::CoveredOutcome;
use super::cursor::{RowPosition, ScanPosition};
use super::{ROWS_PER_LOOK, Slice, SliceEnd, blob, prefix};
use crate::catalog::Collection;
use crate::failure::Attempt;
use crate::plan::IndexScan;
use crate::read::scan;
use access::Interval;
use access::key_filter::Verdict;
use document::Doc;
use index_keys::keys;
use rusqlite::{CachedStatement, Connection, Row};
use std::time::Instant;
use store::Examined;

/// Rows that are read and skipped before a new search is cheaper.
const STEPS_MAX: usize = 16;

/// A row of an index.
pub struct Entry<'r> {
    pub seq: i64,
    pub key: &'r [u8],
}

/// Counts of a walk.
#[derive(Default)]
struct WalkCounts {
    keys: u64,
    seeks: u64,
}

/// The step after a row.
enum WalkStep {
    Step,
    /// Continue at a key; the ones before it (in the scan's direction) do not matter.
    SkipTo(Vec<u8>),
    End(SliceEnd),
}

impl Slice<'_, '_> {
    /// Walks an interval key by key, and fetches the documents of keys that pass the filter.
    pub(super) fn interval_by_keys(
        &mut self,
        interval: &Interval,
        scan: &IndexScan,
        earlier: &[IndexScan],
    ) -> Attempt<SliceEnd> {
        let mut by_seq = self.connection.prepare_cached(&self.collection.sql.by_seq)?;
        let (connection, collection, position) = (self.connection, self.collection, self.cursor.position.clone());
        let verdicts = prefix::is_possible(self.visit, collection, scan, earlier);
        let mut counts = WalkCounts::default();
        let end = walk(connection, collection, scan, interval, &position, &mut counts, &mut |entry| {
            if let Some(Verdict::SkipTo(target)) = scan.judge(entry.key) {
                let over = self.pass(entry.seq, entry.key);
                return Ok(over.map_or(WalkStep::SkipTo(target), WalkStep::End));
            }
            self.examined.entries += 1;
            let covered = scan.covered();
            let outcome = match covered {
                Some(covered) => self.give_key(scan, covered, &entry)?,
                None => CoveredOutcome::Undecodable,
            };
            if let CoveredOutcome::Given(end) = outcome {
                return Ok(end.map_or(WalkStep::Step, WalkStep::End));
            }
            if verdicts && self.is_rejected_by_prefix(scan, &entry)? {
                return Ok(self.pass(entry.seq, entry.key).map_or(WalkStep::Step, WalkStep::End));
            }
            let end = with_document(&mut by_seq, collection, entry.seq, |document| {
                self.examined.documents += 1;
                match (self.is_first_key(entry.seq, document, entry.key, scan, earlier)?, covered) {
                    (true, Some(covered)) => self.give_requested(scan, covered, &entry, document),
                    (true, None) => self.give(entry.seq, entry.key, document),
                    (false, _) => Ok(self.pass(entry.seq, entry.key)),
                }
            })?;
            Ok(match end.flatten() {
                Some(end) => WalkStep::End(end),
                // The next slice reads keys and documents by one statement.
                None if matches!(outcome, CoveredOutcome::GaveUp) => WalkStep::End(SliceEnd::Paused),
                None => scan.next_distinct_key(entry.key, collection).map_or(WalkStep::Step, WalkStep::SkipTo),
            })
        });
        self.examined.keys += counts.keys;
        self.examined.seeks += counts.seeks;
        end
    }
}

impl IndexScan {
    fn judge(&self, key: &[u8]) -> Option<Verdict> {
        self.filter.as_ref().map(|filter| filter.judge(key, self.forward))
    }

    /// Returns the first key that differs in the distinct field. Null is also the key of missing
    /// fields, so each such document must be examined.
    fn next_distinct_key(&self, key: &[u8], collection: &Collection) -> Option<Vec<u8>> {
        let distinct_field = self.distinct_field?;
        let mut rest = key;
        for (at, field) in self.fields(collection).iter().enumerate().take(distinct_field + 1) {
            let (value, behind) = document::key::split(rest, !field.ascending)?;
            let mut null = Vec::new();
            keys::encode_directed(document::Value::Null, field.ascending, &field.collation, &mut null);
            if at == distinct_field && value == null {
                return None;
            }
            rest = behind;
        }
        let same = key[..key.len() - rest.len()].to_vec();
        Some(if self.forward { keys::end_of_prefix(same) } else { same })
    }
}

/// Fetches a document for `look`; `None` if it does not exist.
pub fn with_document<T>(
    by_seq: &mut CachedStatement<'_>,
    collection: &Collection,
    seq: i64,
    look: impl FnOnce(Doc<'_>) -> Attempt<T>,
) -> Attempt<Option<T>> {
    let mut rows = by_seq.query([seq])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let document = Doc::from_bytes(blob(row.get_ref(0)?)).ok_or_else(|| scan::damaged(collection, seq))?;
    look(document).map(Some)
}

/// Walks an interval from behind a position, skipping as `look` decides.
fn walk(
    connection: &Connection,
    collection: &Collection,
    scan: &IndexScan,
    interval: &Interval,
    position: &ScanPosition,
    counts: &mut WalkCounts,
    look: &mut dyn FnMut(Entry<'_>) -> Attempt<WalkStep>,
) -> Attempt<SliceEnd> {
    let mut statement = statement(connection, collection, scan)?;
    let end = if scan.forward { &interval.high } else { &interval.low };
    let mut start = position.start(interval, scan.forward);
    loop {
        let mut rows = statement.query((&start.0, start.1, end))?;
        counts.seeks += 1;
        let mut target: Option<Vec<u8>> = None;
        let mut passed = 0;
        loop {
            let Some(row) = rows.next()? else { return Ok(SliceEnd::Exhausted) };
            let entry = entry(row)?;
            counts.keys += 1;
            if let Some(position) = &target {
                let before = if scan.forward { *entry.key < **position } else { *entry.key >= **position };
                if before {
                    passed += 1;
                    if passed > STEPS_MAX {
                        break;
                    }
                    continue;
                }
                target = None;
            }
            match look(entry)? {
                WalkStep::Step => {}
                WalkStep::End(end) => return Ok(end),
                WalkStep::SkipTo(position) => (target, passed) = (Some(position), 0),
            }
        }
        if let Some(position) = target {
            start = (position, i64::MIN);
        }
    }
}

fn statement<'c>(
    connection: &'c Connection,
    collection: &Collection,
    scan: &IndexScan,
) -> rusqlite::Result<CachedStatement<'c>> {
    let sql = scan.sql(collection);
    connection.prepare_cached(if scan.forward { &sql.keys_forward } else { &sql.keys_backward })
}

fn entry<'r>(row: &'r Row<'_>) -> rusqlite::Result<Entry<'r>> {
    Ok(Entry { seq: row.get(0)?, key: blob(row.get_ref(1)?) })
}

/// Returns the position of the next key of a scan. Each call searches again, and so holds nothing.
pub fn next_key(
    connection: &Connection,
    collection: &Collection,
    scan: &IndexScan,
    position: ScanPosition,
) -> Attempt<Option<ScanPosition>> {
    let mut counts = WalkCounts::default();
    let found = find_next_key(connection, collection, scan, position, &mut counts);
    let entries = u64::from(matches!(found, Ok(Some(_))));
    scan.counter.add(Examined { keys: counts.keys, seeks: counts.seeks, entries, documents: 0 });
    found
}

fn find_next_key(
    connection: &Connection,
    collection: &Collection,
    scan: &IndexScan,
    mut position: ScanPosition,
    counts: &mut WalkCounts,
) -> Attempt<Option<ScanPosition>> {
    let mut statement = statement(connection, collection, scan)?;
    while let Some(interval) = scan.interval(position.part) {
        let end = if scan.forward { &interval.high } else { &interval.low };
        let mut start = position.start(interval, scan.forward);
        loop {
            let mut rows = statement.query((&start.0, start.1, end))?;
            counts.seeks += 1;
            let Some(row) = rows.next()? else { break };
            let entry = entry(row)?;
            counts.keys += 1;
            match scan.judge(entry.key) {
                Some(Verdict::SkipTo(target)) => start = (target, i64::MIN),
                _ => {
                    let row = RowPosition { seq: entry.seq, key: entry.key.to_vec() };
                    return Ok(Some(ScanPosition { part: position.part, row: Some(row) }));
                }
            }
        }
        position = ScanPosition { part: position.part + 1, row: None };
    }
    Ok(None)
}

/// Counts the keys of a scan up to `enough`, for a planner. Not added to the scan's statistics.
pub fn measure_keys(connection: &Connection, collection: &Collection, scan: &IndexScan, enough: u64) -> Attempt<u64> {
    let (mut counted, mut counts) = (0, WalkCounts::default());
    let mut position = ScanPosition::default();
    count_on(connection, collection, scan, &mut position, None, enough, (&mut counted, &mut counts))?;
    Ok(counted)
}

/// Counts the keys of a scan from behind a position, up to `enough` or until the deadline has
/// passed.
pub fn count_keys(
    connection: &Connection,
    collection: &Collection,
    scan: &IndexScan,
    position: &mut ScanPosition,
    deadline: Option<Instant>,
    enough: u64,
) -> Attempt<(u64, SliceEnd)> {
    let (mut counted, mut counts) = (0, WalkCounts::default());
    let end = count_on(connection, collection, scan, position, deadline, enough, (&mut counted, &mut counts));
    scan.counter.add(Examined { keys: counts.keys, seeks: counts.seeks, entries: counted, documents: 0 });
    Ok((counted, end?))
}

fn count_on(
    connection: &Connection,
    collection: &Collection,
    scan: &IndexScan,
    position: &mut ScanPosition,
    deadline: Option<Instant>,
    enough: u64,
    (counted, counts): (&mut u64, &mut WalkCounts),
) -> Attempt<SliceEnd> {
    let mut rows = 0_usize;
    while let Some(interval) = scan.interval(position.part) {
        let from = position.clone();
        let end = walk(connection, collection, scan, interval, &from, counts, &mut |entry| {
            rows += 1;
            let is_over =
                rows.is_multiple_of(16 * ROWS_PER_LOOK) && deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let verdict = scan.judge(entry.key);
            *counted += u64::from(!matches!(verdict, Some(Verdict::SkipTo(_))));
            if *counted >= enough {
                return Ok(WalkStep::End(SliceEnd::Stopped));
            }
            if is_over {
                position.take(entry.seq, entry.key);
                return Ok(WalkStep::End(SliceEnd::Paused));
            }
            Ok(match verdict {
                Some(Verdict::SkipTo(target)) => WalkStep::SkipTo(target),
                _ => WalkStep::Step,
            })
        })?;
        if end != SliceEnd::Exhausted {
            return Ok(end);
        }
        *position = ScanPosition { part: position.part + 1, row: None };
    }
    Ok(SliceEnd::Exhausted)
}
