//! Running a plan, slice by slice.
//!
//! A slice is one statement, begun behind a position and reset before this returns: between slices nothing is held. The
//! writer runs the same code inside its transaction, in a single slice.

use crate::catalog::Collection;
use crate::failure::{Attempt, Failure};
use crate::keys;
use crate::plan::{Access, IndexScan, Interval, SqlitePlan};
use document::{Doc, Value};
use error::{Code, Error, Result};
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Row, ToSql};
use std::time::Instant;
use store::{Flow, Position};

/// Rows between two looks at the clock.
const ROWS_PER_LOOK: usize = 16;

/// How a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceEnd {
    /// Nothing is left.
    Exhausted,
    /// The visitor stopped it.
    Stopped,
    /// The time was up; the next slice goes on behind the cursor.
    Paused,
}

/// Where a scan has got to: the last row taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Which interval or point; in natural order, 0.
    pub part: u32,
    /// The row, unless none has been taken in this part.
    pub row: Option<RowPosition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowPosition {
    pub seq: i64,
    /// The key in the index that is being scanned; empty in natural order.
    pub key: Vec<u8>,
}

impl Cursor {
    /// Reads a position back; error 1 when the bytes are none.
    pub fn from_position(position: &Position) -> Result<Cursor> {
        let bytes = position.0.as_slice();
        let damaged = || Error::internal("a cursor's position is damaged");
        let (part, rest) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
        let row = rest.split_first_chunk::<8>();
        let row = row.map(|(seq, key)| RowPosition { seq: i64::from_be_bytes(*seq), key: key.to_vec() });
        Ok(Cursor { part: u32::from_be_bytes(*part), row })
    }

    pub fn to_position(&self) -> Position {
        let mut bytes = Vec::with_capacity(12 + self.row.as_ref().map_or(0, |row| row.key.len()));
        bytes.extend_from_slice(&self.part.to_be_bytes());
        if let Some(row) = &self.row {
            bytes.extend_from_slice(&row.seq.to_be_bytes());
            bytes.extend_from_slice(&row.key);
        }
        Position(bytes)
    }

    fn take(&mut self, seq: i64, key: &[u8]) {
        let row = self.row.get_or_insert_default();
        row.seq = seq;
        row.key.clear();
        row.key.extend_from_slice(key);
    }
}

/// Called for each document, with its number in natural order.
pub type Visit<'v> = dyn FnMut(i64, Doc<'_>) -> Result<Flow> + 'v;

