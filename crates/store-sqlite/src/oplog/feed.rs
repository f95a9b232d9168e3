//! The log as the contract's change feed, read by a worker.

use super::{IMAGES_TABLE, Oplog, position_of, seq_of};
use crate::failure::Attempt;
use crate::read::scan::blob;
use crate::worker::SqliteStore;
use document::DocBuf;
use error::{Error, Result};
use futures_util::future::LocalBoxFuture;
use rusqlite::Connection;
use std::sync::Arc;
use store::change_feed::history_lost;
use store::{ChangeFeed, FeedEntry, FeedPosition};

/// Limits of the entries that are read from the file at once.
const READ_ENTRIES_MAX: usize = 256;
const READ_BYTES_MAX: usize = 1 << 20;

impl SqliteStore {
    fn oplog(&self) -> Result<&Oplog> {
        self.shared.oplog.as_ref().ok_or_else(|| Error::internal("changes are not logged"))
    }
}

impl ChangeFeed for SqliteStore {
    fn latest(&self) -> FeedPosition {
        self.shared.oplog.as_ref().map_or(FeedPosition::default(), Oplog::latest)
    }

    fn advance(&self, to: FeedPosition) {
        if let Some(log) = &self.shared.oplog {
            log.advance(to);
        }
    }

    fn check_history(&self, position: FeedPosition) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let oplog = self.oplog()?;
            let reading = self.read_connection()?;
            let sql = format!("SELECT min(seq) FROM {}", oplog.collection.sql.table);
            let oldest = || reading.connection().prepare_cached(&sql)?.query_row([], |row| row.get(0));
            let oldest: Option<i64> = oldest().map_err(crate::failure::engine_error)?;
            check_oldest(oplog, oldest, position)
        })
    }

    fn read(&self, position: FeedPosition) -> LocalBoxFuture<'_, Result<Vec<Arc<FeedEntry>>>> {
        Box::pin(async move {
            let oplog = self.oplog()?;
            if let Some(entries) = oplog.recent().behind(position) {
                return Ok(entries);
            }
            if self.shared.are_reads_paused() {
                self.wait_for_wal_reset().await;
            }
            let (oldest, entries) = read_file(self.read_connection()?.connection(), oplog, position)?;
            check_oldest(oplog, oldest, position)?;
            Ok(entries)
        })
    }

    fn wait(&self, position: FeedPosition) -> LocalBoxFuture<'static, ()> {
        let watched = self.shared.oplog.as_ref().map(|oplog| oplog.latest.subscribe());
        Box::pin(async move {
            match watched {
                // Fails when the store is closed, which the caller must learn as well.
                Some(mut watched) => drop(watched.wait_for(|latest| *latest > position).await),
                None => std::future::pending().await,
            }
        })
    }
}

/// Fails with 286 if an entry behind `position` may have been deleted. `oldest`: the oldest entry.
fn check_oldest(oplog: &Oplog, oldest: Option<i64>, position: FeedPosition) -> Result<()> {
    let is_kept = oldest.is_some_and(|oldest| oplog.initial == Some(oldest) || oldest <= seq_of(position));
    if is_kept { Ok(()) } else { Err(history_lost()) }
}

/// Reads entries behind a position, and the number of the oldest entry in the same snapshot.
fn read_file(
    connection: &Connection,
    oplog: &Oplog,
    position: FeedPosition,
) -> Attempt<(Option<i64>, Vec<Arc<FeedEntry>>)> {
    let snapshot = connection.unchecked_transaction()?;
    let table = &oplog.collection.sql.table;
    let oldest = format!("SELECT min(seq) FROM {table}");
    let oldest = snapshot.prepare_cached(&oldest)?.query_row([], |row| row.get(0))?;
    let sql = format!(
        "SELECT entry.seq, entry.doc, image.doc FROM {table} AS entry LEFT JOIN {IMAGES_TABLE} AS image
         ON image.seq = entry.seq WHERE entry.seq > ?1 ORDER BY entry.seq"
    );
    let mut statement = snapshot.prepare_cached(&sql)?;
    let mut rows = statement.query([seq_of(position)])?;
    let (mut entries, mut bytes) = (Vec::new(), 0);
    while entries.len() < READ_ENTRIES_MAX
        && bytes < READ_BYTES_MAX
        && let Some(row) = rows.next()?
    {
        let seq = row.get(0)?;
        let (document, image) = (blob(row.get_ref(1)?), blob(row.get_ref(2)?));
        bytes += document.len() + image.len();
        let document = DocBuf::from_vec(document.to_vec())
            .ok_or_else(|| Error::internal("an entry of local.oplog.rs is damaged"))?;
        let before = DocBuf::from_vec(image.to_vec());
        let entry = FeedEntry { position: position_of(seq), operation: 0, document, before };
        entries.extend(entry.operations().into_iter().map(Arc::new));
    }
    Ok((oldest, entries))
}
