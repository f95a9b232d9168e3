//! A VFS between SQLite and `unix-excl`.
//!
//! The other VFS opens a file, in the same memory; then its table of methods is replaced by ours,
//! whose functions call the replaced ones. Our data of a file, [`Extra`], follows the other VFS's.

use super::{FRAME_HEADER_BYTES, FileState, LOG_HEADER_BYTES, checksum, state_of};
use checksum::Trailer;
use rusqlite::ffi;
use std::cell::RefCell;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The name under which connections request the VFS.
pub const VFS: &str = "selkie";
const NAME: &CStr = c"selkie";
const BELOW_NAME: &CStr = c"unix-excl";

/// The VFS below, and the size of its part of a file's memory.
static BELOW: AtomicPtr<ffi::sqlite3_vfs> = AtomicPtr::new(null_mut());
static BELOW_BYTES: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Database,
    Log,
}

struct Extra {
    kind: Kind,
    methods: *const ffi::sqlite3_io_methods,
    state: Arc<FileState>,
}

/// Registers the VFS with SQLite. Returns false if SQLite has no `unix-excl`, or refuses.
pub fn register() -> bool {
    static DONE: OnceLock<bool> = OnceLock::new();
    *DONE.get_or_init(|| {
        // SAFETY: SQLite's list of VFS is behind its own lock, and the entries live as long as the
        // process.
        unsafe {
            if ffi::sqlite3_initialize() != ffi::SQLITE_OK {
                return false;
            }
            let below = ffi::sqlite3_vfs_find(BELOW_NAME.as_ptr());
            if below.is_null() {
                return false;
            }
            BELOW.store(below, Ordering::Release);
            let bytes = ((*below).szOsFile as usize).next_multiple_of(align_of::<Extra>());
            BELOW_BYTES.store(bytes, Ordering::Release);
            let mut vfs = Box::new(*below);
            vfs.szOsFile = (bytes + size_of::<Extra>()) as c_int;
            vfs.zName = NAME.as_ptr();
            vfs.pNext = null_mut();
            vfs.xOpen = Some(open);
            vfs.xDelete = Some(delete);
            ffi::sqlite3_vfs_register(Box::leak(vfs), 0) == ffi::SQLITE_OK
        }
    })
}

/// Makes SQLite reserve bytes for checksums in pages of a database that is to be created or
/// vacuumed.
pub fn reserve_bytes(connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    let mut bytes = checksum::TRAILER_BYTES as c_int;
    // SAFETY: the handle is open, and the operation reads and writes an int.
    let code = unsafe {
        let bytes = (&raw mut bytes).cast();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_RESERVE_BYTES, bytes)
    };
    match code {
        ffi::SQLITE_OK => Ok(()),
        code => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)),
    }
}

/// # Safety
/// The pointer is null, or a C string.
// SAFETY: for callers, as said above.
unsafe fn path_of(name: *const c_char) -> Option<PathBuf> {
    // SAFETY: as the caller says.
    (!name.is_null()).then(|| PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes())))
}

/// Returns the database that a log belongs to.
fn database_of(log: &Path) -> Option<PathBuf> {
    let name = log.as_os_str().as_bytes().strip_suffix(b"-wal")?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

// SAFETY: only SQLite calls it, with what its interface of a VFS promises.
unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let below = BELOW.load(Ordering::Acquire);
    // SAFETY: SQLite passes what the VFS below expects; its memory is the first part of the file's,
    // and the rest is ours.
    unsafe {
        let Some(open) = (*below).xOpen else { return ffi::SQLITE_CANTOPEN };
        let code = open(below, name, file, flags, out_flags);
        let path = path_of(name);
        let (kind, path) = match path {
            Some(path) if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 => (Kind::Database, Some(path)),
            Some(path) if flags & ffi::SQLITE_OPEN_WAL != 0 => (Kind::Log, database_of(&path)),
            _ => return code,
        };
        let (Some(path), ffi::SQLITE_OK, false) = (path, code, (*file).pMethods.is_null()) else { return code };
        let methods = (*file).pMethods;
        extra_at(file).write(Extra { kind, methods, state: state_of(&path) });
        (*file).pMethods = methods_over(kind, &*methods);
        code
    }
}

// SAFETY: only SQLite calls it, with what its interface of a VFS promises.
unsafe extern "C" fn delete(_vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    let below = BELOW.load(Ordering::Acquire);
    // SAFETY: SQLite passes what the VFS below expects.
    unsafe {
        if let Some(database) = path_of(name).and_then(|path| database_of(&path)) {
            state_of(&database).log().begin([0; 8], 0);
        }
        (*below).xDelete.map_or(ffi::SQLITE_IOERR_DELETE, |delete| delete(below, name, sync_directory))
    }
}

