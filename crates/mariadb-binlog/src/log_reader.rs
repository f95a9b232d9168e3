//! Reads a server's log event by event, for readers that need every row and its order.
//!
//! Other than a [`crate::Follower`], it delivers all columns of rows and the times of events,
//! condenses nothing, and leaves it to its caller to reconnect.

use crate::definition::{Definition, definition};
use crate::event_groups::{EXPANDED_BYTES_MAX, Group, LogOffset, is_harmless};
use crate::requirements;
use crate::source::{Request, Source, StreamEnd, StreamStart};
use crate::statement_effect::{StatementEffect, classify};
use crate::visibility::{Verdict, Visibility};
use mariadb_client::{Failure, Result, ServerUrl, TextConnection};
use mariadb_wire::binlog::control::Rotate;
use mariadb_wire::binlog::event::FLAG_ARTIFICIAL;
use mariadb_wire::binlog::gtid::decode_list;
use mariadb_wire::binlog::query::QueryEvent;
use mariadb_wire::binlog::rows::RowsEvent;
use mariadb_wire::binlog::table_map::TableMap;
use mariadb_wire::binlog::{Checksum, Event, FormatDescription, Gtid, GtidEvent, kind};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the server shows that it is there while nothing changes. It also notices then that a
/// connection was closed, so readers that end soon have it more often.
const HEARTBEAT: Duration = Duration::from_secs(5);
const SHORT_HEARTBEAT: Duration = Duration::from_millis(500);

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Table maps kept; the server numbers them anew all the time.
const TABLES_MAX: usize = 4096;

/// Bytes of a statement's text that are kept.
const STATEMENT_BYTES: usize = 64;

/// The event may be skipped by readers that do not know it.
const FLAG_IGNORABLE: u16 = 0x80;

/// An event of the log.
#[derive(Debug)]
pub enum LogEvent<'a> {
    /// A file begins, which was created at this time.
    File {
        created: u32,
    },
    /// The transactions behind which a file begins.
    Position(Vec<Gtid>),
    /// A group of events begins.
    Begin {
        gtid: Gtid,
        xa: Option<Vec<u8>>,
    },
    Rows {
        time: u32,
        table: &'a Arc<TableMap>,
        rows: RowsEvent<'a>,
        /// The beginning of the statement's text; empty if the log does not have it.
        statement: &'a [u8],
    },
    Statement {
        time: u32,
        definition: Definition,
    },
    End(GroupEnd),
    /// Changes may be missing from the log.
    Gap,
    /// Something without effect.
    Other,
}

/// How a group ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEnd {
    Committed,
    /// Its changes did not happen.
    RolledBack,
    /// An XA transaction that a later group completes.
    Prepared,
    /// The XA transaction that was prepared by an earlier group is committed.
    XaCommitted,
    XaRolledBack,
}

/// A connection that receives the log.
pub struct LogReader {
    source: Source,
    format: FormatDescription,
    file: Arc<[u8]>,
    /// The end of the last group.
    offset: LogOffset,
    tables: HashMap<u64, Arc<TableMap>>,
    /// The beginning of the text of the statement whose rows are read.
    statement: Vec<u8>,
    /// Rows of the statement have been read.
    has_rows: bool,
    /// The group that is being read has one statement only.
    is_standalone: bool,
    /// A group ended with the last event.
    end: Option<GroupEnd>,
}

impl LogReader {
    /// Opens the log, to follow it. Fails with `PositionLost` if the server no longer has its
    /// beginning.
    pub async fn open(target: &ServerUrl, start: StreamStart<'_>, checksum: Checksum) -> Result<LogReader, StreamEnd> {
        LogReader::open_with(target, start, checksum, HEARTBEAT).await
    }

    /// As [`LogReader::open`], to read the log to its present end.
    pub async fn open_briefly(
        target: &ServerUrl,
        start: StreamStart<'_>,
        checksum: Checksum,
    ) -> Result<LogReader, StreamEnd> {
        LogReader::open_with(target, start, checksum, SHORT_HEARTBEAT).await
    }

    async fn open_with(
        target: &ServerUrl,
        start: StreamStart<'_>,
        checksum: Checksum,
        heartbeat: Duration,
    ) -> Result<LogReader, StreamEnd> {
        let server_id = rand::random_range(1 << 31..u32::MAX);
        let request = Request { server_id, start, heartbeat, checksum, semi_sync: false, annotated: true };
        let source = Source::open(target, &request, CONNECT_TIMEOUT).await;
        let file: Arc<[u8]> = Arc::from(&b""[..]);
        Ok(LogReader {
            source: source.map_err(|failure| requirements::explain(failure, &target.user))?,
            format: FormatDescription::assumed(checksum),
            offset: LogOffset { file: file.clone(), end: 0 },
            file,
            tables: HashMap::new(),
            statement: Vec::new(),
            has_rows: false,
            is_standalone: false,
            end: None,
        })
    }

    /// Waits for more of the log. Fails if not even heartbeats arrive.
    pub async fn wait(&mut self) -> Result<()> {
        self.source.wait_until(Instant::now() + 4 * HEARTBEAT).await
    }