/// Gives documents to `visit` from behind `cursor` until it stops, nothing is left, or `deadline` has passed.
pub fn slice(
    connection: &Connection,
    plan: &SqlitePlan,
    cursor: &mut Cursor,
    deadline: Option<Instant>,
    visit: &mut Visit<'_>,
) -> Attempt<SliceEnd> {
    let Some(collection) = &plan.collection else { return Ok(SliceEnd::Exhausted) };
    if collection.is_dropped() {
        return Err(dropped(collection).into());
    }
    let tailable = plan.tailable;
    let mut slice = Slice { connection, collection, tailable, cursor, deadline, rows: 0, visit };
    let end = match &plan.access {
        Access::Natural { forward } => slice.natural(*forward),
        Access::Points(points) => slice.points(points),
        Access::Index(scan) => slice.intervals(scan),
    };
    match end {
        Err(Failure::Engine(error)) if crate::failure::is_gone(&error) => Err(match &plan.access {
            Access::Index(IndexScan { index: Some(index), .. }) if !collection.is_dropped() => {
                Error::new(Code::QUERY_PLAN_KILLED, format!("index '{}' dropped", index.spec.name)).into()
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
    visit: &'s mut Visit<'v>,
}

impl Slice<'_, '_> {
    fn natural(&mut self, forward: bool) -> Attempt<SliceEnd> {
        let sql = &self.collection.sql;
        let (sql, start) = if forward { (&sql.forward, i64::MIN) } else { (&sql.backward, i64::MAX) };
        let from = self.cursor.row.as_ref().map_or(start, |row| row.seq);
        if self.cursor.row.is_some() && self.collection.cap().is_some() {
            self.check_position(from)?;
        }
        let statement = self.connection.prepare_cached(sql)?;
        self.rows(statement, &[&from], &mut |_, _| Ok(true))
    }

    /// A capped collection is read without gaps or not at all.
    fn check_position(&self, seq: i64) -> Attempt<()> {
        match self.connection.prepare_cached(&self.collection.sql.by_seq)?.exists([seq])? {
            true => Ok(()),
            false => Err(store::rules::position_lost(self.tailable, seq).into()),
        }
    }

    fn points(&mut self, points: &[keys::Key]) -> Attempt<SliceEnd> {
        let mut statement = self.connection.prepare_cached(&self.collection.sql.by_id)?;
        while let Some(point) = points.get(self.cursor.part as usize) {
            let mut rows = statement.query([point.as_slice()])?;
            if let Some(row) = rows.next()? {
                let (seq, document) = stored(row, self.collection)?;
                match (self.visit)(seq, document)? {
                    Flow::Continue => {}
                    Flow::StopAfter => {
                        self.cursor.part += 1;
                        return Ok(SliceEnd::Stopped);
                    }
                    Flow::StopBefore => return Ok(SliceEnd::Stopped),
                }
            }
            self.cursor.part += 1;
            if self.is_over() {
                return Ok(SliceEnd::Paused);
            }
        }
        Ok(SliceEnd::Exhausted)
    }

    fn intervals(&mut self, scan: &IndexScan) -> Attempt<SliceEnd> {
        loop {
            let at = self.cursor.part as usize;
            let interval = match scan.forward {
                true => scan.intervals.get(at),
                false => scan.intervals.len().checked_sub(at + 1).and_then(|at| scan.intervals.get(at)),
            };
            let Some(interval) = interval else { return Ok(SliceEnd::Exhausted) };
            let end = match &scan.index {
                None => self.id_interval(interval, scan.forward)?,
                Some(index) => self.index_interval(interval, scan, index)?,
            };
            if end != SliceEnd::Exhausted {
                return Ok(end);
            }
            *self.cursor = Cursor { part: self.cursor.part + 1, row: None };
        }
    }

    fn id_interval(&mut self, interval: &Interval, forward: bool) -> Attempt<SliceEnd> {
        let (mut low, mut high) = (interval.low.clone(), interval.high.clone());
        if let Some(row) = &self.cursor.row {
            if forward {
                // The least byte string behind the key.
                low.clone_from(&row.key);
                low.push(0);
            } else {
                high.clone_from(&row.key);
            }
        }
        let sql = &self.collection.sql;
        let sql = if forward { &sql.id_forward } else { &sql.id_backward };
        let statement = self.connection.prepare_cached(sql)?;
        self.rows(statement, &[&low, &high], &mut |_, _| Ok(true))
    }

    fn index_interval(
        &mut self,
        interval: &Interval,
        scan: &IndexScan,
        index: &crate::catalog::Index,
    ) -> Attempt<SliceEnd> {
        let (key, seq) = match (&self.cursor.row, scan.forward) {
            (Some(row), _) => (row.key.clone(), row.seq),
            (None, true) => (interval.low.clone(), i64::MIN),
            (None, false) => (interval.high.clone(), i64::MIN),
        };
        let (sql, end) =
            if scan.forward { (&index.sql.forward, &interval.high) } else { (&index.sql.backward, &interval.low) };
        let statement = self.connection.prepare_cached(sql)?;
        // A document with several keys in these intervals is given at the first of them alone. This needs no memory of what
        // was given, and so holds across slices and batches.
        self.rows(statement, &[&key, &seq, end], &mut |document, key| {
            if !index.is_multikey() {
                return Ok(true);
            }
            let keys = keys::index_keys(document, index)?;
            let inside = |key: &&keys::Key| {
                let key = key.as_slice();
                scan.intervals.iter().any(|interval| *interval.low <= *key && *key < *interval.high)
            };
            let first = if scan.forward { keys.iter().find(inside) } else { keys.iter().rev().find(inside) };
            Ok(first.is_none_or(|first| first.as_slice() == key))
        })
    }

    fn rows(
        &mut self,
        mut statement: CachedStatement<'_>,
        parameters: &[&dyn ToSql],
        wanted: &mut dyn FnMut(Doc<'_>, &[u8]) -> Result<bool>,
    ) -> Attempt<SliceEnd> {
        let keyed = statement.column_count() > 2;
        let mut rows = statement.query(parameters)?;
        while let Some(row) = rows.next()? {
            let (seq, document) = stored(row, self.collection)?;
            let key = if keyed { blob(row.get_ref(2)?) } else { &[] };
            if wanted(document, key)? {
                match (self.visit)(seq, document)? {
                    Flow::Continue => {}
                    Flow::StopAfter => {
                        self.cursor.take(seq, key);
                        return Ok(SliceEnd::Stopped);
                    }
                    Flow::StopBefore => return Ok(SliceEnd::Stopped),
                }
            }
            self.cursor.take(seq, key);
            if self.is_over() {
                return Ok(SliceEnd::Paused);
            }
        }
        Ok(SliceEnd::Exhausted)
    }

    fn is_over(&mut self) -> bool {
        self.rows += 1;
        self.rows.is_multiple_of(ROWS_PER_LOOK) && self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// A row's number and document.
pub fn stored<'r>(row: &'r Row<'_>, collection: &Collection) -> Attempt<(i64, Doc<'r>)> {
    let seq = row.get(0)?;
    let document = Doc::from_bytes(blob(row.get_ref(1)?)).ok_or_else(|| damaged(collection, seq))?;
    Ok((seq, document))
}

pub fn damaged(collection: &Collection, seq: i64) -> Error {
    let namespace = &collection.namespace;
    Error::internal(format!("document {seq} of {namespace} is damaged: run validate, and restore it from a backup"))
}

/// As [`damaged`], of a document known by its `_id`.
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
