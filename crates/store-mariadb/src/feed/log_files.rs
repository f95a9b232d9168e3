//! Finds the file of the log from which a position can be read.

use super::checkpoint::Checkpoint;
use super::entries::Entries;
use super::known_files::{KnownFiles, LogFile};
use super::shared::Feed;
use super::transaction_rows::{self, GroupTransaction};
use ::store::FeedPosition;
use ::store::change_feed::history_lost;
use mariadb_binlog::{Gtid, LogEvent, LogReader, StreamEnd, StreamStart, check_gtids, check_settings};
use mariadb_client::{Failure, Result, ServerUrl, TextConnection};
use mariadb_wire::binlog::Checksum;
use std::sync::Arc;
use std::time::Duration;

/// How long the server may take for queries.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Events after which other work of the thread may go on.
const EVENTS_AT_ONCE: u32 = 32;

/// A server, and a connection to it for queries.
pub(super) struct LogServer {
    pub url: ServerUrl,
    pub queries: TextConnection,
    pub checksum: Checksum,
    /// Its files of the log, the oldest first.
    files: Vec<String>,
    known: Arc<KnownFiles>,
    use_of: Use,
}

/// How long the log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Following,
    Briefly,
}

impl LogServer {
    pub async fn connect(url: ServerUrl, known: Arc<KnownFiles>, use_of: Use) -> Result<LogServer> {
        let mut queries = TextConnection::connect(&url, QUERY_TIMEOUT).await?;
        let checksum = check_settings(&mut queries, false).await?.checksum;
        check_gtids(&mut queries).await?;
        let files = queries.rows("SHOW BINARY LOGS").await?;
        let files = files.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
        Ok(LogServer { url, queries, checksum, files, known, use_of })
    }

    /// Opens the log behind a checkpoint.
    pub async fn open_behind(&self, checkpoint: &Checkpoint) -> Result<LogReader, StreamEnd> {
        let position = checkpoint.gtids.iter().map(Gtid::to_string).collect::<Vec<_>>().join(",");
        self.open(StreamStart::Position(&position)).await
    }

    async fn open(&self, start: StreamStart<'_>) -> Result<LogReader, StreamEnd> {
        match self.use_of {
            Use::Following => LogReader::open(&self.url, start, self.checksum).await,
            Use::Briefly => LogReader::open_briefly(&self.url, start, self.checksum).await,
        }
    }

    /// Opens the last file that is older than this; if all are younger, the first.
    pub async fn open_last(&mut self, age_seconds: u32) -> Result<LogReader, StreamEnd> {
        let now = self.queries.rows("SELECT UNIX_TIMESTAMP()").await?.into_iter().flatten().next().flatten();
        let now: u32 = now.and_then(|text| text.parse().ok()).unwrap_or(u32::MAX);
        if let Some(reader) = self.open_file(now.saturating_sub(age_seconds)).await? {
            return Ok(reader);
        }
        let first = self.files.first().map(String::as_str).unwrap_or_default();
        self.open(StreamStart::File(first)).await
    }

