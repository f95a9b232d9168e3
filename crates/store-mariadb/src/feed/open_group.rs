//! The group of events that is being read: what one commit has written.
//!
//! All entries of a group have one position, and are numbered. The position is that of the group's
//! last row or statement, so it is known at the end only. A group with very many bytes has several
//! parts, each with a position of its own. The end of a part depends on its rows alone.

use super::row_values::wall_ms;
use super::transaction_rows::GroupTransaction;
use ::store::change_feed::INCREMENT_MAX;
use ::store::{FeedEntry, FeedPosition, LoggedChange};
use document::DocBuf;
use mariadb_binlog::Gtid;

/// The most bytes of rows in a part.
const PART_BYTES_MAX: usize = 8 << 20;

#[derive(Default)]
pub(super) struct OpenGroup {
    pub gtid: Option<Gtid>,
    pub xa: Option<Vec<u8>>,
    /// The position before it.
    pub start: Option<FeedPosition>,
    /// The client's transaction that it is. The record of it is behind its changes.
    pub transaction: Option<GroupTransaction>,
    /// A reader has looked for the record already.
    pub is_transaction_known: bool,
    /// The latest time of its events.
    time: u32,
    /// The rows and statements since the last part.
    count: u32,
    /// The bytes of rows since the last part.
    row_bytes: usize,
    /// Entries that are not placed yet.
    entries: Vec<FeedEntry>,
    /// For each part that has ended, the number of `entries` up to its end, and its position.
    parts: Vec<(usize, FeedPosition)>,
    /// The bytes of `entries`.
    pub bytes: usize,
    /// Entries of it were dropped.
    pub exceeds: bool,
}

impl OpenGroup {
    pub fn begin(gtid: Gtid, xa: Option<Vec<u8>>, start: FeedPosition) -> OpenGroup {
        OpenGroup { gtid: Some(gtid), xa, start: Some(start), ..OpenGroup::default() }
    }

    /// Counts a row or a statement.
    pub fn count(&mut self, time: u32, positions: u32, row_bytes: usize) {
        self.time = self.time.max(time);
        self.count = self.count.saturating_add(positions);
        self.row_bytes = self.row_bytes.saturating_add(row_bytes);
    }

    /// Adds the entry of a change. `behind`: the position of the last part or group.
    pub fn add(&mut self, behind: FeedPosition, change: &LoggedChange<'_>, before: Option<DocBuf>) {
        if self.exceeds {
            return;
        }
        // It is the right one for the last entry of a part, and for most groups it is the only one.
        let position = advanced(behind, self.time, self.count);
        let entry = FeedEntry { position, operation: 0, document: change.encode(position), before };
        self.bytes += entry.bytes();
        self.entries.push(entry);
    }

    /// Returns whether the part is full. Then it must be ended.
    pub fn is_full(&self) -> bool {
        self.row_bytes > PART_BYTES_MAX
    }

    /// Ends a part, or the group. Returns its position.
    pub fn end_part(&mut self, behind: FeedPosition) -> FeedPosition {
        let position = advanced(behind, self.time, self.count);
        self.parts.push((self.entries.len(), position));
        (self.count, self.row_bytes) = (0, 0);
        position
    }

