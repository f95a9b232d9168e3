//! Merging several index scans that each give the order of a sort.
//!
//! Only the next key of each scan is read, not its document: so a limit of ten documents costs ten
//! documents, however many scans there are.

use super::cursor::ScanPosition;
use super::key_walk::{next_key, with_document};
use super::{Slice, SliceEnd};
use crate::catalog::Collection;
use crate::failure::Attempt;
use crate::plan::{IndexScan, SortField, Union};
use document::Doc;
use error::Result;
use index_keys::IndexField;
use index_keys::keys::Key;
use store::Flow;

/// The next key of a scan.
struct Head {
    /// The key's parts that the sort uses.
    order: Vec<u8>,
    position: ScanPosition,
}

impl Slice<'_, '_> {
    pub(super) fn merge(&mut self, union: &Union, orders: &[Vec<SortField>]) -> Attempt<SliceEnd> {
        self.cursor.merged.resize(union.branches.len(), ScanPosition::default());
        let mut heads = Vec::with_capacity(union.branches.len());
        for (at, (scan, order)) in union.branches.iter().zip(orders).enumerate() {
            heads.push(self.head(scan, order, self.cursor.merged[at].clone())?);
        }
        let mut by_seq = self.connection.prepare_cached(&self.collection.sql.by_seq)?;
        let collection = self.collection;
        loop {
            let ahead = heads.iter().enumerate().filter_map(|(at, head)| Some((at, head.as_ref()?)));
            let least = ahead.min_by(|(_, one), (_, other)| one.order.cmp(&other.order));
            let Some((at, head)) = least else { return Ok(SliceEnd::Exhausted) };
            let Some(row) = &head.position.row else { return Ok(SliceEnd::Exhausted) };
            let flow = with_document(&mut by_seq, collection, row.seq, |document| {
                self.examined.documents += 1;
                match is_first_occurrence(document, at, &row.key, union, orders, collection)? {
                    true => Ok(self.visit.visit(row.seq, document)?),
                    false => Ok(Flow::Continue),
                }
            })?;
            if flow == Some(Flow::StopBefore) {
                return Ok(SliceEnd::Stopped);
            }
            self.cursor.merged[at] = head.position.clone();
            if flow == Some(Flow::StopAfter) {
                return Ok(SliceEnd::Stopped);
            }
            if self.is_over() {
                return Ok(SliceEnd::Paused);
            }
            heads[at] = self.head(&union.branches[at], &orders[at], self.cursor.merged[at].clone())?;
        }
    }

    fn head(&self, scan: &IndexScan, order: &[SortField], position: ScanPosition) -> Attempt<Option<Head>> {
        let found = next_key(self.connection, self.collection, scan, position)?;
        Ok(found.map(|position| {
            let key = position.row.as_ref().map_or(&[][..], |row| &row.key);
            Head { order: sort_key(key, scan.fields(self.collection), order), position }
        }))
    }
}

/// Returns whether a document must be given at this key: it may have several, in one scan or in
/// more.
fn is_first_occurrence(
    document: Doc<'_>,
    at: usize,
    key: &[u8],
    union: &Union,
    orders: &[Vec<SortField>],
    collection: &Collection,
) -> Result<bool> {
    if union.exploded && !union.branches[at].is_multikey() {
        return Ok(true);
    }
    let mut first: Option<(Vec<u8>, usize, Key)> = None;
    for (branch, (scan, order)) in union.branches.iter().zip(orders).enumerate() {
        let mut keys = scan.matching_keys(document, collection)?;
        if !scan.forward {
            keys.reverse();
        }
        for key in keys {
            let order = sort_key(&key, scan.fields(collection), order);
            if first.as_ref().is_none_or(|(least, ..)| order < *least) {
                first = Some((order, branch, key));
            }
        }
    }
    Ok(first.is_none_or(|(_, branch, first)| branch == at && first.as_slice() == key))
}

/// Returns the parts of a key that a sort uses, in the sort's direction.
fn sort_key(key: &[u8], fields: &[IndexField], order: &[SortField]) -> Vec<u8> {
    let mut sorted = Vec::with_capacity(key.len());
    let mut rest = key;
    let mut parts = order.iter().peekable();
    for (at, field) in fields.iter().enumerate() {
        let Some(part) = parts.peek() else { break };
        let Some((value, behind)) = document::key::split(rest, !field.ascending) else { break };
        if part.at == at {
            let flip = if part.inverted { 0xFF } else { 0 };
            sorted.extend(value.iter().map(|byte| byte ^ flip));
            parts.next();
        }
        rest = behind;
    }
    sorted
}
