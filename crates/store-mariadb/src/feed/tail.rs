//! The tail of the log: a thread that makes new transactions known to all streams of the process.
//!
//! It goes on by GTID after a lost connection and on another primary. If the server does not have
//! the position any more, it starts over, and streams that are behind fail with 286.

use super::checkpoint::{Checkpoint, covers};
use super::entries::{Completed, Entries, ReadBy, nothing_until};
use super::log_files::{LogServer, Use};
use super::shared::{Feed, TailState};
use ::store::change_feed::RecentEntries;
use ::store::{FeedEntry, FeedPosition};
use error::{Code, Error};
use mariadb_binlog::{CommitWait, LogOffset, LogReader, StreamEnd, log_end};
use mariadb_client::{Failure, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The age of the file with which the tail begins at least, so that it has seen all times of
/// events that may be logged next.
const OVERLAP_SECONDS: u32 = 60;

/// Bytes of entries after which they are published although more have arrived.
const PENDING_BYTES_MAX: usize = 1 << 20;

/// Streams learn at least so often, in seconds, that there were only changes without entries.
const NOTE_AFTER_SECONDS: u32 = 10;

/// A checkpoint is made after this many bytes of entries or groups.
const CHECKPOINT_BYTES: usize = 1 << 20;
const CHECKPOINT_GROUPS: u32 = 1000;

/// Pauses between attempts to connect: the first, and the longest, up to which it doubles.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Starts the tail's thread. It ends when the sender of `stopped` is dropped.
pub(super) fn spawn(feed: Arc<Feed>, stopped: oneshot::Receiver<()>) -> error::Result<()> {
    let tail = Tail { feed, entries: None, is_lost: false, pending: Pending::default(), since_checkpoint: (0, 0) };
    let internal = |error: std::io::Error| Error::internal(format!("cannot read MariaDB's binary log: {error}"));
    let thread = std::thread::Builder::new().name("change feed".into());
    thread.spawn(move || tail.on_thread(stopped)).map(drop).map_err(internal)
}

struct Tail {
    feed: Arc<Feed>,
    /// `None` before the first connection, and if the log no longer has the position.
    entries: Option<Entries>,
    /// A position was lost since the last publication.
    is_lost: bool,
    pending: Pending,
    /// Bytes and groups since the last checkpoint.
    since_checkpoint: (usize, u32),
}

/// Groups that were read, and that readers may not see yet.
#[derive(Default)]
struct Pending {
    entries: Vec<FeedEntry>,
    bytes: usize,
    /// The end of the last group.
    offset: Option<LogOffset>,
    /// Entries of a group were dropped.
    exceeds: bool,
    /// Changes may be missing.
    has_gap: bool,
}

impl Tail {
    fn on_thread(mut self, mut stopped: oneshot::Receiver<()>) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return self.fail(Error::internal(format!("cannot start a runtime: {error}"))),
        };
        runtime.block_on(async {
            tokio::select! {
                () = self.run() => {}
                _ = &mut stopped => self.feed.set_state(TailState::Stopped),
            }
        });
    }

    fn fail(&self, error: Error) {
        self.feed.set_state(TailState::Failed(error));
    }

    /// Reads and reconnects; returns only if the tail cannot start.
    async fn run(&mut self) {
        let mut pause = PAUSE_MIN;
        loop {
            let Err(ended) = self.attempt().await;
            if !self.feed.is_running() {
                return self.fail(match ended {
                    StreamEnd::Failed(Failure::Lost(message)) => Error::new(Code::HOST_UNREACHABLE, message),
                    StreamEnd::Failed(failure) => failure.into(),
                    StreamEnd::PositionLost(message) => Error::new(Code::INVALID_OPTIONS, message),
                });
            }
            match ended {
                StreamEnd::PositionLost(message) => {
                    tracing::warn!("change streams start over: MariaDB's binary log lacks their position: {message}");
                    (self.entries, self.is_lost, self.pending) = (None, true, Pending::default());
                }
                StreamEnd::Failed(failure) => tracing::warn!("change streams wait for MariaDB's binary log: {failure}"),
            }
            tokio::time::sleep(pause.mul_f64(rand::random_range(0.8..1.2))).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Connects, and reads until a failure.
    async fn attempt(&mut self) -> Result<std::convert::Infallible, StreamEnd> {
        let url = self.feed.followed.present(|_| {}).await;
        // It may be another server, or have another log by now.
        self.feed.files.clear();
        let mut server = LogServer::connect(url.clone(), self.feed.files.clone(), Use::Following).await?;
        let mut reader = match &mut self.entries {
            Some(entries) => {
                entries.abandon_group();
                server.open_behind(&entries.checkpoint()).await?
            }
            None => self.begin(&mut server).await?,
        };
        let followed = self.feed.followed.clone();
        tokio::select! {
            ended = self.follow(&mut reader, &mut server) => ended,
            () = followed.leaves(&url) => {
                Err(StreamEnd::Failed(Failure::Lost("the server is no longer the primary".into())))
            }
        }
    }

    /// Reads the last file of the log to its end. Streams that were interrupted by a restart find
    /// its last entries in memory.
    async fn begin(&mut self, server: &mut LogServer) -> Result<LogReader, StreamEnd> {
        let end = log_end(&mut server.queries).await?;
        let mut reader = server.open_last(OVERLAP_SECONDS).await?;
        let origin = Checkpoint { position: FeedPosition::default(), gtids: Vec::new() };
        let mut entries = Entries::behind(&origin);
        entries.tables.load(&mut server.queries).await?;
        let mut recent = None;
        while !covers(&entries.checkpoint().gtids, &end) {
            let Some(event) = reader.next_ready()? else {
                reader.wait().await?;
                continue;
            };
            match entries.feed(event, ReadBy::Tail, &mut server.queries).await {
                Ok(Completed::Group { entries: read, exceeds }) if entries.is_synchronized() => {
                    let bytes = read.iter().map(FeedEntry::bytes).sum();
                    self.note_group(bytes, &entries);
                    let recent = recent.get_or_insert_with(|| RecentEntries::since(entries.synchronized_since()));
                    match exceeds {
                        true => *recent = RecentEntries::since(entries.end_position()),
                        false => recent.extend(read),
                    }
                }
                Ok(_) => {}
                Err(failure) if is_gap(&failure) => recent = Some(RecentEntries::since(entries.end_position())),
                Err(failure) => return Err(failure.into()),
            }
        }
        CommitWait::default().until(reader.offset(), &mut server.queries).await?;
        let position = entries.end_position();
        match self.is_lost {
            true => self.feed.lose(position),
            false => self.feed.begin(position, recent.unwrap_or_else(|| RecentEntries::since(position))),
        }
        self.feed.reached.send_replace(entries.checkpoint().gtids);
        self.entries = Some(entries);
        self.is_lost = false;
        self.feed.set_state(TailState::Running);
        Ok(reader)
    }

    /// Reads and publishes until a failure.
    async fn follow(
        &mut self,
        reader: &mut LogReader,
        server: &mut LogServer,
    ) -> Result<std::convert::Infallible, StreamEnd> {
        let mut visibility = CommitWait::default();
        loop {
            if self.pending.bytes > PENDING_BYTES_MAX {
                self.publish(&mut visibility, server).await?;
                reader.reset_silence();
            }
            let Some(entries) = &mut self.entries else {
                return Err(StreamEnd::Failed(Failure::Lost("the position is unknown".into())));
            };
            let Some(event) = reader.next_ready()? else {
                if self.pending.offset.is_some() {
                    self.publish(&mut visibility, server).await?;
                    reader.reset_silence();
                } else {
                    reader.wait().await?;
                }
                continue;
            };
            match entries.feed(event, ReadBy::Tail, &mut server.queries).await {
                Ok(Completed::Group { entries, exceeds }) => {
                    self.pending.bytes += entries.iter().map(FeedEntry::bytes).sum::<usize>();
                    self.pending.entries.extend(entries);
                    self.pending.exceeds |= exceeds;
                    self.pending.offset = Some(reader.offset());
                }
                Ok(_) => {}
                Err(failure) if is_gap(&failure) => {
                    tracing::warn!("change streams end: MariaDB's binary log has changes without their rows");
                    self.pending.has_gap = true;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Publishes the groups that were read, as soon as readers see them.
    async fn publish(&mut self, visibility: &mut CommitWait, server: &mut LogServer) -> Result<()> {
        let (Some(offset), Some(entries)) = (self.pending.offset.clone(), &self.entries) else { return Ok(()) };
        visibility.until(offset, &mut server.queries).await?;
        let checkpoint = entries.checkpoint();
        let pending = std::mem::take(&mut self.pending);
        let is_quiet = checkpoint.position.time >= self.feed.latest().time.saturating_add(NOTE_AFTER_SECONDS);
        if pending.has_gap {
            self.feed.lose(checkpoint.position);
        } else if pending.exceeds {
            self.feed.skip(checkpoint.position);
        } else if pending.entries.is_empty() && is_quiet {
            self.feed.publish(vec![nothing_until(checkpoint.position)]);
        } else {
            self.feed.publish(pending.entries);
        }
        self.feed.reached.send_replace(checkpoint.gtids);
        if let Some(entries) = self.entries.take() {
            self.note_group(pending.bytes, &entries);
            self.entries = Some(entries);
        }
        Ok(())
    }

    /// Counts a group that was read, and makes a checkpoint if there were many.
    fn note_group(&mut self, bytes: usize, entries: &Entries) {
        self.since_checkpoint.0 += bytes;
        self.since_checkpoint.1 += 1;
        let is_due = self.since_checkpoint.0 >= CHECKPOINT_BYTES || self.since_checkpoint.1 >= CHECKPOINT_GROUPS;
        if is_due && entries.is_synchronized() {
            self.since_checkpoint = (0, 0);
            self.feed.add_checkpoint(entries.checkpoint());
        }
    }
}

/// Returns whether the log itself lacks changes.
fn is_gap(failure: &Failure) -> bool {
    matches!(failure, Failure::Other(error) if error.code() == Code::CHANGE_STREAM_HISTORY_LOST)
}
