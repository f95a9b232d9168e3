//! The position of a scan.

use crate::plan::IndexScan;
use access::Interval;
use error::{Error, Result};
use store::Position;

/// The position of a plan's scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The current branch of a union whose branches are read in sequence.
    pub branch: u32,
    pub position: ScanPosition,
    /// The position in each branch, if they are merged.
    pub merged: Vec<ScanPosition>,
}

/// The position of one scan: the last row taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanPosition {
    /// The number of the interval or point; 0 in natural order.
    pub part: u32,
    /// The row, unless none has been taken in this part.
    pub row: Option<RowPosition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowPosition {
    pub seq: i64,
    /// The key in the scanned index; empty in natural order.
    pub key: Vec<u8>,
}

impl Cursor {
    /// Decodes a position. Fails with 1 if the bytes are damaged.
    pub fn from_position(position: &Position) -> Result<Cursor> {
        read_cursor(&position.0).ok_or_else(|| Error::internal("a cursor's position is damaged"))
    }

    pub fn to_position(&self) -> Position {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(&self.branch.to_be_bytes());
        self.position.write(&mut bytes);
        self.merged.iter().for_each(|position| position.write(&mut bytes));
        Position(bytes)
    }
}

fn read_cursor(bytes: &[u8]) -> Option<Cursor> {
    let (branch, mut rest) = bytes.split_first_chunk::<4>()?;
    let position = ScanPosition::read(&mut rest)?;
    let mut merged = Vec::new();
    while !rest.is_empty() {
        merged.push(ScanPosition::read(&mut rest)?);
    }
    Some(Cursor { branch: u32::from_be_bytes(*branch), position, merged })
}

impl ScanPosition {
    pub fn take(&mut self, seq: i64, key: &[u8]) {
        let row = self.row.get_or_insert_default();
        row.seq = seq;
        row.key.clear();
        row.key.extend_from_slice(key);
    }

    /// Returns the key and row behind which a statement starts.
    pub fn start(&self, interval: &Interval, forward: bool) -> (Vec<u8>, i64) {
        match (&self.row, forward) {
            (Some(row), _) => (row.key.clone(), row.seq),
            (None, true) => (interval.low.clone(), i64::MIN),
            (None, false) => (interval.high.clone(), i64::MIN),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.part.to_be_bytes());
        // 0: no row; else the length of its key plus one.
        let length = self.row.as_ref().map_or(0, |row| row.key.len() as u32 + 1);
        out.extend_from_slice(&length.to_be_bytes());
        if let Some(row) = &self.row {
            out.extend_from_slice(&row.seq.to_be_bytes());
            out.extend_from_slice(&row.key);
        }
    }

    fn read(bytes: &mut &[u8]) -> Option<ScanPosition> {
        let (part, rest) = bytes.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        *bytes = rest;
        let row = match (u32::from_be_bytes(*length) as usize).checked_sub(1) {
            None => None,
            Some(length) => {
                let (seq, rest) = bytes.split_first_chunk::<8>()?;
                let (key, rest) = rest.split_at_checked(length)?;
                *bytes = rest;
                Some(RowPosition { seq: i64::from_be_bytes(*seq), key: key.to_vec() })
            }
        };
        Some(ScanPosition { part: u32::from_be_bytes(*part), row })
    }
}

impl IndexScan {
    /// Returns the interval with this number, in the scan's direction.
    pub fn interval(&self, part: u32) -> Option<&Interval> {
        let part = part as usize;
        match self.forward {
            true => self.intervals.get(part),
            false => self.intervals.len().checked_sub(part + 1).and_then(|at| self.intervals.get(at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_as_a_position() {
        let position = |part, row: Option<(i64, &[u8])>| ScanPosition {
            part,
            row: row.map(|(seq, key)| RowPosition { seq, key: key.to_vec() }),
        };
        let cursors = [
            Cursor::default(),
            Cursor { branch: 2, position: position(3, Some((-7, b"key"))), merged: Vec::new() },
            Cursor {
                merged: vec![position(1, None), position(0, Some((9, b""))), position(5, Some((1, b"x")))],
                ..Cursor::default()
            },
        ];
        for cursor in cursors {
            let position = cursor.to_position();
            assert_eq!(Cursor::from_position(&position).unwrap(), cursor);
            let cut = Position(position.0[..position.0.len() - 1].to_vec());
            assert!(Cursor::from_position(&cut).is_err());
        }
    }
}
