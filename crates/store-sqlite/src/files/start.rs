//! Checks and repairs of the files before SQLite opens them.

use super::mark::MarkFile;
use super::wal::{self, Inspection};
use super::{FileState, FirstPage, first_page};
use crate::connection::{self, Role};
use crate::shared::Options;
use error::{Code, Error, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Checks for damage that SQLite would ignore. Returns the file's state, by which its pages are
/// verified from now on.
///
/// Fails with a sentence for the operator: acknowledged writes would be lost, or the file's first
/// page is damaged.
pub fn before_opening(path: &Path, options: &Options) -> Result<Arc<FileState>> {
    let refuse = |error: std::io::Error| {
        Error::new(Code::OPERATION_FAILED, format!("cannot read the database in {}: {error}", path.display()))
    };
    let mut inspection = wal::inspect(path).map_err(refuse)?;
    if let Some(damage) = inspection.damage.take() {
        go_on_without(path, options, &inspection, &damage)?;
        inspection = wal::inspect(path).map_err(refuse)?;
        inspection.left = None;
    }
    let first = first_page(path).map_err(refuse)?;
    if first == FirstPage::Damaged && !inspection.pages.contains(&1) {
        return Err(Error::new(
            Code::OPERATION_FAILED,
            format!(
                "the first page of {} is damaged, so that nothing in it can be found: restore it from a backup",
                path.display()
            ),
        ));
    }
    if let (FirstPage::Checked(page_bytes), 0) = (&first, inspection.log.end) {
        restore_length(path, *page_bytes).map_err(refuse)?;
    }
    let state = FileState::register(path, options.page_bytes as usize).map_err(refuse)?;
    state.adopt(&inspection);
    match MarkFile::open(path) {
        Ok(file) => state.set_mark_file(file),
        Err(error) => {
            tracing::warn!(%error, "truncation of the write-ahead log will not be detected: its end cannot be recorded")
        }
    }
    Ok(state)
}

fn go_on_without(path: &Path, options: &Options, inspection: &Inspection, damage: &str) -> Result<()> {
    let log = wal::path(path);
    if !options.accept_lost_writes {
        return Err(Error::new(
            Code::OPERATION_FAILED,
            format!(
                "the write-ahead log {} is damaged: {damage}. Restore the data directory from a backup, or start with \
                 --accept-lost-writes to go on without them; the damaged log is then copied, and `selkie verify` tells what is whole",
                log.display()
            ),
        ));
    }
    tracing::error!(
        "the write-ahead log {} is damaged: {damage}; going on without, as --accept-lost-writes says",
        log.display()
    );
    let copy = wal::set_aside(path, inspection).map_err(|error| {
        Error::new(Code::OPERATION_FAILED, format!("the damaged log {} cannot be copied: {error}", log.display()))
    })?;
    if let Some(copy) = copy {
        tracing::error!("the damaged write-ahead log was copied to {}", copy.display());
    }
    Ok(())
}

/// Restores the length of a truncated file, so that SQLite opens it: the missing pages are then
/// found by their checksums.
fn restore_length(path: &Path, page_bytes: usize) -> std::io::Result<()> {
    let mut header = [0; 100];
    let mut file = File::options().read(true).write(true).open(path)?;
    file.read_exact(&mut header)?;
    let pages = header.get(28..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let (length, wanted) = (file.metadata()?.len(), u64::from(pages) * page_bytes as u64);
    if length < wanted {
        tracing::error!("{} was cut short: of {wanted} bytes there are {length}", path.display());
        file.set_len(wanted)?;
    }
    Ok(())
}

/// Rewrites a file without checksums with checksums. The old file stays until the new one is
/// complete and on disk.
pub fn add_checksums(path: &Path, options: &Options) -> Result<()> {
    let made = path.with_extension("with-checksums");
    let fail = |error: &dyn std::fmt::Display| {
        Error::new(Code::OPERATION_FAILED, format!("cannot add checksums to {}: {error}", path.display()))
    };
    remove_all(&made).map_err(|error| fail(&error))?;
    let done = (|| -> std::result::Result<(), Box<dyn std::error::Error>> {
        let _state = FileState::register(&made, options.page_bytes as usize)?;
        let connection = connection::open(path, Role::Writer, options)?;
        connection.execute("VACUUM INTO ?1", [made.to_string_lossy()])?;
        // Closing moves the old log into the old file.
        connection.close().map_err(|(_, error)| error)?;
        let connection = connection::open(&made, Role::Writer, options)?;
        let whole: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if whole != "ok" {
            return Err(whole.into());
        }
        connection.pragma_update(None, "user_version", connection::FORMAT)?;
        connection.close().map_err(|(_, error)| error)?;
        if !matches!(first_page(&made)?, FirstPage::Checked(_)) {
            return Err("SQLite left no room for them".into());
        }
        File::open(&made)?.sync_all()?;
        std::fs::rename(&made, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())?;
        Ok(())
    })();
    if let Err(error) = done {
        let _ = remove_all(&made);
        return Err(fail(&error));
    }
    Ok(())
}

/// Removes a file and its log and record.
fn remove_all(path: &Path) -> std::io::Result<()> {
    for path in [path.to_owned(), wal::path(path), super::mark::path(path)] {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
