//! The stream of events: a connection registered as a replica.

use mariadb_client::{Failure, Protocol, Result, ServerUrl, establish_protocol, server_error};
use mariadb_wire::binlog::Checksum;
use mariadb_wire::binlog::packet::{self, Dump};
use std::ops::Range;
use std::time::{Duration, Instant};

/// A connection that receives the binary log.
pub struct Source {
    connection: Protocol,
    semi_sync: bool,
    /// When data last arrived, and how long none may arrive.
    last_received: Instant,
    silence_max: Duration,
}

/// The position of a received event in the buffer, for [`Source::event`].
pub struct ReceivedEvent {
    range: Range<usize>,
    pub wants_acknowledgement: bool,
}

/// Why a stream ended.
pub enum StreamEnd {
    /// The server no longer has the position.
    PositionLost(String),
    Failed(Failure),
}

impl From<Failure> for StreamEnd {
    fn from(failure: Failure) -> StreamEnd {
        match failure {
            Failure::Sql { code: server_error::BINLOG_READ, message } => StreamEnd::PositionLost(message),
            other => StreamEnd::Failed(other),
        }
    }
}

/// The beginning of a stream.
#[derive(Clone, Copy, Debug)]
pub enum StreamStart<'a> {
    /// Behind these GTIDs, separated by commas.
    Position(&'a str),
    /// At the beginning of this file of the log.
    File(&'a str),
}

/// A request for the stream.
pub struct Request<'a> {
    pub server_id: u32,
    pub start: StreamStart<'a>,
    pub heartbeat: Duration,
    /// The checksum of events until a file header states another.
    pub checksum: Checksum,
    pub semi_sync: bool,
    /// Whether the texts of statements are wanted.
    pub annotated: bool,
}

impl Source {
    /// Connects, registers as a replica and requests the stream.
    pub async fn open(target: &ServerUrl, request: &Request<'_>, connect_timeout: Duration) -> Result<Source> {
        let (mut connection, _) = establish_protocol(target, connect_timeout).await?;
        // The position consists of digits, dashes and commas: it was formatted from parsed GTIDs.
        let (state, file) = match request.start {
            StreamStart::Position(position) => (format!(", @slave_connect_state = '{position}'"), None),
            StreamStart::File(file) => (String::new(), Some(file)),
        };
        connection.queue_query(&format!(
            "SET @mariadb_slave_capability = 4, @master_binlog_checksum = '{}', @master_heartbeat_period = {}, \
             @slave_gtid_strict_mode = 1, @slave_gtid_ignore_duplicates = 0, @rpl_semi_sync_slave = {}{state}",
            request.checksum.name(),
            request.heartbeat.as_nanos(),
            u8::from(request.semi_sync),
        ));
        connection.finish().await?;
        connection.queue_command(|out| packet::register(request.server_id, "selkie", out));
        connection.finish().await?;
        connection.queue_packet(|out| packet::dump(request.server_id, file, request.annotated, out));
        connection.flush().await?;
        let silence_max = request.heartbeat * 2 + Duration::from_millis(250);
        Ok(Source { connection, semi_sync: request.semi_sync, last_received: Instant::now(), silence_max })
    }

    /// Returns the next buffered event.
    pub fn next_ready(&mut self) -> Result<Option<ReceivedEvent>, StreamEnd> {
        let Some(range) = self.connection.next_payload()? else { return Ok(None) };
        match Dump::decode(self.connection.payload(range.clone()), self.semi_sync).map_err(Failure::from)? {
            Dump::Event { event, wants_answer: wants_acknowledgement } => {
                let start = range.end - event.len();
                Ok(Some(ReceivedEvent { range: start..range.end, wants_acknowledgement }))
            }
            Dump::Err(error) => Err(Failure::from_packet(&error).into()),
            Dump::End => Err(Failure::Lost("MariaDB ended the stream of its binary log".into()).into()),
        }
    }

    /// Returns the bytes of a received event.
    pub fn event(&self, arrived: &ReceivedEvent) -> &[u8] {
        self.connection.payload(arrived.range.clone())
    }

    /// Waits for data until `moment`. Fails if none has arrived for longer than heartbeats take.
    pub async fn wait_until(&mut self, moment: Instant) -> Result<()> {
        let silent = self.last_received + self.silence_max;
        match tokio::time::timeout_at(moment.min(silent).into(), self.connection.fill()).await {
            Ok(outcome) => {
                outcome?;
                self.last_received = Instant::now();
                Ok(())
            }
            Err(_) if Instant::now() >= silent => Err(Failure::Lost(format!(
                "MariaDB sent neither changes nor heartbeats for {} ms",
                self.silence_max.as_millis()
            ))),
            Err(_) => Ok(()),
        }
    }

    /// Counts silence from now. To be called after time was spent elsewhere, since data received
    /// meanwhile was not read.
    pub fn reset_silence(&mut self) {
        self.last_received = Instant::now();
    }

    /// Acknowledges this position, which releases writers that wait for it.
    pub async fn acknowledge(&mut self, file: &[u8], end: u64) -> Result<()> {
        self.connection.queue_packet(|out| packet::acknowledge(file, end, out));
        self.connection.flush().await
    }
}
