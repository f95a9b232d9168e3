//! Reads documents by distance: ring by ring around a point, each wide enough for some documents.
//!
//! As many documents of a ring are held as fit. Of the others only distances and row keys are held,
//! by which they are read again. The position is the distance of the last document, its row key,
//! and the width of the ring.

use crate::catalog::table::Table;
use crate::encoding;
use crate::plan::MariaDbPlan;
use crate::plan::access::{DistanceSearch, RowSource};
use crate::plan::side_index_scan::key_condition;
use crate::read::pages;
use crate::read::row_sink::{RowSink, row_number};
use crate::store::MariaDbStore;
use access::geo_bounds;
use document::Doc;
use mariadb_client::Result;
use mariadb_wire::Param;
use mariadb_wire::row::BinaryRow;
use std::sync::Arc;
use store::near::{RING_DOCUMENTS, Ring};
use store::{Flow, Namespace, Position, ScanEnd};

/// The most bytes of documents held of a ring.
const HELD_BYTES_MAX: usize = 8 << 20;

/// The position of a scan by distance.
#[derive(Clone, Copy)]
struct Reached {
    ring: Ring,
    /// The row key of the last document at the distance where the ring begins.
    seq: Option<u64>,
}

impl Reached {
    fn read(position: &[u8]) -> Option<Reached> {
        let (inner, rest) = position.split_first_chunk()?;
        let (width, rest) = rest.split_first_chunk()?;
        let ring = Ring { inner: f64::from_le_bytes(*inner), width: f64::from_le_bytes(*width) };
        Some(Reached { ring, seq: rest.first_chunk().map(|seq| u64::from_le_bytes(*seq)) })
    }

    fn position(&self) -> Position {
        let mut bytes = [self.ring.inner.to_le_bytes(), self.ring.width.to_le_bytes()].concat();
        bytes.extend(self.seq.iter().flat_map(|seq| seq.to_le_bytes()));
        Position(bytes)
    }

    /// Returns the position after a document of this ring.
    fn after(&self, near: &Held) -> Reached {
        Reached { ring: Ring { inner: near.distance, ..self.ring }, seq: Some(near.seq) }
    }

    fn has_taken(&self, distance: f64, seq: u64) -> bool {
        distance < self.ring.inner || distance == self.ring.inner && self.seq.is_some_and(|taken| seq <= taken)
    }
}

/// A document of a ring.
struct Held {
    distance: f64,
    seq: u64,
    key: Vec<u8>,
    json: Option<Box<[u8]>>,
}

/// Delivers the rows of a search by distance, the nearest first.
pub(crate) async fn scan(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    (table, rows, rings): (&Arc<Table>, &RowSource, &DistanceSearch),
    after: Option<&[u8]>,
    take: &mut RowSink<'_>,
) -> Result<ScanEnd> {
    let start = Reached { ring: Ring::first(&rings.near, &rings.shape.kind), seq: None };
    let mut reached = after.and_then(Reached::read).unwrap_or(start);
    while reached.ring.is_wanted(&rings.near, &rings.shape.kind) {
        let ring = reached.ring;
        let found = read_ring(store, plan, (table, rows, rings), reached).await?;
        for held in &found {
            let again = match held.json {
                Some(_) => None,
                None => read_again(store, &plan.namespace, table, held.seq).await?,
            };
            // It may have been deleted since.
            let flow = match held.json.as_deref().or(again.as_deref()) {
                Some(json) => take(&held.key, json)?,
                None => Flow::Continue,
            };
            match flow {
                Flow::Continue => reached = reached.after(held),
                Flow::StopAfter => return Ok(ScanEnd::Stopped(reached.after(held).position())),
                Flow::StopBefore => return Ok(ScanEnd::Stopped(reached.position())),
            }
        }
        reached = Reached { ring: ring.next(&rings.near, found.len()), seq: None };
    }
    Ok(ScanEnd::Exhausted)
}

/// Reads the documents of a ring after the position, the nearest first.
async fn read_ring(
    store: &MariaDbStore,
    plan: &MariaDbPlan,
    (table, rows, rings): (&Arc<Table>, &RowSource, &DistanceSearch),
    reached: Reached,
) -> Result<Vec<Held>> {
    let (inner, outer) = (reached.ring.inner, reached.ring.outer(&rings.near));
    let condition = key_condition(&geo_bounds::ring(&rings.shape, &rings.near, &rings.prefix, inner, outer), u64::MAX);
    let in_ring = RowSource { condition: Some(condition.into()), ..rows.clone() };
    let (mut found, mut bytes, mut bson) = (Vec::new(), 0, Vec::new());
    let mut hold = |key: &[u8], json: &[u8]| {
        bson.clear();
        encoding::decode(json, &mut bson)?;
        let Some(nearest) = Doc::from_bytes(&bson).and_then(|document| rings.near.nearest(document)) else {
            return Ok(Flow::Continue);
        };
        let (distance, seq) = (nearest.distance, row_number(key) as u64);
        if distance < outer && !reached.has_taken(distance, seq) {
            let fits = bytes + json.len() <= HELD_BYTES_MAX;
            bytes += if fits { json.len() } else { 0 };
            let json = fits.then(|| Box::from(json));
            found.push(Held { distance, seq, key: key.to_vec(), json });
        }
        Ok(Flow::Continue)
    };
    pages::scan_rows(store, plan, table, &in_ring, None, RING_DOCUMENTS.end, &mut hold).await?;
    rows.tally.add(in_ring.tally.get());
    found.sort_unstable_by(|left, right| left.distance.total_cmp(&right.distance).then(left.seq.cmp(&right.seq)));
    Ok(found)
}

/// Reads a document that did not fit.
async fn read_again(store: &MariaDbStore, namespace: &Namespace, table: &Table, seq: u64) -> Result<Option<Vec<u8>>> {
    let (sql, params) = (&table.statements.by_key, [Param::Unsigned(seq)]);
    let Some((payload, types)) = store.look_up_document_waiting(namespace, sql, &params).await? else {
        return Ok(None);
    };
    let mut row = BinaryRow::new(&payload, &types)?;
    row.next_bytes()?;
    Ok(row.next_bytes()?.map(<[u8]>::to_vec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_round_trip() {
        let start = Reached { ring: Ring { inner: 0.5, width: 20.0 }, seq: None };
        let held = Held { distance: 7.25, seq: 9, key: Vec::new(), json: None };
        let behind = start.after(&held);
        for reached in [start, behind] {
            let read = Reached::read(&reached.position().0).unwrap();
            assert_eq!(
                (read.ring.inner, read.ring.width, read.seq),
                (reached.ring.inner, reached.ring.width, reached.seq)
            );
        }
        assert!(behind.has_taken(7.25, 9) && behind.has_taken(7.0, 10));
        assert!(!behind.has_taken(7.25, 10) && !start.has_taken(0.5, 0));
        assert!(Reached::read(&[]).is_none());
    }
}
