//! The change feed: MariaDB's binary log as entries of an oplog.
//!
//! Nothing is stored for it. A thread ([`tail`]) reads the log by GTID, waits until readers see a
//! transaction, and keeps its [`entries`] in memory, from which all streams of the process read. It
//! starts with the first stream, or with the process. A stream that is farther behind reads the
//! log with a connection of its own ([`past`]), from a checkpoint of the tail or from the beginning
//! of a file of the log.
//!
//! **Positions.** A GTID (domain, server, sequence number) does not fit into the two numbers of a
//! position, and says nothing about time. So positions are counted along the log ([`entries`]):
//! `time` is the greatest time of an event so far, and `increment` counts the rows and statements
//! of the transactions since that time was first seen. All entries of a transaction have the
//! position of its end, and are numbered ([`open_group`]). The count includes rows that are no
//! entries, so it depends on nothing but the log: it is the same for every gateway, after a
//! restart, and on a replica, which logs the same rows with the same times. It rises even if the
//! server's clock is set back.
//!
//! A reader need not begin at the log's beginning to agree with others: it does so as soon as it
//! has read an event with a later time than all before. Hence a position is found by its time:
//! readers begin with the last file that was created before it. If there is none, entries behind
//! the position may have been purged: 286.

mod catalog_rows;
mod checkpoint;
pub(crate) mod collection;
mod entries;
mod known_files;
mod known_tables;
mod log_files;
mod open_group;
mod past;
mod row_values;
mod shared;
mod start;
mod tail;
mod transaction_rows;

pub(crate) use past::PastReaders;
pub(crate) use shared::Feed;
pub(crate) use start::started;

use start::{no_feed, started_for_stream};

use crate::store::MariaDbStore;
use ::store::change_feed::history_lost;
use ::store::{ChangeFeed, FeedEntry, FeedPosition};
use error::Result;
use futures_util::future::LocalBoxFuture;
use mariadb_binlog::Gtid;
use mariadb_client::Event;
use std::sync::Arc;
use std::time::Duration;

/// The pause between two readings of the server's clock.
const CLOCK_PAUSE: Duration = Duration::from_millis(50);

impl MariaDbStore {
    fn feed(&self) -> Result<&Arc<Feed>> {
        self.feed.as_ref().ok_or_else(|| no_feed("this server reads no log of changes"))
    }

    /// Returns the end of the server's log.
    async fn log_end(&self) -> mariadb_client::Result<Vec<Gtid>> {
        Ok(Gtid::parse_list(&self.ask("SELECT @@global.gtid_binlog_pos").await?)?)
    }

    /// Waits until the server's clock has passed a second.
    async fn wait_for_end_of(&self, second: u32) -> mariadb_client::Result<()> {
        let is_over = |now: &str| now.parse().is_ok_and(|now: u64| now > u64::from(second));
        while !is_over(&self.ask("SELECT CAST(UNIX_TIMESTAMP() AS CHAR)").await?) {
            tokio::time::sleep(CLOCK_PAUSE).await;
        }
        Ok(())
    }

    /// Returns the text that a query selects.
    async fn ask(&self, query: &str) -> mariadb_client::Result<String> {
        let mut lease = self.pool.lease().await?;
        lease.queue_execute(&query.into(), &[]);
        let mut text = String::new();
        while let Event::Row(range) = lease.next().await? {
            text = String::from_utf8_lossy(lease.row(range)?.next_bytes()?.unwrap_or_default()).into_owned();
        }
        Ok(text)
    }
}

impl ChangeFeed for MariaDbStore {
    fn latest(&self) -> FeedPosition {
        self.feed.as_ref().map_or(FeedPosition::default(), |feed| feed.latest())
    }

    fn current(&self) -> LocalBoxFuture<'_, Result<FeedPosition>> {
        Box::pin(async move {
            let feed = self.feed()?;
            started_for_stream(feed).await?;
            let end = self.log_end().await?;
            feed.reached(&end).await?;
            // Entries of a new log that are logged later have later times.
            if let Some(second) = feed.ambiguous_second() {
                self.wait_for_end_of(second).await?;
            }
            Ok(feed.latest())
        })
    }

    /// A client's time may be that of a gateway's clock, which nothing in the log need have
    /// reached.
    fn behind_time(&self, time: FeedPosition) -> FeedPosition {
        time.before().min(self.latest())
    }

    /// Positions come from the log alone.
    fn advance(&self, _: FeedPosition) {}

    fn check_history(&self, position: FeedPosition) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let feed = self.feed()?;
            if feed.has_recent(position) {
                return Ok(());
            }
            log_files::check(feed, position).await
        })
    }

    /// Others write too, and the log is read behind them.
    fn is_own_log(&self) -> bool {
        false
    }

    fn read(&self, position: FeedPosition) -> LocalBoxFuture<'_, Result<Vec<Arc<FeedEntry>>>> {
        Box::pin(async move {
            let feed = self.feed()?;
            started_for_stream(feed).await?;
            if feed.has_lost(position) {
                return Err(history_lost());
            }
            if let Some(entries) = feed.recent(position) {
                return Ok(entries);
            }
            self.past_readers.read(feed, position).await
        })
    }

    fn wait(&self, position: FeedPosition) -> LocalBoxFuture<'static, ()> {
        let watched = self.feed.as_ref().map(|feed| feed.watch());
        Box::pin(async move {
            match watched {
                Some(mut watched) => drop(watched.wait_for(|latest| *latest > position).await),
                None => std::future::pending().await,
            }
        })
    }
}
