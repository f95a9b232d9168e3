//! The first rows of a plan, read by the statement that probed whether its order holds.

use mariadb_client::Result;
use mariadb_wire::row::BinaryRow;
use mariadb_wire::{ColumnType, Malformed};
use std::sync::{Mutex, PoisonError};

/// Larger buffers are not reused for the next query.
const REUSED_BYTES_MAX: usize = 2 << 20;

/// The prefetched rows of a plan, which its scan takes.
#[derive(Debug, Default)]
pub(crate) struct Prefetch(Mutex<Option<PrefetchedRows>>);

/// The first rows, in order.
#[derive(Debug, Default)]
pub(crate) struct PrefetchedRows {
    /// The payloads of the rows, concatenated.
    pub payloads: Vec<u8>,
    /// The end of each payload.
    pub ends: Vec<usize>,
    pub types: Vec<ColumnType>,
    /// The scan has no further rows.
    pub is_complete: bool,
}

impl PrefetchedRows {
    pub fn iter(&self) -> impl Iterator<Item = Result<BinaryRow<'_>, Malformed>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let payloads = starts.zip(&self.ends).map(|(start, end)| self.payloads.get(start..*end).unwrap_or_default());
        payloads.map(|payload| BinaryRow::new(payload, &self.types))
    }

    /// Returns the buffer, for reuse.
    pub fn into_buffer(mut self) -> Vec<u8> {
        self.payloads.clear();
        if self.payloads.capacity() > REUSED_BYTES_MAX { Vec::new() } else { self.payloads }
    }
}

impl Prefetch {
    /// Takes the rows.
    pub fn take(&self) -> Option<PrefetchedRows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Stores the rows.
    pub fn store(&self, rows: PrefetchedRows) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows);
    }
}