    /// Returns whether a part has ended.
    pub fn has_part(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Drops the entries: there are too many.
    pub fn exceed(&mut self) {
        (self.entries, self.parts, self.exceeds) = (Vec::new(), Vec::new(), true);
        self.bytes = 0;
    }

    /// Takes the entries of the parts that have ended.
    pub fn take_parts(&mut self) -> Vec<FeedEntry> {
        let end = self.parts.last().map_or(0, |(end, _)| *end);
        let behind = self.entries.split_off(end);
        let mut entries = std::mem::replace(&mut self.entries, behind);
        let mut begin = 0;
        for (end, position) in std::mem::take(&mut self.parts) {
            let part = entries.get_mut(begin..end).unwrap_or_default();
            place(part, position, self.time, self.transaction.as_ref());
            begin = end;
        }
        self.bytes = self.entries.iter().map(FeedEntry::bytes).sum();
        entries
    }
}

/// Returns the position this many rows or statements behind another.
pub(super) fn advanced(behind: FeedPosition, time: u32, count: u32) -> FeedPosition {
    let Some(further) = count.checked_sub(1) else { return behind };
    let first = behind.next(time);
    match first.increment.checked_add(further).filter(|increment| *increment <= INCREMENT_MAX) {
        Some(increment) => FeedPosition { increment, ..first },
        None => FeedPosition { time: first.time.saturating_add(1), increment: 1 },
    }
}

/// Gives entries their position and their numbers.
pub(super) fn place(
    entries: &mut [FeedEntry],
    position: FeedPosition,
    time: u32,
    transaction: Option<&GroupTransaction>,
) {
    for (entry, operation) in entries.iter_mut().zip(0..) {
        entry.operation = operation;
        if entry.position == position && transaction.is_none() {
            continue;
        }
        if let Some(change) = entry.change() {
            let transaction = transaction.map(GroupTransaction::as_logged);
            let document = LoggedChange { transaction, wall_ms: wall_ms(time), ..change }.encode(position);
            entry.document = document;
        }
        entry.position = position;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::store::{Namespace, Operation};
    use document::doc;

    fn add(group: &mut OpenGroup, behind: FeedPosition, time: u32, row_bytes: usize) {
        let document = doc! { "_id": 1 };
        group.count(time, 1, row_bytes);
        let change = LoggedChange {
            namespace: Namespace::new("d", "c"),
            collection_uuid: Some([7; 16]),
            operation: Operation::Insert { document: document.as_doc() },
            wall_ms: wall_ms(time),
            transaction: None,
        };
        group.add(behind, &change, None);
    }

    fn places(entries: &[FeedEntry]) -> Vec<(FeedPosition, u32)> {
        for entry in entries {
            assert_eq!(entry.document.as_doc().get("ts"), Some(entry.position.as_value()));
        }
        entries.iter().map(|entry| (entry.position, entry.operation)).collect()
    }

    #[test]
    fn a_group_has_one_position() {
        let at = |time, increment| FeedPosition { time, increment };
        let mut group = OpenGroup::default();
        for time in [5, 5, 6] {
            add(&mut group, at(5, 7), time, 100);
        }
        let session = doc! { "id": 1, "uid": 2 };
        group.transaction = Some(GroupTransaction { session, number: 9 });
        assert_eq!(group.end_part(at(5, 7)), at(6, 3));
        let entries = group.take_parts();
        assert_eq!(places(&entries), [(at(6, 3), 0), (at(6, 3), 1), (at(6, 3), 2)]);
        for entry in &entries {
            let change = entry.change().unwrap();
            assert_eq!((change.wall_ms, change.transaction.map(|it| it.number)), (6000, Some(9)));
        }
    }

    #[test]
    fn a_large_group_has_parts() {
        let at = |time, increment| FeedPosition { time, increment };
        let (mut group, mut position, mut found) = (OpenGroup::default(), at(5, 7), Vec::new());
        for _ in 0..5 {
            add(&mut group, position, 5, PART_BYTES_MAX / 2);
            if group.is_full() {
                position = group.end_part(position);
            }
        }
        found.extend(group.take_parts());
        assert_eq!(places(&found), [(at(5, 10), 0), (at(5, 10), 1), (at(5, 10), 2)]);
        assert_eq!(group.end_part(position), at(5, 12));
        assert_eq!(places(&group.take_parts()), [(at(5, 12), 0), (at(5, 12), 1)]);
        assert_eq!(advanced(at(5, 7), 5, 0), at(5, 7));
        assert_eq!(advanced(at(5, INCREMENT_MAX - 1), 5, 3), at(6, 1));
    }
}
