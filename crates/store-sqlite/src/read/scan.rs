//! Running a plan in slices.
//!
//! A slice is one statement, started behind a position and reset at its end: nothing is held
//! between slices. The writer runs the same code inside its transaction, in a single slice.
//!
//! [`cursor`] is the position of a scan. [`key_walk`] examines keys before their documents, and
//! counts keys; [`covered`] builds documents from keys; [`prefix`] checks the first fields of large
//! documents before the rest; [`merge`] merges several scans in order; [`near`] scans by distance.

mod covered;
mod cursor;
mod key_walk;
mod merge;
mod near;
mod prefix;

use crate::catalog::Collection;
use crate::failure::{Attempt, Failure};
use crate::plan::{Access, IndexScan, RowRange, SqlitePlan, Union};
use access::Interval;
use ahash::AHashSet;
use covered::KeyDecoder;
use document::{Doc, Value};
use error::{Code, Error, Result};
use index_keys::keys;
use prefix::PrefixReader;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use std::time::Instant;
use store::{Examined, Flow, PrefixFiltering, PrefixVerdict};

pub use cursor::{Cursor, ScanPosition};
pub use key_walk::{count_keys, measure_keys};
pub use prefix::PrefixHabit;

/// Rows between two checks of the clock.
const ROWS_PER_LOOK: usize = 16;

/// How a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceEnd {
    /// No document is left.
    Exhausted,
    /// The visitor stopped it.
    Stopped,
    /// The deadline has passed; the next slice continues behind the cursor.
    Paused,
}

/// Receiver of the documents of a slice.
pub trait Visitor {
    /// Receives a document, with its number in natural order, or 0 if [`Visitor::wants_numbers`] is
    /// false.
    fn visit(&mut self, seq: i64, document: Doc<'_>) -> Result<Flow>;

    fn wants_numbers(&self) -> bool {
        true
    }

    /// As [`store::Sink::filters_by_prefix`].
    fn filters_by_prefix(&self) -> PrefixFiltering {
        PrefixFiltering::Never
    }

    /// As [`store::Sink::check_prefix`].
    fn check_prefix(&mut self, prefix: Doc<'_>) -> Result<PrefixVerdict> {
        let _ = prefix;
        Ok(PrefixVerdict::Undecided)
    }

    /// Returns the statistics of prefix checks, if the visitor filters by prefix.
    fn prefix_habit(&mut self) -> Option<&mut PrefixHabit> {
        None
    }
}

impl<F: FnMut(i64, Doc<'_>) -> Result<Flow>> Visitor for F {
    fn visit(&mut self, seq: i64, document: Doc<'_>) -> Result<Flow> {
        self(seq, document)
    }
}

/// Gives documents to `visit` from behind `cursor` until it stops, no document is left, or
/// `deadline` has passed.
pub fn slice(
    connection: &Connection,
    plan: &SqlitePlan,
    cursor: &mut Cursor,
    deadline: Option<Instant>,
    visit: &mut dyn Visitor,
) -> Attempt<SliceEnd> {
    let Some(collection) = &plan.collection else { return Ok(SliceEnd::Exhausted) };
    if collection.is_dropped() {
        return Err(dropped(collection).into());
    }
    let tailable = plan.tailable;
    let examined = Examined::default();
    let prefix_reader = PrefixReader::default();
    let decoder = KeyDecoder::default();
    let seen = Seen::new(cursor);
    let mut slice = Slice {
        connection,
        collection,
        tailable,
        cursor,
        deadline,
        rows: 0,
        examined,
        prefix_reader,
        decoder,
        seen,
        visit,
    };
    let end = match &plan.access {
        Access::Natural { forward, rows } => slice.natural(*forward, *rows),
        Access::Points(points) => slice.points(points),
        Access::Index(scan) => slice.intervals(scan, &[]),
        Access::Union(union) => slice.union(union),
        Access::Near(scan) => slice.near(scan),
    };
    plan.counter.add(slice.examined);
    match end {
        Err(Failure::Engine(error)) if crate::failure::is_missing_table(&error) => Err(match &plan.access {
            Access::Index(IndexScan { index: Some(index), .. }) if !collection.is_dropped() => {
                Error::new(Code::QUERY_PLAN_KILLED, format!("index '{}' dropped", index.spec.name)).into()
            }
            Access::Union(_) if !collection.is_dropped() => {
                Error::new(Code::QUERY_PLAN_KILLED, "an index of the plan was dropped").into()
            }
            _ => dropped(collection).into(),
        }),
        end => end,
    }
}

fn dropped(collection: &Collection) -> Error {
    let mut uuid = String::new();
    store::duplicate::write_value(document::Value::Binary { subtype: 4, bytes: &collection.uuid }, &mut uuid);
    let uuid = uuid.trim_start_matches("UUID(\"").trim_end_matches("\")");
    Error::new(Code::QUERY_PLAN_KILLED, format!("collection dropped. UUID {uuid}"))
}

struct Slice<'s, 'v> {
    connection: &'s Connection,
    collection: &'s Collection,
    tailable: bool,
    cursor: &'s mut Cursor,
    deadline: Option<Instant>,
    rows: usize,
    examined: Examined,
    prefix_reader: PrefixReader<'s>,
    decoder: KeyDecoder,
    seen: Seen,
    visit: &'s mut (dyn Visitor + 'v),
}

