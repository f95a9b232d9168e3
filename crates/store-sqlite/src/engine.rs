//! The half of the store that belongs to the process: the file, the lock on its directory, the
//! catalog, the threads.

use crate::catalog::Catalog;
use crate::connection::{self, Role};
use crate::failure::engine_error;
use crate::files::sync::{Checkpointer, Syncer};
use crate::files::{start, wal};
use crate::oplog;
use crate::shared::{FILE_NAME, Options, Shared};
use crate::worker::SqliteStore;
use crate::write::{self, WriterHandle};
use error::{Code, Error, Result};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use store::{ChangeObserver, DocumentStore, Engine};

/// Locked while the directory is in use. The kernel releases the lock when the process ends, in
/// whatever way.
const LOCK_NAME: &str = "selkie.lock";

pub struct SqliteEngine {
    shared: Arc<Shared>,
    writer: WriterHandle,
    threads: Mutex<Option<Threads>>,
}

/// The threads, stopped in this order: each passes its remaining work to the next.
struct Threads {
    writer: std::thread::JoinHandle<()>,
    syncer: Syncer,
    checkpointer: Checkpointer,
    _lock: File,
}

/// Opens the store in a directory, which is created if it does not exist.
///
/// Fails with a sentence for the operator: the directory is in use, is not writable, or has other
/// content.
pub fn open(directory: &Path, options: Options) -> Result<Arc<dyn Engine>> {
    let refuse = |what: &str, error: &dyn std::fmt::Display| {
        Error::new(Code::OPERATION_FAILED, format!("cannot {what} {}: {error}", directory.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| refuse("create the data directory", &error))?;
    let lock = lock_directory(directory)?;
    let path = directory.join(FILE_NAME);
    let mut files = start::before_opening(&path, &options)?;
    let open = || {
        let opened = connection::open(&path, Role::Writer, &options);
        opened.map_err(|error| refuse("open the database in", &error))
    };
    let mut connection = open()?;
    if !connection::prepare_file(&connection).map_err(|error| refuse("read the database in", &error))? {
        let message = format!(
            "{} was not made by this version of Selkie: start the version that made it, or choose another data directory",
            path.display()
        );
        return Err(Error::new(Code::UNSUPPORTED_FORMAT, message));
    }
    if !files.is_checked() {
        drop(connection);
        add_missing_checksums(&path, &options)?;
        files = start::before_opening(&path, &options)?;
        connection = open()?;
    }
    if connection::has_escaped_names(&connection).map_err(|error| refuse("read the database in", &error))? {
        document::names::note_escaped();
    }
    let (mut catalog, damage) = Catalog::load(&connection)?;
    damage.findings.iter().for_each(|finding| tracing::error!("{}: {finding}", path.display()));
    if damage.indexes_unknown {
        files.health.fail("the catalog is damaged, and not all indexes are known");
    }
    let oplog = oplog::start(&connection, &mut catalog, options.oplog.as_ref())
        .map_err(|failure| refuse("open the oplog in", &Error::from(failure)))?;
    let catalog = Arc::new(catalog);
    // The files exist once something was read.
    let watched = [path.clone(), wal::path(&path)];
    files.health.watch(watched).map_err(|error| refuse("find the files in", &error))?;
    let shared = Arc::new(Shared::new(path, options, files, catalog, oplog));
    let checkpointer = Checkpointer::start(&shared).map_err(engine_error)?;
    let syncer = Syncer::start(shared.files.clone()).map_err(|error| refuse("open the log in", &error))?;
    let (writer, thread) = write::start(connection, shared.clone(), syncer.handle(), checkpointer.handle())
        .map_err(|failure| refuse("start writing in", &Error::from(failure)))?;
    let threads = Mutex::new(Some(Threads { writer: thread, syncer, checkpointer, _lock: lock }));
    Ok(Arc::new(SqliteEngine { shared, writer, threads }))
}

/// Adds checksums to a file of an earlier version if that is quick, and otherwise logs how to add
/// them.
fn add_missing_checksums(path: &Path, options: &Options) -> Result<()> {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if bytes > options.add_checksums_up_to {
        tracing::warn!(
            "{} was made by an earlier version, without checksums: damage to it may go unnoticed. Stop the server and run \
             `selkie verify --add-checksums` to write it anew with checksums",
            path.display()
        );
        return Ok(());
    }
    match start::add_checksums(path, options) {
        Ok(()) => tracing::info!("{} was made by an earlier version, and has checksums now", path.display()),
        Err(error) => tracing::warn!("{}; going on without", error.message()),
    }
    Ok(())
}

pub fn lock_directory(directory: &Path) -> Result<File> {
    let path = directory.join(LOCK_NAME);
    let fail = |message: String| Err(Error::new(Code::OPERATION_FAILED, message));
    let options = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = match options {
        Ok(file) => file,
        Err(error) => return fail(format!("cannot write in the data directory {}: {error}", directory.display())),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // The file names the process for the operator; if it cannot be read, nothing else
            // changes.
            let _ = file.read_to_string(&mut holder);
            let holder = match holder.trim() {
                "" => String::new(),
                process => format!(" (process {process})"),
            };
            return fail(format!(
                "the data directory {} is in use by another Selkie{holder}: stop that one, or choose another directory",
                directory.display()
            ));
        }
        Err(TryLockError::Error(error)) => return fail(format!("cannot lock {}: {error}", path.display())),
    }
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
    Ok(file)
}

impl Engine for SqliteEngine {
    fn open(self: Arc<Self>) -> Result<Rc<dyn DocumentStore>> {
        Ok(Rc::new(SqliteStore::open(self.shared.clone(), self.writer.clone())?))
    }

    fn observe_changes(&self, observer: Arc<dyn ChangeObserver>) {
        self.shared.change_observer.set(observer);
    }

    fn close(&self) {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(threads) = threads else { return };
        self.writer.stop();
        // A thread that panicked has logged it; there is nothing left to wait for.
        let _ = threads.writer.join();
        threads.syncer.stop();
        threads.checkpointer.stop();
    }

    fn describe(&self) -> String {
        format!("SQLite {}", rusqlite::version())
    }
}

impl Drop for SqliteEngine {
    fn drop(&mut self) {
        self.close();
    }
}