/// Returns the table of methods that replaces another one. All databases share one table below, and
/// so do all logs, which are not locked.
fn methods_over(kind: Kind, methods: &ffi::sqlite3_io_methods) -> &'static ffi::sqlite3_io_methods {
    static DATABASES: OnceLock<ffi::sqlite3_io_methods> = OnceLock::new();
    static LOGS: OnceLock<ffi::sqlite3_io_methods> = OnceLock::new();
    let table = if kind == Kind::Database { &DATABASES } else { &LOGS };
    table.get_or_init(|| ffi::sqlite3_io_methods {
        xClose: Some(close),
        xRead: Some(read),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        xFetch: methods.xFetch.map(|_| fetch as _),
        ..*methods
    })
}

fn extra_at(file: *mut ffi::sqlite3_file) -> *mut Extra {
    file.cast::<u8>().wrapping_add(BELOW_BYTES.load(Ordering::Relaxed)).cast()
}

/// # Safety
/// The file was opened by [`open`], which gave it our methods.
// SAFETY: for callers, as said above.
unsafe fn extra<'f>(file: *mut ffi::sqlite3_file) -> &'f Extra {
    // SAFETY: written by `open`, and only dropped by `close`.
    unsafe { &*extra_at(file) }
}

// SAFETY: only SQLite calls it, with what its interface of a VFS promises.
unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once, and does not use it afterwards.
    unsafe {
        let extra = extra_at(file).read();
        (*extra.methods).xClose.map_or(ffi::SQLITE_OK, |close| close(file))
    }
}

// SAFETY: only SQLite calls it, with what its interface of a VFS promises.
unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, to: *mut c_void, amount: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite passes a buffer of this length.
    unsafe {
        let extra = extra(file);
        let Some(read) = (*extra.methods).xRead else { return ffi::SQLITE_IOERR_READ };
        let (length, start) = (amount.max(0) as usize, offset.max(0) as u64);
        match extra.kind {
            Kind::Database => {
                if let Some(page_bytes) = extra.state.checked_page_bytes()
                    && length < page_bytes
                    && start > 0
                    && start.is_multiple_of(page_bytes as u64)
                    && !extra.state.verified.is_recent(start / page_bytes as u64 + 1)
                {
                    return read_part(file, extra, to.cast(), length, start, page_bytes);
                }
                let code = read(file, to, amount, offset);
                let page_bytes = extra.state.checked_page_bytes();
                let whole = page_bytes == Some(length) && start.is_multiple_of(length as u64);
                match code {
                    ffi::SQLITE_OK if whole => verify(extra, std::slice::from_raw_parts(to.cast(), length), start),
                    // The page is behind the file's end: the file was truncated.
                    ffi::SQLITE_IOERR_SHORT_READ if whole && start > 0 => {
                        extra.state.report(start / length as u64 + 1);
                        ffi::SQLITE_IOERR_DATA
                    }
                    code => code,
                }
            }
            Kind::Log => read(file, to, amount, offset),
        }
    }
}

/// Reads the beginning of a page: SQLite reads only as much of an overflow page as it copies.
///
/// # Safety
/// As for [`read`].
// SAFETY: for callers, as said above.
unsafe fn read_part(
    file: *mut ffi::sqlite3_file,
    extra: &Extra,
    to: *mut u8,
    length: usize,
    start: u64,
    page_bytes: usize,
) -> c_int {
    thread_local! {
        static PAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    PAGE.with_borrow_mut(|page| {
        page.resize(page_bytes, 0);
        // SAFETY: the buffers have the given lengths.
        unsafe {
            let Some(read) = (*extra.methods).xRead else { return ffi::SQLITE_IOERR_READ };
            match read(file, page.as_mut_ptr().cast(), page_bytes as c_int, start as i64) {
                ffi::SQLITE_OK => {
                    let code = verify(extra, page, start);
                    if code == ffi::SQLITE_OK {
                        to.copy_from_nonoverlapping(page.as_ptr(), length);
                    }
                    code
                }
                ffi::SQLITE_IOERR_SHORT_READ => {
                    extra.state.report(start / page_bytes as u64 + 1);
                    ffi::SQLITE_IOERR_DATA
                }
                code => code,
            }
        }
    })
}

/// Verifies a page of the database, unless it was verified recently.
fn verify(extra: &Extra, page: &[u8], start: u64) -> c_int {
    let number = start / page.len() as u64 + 1;
    if extra.state.verified.is_recent(number) {
        return ffi::SQLITE_OK;
    }
    if checksum::trailer(number as u32, page) == Trailer::Right {
        extra.state.verified.note(number);
        return ffi::SQLITE_OK;
    }
    extra.state.report(number);
    ffi::SQLITE_IOERR_DATA
}

// SAFETY: only SQLite calls it, with what its interface of a VFS promises.
unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, from: *const c_void, amount: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite passes a buffer of this length. It does not use the bytes at a page's end,
    // which it was told to reserve.
    unsafe {
        let extra = extra(file);
        let Some(write) = (*extra.methods).xWrite else { return ffi::SQLITE_IOERR_WRITE };
        let (length, start) = (amount.max(0) as usize, offset.max(0) as u64);
        match extra.kind {
            Kind::Database => {
                let bytes = std::slice::from_raw_parts_mut(from.cast_mut().cast::<u8>(), length);
                if start == 0 && checksum::is_sqlite(bytes) {
                    match bytes.get(20) == Some(&(checksum::TRAILER_BYTES as u8)) {
                        true => extra.state.set_checked(length),
                        // Without reserved bytes, a checksum would overwrite content.
                        false if extra.state.is_checked() => return ffi::SQLITE_IOERR_WRITE,
                        false => {}
                    }
                }
                if extra.state.checked_page_bytes() == Some(length) && start.is_multiple_of(length as u64) {
                    checksum::seal((start / length as u64 + 1) as u32, bytes);
                }
                write(file, from, amount, offset)
            }
            Kind::Log => {
                let bytes = std::slice::from_raw_parts(from.cast::<u8>(), length);
                before_log_write(extra, bytes, start);
                let code = write(file, from, amount, offset);
                if code == ffi::SQLITE_OK {
                    after_log_write(extra, length, start);
                }
                code
            }
        }
    }
}