    /// Counts silence from now, after time was spent elsewhere.
    pub fn reset_silence(&mut self) {
        self.source.reset_silence();
    }

    /// Returns the next event that has arrived.
    pub fn next_ready(&mut self) -> Result<Option<LogEvent<'_>>, StreamEnd> {
        if let Some(end) = self.end.take() {
            return Ok(Some(LogEvent::End(end)));
        }
        let Some(arrived) = self.source.next_ready()? else { return Ok(None) };
        let event = Event::decode(self.source.event(&arrived), self.format.checksum).map_err(Failure::from)?;
        let header = event.header;
        let malformed = |error| StreamEnd::Failed(Failure::from(error));
        let is_compressed = header.kind == kind::QUERY_COMPRESSED;
        let is_artificial = header.flags & FLAG_ARTIFICIAL != 0;
        let mut end = |outcome| {
            self.offset = LogOffset { file: self.file.clone(), end: header.end };
            LogEvent::End(outcome)
        };
        Ok(Some(match header.kind {
            kind::ROTATE => {
                self.file = Rotate::decode(event.body).map_err(malformed)?.file.into();
                LogEvent::Other
            }
            kind::FORMAT_DESCRIPTION => {
                self.format = FormatDescription::decode(event.body).map_err(malformed)?;
                LogEvent::File { created: header.timestamp }
            }
            kind::GTID_LIST if !is_artificial => LogEvent::Position(decode_list(event.body).map_err(malformed)?),
            kind::GTID => {
                let event = GtidEvent::decode(event.body, header.server).map_err(malformed)?;
                self.is_standalone = event.is_standalone();
                self.statement.clear();
                LogEvent::Begin { gtid: event.gtid, xa: event.xa.map(<[u8]>::to_vec) }
            }
            kind::ANNOTATE_ROWS => {
                self.statement.clear();
                self.statement.extend_from_slice(event.body.get(..STATEMENT_BYTES).unwrap_or(event.body));
                self.has_rows = false;
                LogEvent::Other
            }
            kind::TABLE_MAP => {
                // A statement maps all of its tables before its rows.
                if std::mem::take(&mut self.has_rows) {
                    self.statement.clear();
                }
                let map = TableMap::decode(event.body, &self.format).map_err(malformed)?;
                if self.tables.get(&map.id).is_none_or(|known| **known != map) {
                    if self.tables.len() >= TABLES_MAX {
                        self.tables.clear();
                    }
                    self.tables.insert(map.id, Arc::new(map));
                }
                LogEvent::Other
            }
            kind::QUERY | kind::QUERY_COMPRESSED => {
                let query = QueryEvent::decode(event.body, is_compressed, EXPANDED_BYTES_MAX).map_err(malformed)?;
                let database = String::from_utf8_lossy(query.database);
                match classify(&database, &query.sql) {
                    StatementEffect::Mark => LogEvent::Other,
                    StatementEffect::End if query.sql.eq_ignore_ascii_case(b"ROLLBACK") => end(GroupEnd::RolledBack),
                    StatementEffect::End => end(GroupEnd::Committed),
                    StatementEffect::XaCommit => end(GroupEnd::XaCommitted),
                    StatementEffect::XaRollback => end(GroupEnd::XaRolledBack),
                    StatementEffect::Changes(_) => {
                        let definition = definition(&database, &query.sql);
                        if self.is_standalone {
                            end(GroupEnd::Committed);
                            self.end = Some(GroupEnd::Committed);
                        }
                        LogEvent::Statement { time: header.timestamp, definition }
                    }
                }
            }
            kind::XID => end(GroupEnd::Committed),
            // The first byte is set if it was prepared and committed in one.
            kind::XA_PREPARE if event.body.first() != Some(&0) => end(GroupEnd::Committed),
            kind::XA_PREPARE => end(GroupEnd::Prepared),
            kind::INCIDENT => LogEvent::Gap,
            _ => match RowsEvent::decode(&event, &self.format, EXPANDED_BYTES_MAX).map_err(malformed)? {
                Some(rows) => match self.tables.get(&rows.table_id) {
                    Some(table) => {
                        self.has_rows = true;
                        LogEvent::Rows { time: header.timestamp, table, rows, statement: &self.statement }
                    }
                    // A server always sends the table map first.
                    None => LogEvent::Gap,
                },
                None if is_harmless(header.kind) || header.flags & FLAG_IGNORABLE != 0 => LogEvent::Other,
                None => LogEvent::Gap,
            },
        }))
    }

    /// Returns where the last group ends.
    pub fn offset(&self) -> LogOffset {
        self.offset.clone()
    }
}

/// Waits until readers see the transactions of the log.
#[derive(Default)]
pub struct CommitWait(Visibility);

impl CommitWait {
    /// Waits until readers see the transactions up to this end of a group, as far as the server
    /// shows that.
    pub async fn until(&mut self, offset: LogOffset, queries: &mut TextConnection) -> Result<()> {
        let groups = VecDeque::from([Group::at(offset)]);
        loop {
            match self.0.judge(&groups, queries).await? {
                Verdict::Visible(_) | Verdict::Likely(_) => return Ok(()),
                Verdict::NotYet(pause) => tokio::time::sleep(pause).await,
            }
        }
    }
}
