//! Opening connections to the file, and the tables that every file has.
//!
//! The VFS is our own on top of `unix-excl` (see [`files`]): the first connection locks the file
//! for this process alone, and the index of the write-ahead log is on the heap. Beginning and
//! ending a read then costs no system call.

use crate::files;
use crate::shared::Options;
use rusqlite::{Connection, OpenFlags, Result};
use std::path::Path;
use std::time::Duration;

/// Prepared statements cached per connection: a dozen for each of the collections in use.
const STATEMENTS_CACHED: usize = 512;

/// Written to the file's header, to distinguish it from other SQLite files ("SLKI").
const APPLICATION_ID: i64 = 0x534C_4B49;

/// The layout of the file. A greater number means a newer Selkie. Pages have checksums since format
/// 3.
pub const FORMAT: i64 = 3;

/// The last layout without checksums.
const UNCHECKED_FORMAT: i64 = 2;

/// The first document of each collection whose index entries are deferred. The table exists since
/// format 2.
const DEFERRED_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS late(collection INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL)";

/// Pages that are in the log and not yet in the file are not mapped, and are cached instead.
const MAPPED_CACHE_KIB: usize = 4096;

/// Many transactions may be open, and each has a connection.
const TRANSACTION_CACHE_KIB: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Writer,
    Reader,
    /// Reads documents of several pages; see [`mapped`](crate::read::mapped).
    MappedReader,
    /// Reads a snapshot, with temporary tables for the writes of a transaction.
    Transaction,
    /// Moves pages from the log to the file; runs no statements.
    Checkpointer,
}

/// Opens a connection. The writer's must be the first; it creates the file.
pub fn open(path: &Path, role: Role, options: &Options) -> Result<Connection> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if role == Role::Writer {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    if !files::register() {
        return Err(rusqlite::Error::InvalidPath(path.to_owned()));
    }
    let connection = Connection::open_with_flags_and_vfs(path, flags, files::VFS)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    // Readers never wait, and there is one writer. Only resetting the log waits, for readers to
    // end. The writer does not wait for long, since clients wait for it meanwhile.
    let patience = if role == Role::Writer { Duration::from_millis(50) } else { Duration::from_secs(10) };
    connection.busy_timeout(patience)?;
    let cache_kib = match role {
        Role::Writer => options.writer_cache_bytes / 1024,
        Role::Reader => options.reader_cache_bytes / 1024,
        Role::MappedReader => MAPPED_CACHE_KIB,
        Role::Transaction => TRANSACTION_CACHE_KIB,
        Role::Checkpointer => 64,
    };
    if role == Role::Writer {
        connection.pragma_update(None, "page_size", options.page_bytes)?;
        // Must follow the page size, which resets it.
        files::reserve_bytes(&connection)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // The file keeps the size it reaches during a checkpoint: the writer would wait for the
        // system to truncate it.
        connection.pragma_update(None, "journal_size_limit", 2 * options.log_bytes_max as i64)?;
    }
    // A negative cache size counts KiB instead of pages.
    connection.pragma_update(None, "cache_size", -(cache_kib as i64))?;
    map(&connection, if role == Role::MappedReader { options.mmap_bytes } else { 0 })?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "foreign_keys", 0)?;
    if matches!(role, Role::Reader | Role::MappedReader) {
        connection.pragma_update(None, "query_only", 1)?;
    }
    Ok(connection)
}

/// Maps up to `bytes` of the file into memory; another number than before drops the mapping.
pub fn map(connection: &Connection, bytes: u64) -> Result<()> {
    // SQLite returns the size it uses, which may be smaller.
    connection.pragma_update_and_check(None, "mmap_size", bytes as i64, |_| Ok(()))
}

/// An empty table that exists if documents may have escaped field names.
const ESCAPED_NAMES: &str = "escaped_names";

/// Records, in the running transaction, that documents may have escaped field names.
pub fn note_escaped_names(connection: &Connection) -> Result<()> {
    connection.execute_batch(&format!("CREATE TABLE IF NOT EXISTS {ESCAPED_NAMES}(unused INTEGER)"))
}

/// Returns whether documents may have escaped field names.
pub fn has_escaped_names(connection: &Connection) -> Result<bool> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name = ?1";
    connection.query_row(sql, [ESCAPED_NAMES], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

/// Creates the catalog's tables in a new file. Returns false if the file is not Selkie's, or was
/// made by a newer version.
pub fn prepare_file(connection: &Connection) -> Result<bool> {
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application == APPLICATION_ID {
        if format < UNCHECKED_FORMAT {
            connection.execute_batch(DEFERRED_TABLE)?;
            connection.pragma_update(None, "user_version", UNCHECKED_FORMAT)?;
        }
        return Ok(format <= FORMAT);
    }
    if application != 0 || tables != 0 {
        return Ok(false);
    }
    connection.execute_batch(
        "BEGIN IMMEDIATE;
         CREATE TABLE collections(
             id INTEGER PRIMARY KEY AUTOINCREMENT, database TEXT NOT NULL, name TEXT NOT NULL, uuid BLOB NOT NULL,
             options BLOB NOT NULL, UNIQUE(database, name));
         CREATE TABLE counters(
             collection INTEGER PRIMARY KEY, documents INTEGER NOT NULL, data_bytes INTEGER NOT NULL);
         CREATE TABLE indexes(
             id INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, spec BLOB NOT NULL,
             multikey INTEGER NOT NULL);
         CREATE TABLE retryable_writes(
             session BLOB PRIMARY KEY, txn_number INTEGER NOT NULL, outcome BLOB NOT NULL, at INTEGER NOT NULL)
             WITHOUT ROWID;
         CREATE TABLE dropped(name TEXT PRIMARY KEY) WITHOUT ROWID;
         COMMIT;",
    )?;
    connection.execute_batch(DEFERRED_TABLE)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", FORMAT)?;
    Ok(true)
}