    /// Opens the last file that was created before a time, or the first of all. Returns `None` if
    /// events before that time may have been purged.
    pub async fn open_file(&self, time: u32) -> Result<Option<LogReader>, StreamEnd> {
        let (mut from, mut to) = (0, self.files.len());
        // The first file that was not created before `time` is in from..=to.
        while from < to {
            let middle = (from + to) / 2;
            match self.describe(middle).await?.created < time {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        let found = match from.checked_sub(1) {
            Some(index) => index,
            // The log begins with it, so nothing was purged.
            None => {
                let first = self.describe(0).await?;
                if !first.is_first || first.created > time {
                    return Ok(None);
                }
                0
            }
        };
        let Some(file) = self.files.get(found) else { return Ok(None) };
        self.open(StreamStart::File(file)).await.map(Some)
    }

    /// Returns the client's transaction that a group behind a checkpoint records at its end.
    pub async fn transaction_of(&self, gtid: Gtid, before: &Checkpoint) -> Result<Option<GroupTransaction>, StreamEnd> {
        let mut reader = self.open_behind(before).await?;
        let (mut is_it, mut events) = (false, 0_u32);
        loop {
            events = events.wrapping_add(1);
            if events.is_multiple_of(EVENTS_AT_ONCE) {
                tokio::task::yield_now().await;
            }
            match reader.next_ready()? {
                Some(LogEvent::Begin { gtid: begun, .. }) => is_it = begun == gtid,
                Some(LogEvent::Rows { table, rows, .. }) if is_it && transaction_rows::is_table(table) => {
                    for row in rows.rows(table).map_err(Failure::from)? {
                        let row = row.map_err(Failure::from)?;
                        if let Some(found) = transaction_rows::read(&row, table)? {
                            return Ok(Some(found));
                        }
                    }
                }
                Some(LogEvent::End(_)) if is_it => return Ok(None),
                Some(_) => {}
                None => reader.wait().await?,
            }
        }
    }

    /// Opens the file from which a position can be read.
    async fn open_at(&self, position: FeedPosition) -> Result<(LogReader, Checkpoint)> {
        let reader = self.open_file(position.time).await.map_err(failure)?;
        let origin = Checkpoint { position: FeedPosition::default(), gtids: Vec::new() };
        Ok((reader.ok_or_else(history_lost)?, origin))
    }

    /// Returns the first position from which a file can be read.
    async fn start_of(&self, index: usize) -> Result<FeedPosition, StreamEnd> {
        let LogFile { created, is_first } = self.describe(index).await?;
        let time = if is_first { created } else { created.saturating_add(1) };
        Ok(FeedPosition { time, increment: 0 })
    }

    async fn describe(&self, index: usize) -> Result<LogFile, StreamEnd> {
        let lost = || StreamEnd::PositionLost("MariaDB has no binary log".into());
        let file = self.files.get(index).ok_or_else(lost)?;
        if let Some(known) = self.known.get(file) {
            return Ok(known);
        }
        let mut reader = LogReader::open_briefly(&self.url, StreamStart::File(file), self.checksum).await?;
        let mut created = 0;
        loop {
            match reader.next_ready()? {
                Some(LogEvent::File { created: time }) => created = time,
                Some(LogEvent::Position(before)) => {
                    let described = LogFile { created, is_first: before.is_empty() };
                    self.known.insert(file, described);
                    return Ok(described);
                }
                Some(_) => {}
                None => reader.wait().await?,
            }
        }
    }
}

/// Returns the failure of a reader.
pub(super) fn failure(end: StreamEnd) -> Failure {
    match end {
        StreamEnd::PositionLost(_) => history_lost().into(),
        StreamEnd::Failed(failure) => failure,
    }
}

/// Fails with 286 if the server does not have the log behind a position any more.
pub(super) async fn check(feed: &Feed, position: FeedPosition) -> error::Result<()> {
    if feed.has_lost(position) || position > feed.latest() {
        return Err(history_lost());
    }
    open(feed, position).await?;
    Ok(())
}

/// Returns the position at which the log begins.
pub(super) async fn begin(feed: &Feed) -> Result<FeedPosition> {
    let url = feed.followed.present(|_| {}).await;
    let server = LogServer::connect(url, feed.files.clone(), Use::Briefly).await?;
    Ok(server.start_of(0).await.map_err(failure)?.max(feed.valid_since()))
}

/// Returns the last known position before another from which the log can be read; `None` if the log
/// begins there.
pub(super) async fn start_before(feed: &Feed, position: FeedPosition) -> Result<Option<FeedPosition>> {
    let url = feed.followed.present(|_| {}).await;
    let server = LogServer::connect(url, feed.files.clone(), Use::Briefly).await?;
    let begin = server.start_of(0).await.map_err(failure)?.max(feed.valid_since());
    if position <= begin {
        return Ok(None);
    }
    let (mut from, mut to) = (1, server.files.len());
    while from < to {
        let middle = (from + to) / 2;
        match server.start_of(middle).await.map_err(failure)? < position {
            true => from = middle + 1,
            false => to = middle,
        }
    }
    let of_file = server.start_of(from - 1).await.map_err(failure)?;
    let checkpoint = feed.checkpoint(position.before()).map_or(begin, |checkpoint| checkpoint.position);
    Ok(Some(begin.max(of_file).max(checkpoint)))
}

/// Opens the log at or before a position, to read on to it.
pub(super) async fn open(feed: &Feed, position: FeedPosition) -> Result<(LogReader, Entries, LogServer)> {
    let url = feed.followed.present(|_| {}).await;
    let server = LogServer::connect(url, feed.files.clone(), Use::Briefly).await?;
    let (reader, checkpoint) = match feed.checkpoint(position) {
        Some(checkpoint) => match server.open_behind(&checkpoint).await {
            // It was purged, which the position need not be.
            Err(StreamEnd::PositionLost(_)) => server.open_at(position).await?,
            reader => (reader.map_err(failure)?, checkpoint),
        },
        None => server.open_at(position).await?,
    };
    Ok((reader, Entries::behind(&checkpoint), server))
}
