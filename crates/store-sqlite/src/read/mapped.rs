//! A worker's way to documents of several pages: a connection that has the file mapped into memory.
//!
//! SQLite reads all but the first page of such a document from the file, by one system call per page, and where it keeps them it
//! copies them twice. From a mapping it takes them with neither. For documents that fit a page the other connection is better:
//! it finds what it has read before without looking into the log, and a mapping begins anew whenever something was written.
//!
//! A disk that fails under a mapping ends the process, where a read would give an error. What was acknowledged is in the log.

use crate::catalog::Collection;
use crate::connection::{self, Role};
use crate::engine::Shared;
use crate::failure::Attempt;
use crate::read::connections::{ConnectionPool, Lease};
use error::Result;
use rusqlite::Connection;
use std::cell::Cell;

/// What has been touched of mappings counts as the process's memory, though the system takes it back when it needs it. With more than
/// that a mapping is let go of and begins anew, which costs the next reads about what they save otherwise.
const MAPPED_BYTES_MAX: u64 = 512 << 20;

/// How much is read between one look at that and the next.
const BYTES_BETWEEN: u64 = 48 << 20;

/// Opened when it is first wanted.
#[derive(Default)]
pub struct Mapped {
    connections: ConnectionPool<Connection>,
    read_bytes: Cell<u64>,
}

impl Mapped {
    /// Whether a collection's documents are better read here.
    pub fn suits(&self, collection: &Collection, shared: &Shared) -> bool {
        let average = collection.data_bytes() / collection.documents().max(1);
        shared.options.mmap_bytes > 0 && average > u64::from(shared.options.page_bytes)
    }

    /// A connection to read them by.
    pub fn connection(&self, shared: &Shared) -> Result<Lease<'_, Connection>> {
        self.connections.take(|| Ok(connection::open(&shared.path, Role::MappedReader, &shared.options)?))
    }

    /// Takes note of what a slice has read by a connection, which is over.
    pub fn has_read(&self, connection: &Connection, bytes: u64, shared: &Shared) -> Attempt<()> {
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

/// How much of files, the program's own among them, is in the process's memory; `None` where the system does not say (proc(5), statm).
fn mapped_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(2)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
