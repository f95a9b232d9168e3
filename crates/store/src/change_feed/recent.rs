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