impl Slice<'_, '_> {
    fn natural(&mut self, forward: bool, range: RowRange) -> Attempt<SliceEnd> {
        let sql = &self.collection.sql;
        let (sql, start) = match forward {
            true => (&sql.forward, range.behind),
            false => (&sql.backward, range.last.saturating_add(1)),
        };
        let from = self.cursor.position.row.as_ref().map_or(start, |row| row.seq);
        if self.cursor.position.row.is_some() && self.collection.cap().is_some() {
            self.check_position(from)?;
        }
        // A scan of a capped collection continues behind its last row, and must verify that it
        // still exists.
        let numbered = self.visit.wants_numbers() || self.collection.cap().is_some() || range != RowRange::ALL;
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([from])?;
        while let Some(row) = rows.next()? {
            self.examined.documents += 1;
            let end = match numbered {
                true => {
                    let (seq, document) = stored(row, self.collection)?;
                    if seq <= range.behind || seq > range.last {
                        return Ok(SliceEnd::Exhausted);
                    }
                    self.give(seq, &[], document)?
                }
                false => self.give_in_natural_order(row, forward)?,
            };
            if let Some(end) = end {
                return Ok(end);
            }
        }
        Ok(SliceEnd::Exhausted)
    }

    /// As [`Slice::give`], in natural order. Called for each document of a large collection, so the
    /// row's number is read only where the slice ends.
    fn give_in_natural_order(&mut self, row: &Row<'_>, forward: bool) -> Attempt<Option<SliceEnd>> {
        let Some(document) = Doc::from_bytes(blob(row.get_ref(1)?)) else {
            return Err(damaged(self.collection, row.get(0)?).into());
        };
        let flow = self.visit.visit(0, document)?;
        if flow == Flow::Continue && !self.is_over() {
            return Ok(None);
        }
        let seq: i64 = row.get(0)?;
        let (position, end) = match flow {
            Flow::Continue => (seq, SliceEnd::Paused),
            Flow::StopAfter => (seq, SliceEnd::Stopped),
            // The position before this row.
            Flow::StopBefore => (seq.saturating_add(if forward { -1 } else { 1 }), SliceEnd::Stopped),
        };
        self.cursor.position.take(position, &[]);
        Ok(Some(end))
    }

    /// Fails if the row at the position was deleted: a capped collection is read without gaps.
    fn check_position(&self, seq: i64) -> Attempt<()> {
        match self.connection.prepare_cached(&self.collection.sql.by_seq)?.exists([seq])? {
            true => Ok(()),
            false => Err(store::rules::position_lost(self.tailable, seq).into()),
        }
    }

    fn points(&mut self, points: &[keys::Key]) -> Attempt<SliceEnd> {
        let mut statement = self.connection.prepare_cached(&self.collection.sql.by_id)?;
        while let Some(point) = points.get(self.cursor.position.part as usize) {
            let mut rows = statement.query([point.as_slice()])?;
            self.examined.seeks += 1;
            if let Some(row) = rows.next()? {
                let (seq, document) = stored(row, self.collection)?;
                self.count_fetched();
                match self.visit.visit(seq, document)? {
                    Flow::Continue => {}
                    Flow::StopAfter => {
                        self.cursor.position.part += 1;
                        return Ok(SliceEnd::Stopped);
                    }
                    Flow::StopBefore => return Ok(SliceEnd::Stopped),
                }
            }
            self.cursor.position.part += 1;
            if self.is_over() {
                return Ok(SliceEnd::Paused);
            }
        }
        Ok(SliceEnd::Exhausted)
    }

    fn union(&mut self, union: &Union) -> Attempt<SliceEnd> {
        if let Some(orders) = &union.merged {
            return self.merge(union, orders);
        }
        while let Some(scan) = union.branches.get(self.cursor.branch as usize) {
            let earlier = &union.branches[..self.cursor.branch as usize];
            let end = self.intervals(scan, earlier)?;
            if end != SliceEnd::Exhausted {
                return Ok(end);
            }
            *self.cursor = Cursor { branch: self.cursor.branch + 1, ..Cursor::default() };
        }
        Ok(SliceEnd::Exhausted)
    }

    /// Scans an index; documents that one of the `earlier` scans includes have been given.
    fn intervals(&mut self, scan: &IndexScan, earlier: &[IndexScan]) -> Attempt<SliceEnd> {
        let end = self.each_interval(scan, earlier);
        scan.counter.add(std::mem::take(&mut self.examined));
        end
    }

