//! Reads the log behind a position that is not in memory any more, with a connection of its own.
//!
//! A reader is parked between two reads of its stream, so that it goes on where it was. Meanwhile
//! the server waits; it ends the connection after `net_write_timeout`, and the log
//! is opened again.

use super::entries::{Completed, Entries, ReadBy, nothing_until};
use super::log_files::{self, LogServer};
use super::shared::Feed;
use ::store::{FeedEntry, FeedPosition};
use error::Result;
use mariadb_binlog::LogReader;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Limits of the entries that are read at once.
const READ_ENTRIES_MAX: usize = 256;
const READ_BYTES_MAX: usize = 1 << 20;

/// Events after which other work of the thread may go on.
const EVENTS_AT_ONCE: u32 = 32;

/// Readers of a worker that wait for their streams.
const PARKED_MAX: usize = 8;

/// Readers of a worker that read; further streams wait.
const READING_MAX: usize = 8;

/// Scans of a worker whose entries are kept.
const HELD_MAX: usize = 4;

/// A checkpoint is made after this many bytes of entries.
const CHECKPOINT_BYTES: usize = 4 << 20;

/// A reader, and the position behind which it goes on.
struct PastReader {
    reader: LogReader,
    entries: Entries,
    server: LogServer,
    /// Entries behind the stream's position.
    ready: VecDeque<Arc<FeedEntry>>,
    /// Bytes of entries since the last checkpoint.
    since_checkpoint: usize,
}

/// Entries that a scan has read and not used.
pub(super) struct HeldEntries {
    pub entries: Vec<Arc<FeedEntry>>,
    /// The position behind which they begin.
    pub behind: FeedPosition,
}

/// The readers of a worker.
pub(crate) struct PastReaders {
    /// Those that wait for their streams.
    parked: RefCell<VecDeque<(FeedPosition, PastReader)>>,
    reading: Semaphore,
    /// The entries of scans that wait, by their direction and position.
    held: RefCell<VecDeque<((bool, FeedPosition), HeldEntries)>>,
}

impl Default for PastReaders {
    fn default() -> PastReaders {
        PastReaders { parked: RefCell::default(), reading: Semaphore::new(READING_MAX), held: RefCell::default() }
    }
}

impl PastReaders {
    /// Keeps entries for the scan that goes on in a direction behind a position.
    pub(super) fn hold(&self, forward: bool, position: FeedPosition, entries: HeldEntries) {
        let mut held = self.held.borrow_mut();
        held.push_back(((forward, position), entries));
        if held.len() > HELD_MAX {
            held.pop_front();
        }
    }

    /// Takes the entries that are kept for a scan.
    pub(super) fn take_held(&self, forward: bool, position: FeedPosition) -> Option<HeldEntries> {
        let mut held = self.held.borrow_mut();
        let found = held.iter().position(|(key, _)| *key == (forward, position))?;
        held.remove(found).map(|(_, entries)| entries)
    }

    /// Returns entries behind a position. Fails with 286 if the log behind it was purged.
    pub async fn read(&self, feed: &Feed, position: FeedPosition) -> Result<Vec<Arc<FeedEntry>>> {
        let _permit = self.reading.acquire().await;
        let parked = {
            let mut readers = self.parked.borrow_mut();
            let found = readers.iter().position(|(parked, _)| *parked == position);
            found.and_then(|index| readers.remove(index)).map(|(_, reader)| reader)
        };
        let end = feed.latest();
        // The server may have ended the connection of a reader that was parked.
        let (entries, reader) = match parked {
            Some(reader) => match reader.read(feed, position, end).await {
                Err(failure) if failure.is_lost() => {
                    PastReader::open(feed, position).await?.read(feed, position, end).await?
                }
                read => read?,
            },
            None => PastReader::open(feed, position).await?.read(feed, position, end).await?,
        };
        let Some(last) = entries.last() else { return Ok(vec![Arc::new(nothing_until(end))]) };
        let mut readers = self.parked.borrow_mut();
        readers.push_back((last.position, reader));
        if readers.len() > PARKED_MAX {
            readers.pop_front();
        }
        Ok(entries)
    }
}

impl PastReader {
    async fn open(feed: &Feed, position: FeedPosition) -> mariadb_client::Result<PastReader> {
        let (reader, entries, server) = log_files::open(feed, position).await?;
        Ok(PastReader { reader, entries, server, ready: VecDeque::new(), since_checkpoint: 0 })
    }

    /// Reads entries behind `position`, up to `end`.
    async fn read(
        mut self,
        feed: &Feed,
        position: FeedPosition,
        end: FeedPosition,
    ) -> mariadb_client::Result<(Vec<Arc<FeedEntry>>, PastReader)> {
        let (mut taken, mut bytes, mut last) = (Vec::new(), 0, None);
        let mut events = 0;
        loop {
            // The entries of a position are taken together.
            while let Some(next) = self.ready.front()
                && ((taken.len() < READ_ENTRIES_MAX && bytes < READ_BYTES_MAX) || last == Some(next.position))
            {
                (bytes, last) = (bytes + next.bytes(), Some(next.position));
                taken.extend(self.ready.pop_front());
            }
            if !self.ready.is_empty() || taken.len() >= READ_ENTRIES_MAX || self.entries.completed_position() >= end {
                return Ok((taken, self));
            }
            let completed = match self.reader.next_ready().map_err(log_files::failure)? {
                Some(event) => self.entries.feed(event, ReadBy::Stream, &mut self.server.queries).await?,
                // Entries go to the stream before more arrive.
                None if !taken.is_empty() => return Ok((taken, self)),
                None => {
                    self.reader.wait().await?;
                    Completed::Nothing
                }
            };
            let read = match completed {
                Completed::Group { entries, .. } => {
                    self.note(feed, &entries);
                    entries
                }
                Completed::Part => self.take_part().await?,
                Completed::Nothing => Vec::new(),
            };
            let wanted = read.into_iter().filter(|entry| entry.position > position && entry.position <= end);
            self.ready.extend(wanted.map(Arc::new));
            events += 1;
            if events % EVENTS_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Counts a group that was read, and makes a checkpoint if there were many bytes.
    fn note(&mut self, feed: &Feed, group: &[FeedEntry]) {
        self.since_checkpoint += group.iter().map(FeedEntry::bytes).sum::<usize>();
        if self.since_checkpoint > CHECKPOINT_BYTES && self.entries.is_synchronized() {
            self.since_checkpoint = 0;
            feed.add_checkpoint(self.entries.checkpoint());
        }
    }

    /// Takes a part of a large group. Its transaction is recorded at its end, which is read first.
    async fn take_part(&mut self) -> mariadb_client::Result<Vec<FeedEntry>> {
        if let Some(gtid) = self.entries.unrecorded() {
            let found = self.server.transaction_of(gtid, &self.entries.checkpoint()).await;
            self.entries.set_transaction(found.map_err(log_files::failure)?);
        }
        Ok(self.entries.take_part())
    }
}
