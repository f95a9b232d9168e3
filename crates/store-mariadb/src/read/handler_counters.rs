//! What MariaDB says that statements have read: the counters of the session's handler calls, before and after them.

use crate::plan::access::Rows;
use mariadb_client::{Connection, Event, Result};
use std::ops::Sub;
use std::sync::Arc;
use store::Examined;

const COUNTERS: &str =
    "SHOW SESSION STATUS WHERE Variable_name LIKE 'Handler_read%' OR Variable_name LIKE 'Handler_icp%'";

/// The counters that tell how much was read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handlers {
    /// Searches.
    key: u64,
    /// Steps along an index, or along the table in the order of its key.
    step: u64,
    /// Steps through a table in no order.
    random: u64,
    /// Keys that were judged without a look at their rows.
    judged: u64,
}

impl Sub for Handlers {
    type Output = Handlers;

    fn sub(self, other: Handlers) -> Handlers {
        Handlers {
            key: self.key.saturating_sub(other.key),
            step: self.step.saturating_sub(other.step),
            random: self.random.saturating_sub(other.random),
            judged: self.judged.saturating_sub(other.judged),
        }
    }
}

/// Counting, since some moment.
pub(crate) struct Watch {
    before: Handlers,
    /// What asking for the counters adds to them.
    cost: Handlers,
}

impl Watch {
    pub async fn begin(connection: &mut Connection) -> Result<Watch> {
        let first = read(connection).await?;
        let before = read(connection).await?;
        Ok(Watch { before, cost: before - first })
    }

    /// What has been read since then.
    pub async fn end(self, connection: &mut Connection) -> Result<Handlers> {
        Ok(read(connection).await? - self.before - self.cost)
    }
}

impl Handlers {
    /// The counters where nothing but keys was read.
    pub fn of_keys(self) -> Examined {
        Examined { keys: self.judged.max(self.key + self.step), seeks: self.key, ..Examined::default() }
    }

    /// The counters where keys were read, and of so many of the rows that came the documents, each by a search of its own.
    pub fn of_covered(self, received: u64, fetched: u64) -> Examined {
        let (key, step) = (self.key.saturating_sub(fetched), self.step);
        let keys = self.judged.max(key + step).max(received);
        Examined { keys, entries: received, documents: fetched, seeks: key }
    }

    /// The counters in MongoDB's terms, for so many rows, of which so many were joined to keys. A search finds a key, and so does a step, but for the last one of a range.
    pub fn examined(self, rows: &Rows, received: u64, joined: u64) -> Examined {
        let Handlers { key, step, random, judged } = self;
        if rows.ids.is_none() && rows.index.is_none() && rows.found.is_none() {
            let documents = received.max((key + step + random).saturating_sub(1));
            return Examined { documents, seeks: 0, ..Examined::default() };
        }
        if joined > 0 {
            // Each of these documents is a search of its own, behind those along the keys.
            let (seeks, keys) = (key.saturating_sub(joined), (key + step).saturating_sub(joined));
            return Examined { keys: keys.max(received), entries: received, documents: received, seeks };
        }
        let keys = judged.max(key + step);
        // Rows that are found elsewhere are fetched one by one; the steps are along the keys there.
        let documents = if rows.found.is_some() { received } else { received.max(step) };
        Examined { keys: keys.max(documents), entries: documents, documents, seeks: key }
    }
}

async fn read(connection: &mut Connection) -> Result<Handlers> {
    connection.queue_execute(&Arc::from(COUNTERS), &[]);
    let mut handlers = Handlers::default();
    while let Event::Row(range) = connection.next().await? {
        let mut row = connection.row(range)?;
        let name = row.next_bytes()?.unwrap_or_default().to_ascii_lowercase();
        let value = row.next_bytes()?.unwrap_or_default();
        let value = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0_u64);
        match name.as_slice() {
            b"handler_read_key" => handlers.key += value,
            b"handler_read_first" | b"handler_read_last" | b"handler_read_next" | b"handler_read_prev" => {
                handlers.step += value;
            }
            b"handler_read_rnd" | b"handler_read_rnd_next" => handlers.random += value,
            b"handler_icp_attempts" => handlers.judged += value,
            _ => {}
        }
    }
    Ok(handlers)
}
