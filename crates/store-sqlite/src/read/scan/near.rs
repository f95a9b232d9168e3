//! Documents by distance: ring after ring around a point, each wide enough to hold some documents.
//!
//! Of a ring, only distances and numbers of documents are held. The position is the distance of the
//! last document taken, its number, and the width of the ring.

use super::cursor::RowPosition;
use super::key_walk::with_document;
use super::{Slice, SliceEnd, blob};
use crate::failure::Attempt;
use crate::plan::NearScan;
use access::{Interval, geo_bounds};
use ahash::{AHashMap, AHashSet};
use document::Doc;
use std::time::Instant;
use store::Flow;
use store::near::{RING_DOCUMENTS, Ring};

/// A scan's position in the order of distances.
#[derive(Clone, Copy)]
struct RingPosition {
    distance: f64,
    width: f64,
    /// The last document taken at that distance.
    seq: i64,
}

impl RingPosition {
    fn read(row: &RowPosition) -> RingPosition {
        let number = |at: usize| {
            let bytes = row.key.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            f64::from_be_bytes(bytes.unwrap_or_default())
        };
        RingPosition { distance: number(0), width: number(8), seq: row.seq }
    }

    fn ring(self) -> Ring {
        Ring { inner: self.distance, width: self.width }
    }

    fn key(self) -> Vec<u8> {
        [self.distance.to_be_bytes(), self.width.to_be_bytes()].concat()
    }
}

/// Distances of documents that a slice has examined: cells of one ring have documents of the next,
/// and large shapes have many cells. `None`: outside of the requested distances.
#[derive(Default)]
struct Distances(AHashMap<i64, Option<f64>>);

impl Distances {
    /// Past this, entries are dropped and computed again.
    const MAX: usize = 100_000;

    fn note(&mut self, seq: i64, distance: Option<f64>) {
        if self.0.len() >= Distances::MAX {
            self.0.clear();
        }
        self.0.insert(seq, distance);
    }
}

impl Slice<'_, '_> {
    pub(super) fn near(&mut self, scan: &NearScan) -> Attempt<SliceEnd> {
        let kind = &scan.index.kind;
        let Ring { inner, width } = Ring::first(&scan.near, kind);
        let start = RingPosition { distance: inner, width, seq: i64::MIN };
        let mut reached = self.cursor.position.row.as_ref().map_or(start, RingPosition::read);
        let mut known = Distances::default();
        while reached.ring().is_wanted(&scan.near, kind) {
            let ring = reached.ring();
            let found = self.ring(scan, reached, ring.outer(&scan.near), &mut known)?;
            let count = found.len();
            for (number, (distance, seq)) in found.into_iter().enumerate() {
                let taken = RingPosition { distance, seq, ..reached };
                match self.give_row(seq)? {
                    Flow::Continue => self.cursor.position.take(seq, &taken.key()),
                    Flow::StopAfter => {
                        self.cursor.position.take(seq, &taken.key());
                        return Ok(SliceEnd::Stopped);
                    }
                    Flow::StopBefore => return Ok(SliceEnd::Stopped),
                }
                // Continuing within a ring means searching it again.
                if number % RING_DOCUMENTS.end == RING_DOCUMENTS.end - 1 && self.is_past_deadline() {
                    return Ok(SliceEnd::Paused);
                }
            }
            let Ring { inner, width } = ring.next(&scan.near, count);
            reached = RingPosition { distance: inner, width, seq: i64::MIN };
            self.cursor.position.take(reached.seq, &reached.key());
            if self.is_past_deadline() {
                return Ok(SliceEnd::Paused);
            }
        }
        Ok(SliceEnd::Exhausted)
    }

    fn is_past_deadline(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns the documents behind a position and nearer than `outer`, the nearest first.
    fn ring(
        &mut self,
        scan: &NearScan,
        from: RingPosition,
        outer: f64,
        known: &mut Distances,
    ) -> Attempt<Vec<(f64, i64)>> {
        let mut found = Vec::new();
        let mut seen = AHashSet::new();
        let mut by_seq = self.connection.prepare_cached(&self.collection.sql.by_seq)?;
        for Interval { low, high } in geo_bounds::ring(&scan.index, &scan.near, &scan.front, from.distance, outer) {
            let mut statement = self.connection.prepare_cached(&scan.index.sql.keys_forward)?;
            let mut rows = statement.query((&low, i64::MIN, &high))?;
            self.examined.seeks += 1;
            while let Some(row) = rows.next()? {
                self.examined.keys += 1;
                let (seq, key) = (row.get(0)?, blob(row.get_ref(1)?));
                if scan.filter.as_ref().is_some_and(|filter| !filter.accepts(key)) || !seen.insert(seq) {
                    continue;
                }
                self.examined.entries += 1;
                let distance = match known.0.get(&seq) {
                    Some(distance) => *distance,
                    None => {
                        self.examined.documents += 1;
                        let nearest =
                            |document: Doc<'_>| Ok(scan.near.nearest(document).map(|nearest| nearest.distance));
                        let distance = with_document(&mut by_seq, self.collection, seq, nearest)?.flatten();
                        known.note(seq, distance);
                        distance
                    }
                };
                let Some(distance) = distance else { continue };
                let behind = distance > from.distance || distance == from.distance && seq > from.seq;
                if behind && distance < outer {
                    found.push((distance, seq));
                }
            }
        }
        found.sort_unstable_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
        Ok(found)
    }

    fn give_row(&mut self, seq: i64) -> Attempt<Flow> {
        let mut statement = self.connection.prepare_cached(&self.collection.sql.by_seq)?;
        let mut rows = statement.query([seq])?;
        let Some(row) = rows.next()? else { return Ok(Flow::Continue) };
        let document = document::Doc::from_bytes(blob(row.get_ref(0)?));
        let document = document.ok_or_else(|| super::damaged(self.collection, seq))?;
        self.examined.documents += 1;
        Ok(self.visit.visit(seq, document)?)
    }
}