fn before_log_write(extra: &Extra, bytes: &[u8], start: u64) {
    let state = &extra.state;
    if start == 0 {
        if let (Some(salts), Some(page)) = (bytes.get(16..24), bytes.get(8..12)) {
            let salts = salts.try_into().unwrap_or_default();
            let page_bytes = u32::from_be_bytes(page.try_into().unwrap_or_default());
            state.page_bytes.store(page_bytes as usize, Ordering::Relaxed);
            state.log().begin(salts, LOG_HEADER_BYTES);
        }
    } else if bytes.len() as u64 == FRAME_HEADER_BYTES {
        let pages = bytes.get(4..8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
        state.commit_header.store(if pages == 0 { 0 } else { start }, Ordering::Relaxed);
    }
}

/// A commit is in the log once the page of its last header is.
fn after_log_write(extra: &Extra, length: usize, start: u64) {
    let header = extra.state.commit_header.load(Ordering::Relaxed);
    if header != 0 && header + FRAME_HEADER_BYTES == start {
        extra.state.commit_header.store(0, Ordering::Relaxed);
        extra.state.log().commit_end = start + length as u64;
    }
}

// SAFETY: only SQLite calls it, with what its interface of a VFS promises.
unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: SQLite passes an open file.
    unsafe {
        let extra = extra(file);
        if extra.kind == Kind::Log && size == 0 {
            // Synced before the log is emptied, so that an empty log is never taken for a lost one.
            extra.state.log().begin([0; 8], 0);
        }
        (*extra.methods).xTruncate.map_or(ffi::SQLITE_IOERR_TRUNCATE, |truncate| truncate(file, size))
    }
}

// SAFETY: only SQLite calls it, with what its interface of a VFS promises.
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite passes an open file.
    unsafe {
        let extra = extra(file);
        let code = (*extra.methods).xSync.map_or(ffi::SQLITE_IOERR_FSYNC, |sync| sync(file, flags));
        if code != ffi::SQLITE_OK {
            extra.state.health.fail(&format!("{} could not be synced to disk", extra.state.path.display()));
        }
        code
    }
}

// SAFETY: only SQLite calls it, with what its interface of a VFS promises.
unsafe extern "C" fn fetch(file: *mut ffi::sqlite3_file, offset: i64, amount: c_int, to: *mut *mut c_void) -> c_int {
    // SAFETY: the mapping is as long as requested.
    unsafe {
        *to = null_mut();
        let extra = extra(file);
        let Some(fetch) = (*extra.methods).xFetch else { return ffi::SQLITE_OK };
        let code = fetch(file, offset, amount, to);
        let (length, start) = (amount.max(0) as usize, offset.max(0) as u64);
        let page = (*to).cast_const().cast::<u8>();
        let whole = extra.state.checked_page_bytes() == Some(length) && start.is_multiple_of(length as u64);
        if code != ffi::SQLITE_OK || page.is_null() || extra.kind != Kind::Database || !whole {
            return code;
        }
        let code = verify(extra, std::slice::from_raw_parts(page, length), start);
        if code != ffi::SQLITE_OK {
            if let Some(unfetch) = (*extra.methods).xUnfetch {
                unfetch(file, offset, *to);
            }
            *to = null_mut();
        }
        code
    }
}
