//! Counts what statements have read, by MariaDB's handler counters of the session before and after
//! them.

use crate::plan::access::RowSource;
use mariadb_client::{Connection, Event, Result};
use std::ops::Sub;
use std::sync::Arc;
use store::Examined;

const COUNTERS: &str =
    "SHOW SESSION STATUS WHERE Variable_name LIKE 'Handler_read%' OR Variable_name LIKE 'Handler_icp%'";

/// Numbers of handler calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HandlerCalls {
    /// Index searches.
    key: u64,
    /// Steps along an index, or along the table in primary key order.
    step: u64,
    /// Steps through a table in physical order.
    random: u64,
    /// Keys checked by index condition pushdown.
    index_conditions: u64,
}

impl Sub for HandlerCalls {
    type Output = HandlerCalls;

    fn sub(self, other: HandlerCalls) -> HandlerCalls {
        HandlerCalls {
            key: self.key.saturating_sub(other.key),
            step: self.step.saturating_sub(other.step),
            random: self.random.saturating_sub(other.random),
            index_conditions: self.index_conditions.saturating_sub(other.index_conditions),
        }
    }
}

/// Handler counters of a session since a moment.
pub(crate) struct HandlerCounters {
    before: HandlerCalls,
    /// What context for the counters adds to them.
    cost: HandlerCalls,
}

impl HandlerCounters {
    /// Starts counting.
    pub async fn begin(connection: &mut Connection) -> Result<HandlerCounters> {
        let first = read(connection).await?;
        let before = read(connection).await?;
        Ok(HandlerCounters { before, cost: before - first })
    }

    /// Returns the calls since then.
    pub async fn end(self, connection: &mut Connection) -> Result<HandlerCalls> {
        Ok(read(connection).await? - self.before - self.cost)
    }
}

impl HandlerCalls {
    /// Converts to examined keys and documents, if only keys were read.
    pub fn of_keys(self) -> Examined {
        Examined { keys: self.index_conditions.max(self.key + self.step), seeks: self.key, ..Examined::default() }
    }

    /// Converts to examined keys and documents, if keys were read, and for `fetched` of the
    /// received rows the documents, each by a search.
    pub fn of_covered(self, received: u64, fetched: u64) -> Examined {
        let (key, step) = (self.key.saturating_sub(fetched), self.step);
        let keys = self.index_conditions.max(key + step).max(received);
        Examined { keys, entries: received, documents: fetched, seeks: key }
    }

    /// Converts to examined keys and documents for `received` rows, of which `joined` were joined
    /// to keys. A search finds a key, and so does a step, except the last one of a range.
    pub fn examined(self, rows: &RowSource, received: u64, joined: u64) -> Examined {
        let HandlerCalls { key, step, random, index_conditions } = self;
        if rows.ids.is_none() && rows.index.is_none() && rows.lookup.is_none() {
            let documents = received.max((key + step + random).saturating_sub(1));
            return Examined { documents, seeks: 0, ..Examined::default() };
        }
        if joined > 0 {
            // Each of these documents is a further search.
            let (seeks, keys) = (key.saturating_sub(joined), (key + step).saturating_sub(joined));
            return Examined { keys: keys.max(received), entries: received, documents: received, seeks };
        }
        let keys = index_conditions.max(key + step);
        // Rows looked up elsewhere are fetched one by one; steps are along the keys there.
        let documents = if rows.lookup.is_some() { received } else { received.max(step) };
        Examined { keys: keys.max(documents), entries: documents, documents, seeks: key }
    }
}

async fn read(connection: &mut Connection) -> Result<HandlerCalls> {
    connection.queue_execute(&Arc::from(COUNTERS), &[]);
    let mut calls = HandlerCalls::default();
    while let Event::Row(range) = connection.next().await? {
        let mut row = connection.row(range)?;
        let name = row.next_bytes()?.unwrap_or_default().to_ascii_lowercase();
        let value = row.next_bytes()?.unwrap_or_default();
        let value = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0_u64);
        match name.as_slice() {
            b"handler_read_key" => calls.key += value,
            b"handler_read_first" | b"handler_read_last" | b"handler_read_next" | b"handler_read_prev" => {
                calls.step += value;
            }
            b"handler_read_rnd" | b"handler_read_rnd_next" => calls.random += value,
            b"handler_icp_attempts" => calls.index_conditions += value,
            _ => {}
        }
    }
    Ok(calls)
}
