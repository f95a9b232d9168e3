//! `selkie verify`: reads everything in a data directory that no server uses, and reports damage.
//!
//! Nothing is written: the log is read with the file, and stays as it is.

use crate::catalog::Catalog;
use crate::check::validate;
use crate::connection::{self, Role};
use crate::engine;
use crate::failure::{engine_error, is_damage};
use crate::files::checksum::{self, Trailer};
use crate::files::{FileState, FirstPage, first_page, start, wal};
use crate::shared::{FILE_NAME, Options};
use ahash::AHashSet;
use error::{Code, Error, Result};
use rusqlite::config::DbConfig;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// SQLite never uses the page with this byte (its file format, section 1.2).
const LOCK_BYTE: u64 = 0x4000_0000;

/// Damaged pages that are reported one by one.
const PAGES_REPORTED: u64 = 100;

#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    pub collections: usize,
    pub pages: u64,
    /// The number of findings.
    pub findings: u64,
    /// Pages have checksums.
    pub checked: bool,
}

/// Passes each finding to `tell` as a sentence. Fails if there is nothing to read, or a server uses
/// the directory.
pub fn verify(directory: &Path, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let path = directory.join(FILE_NAME);
    let refuse = |error: &dyn std::fmt::Display| {
        Error::new(Code::OPERATION_FAILED, format!("cannot read the database in {}: {error}", directory.display()))
    };
    if !path.exists() {
        return Err(refuse(&"there is none"));
    }
    let _lock = engine::lock_directory(directory)?;
    let mut report = Report::default();
    let mut find = |report: &mut Report, finding: &str| {
        report.findings += 1;
        tell(finding);
    };
    let inspection = wal::inspect(&path).map_err(|error| refuse(&error))?;
    if let Some(damage) = &inspection.damage {
        find(&mut report, &format!("the write-ahead log {} is damaged: {damage}", wal::path(&path).display()));
    }
    let first = first_page(&path).map_err(|error| refuse(&error))?;
    let page_bytes = match first {
        FirstPage::Checked(page_bytes) => Some(page_bytes),
        FirstPage::Damaged => Some(Options::default().page_bytes as usize),
        FirstPage::Missing | FirstPage::Unchecked => None,
    };
    if let Some(page_bytes) = page_bytes {
        report.checked = true;
        let read = check_pages(&path, page_bytes, &inspection.pages, &mut report, &mut find);
        read.map_err(|error| refuse(&error))?;
    }
    if let Err(error) = check_collections(&path, &mut report, &mut find) {
        find(&mut report, error.message());
    }
    Ok(report)
}

type Find<'f> = dyn FnMut(&mut Report, &str) + 'f;

/// Verifies the checksum of each page, used or not, except those that are in the log.
fn check_pages(
    path: &Path,
    page_bytes: usize,
    in_log: &AHashSet<u32>,
    report: &mut Report,
    find: &mut Find<'_>,
) -> std::io::Result<()> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut from = BufReader::with_capacity(1 << 20, file);
    let mut page = vec![0; page_bytes];
    let mut damaged = 0_u64;
    let pages = length / page_bytes as u64;
    for number in 1..=pages {
        from.read_exact(&mut page)?;
        let unused = number == LOCK_BYTE / page_bytes as u64 + 1;
        if unused || in_log.contains(&(number as u32)) || checksum::trailer(number as u32, &page) == Trailer::Right {
            continue;
        }
        damaged += 1;
        if damaged <= PAGES_REPORTED {
            find(report, &format!("page {number} of {} is damaged", path.display()));
        } else {
            report.findings += 1;
        }
    }
    report.pages = pages;
    if length % page_bytes as u64 != 0 {
        find(report, &format!("{} ends in the middle of a page", path.display()));
    }
    Ok(())
}

/// Validates each collection, so that damage is reported by name.
fn check_collections(path: &Path, report: &mut Report, find: &mut Find<'_>) -> Result<()> {
    let options = Options::default();
    let _state = FileState::register(path, options.page_bytes as usize)
        .map_err(|error| Error::new(Code::OPERATION_FAILED, error.to_string()))?;
    let connection = connection::open(path, Role::Reader, &options).map_err(engine_error)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(engine_error)?;
    let (catalog, damage) = Catalog::load(&connection)?;
    damage.findings.iter().for_each(|finding| find(report, finding));
    let mut collections: Vec<_> = catalog.collections().collect();
    collections.sort_by(|left, right| left.namespace.cmp(&right.namespace));
    report.collections = collections.len();
    for collection in collections {
        match validate::validate(&connection, collection) {
            Ok(validation) => {
                for finding in validation.findings {
                    find(report, &format!("{}: {finding}", collection.namespace));
                }
            }
            Err(failure) => find(report, &format!("{}: {}", collection.namespace, Error::from(failure).message())),
        }
    }
    for table in ["retryable_writes", "dropped", "late"] {
        let read = || -> rusqlite::Result<()> {
            let mut statement = connection.prepare(&format!("SELECT * FROM {table}"))?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            Ok(())
        };
        match read() {
            Err(error) if is_damage(&error) => find(report, &format!("the table {table} cannot be read: {error}")),
            _ => {}
        }
    }
    Ok(())
}

/// Rewrites the file in a data directory that no server uses, with checksums. Does nothing if it
/// has checksums.
pub fn add_checksums(directory: &Path) -> Result<()> {
    let _lock = engine::lock_directory(directory)?;
    let path = directory.join(FILE_NAME);
    let options = Options::default();
    match start::before_opening(&path, &options)?.is_checked() {
        true => Ok(()),
        false => start::add_checksums(&path, &options),
    }
}
