//! The change feed: all changes of documents and of the catalog, in the order of their commits.
//!
//! A feed is not the report to the [caches](crate::change_observer), which may be early, imprecise
//! and repeated. A feed is complete and ordered, and a reader can resume behind any entry that it
//! has read. If entries behind that position have been discarded, reading fails with 286, and never
//! skips some. Change streams and `local.oplog.rs` are two views of the feed.

mod entry;
mod recent;
mod transaction;

pub use entry::{LoggedChange, LoggedTransaction, Operation};
pub use recent::RecentEntries;
pub use transaction::in_one;

use document::{Doc, DocBuf, Value};
use error::{Code, Error, Result};
use futures_util::future::LocalBoxFuture;
use std::sync::Arc;

/// The position of an entry: the time of its commit in seconds since 1970, and a number that
/// distinguishes the entries of a second. Positions rise from entry to entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedPosition {
    pub time: u32,
    pub increment: u32,
}

impl FeedPosition {
    /// Returns the position of an entry that is committed now, behind this one.
    pub fn next(self, now_seconds: u32) -> FeedPosition {
        match self.time >= now_seconds {
            true if self.increment >= INCREMENT_MAX => FeedPosition { time: self.time.saturating_add(1), increment: 1 },
            true => FeedPosition { time: self.time, increment: self.increment + 1 },
            false => FeedPosition { time: now_seconds, increment: 1 },
        }
    }

    /// Returns the greatest position before this one.
    pub fn before(self) -> FeedPosition {
        match self.increment.checked_sub(1) {
            Some(increment) => FeedPosition { increment, ..self },
            None => FeedPosition { time: self.time.saturating_sub(1), increment: INCREMENT_MAX },
        }
    }

    pub fn as_value(self) -> Value<'static> {
        Value::Timestamp { time: self.time, increment: self.increment }
    }
}

/// The greatest increment of a position. Stores may use one bit less than a timestamp has.
pub const INCREMENT_MAX: u32 = i32::MAX as u32;

/// An entry of a feed, in the format of MongoDB's oplog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedEntry {
    pub position: FeedPosition,
    /// The entry's number among those of its position, which are the operations of a transaction.
    pub operation: u32,
    pub document: DocBuf,
    /// The document before the change, if its collection keeps it.
    pub before: Option<DocBuf>,
}

impl FeedEntry {
    /// Returns the entry's content; `None` if it is malformed.
    pub fn change(&self) -> Option<LoggedChange<'_>> {
        LoggedChange::decode(self.document.as_doc())
    }

    /// Returns about how many bytes the entry occupies.
    pub fn bytes(&self) -> usize {
        let before = self.before.as_ref().map_or(0, |before| before.as_bytes().len());
        size_of::<FeedEntry>() + self.document.as_bytes().len() + before
    }
}

/// The change feed of a store, as one worker reads it.
pub trait ChangeFeed {
    /// Returns the position of the latest entry that is known; zero if the feed is not read yet.
    fn latest(&self) -> FeedPosition;

    /// Returns the position of the latest entry. The entries of all writes that have been
    /// acknowledged are up to it. Fails with 40573 if the store cannot make its feed.
    fn current(&self) -> LocalBoxFuture<'_, Result<FeedPosition>> {
        Box::pin(async { Ok(self.latest()) })
    }

    /// Returns the position behind which a stream begins that asks for the changes since a time.
    fn behind_time(&self, time: FeedPosition) -> FeedPosition {
        time.before()
    }

    /// Gives later entries positions behind `to`, which a client has seen elsewhere.
    fn advance(&self, to: FeedPosition);

    /// Fails with 286 if entries behind `position` have been discarded.
    fn check_history(&self, position: FeedPosition) -> LocalBoxFuture<'_, Result<()>>;

    /// Returns whether the store logs its writes itself, so that [`ChangeFeed::latest`] is never
    /// behind a write that has been acknowledged.
    fn is_own_log(&self) -> bool {
        true
    }

    /// Returns the entries behind `position` in order: some of them, or none at the end. All
    /// entries of a position are returned together. Fails with 286 if entries behind `position`
    /// have been discarded.
    fn read(&self, position: FeedPosition) -> LocalBoxFuture<'_, Result<Vec<Arc<FeedEntry>>>>;

    /// Waits until there is an entry behind `position`.
    fn wait(&self, position: FeedPosition) -> LocalBoxFuture<'static, ()>;
}

/// Returns error 286: entries behind the position have been discarded.
pub fn history_lost() -> Error {
    let message = "Resume of change stream was not possible, as the resume point may no longer be in the oplog.";
    Error::new(Code::CHANGE_STREAM_HISTORY_LOST, message).with_labels(&["NonResumableChangeStreamError"])
}

/// Returns whether the collection's documents before a change are logged
/// (`changeStreamPreAndPostImages`).
pub fn keeps_images(options: Doc<'_>) -> bool {
    let images = options.get("changeStreamPreAndPostImages").and_then(Value::as_document);
    images.and_then(|images| images.get("enabled")).is_some_and(Value::is_truthy)
}

#[cfg(test)]
mod tests {
    use super::FeedPosition;

    #[test]
    fn positions_rise_whatever_the_clock_does() {
        let at = |time, increment| FeedPosition { time, increment };
        assert_eq!(at(5, 3).next(5), at(5, 4));
        assert_eq!(at(5, 3).next(7), at(7, 1));
        assert_eq!(at(5, 3).next(2), at(5, 4));
        assert!(at(5, 0).before() < at(5, 0));
        assert_eq!(at(5, 4).before(), at(5, 3));
        assert_eq!(at(0, 0).before().time, 0);
    }
}
