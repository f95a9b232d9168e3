//! Connections that have the file mapped into memory: a worker's way to documents of several pages, and the writer's.
//!
//! SQLite reads all but the first page of such a document from the file, by one system call per page, and where it keeps them it
//! copies them twice. From a mapping it takes them with neither. For documents that fit a page a worker's other connection is better:
//! it finds what it has read before without looking into the log, and a mapping begins anew whenever something was written.
//!
//! The writer copies its pages from the mapping. That is a system call less for each; and where the system has not got the file in
//! memory, as behind a start, it reads the pages around one as well, which it does not for reads here and there.
//!
//! A disk that fails under a mapping ends the process, where a read would give an error. What was acknowledged is in the log.

use crate::catalog::Collection;
use crate::connection::{self, Role};
use crate::engine::{Options, Shared};
use crate::failure::{Attempt, engine_error};
use error::Result;
use rusqlite::Connection;
use std::cell::{Cell, OnceCell};

/// What has been touched of mappings counts as the process's memory, though the system takes it back when it needs it. With more than
/// that a mapping is let go of and begins anew, which costs the next reads about what they save otherwise.
const MAPPED_BYTES_MAX: u64 = 512 << 20;

/// How much is read between one look at that and the next.
const BYTES_BETWEEN: u64 = 48 << 20;

/// Opened when it is first wanted.
#[derive(Default)]
pub struct Mapped {
    connection: OnceCell<Connection>,
    read_bytes: Cell<u64>,
}

impl Mapped {
    /// Whether a collection's documents are better read here.
    pub fn suits(&self, collection: &Collection, shared: &Shared) -> bool {
        let average = collection.data_bytes() / collection.documents().max(1);
        shared.options.mmap_bytes > 0 && average > u64::from(shared.options.page_bytes)
    }

    pub fn connection(&self, shared: &Shared) -> Result<&Connection> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection);
        }
        let opened = connection::open(&shared.path, Role::MappedReader, &shared.options).map_err(engine_error)?;
        Ok(self.connection.get_or_init(|| opened))
    }

    /// Takes note of what a slice has read, which is over.
    pub fn has_read(&self, bytes: u64, shared: &Shared) -> Attempt<()> {
        self.read_bytes.set(self.read_bytes.get() + bytes);
        if self.read_bytes.get() < BYTES_BETWEEN {
            return Ok(());
        }
        self.read_bytes.set(0);
        match self.connection.get() {
            Some(connection) => Ok(keep_small(connection, &shared.options)?),
            None => Ok(()),
        }
    }
}

/// Lets go of a connection's mapping where too much of mappings is in memory, and begins it anew.
pub fn keep_small(connection: &Connection, options: &Options) -> rusqlite::Result<()> {
    if options.mmap_bytes > 0 && mapped_bytes().is_none_or(|bytes| bytes > MAPPED_BYTES_MAX) {
        connection::map(connection, 0)?;
        connection::map(connection, options.mmap_bytes)?;
    }
    Ok(())
}

/// How much of files, the program's own among them, is in the process's memory; `None` where the system does not say (proc(5), statm).
fn mapped_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(2)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
