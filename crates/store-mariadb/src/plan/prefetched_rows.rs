//! The first rows of a plan, where they were read with the question whether its order holds.

use mariadb_client::Result;
use mariadb_wire::row::BinaryRow;
use mariadb_wire::{ColumnType, Malformed};
use std::sync::{Mutex, PoisonError};

/// More memory than this is not kept for the next query.
const SPARE_BYTES_MAX: usize = 2 << 20;

/// Kept with the plan until it is carried out; once.
#[derive(Debug, Default)]
pub(crate) struct Ahead(Mutex<Option<Rows>>);

/// The first rows, in order.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The rows as they came, one behind the other.
    pub payloads: Vec<u8>,
    /// Where each of them ends.
    pub ends: Vec<usize>,
    pub types: Vec<ColumnType>,
    /// There are no others.
    pub all: bool,
}

impl Rows {
    pub fn iter(&self) -> impl Iterator<Item = Result<BinaryRow<'_>, Malformed>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let payloads = starts.zip(&self.ends).map(|(start, end)| self.payloads.get(start..*end).unwrap_or_default());
        payloads.map(|payload| BinaryRow::new(payload, &self.types))
    }

    /// The memory, to be used again.
    pub fn into_spare(mut self) -> Vec<u8> {
        self.payloads.clear();
        if self.payloads.capacity() > SPARE_BYTES_MAX { Vec::new() } else { self.payloads }
    }
}

impl Ahead {
    pub fn take(&self) -> Option<Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn keep(&self, rows: Rows) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows);
    }
}