    fn each_interval(&mut self, scan: &IndexScan, earlier: &[IndexScan]) -> Attempt<SliceEnd> {
        while let Some(interval) = scan.interval(self.cursor.position.part) {
            let by_keys = scan.filter.is_some()
                || scan.distinct_field.is_some()
                || scan.covered().is_some()
                || prefix::is_possible(self.visit, self.collection, scan, earlier);
            let end = match by_keys {
                true => self.interval_by_keys(interval, scan, earlier)?,
                false => self.interval(interval, scan, earlier)?,
            };
            if end != SliceEnd::Exhausted {
                return Ok(end);
            }
            self.cursor.position = ScanPosition { part: self.cursor.position.part + 1, row: None };
        }
        Ok(SliceEnd::Exhausted)
    }

    fn interval(&mut self, interval: &Interval, scan: &IndexScan, earlier: &[IndexScan]) -> Attempt<SliceEnd> {
        let sql = scan.sql(self.collection);
        let (sql, end) = if scan.forward { (&sql.forward, &interval.high) } else { (&sql.backward, &interval.low) };
        let (key, seq) = self.cursor.position.start(interval, scan.forward);
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query((key, seq, end))?;
        self.examined.seeks += 1;
        while let Some(row) = rows.next()? {
            let (seq, document) = stored(row, self.collection)?;
            self.count_fetched();
            let key = blob(row.get_ref(2)?);
            let end = match self.is_first_key(seq, document, key, scan, earlier)? {
                true => self.give(seq, key, document)?,
                false => self.pass(seq, key),
            };
            if let Some(end) = end {
                return Ok(end);
            }
        }
        Ok(SliceEnd::Exhausted)
    }

    /// Returns whether a document must be given at this key: at its first key in the intervals, and
    /// by the first of several scans that include it. This needs no memory of earlier documents,
    /// and so holds across slices and batches.
    ///
    /// The keys of a geometry are its covering, which takes longer to compute than everything else
    /// about the document. So a scan of a `2dsphere` index remembers the documents of a slice, and
    /// computes keys only if an earlier slice may have given the document.
    fn is_first_key(
        &mut self,
        seq: i64,
        document: Doc<'_>,
        key: &[u8],
        scan: &IndexScan,
        earlier: &[IndexScan],
    ) -> Result<bool> {
        let remembers = scan.is_multikey() && earlier.is_empty() && scan.is_over_sphere();
        if remembers && !self.seen.insert(seq) {
            return Ok(false);
        }
        if scan.is_multikey() && !(remembers && self.seen.from_start) {
            let keys = scan.matching_keys(document, self.collection)?;
            let first = if scan.forward { keys.first() } else { keys.last() };
            if first.is_some_and(|first| first.as_slice() != key) {
                return Ok(false);
            }
        }
        for other in earlier {
            if !other.matching_keys(document, self.collection)?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives a document to the visitor. Returns how the slice ends, if it does.
    fn give(&mut self, seq: i64, key: &[u8], document: Doc<'_>) -> Attempt<Option<SliceEnd>> {
        match self.visit.visit(seq, document)? {
            Flow::Continue => Ok(self.pass(seq, key)),
            Flow::StopAfter => {
                self.cursor.position.take(seq, key);
                Ok(Some(SliceEnd::Stopped))
            }
            Flow::StopBefore => Ok(Some(SliceEnd::Stopped)),
        }
    }

    /// Counts a key and its document.
    #[inline]
    fn count_fetched(&mut self) {
        self.examined.keys += 1;
        self.examined.entries += 1;
        self.examined.documents += 1;
    }

    /// Advances past a row.
    fn pass(&mut self, seq: i64, key: &[u8]) -> Option<SliceEnd> {
        self.cursor.position.take(seq, key);
        self.is_over().then_some(SliceEnd::Paused)
    }

    fn is_over(&mut self) -> bool {
        self.rows += 1;
        self.rows.is_multiple_of(ROWS_PER_LOOK) && self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// The documents that a slice has examined.
struct Seen {
    /// No earlier slice has examined any.
    from_start: bool,
    numbers: AHashSet<i64>,
}

impl Seen {
    fn new(cursor: &Cursor) -> Seen {
        Seen { from_start: *cursor == Cursor::default(), numbers: AHashSet::new() }
    }

    fn insert(&mut self, seq: i64) -> bool {
        self.numbers.insert(seq)
    }
}

/// Reads a row's number and document.
pub fn stored<'r>(row: &'r Row<'_>, collection: &Collection) -> Attempt<(i64, Doc<'r>)> {
    let seq = row.get(0)?;
    let document = Doc::from_bytes(blob(row.get_ref(1)?)).ok_or_else(|| damaged(collection, seq))?;
    Ok((seq, document))
}

pub fn damaged(collection: &Collection, seq: i64) -> Error {
    let namespace = &collection.namespace;
    Error::internal(format!("document {seq} of {namespace} is damaged: run validate, and restore it from a backup"))
}

/// As [`damaged`], for a document known by its `_id`.
pub fn damaged_id(collection: &Collection, id: Value<'_>) -> Error {
    let mut text = String::new();
    store::duplicate::write_value(id, &mut text);
    let namespace = &collection.namespace;
    Error::internal(format!(
        "the document with _id {text} of {namespace} is damaged: run validate, and restore it from a backup"
    ))
}

pub fn blob(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => bytes,
        _ => &[],
    }
}
