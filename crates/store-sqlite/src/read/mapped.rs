//! Reading documents of several pages: a connection that has the file mapped into memory.
//!
//! SQLite reads all but the first page of such a document from the file, by one system call per
//! page, and copies the pages that it caches twice. A mapping needs neither. For documents that fit
//! a page the other connection is better: it finds cached pages without searching the log, and a
//! mapping is renewed after every write.
//!
//! A disk that fails under a mapping ends the process, where a read would return an error.
//! Acknowledged writes are in the log.

use crate::catalog::Collection;
use crate::connection::{self, Role};
use crate::failure::Attempt;
use crate::read::connections::{ConnectionPool, Lease};
use crate::shared::Shared;
use error::Result;
use rusqlite::Connection;
use std::cell::Cell;

/// Touched pages of mappings count as the process's memory, though the system reclaims them when it
/// needs them. Past this limit the mapping is dropped and starts again, which costs the next reads
/// about as much as it saves otherwise.
const MAPPED_BYTES_MAX: u64 = 512 << 20;

/// The limit is checked after reading this much.
const BYTES_BETWEEN: u64 = 48 << 20;

/// Connections with a mapping, opened on demand.
#[derive(Default)]
pub struct Mapped {
    connections: ConnectionPool<Connection>,
    read_bytes: Cell<u64>,
}

impl Mapped {
    /// Returns whether mapped connections read a collection's documents better.
    pub fn suits(&self, collection: &Collection, shared: &Shared) -> bool {
        let average = collection.data_bytes() / collection.documents().max(1);
        shared.options.mmap_bytes > 0 && average > u64::from(shared.options.page_bytes)
    }

    /// Takes a connection for them.
    pub fn connection(&self, shared: &Shared) -> Result<Lease<'_, Connection>> {
        self.connections.take(|| Ok(connection::open(&shared.path, Role::MappedReader, &shared.options)?))
    }

    /// Counts the bytes that a finished slice has read by a connection.
    pub fn count_read(&self, connection: &Connection, bytes: u64, shared: &Shared) -> Attempt<()> {
        self.read_bytes.set(self.read_bytes.get() + bytes);
        if self.read_bytes.get() < BYTES_BETWEEN {
            return Ok(());
        }
        self.read_bytes.set(0);
        if mapped_bytes().is_none_or(|bytes| bytes > MAPPED_BYTES_MAX) {
            connection::map(connection, 0)?;
            connection::map(connection, shared.options.mmap_bytes)?;
        }
        Ok(())
    }
}

/// Returns the bytes of files in the process's memory, the program's own included; `None` if the
/// system does not say (proc(5), statm).
fn mapped_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(2)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
