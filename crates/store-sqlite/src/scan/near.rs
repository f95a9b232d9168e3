//! Documents by their distance: ring after ring around a point, each as wide as gives some documents.
//!
//! Of a ring only distances and numbers of documents are held. The position reached is the distance of the last document taken, its
//! number, and how wide the ring was.

use super::cursor::RowPosition;
use super::{Slice, SliceEnd, blob, stored};
use crate::failure::Attempt;
use crate::plan::NearScan;
use crate::planner;
use ahash::AHashSet;
use index_keys::Interval;
use query::geo::{EARTH_RADIUS_METERS, Metric};
use std::f64::consts::PI;
use std::time::Instant;
use store::{Flow, IndexKind};

/// The first ring is this part of the whole.
const FIRST_PART: f64 = 1e-6;

/// Rings with fewer documents are followed by wider ones, rings with more by narrower ones.
const DOCUMENTS: std::ops::Range<usize> = 100..1000;

/// Where in the order of distances a scan stands.
#[derive(Clone, Copy)]
struct Reached {
    distance: f64,
    width: f64,
    /// The last document taken at that distance.
    seq: i64,
}

impl Reached {
    fn read(row: &RowPosition) -> Reached {
        let number = |at: usize| {
            let bytes = row.key.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            f64::from_be_bytes(bytes.unwrap_or_default())
        };
        Reached { distance: number(0), width: number(8), seq: row.seq }
    }

    fn key(self) -> Vec<u8> {
        [self.distance.to_be_bytes(), self.width.to_be_bytes()].concat()
    }
}

impl Slice<'_, '_> {
    pub(super) fn near(&mut self, scan: &NearScan) -> Attempt<SliceEnd> {
        let farthest = farthest(scan);
        let last = farthest.min(scan.near.max);
        let start = Reached { distance: scan.near.min, width: farthest * FIRST_PART, seq: i64::MIN };
        let mut reached = self.cursor.place.row.as_ref().map_or(start, Reached::read);
        while reached.distance <= last && reached.width > 0.0 {
            // However narrow, a ring goes on from where it begins.
            let outer = (reached.distance + reached.width).max(reached.distance.next_up());
            let found = self.ring(scan, reached, outer)?;
            let count = found.len();
            for (number, (distance, seq)) in found.into_iter().enumerate() {
                let taken = Reached { distance, seq, ..reached };
                match self.give_by_number(seq)? {
                    Flow::Continue => self.cursor.place.take(seq, &taken.key()),
                    Flow::StopAfter => {
                        self.cursor.place.take(seq, &taken.key());
                        return Ok(SliceEnd::Stopped);
                    }
                    Flow::StopBefore => return Ok(SliceEnd::Stopped),
                }
                // Going on within a ring means to look for it again.
                if number % DOCUMENTS.end == DOCUMENTS.end - 1 && self.is_late() {
                    return Ok(SliceEnd::Paused);
                }
            }
            let width = match count {
                count if count < DOCUMENTS.start => reached.width * 4.0,
                count if count > DOCUMENTS.end => reached.width / 2.0,
                _ => reached.width,
            };
            reached = Reached { distance: outer, width, seq: i64::MIN };
            self.cursor.place.take(reached.seq, &reached.key());
            if self.is_late() {
                return Ok(SliceEnd::Paused);
            }
        }
        Ok(SliceEnd::Exhausted)
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The documents behind a position and nearer than `outer`, the nearest first.
    fn ring(&mut self, scan: &NearScan, from: Reached, outer: f64) -> Attempt<Vec<(f64, i64)>> {
        let mut found = Vec::new();
        let mut seen = AHashSet::new();
        for Interval { low, high } in planner::ring(&scan.index, &scan.near, from.distance, outer) {
            let mut statement = self.connection.prepare_cached(&scan.index.sql.forward)?;
            let mut rows = statement.query((&low, i64::MIN, &high))?;
            self.examined.seeks += 1;
            while let Some(row) = rows.next()? {
                self.note_fetched();
                let (seq, document) = stored(row, self.collection)?;
                let Some(nearest) = scan.near.nearest(document) else { continue };
                let distance = nearest.distance;
                let behind = distance > from.distance || distance == from.distance && seq > from.seq;
                if behind && distance < outer && seen.insert(seq) {
                    found.push((distance, seq));
                }
            }
        }
        found.sort_unstable_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
        Ok(found)
    }

    fn give_by_number(&mut self, seq: i64) -> Attempt<Flow> {
        let mut statement = self.connection.prepare_cached(&self.collection.sql.by_seq)?;
        let mut rows = statement.query([seq])?;
        let Some(row) = rows.next()? else { return Ok(Flow::Continue) };
        let document = document::Doc::from_bytes(blob(row.get_ref(0)?));
        let document = document.ok_or_else(|| super::damaged(self.collection, seq))?;
        self.examined.documents += 1;
        Ok(self.visit.visit(seq, document)?)
    }
}

/// The greatest distance there is, and a little more.
fn farthest(scan: &NearScan) -> f64 {
    match (scan.near.metric, &scan.index.kind) {
        (Metric::Flat, IndexKind::Plane(options)) => {
            let center = scan.near.center;
            let reach = |at: f64| (at - options.min).abs().max((options.max - at).abs());
            reach(center.x).hypot(reach(center.y)) * 1.001
        }
        _ => PI * EARTH_RADIUS_METERS * 1.001,
    }
}
