//! The stream: a connection that has become a replica's.

use mariadb_client::{Failure, Protocol, Result, ServerUrl, establish_protocol, server_error};
use mariadb_wire::binlog::Checksum;
use mariadb_wire::binlog::packet::{self, Dump};
use std::ops::Range;
use std::time::{Duration, Instant};

pub struct Source {
    connection: Protocol,
    semi_sync: bool,
    /// When anything came in, and how long nothing may come in.
    heard: Instant,
    silence_max: Duration,
}

/// An event where it lies, for [`Source::event`].
pub struct Arrived {
    range: Range<usize>,
    pub wants_answer: bool,
}

/// Why a stream ended.
pub enum Ended {
    /// The server does not have the position any more.
    Lost(String),
    Failed(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Ended {
        match failure {
            Failure::Sql { code: server_error::BINLOG_READ, message } => Ended::Lost(message),
            other => Ended::Failed(other),
        }
    }
}

pub struct Request<'a> {
    pub server_id: u32,
    /// GTIDs with commas between them.
    pub position: &'a str,
    pub heartbeat: Duration,
    /// What events end with until a file says otherwise.
    pub checksum: Checksum,
    pub semi_sync: bool,
}

impl Source {
    pub async fn open(target: &ServerUrl, request: &Request<'_>, connect_timeout: Duration) -> Result<Source> {
        let (mut connection, _) = establish_protocol(target, connect_timeout).await?;
        // The position is digits, dashes and commas: it was read as GTIDs and written by us.
        connection.queue_query(&format!(
            "SET @mariadb_slave_capability = 4, @master_binlog_checksum = '{}', \
             @master_heartbeat_period = {}, @slave_connect_state = '{}', @slave_gtid_strict_mode = 1, \
             @slave_gtid_ignore_duplicates = 0, @rpl_semi_sync_slave = {}",
            request.checksum.name(),
            request.heartbeat.as_nanos(),
            request.position,
            u8::from(request.semi_sync),
        ));
        connection.finish().await?;
        connection.queue_command(|out| packet::register(request.server_id, "selkie", out));
        connection.finish().await?;
        connection.queue_packet(|out| packet::dump(request.server_id, out));
        connection.flush().await?;
        let silence_max = request.heartbeat * 2 + Duration::from_millis(250);
        Ok(Source { connection, semi_sync: request.semi_sync, heard: Instant::now(), silence_max })
    }

    /// The next event that is here.
    pub fn next_ready(&mut self) -> Result<Option<Arrived>, Ended> {
        let Some(range) = self.connection.next_payload()? else { return Ok(None) };
        match Dump::decode(self.connection.payload(range.clone()), self.semi_sync).map_err(Failure::from)? {
            Dump::Event { event, wants_answer } => {
                let start = range.end - event.len();
                Ok(Some(Arrived { range: start..range.end, wants_answer }))
            }
            Dump::Err(error) => Err(Failure::from_packet(&error).into()),
            Dump::End => Err(Failure::Lost("MariaDB ended the stream of its binary log".into()).into()),
        }
    }

    pub fn event(&self, arrived: &Arrived) -> &[u8] {
        self.connection.payload(arrived.range.clone())
    }

    /// Waits for bytes until `moment`. Errors: nothing has come for longer than heartbeats take.
    pub async fn wait_until(&mut self, moment: Instant) -> Result<()> {
        let silent = self.heard + self.silence_max;
        match tokio::time::timeout_at(moment.min(silent).into(), self.connection.fill()).await {
            Ok(outcome) => {
                outcome?;
                self.heard = Instant::now();
                Ok(())
            }
            Err(_) if Instant::now() >= silent => Err(Failure::Lost(format!(
                "MariaDB has sent neither changes nor heartbeats for {} ms",
                self.silence_max.as_millis()
            ))),
            Err(_) => Ok(()),
        }
    }

    /// Time was spent elsewhere: what has come meanwhile is still to be read, so that silence is counted from now.
    pub fn excuse(&mut self) {
        self.heard = Instant::now();
    }

    /// Lets writers return that wait for this position.
    pub async fn acknowledge(&mut self, file: &[u8], end: u64) -> Result<()> {
        self.connection.queue_packet(|out| packet::acknowledge(file, end, out));
        self.connection.flush().await
    }
}
