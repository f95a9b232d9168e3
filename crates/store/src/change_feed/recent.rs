//! The latest entries of a feed, in memory: all readers that are up to date share them.

use super::{FeedEntry, FeedPosition};
use std::collections::VecDeque;
use std::sync::Arc;

/// The most bytes of recent entries.
const BYTES_MAX: usize = 8 << 20;

/// The most entries that a reader takes at once.
const TAKEN_MAX: usize = 256;

/// The latest entries, up to a number of bytes.
pub struct RecentEntries {
    entries: VecDeque<Arc<FeedEntry>>,
    bytes: usize,
    /// All entries behind this position are here.
    since: FeedPosition,
}

impl RecentEntries {
    /// Creates an empty list, from which all entries behind a position will be known.
    pub fn since(position: FeedPosition) -> RecentEntries {
        RecentEntries { entries: VecDeque::new(), bytes: 0, since: position }
    }

    /// Adds entries, and forgets the oldest that do not fit.
    pub fn extend(&mut self, entries: Vec<FeedEntry>) {
        for entry in entries {
            self.bytes += entry.bytes();
            self.entries.push_back(Arc::new(entry));
        }
        while self.bytes > BYTES_MAX
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.bytes();
            self.since = oldest.position;
        }
        // The entries of a position are forgotten together.
        while self.entries.front().is_some_and(|entry| entry.position == self.since)
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.bytes();
        }
    }

    /// Returns the entries behind a position, some of them if they are many. Returns `None` if some
    /// are not here any more.
    pub fn behind(&self, position: FeedPosition) -> Option<Vec<Arc<FeedEntry>>> {
        if position < self.since {
            return None;
        }
        let first = self.entries.partition_point(|entry| entry.position <= position);
        let last = self.entries.get(first + TAKEN_MAX).map(|entry| entry.position);
        let taken = self.entries.range(first..).enumerate();
        let taken = taken.take_while(|(at, entry)| *at < TAKEN_MAX || Some(entry.position) == last);
        Some(taken.map(|(_, entry)| entry.clone()).collect())
    }

    /// Returns the last entries up to a position, some of them if they are many, and the position
    /// behind which they begin. `with_next`: also those of the next position. If none are here,
    /// all such entries are up to that position.
    pub fn up_to(&self, position: FeedPosition, with_next: bool) -> (Vec<Arc<FeedEntry>>, FeedPosition) {
        let mut end = self.entries.partition_point(|entry| entry.position <= position);
        if with_next
            && end.checked_sub(1).and_then(|last| self.entries.get(last)).is_none_or(|last| last.position < position)
            && position >= self.since
            && let Some(next) = self.entries.get(end).map(|next| next.position)
        {
            end = self.entries.partition_point(|entry| entry.position <= next);
        }
        let mut begin = end.saturating_sub(TAKEN_MAX);
        // The entries of a position are taken together.
        if let Some(first) = self.entries.get(begin).filter(|_| begin < end).map(|first| first.position) {
            begin = self.entries.partition_point(|entry| entry.position < first);
        }
        let before = begin.checked_sub(1).and_then(|before| self.entries.get(before));
        let behind = before.map_or(self.since, |before| before.position);
        (self.entries.range(begin..end).cloned().collect(), behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::DocBuf;

    fn entry(time: u32, bytes: usize) -> FeedEntry {
        let text = "x".repeat(bytes);
        let document = DocBuf::build(|writer| writer.append("t", text.as_str()));
        FeedEntry { position: FeedPosition { time, increment: 1 }, operation: 0, document, before: None }
    }

    #[test]
    fn entries_are_taken_backwards() {
        let at = |time| FeedPosition { time, increment: 1 };
        let mut recent = RecentEntries::since(at(1));
        recent.extend(vec![entry(2, 10), entry(4, 10), entry(4, 10), entry(6, 10)]);
        let times = |position, with_next| {
            let (found, behind) = recent.up_to(position, with_next);
            (found.iter().map(|entry| entry.position.time).collect::<Vec<_>>(), behind.time)
        };
        assert_eq!(times(at(9), false), (vec![2, 4, 4, 6], 1));
        assert_eq!(times(at(4), true), (vec![2, 4, 4], 1));
        assert_eq!(times(at(3), false), (vec![2], 1));
        assert_eq!(times(at(3), true), (vec![2, 4, 4], 1));
        assert_eq!(times(at(1), true), (vec![2], 1));
        assert_eq!(times(at(1), false), (vec![], 1));
        assert_eq!(times(at(0), true), (vec![], 1));
        let mut many = RecentEntries::since(at(1));
        many.extend((0..2 * TAKEN_MAX as u32).map(|number| entry(2 + number, 1)).collect());
        let (found, behind) = many.up_to(at(900), false);
        assert_eq!((found.len(), behind.time), (TAKEN_MAX, 1 + TAKEN_MAX as u32));
    }

    #[test]
    fn nothing_is_skipped() {
        let at = |time| FeedPosition { time, increment: 1 };
        let mut recent = RecentEntries::since(at(1));
        recent.extend(vec![entry(2, 10), entry(3, 10)]);
        let times = |found: Vec<Arc<FeedEntry>>| found.iter().map(|entry| entry.position.time).collect::<Vec<_>>();
        assert_eq!(recent.behind(at(0)), None);
        assert_eq!(recent.behind(at(1)).map(times), Some(vec![2, 3]));
        assert_eq!(recent.behind(at(2)).map(times), Some(vec![3]));
        assert_eq!(recent.behind(at(9)).map(times), Some(vec![]));
        recent.extend(vec![entry(4, BYTES_MAX / 2), entry(5, BYTES_MAX / 2)]);
        assert_eq!(recent.behind(at(3)), None);
        assert_eq!(recent.behind(at(4)).map(times), Some(vec![5]));
    }
}
