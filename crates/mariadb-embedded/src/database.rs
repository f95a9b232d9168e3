//! Starts the library, once in a process, and stops it when its sessions are closed.

use crate::captured::Captured;
use crate::directory::{self, Directory};
use crate::session::{Refused, Rows, Session};
use crate::{ffi, thread};
use mariadb_wire::row::TextRow;
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// An options file in the data directory (sections `server` and `embedded`), which may change
/// [`OPTIONS`].
const OPTIONS_FILE: &str = "selkie.cnf";

/// The directory of temporary tables: servers that share one remove each other's tables.
const TEMPORARY: &str = ".selkie-tmp";

/// Options that the file may change. Statistics of tables are kept in memory, because only an
/// ordinary server creates the tables for them. (Without these, each statement would look for them
/// again, which doubles the time of a read by key.) Documents of 16 MiB fit into a packet as JSON;
/// names are compared as written. The adaptive hash index saves a search of the table's tree for
/// each document found by another index: 1,000 small ones take a quarter less.
const OPTIONS: [&str; 14] = [
    "--character-set-server=utf8mb4",
    "--default-storage-engine=InnoDB",
    "--max-allowed-packet=256M",
    "--max-prepared-stmt-count=1048576",
    "--innodb-stats-persistent=OFF",
    "--innodb-adaptive-hash-index=ON",
    "--use-stat-tables=NEVER",
    "--performance-schema=OFF",
    "--query-cache-type=OFF",
    "--query-cache-size=0",
    "--key-buffer-size=1M",
    "--aria-pagecache-buffer-size=8M",
    "--lower-case-table-names=0",
    "--max-connections=100000",
];

/// Options without which data would not survive a kill, or other parts of the process would be
/// affected.
///
/// The library's working directory is not the data directory, so its recovery log has absolute file
/// names, which it looks up below the data directory. A table with a file of its own, created
/// shortly before a kill, is then not found, and nothing is recovered. Tables that share one file
/// have no such names.
///
/// The limit of the stack includes the part that the caller has used already.
const FIXED: [&str; 3] = ["--innodb-file-per-table=OFF", "--skip-log-bin", "--thread-stack=7M"];

/// How long writing the first pages, and ending the remaining sessions, may take.
const TIMEOUT: Duration = Duration::from_secs(30);
const CHECK_EVERY: Duration = Duration::from_millis(5);

/// The library keeps its state in global variables: it is started once.
static STARTED: AtomicBool = AtomicBool::new(false);

/// MariaDB in this process.
pub struct Database {
    /// `10.11.19-MariaDB`.
    version: String,
    sessions: AtomicUsize,
    /// Set when no new sessions are allowed.
    closing: AtomicBool,
    /// Locked while MariaDB uses it.
    directory: Mutex<Option<Directory>>,
}

/// The stack of a thread that executes statements; larger than the limit given to the library.
pub const STACK_BYTES: usize = 8 << 20;

/// The result of stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    Cleanly,
    /// Statements are still running; the next start recovers as after a kill.
    StillBusy,
}

impl Database {
    /// Opens a data directory, creating it if missing.
    ///
    /// Errors are one sentence that says what to do, with MariaDB's own messages if there are any.
    pub fn open(path: &Path) -> Result<Arc<Database>, String> {
        let version = library_version();
        let mut directory = Directory::claim(path, &version)?;
        if STARTED.swap(true, Ordering::AcqRel) {
            return Err("MariaDB was started in this process before, which is possible only once".into());
        }
        on_own_thread(|| start(&directory.path))?;
        let database = Arc::new(Database {
            version,
            sessions: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            directory: Mutex::default(),
        });
        on_own_thread(|| {
            if directory.is_new {
                write_first_pages(&database)?;
            }
            directory.mark_ready(&database.version)
        })?;
        *database.directory.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory);
        Ok(database)
    }

    /// Returns the version of the library: `10.11.19-MariaDB`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the first two numbers of the version, 10 and 11.
    pub fn series(&self) -> (u16, u16) {
        directory::release(&self.version).unwrap_or_default()
    }

    /// Opens a session.
    pub fn connect(self: &Arc<Self>) -> Result<Session, Refused> {
        // Counted before checking, as `close` sets the flag before it reads the count.
        self.sessions.fetch_add(1, Ordering::SeqCst);
        let session = if self.closing.load(Ordering::SeqCst) {
            /// ER_SERVER_SHUTDOWN
            const SHUTDOWN: u16 = 1053;
            Err(Refused { code: SHUTDOWN, message: "MariaDB is being stopped".into() })
        } else {
            Session::open(self.clone())
        };
        if session.is_err() {
            self.session_ended();
        }
        session
    }

    /// Kills the session with this id; its statement fails.
    pub fn kill(self: &Arc<Self>, id: u64) {
        let killed = self.connect().and_then(|mut session| session.query(&format!("KILL {id}"), &mut Rows::default()));
        if let Err(refused) = killed {
            // The session has ended by itself.
            tracing::debug!(id, "not killed: {}", refused.message);
        }
    }

    /// Stops MariaDB, once the sessions and the threads that used them have ended.
    pub fn close(&self) -> Closed {
        self.closing.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + TIMEOUT;
        while self.sessions.load(Ordering::SeqCst) > 0 || thread::registered() > 0 {
            if Instant::now() > deadline {
                return Closed::StillBusy;
            }
            sleep(CHECK_EVERY);
        }
        // The directory is released last.
        let directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner).take();
        if directory.is_some() {
            // Not by `on_own_thread`: the library itself frees the thread's data.
            let stopping =
                std::thread::Builder::new().name("mariadb-stop".into()).stack_size(STACK_BYTES).spawn(|| {
                    // SAFETY: was started; no session is left, and no more begins.
                    unsafe { ffi::mysql_server_end() };
                });
            if stopping.map(std::thread::JoinHandle::join).is_err() {
                return Closed::StillBusy;
            }
            // An ordinary server would list it as a database.
            directory.iter().for_each(|directory| drop(std::fs::remove_dir_all(directory.path.join(TEMPORARY))));
        }
        Closed::Cleanly
    }

    pub(crate) fn session_ended(&self) {
        self.sessions.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns the version of the linked library, `10.11.19-MariaDB`.
fn library_version() -> String {
    // SAFETY: callable before the start; the returned text is static.
    unsafe { CStr::from_ptr(ffi::mysql_get_client_info()) }.to_string_lossy().into_owned()
}

/// Runs `work` on a thread of its own: the library is slow on the process's first thread.
fn on_own_thread<T: Send>(work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("mariadb-start".into()).stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("the start of MariaDB ended in a panic".into()))
    })
}

fn start(path: &Path) -> Result<(), String> {
    let mut arguments = arguments(path)?;
    let mut pointers: Vec<*mut c_char> = arguments.iter_mut().map(|text| text.as_ptr().cast_mut()).collect();
    let count = pointers.len() as i32;
    pointers.push(std::ptr::null_mut());
    let captured = Captured::begin().map_err(|error| format!("cannot capture MariaDB's messages: {error}"))?;
    // The library changes the process's umask.
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    // SAFETY: the first call of the library (`STARTED`). The arguments end with a null pointer, and
    // are never freed, because the library keeps pointers to them.
    let failed = unsafe { ffi::embedded_start(count, pointers.as_mut_ptr()) } != 0;
    rustix::process::umask(mask);
    // The library has registered this thread.
    thread::enter();
    let messages = captured.end();
    std::mem::forget((arguments, pointers));
    if failed {
        return Err(startup_error(path, &messages));
    }
    for message in messages.iter().filter(|message| !is_expected(message)) {
        tracing::warn!("MariaDB: {message}");
    }
    Ok(())
}

fn arguments(path: &Path) -> Result<Vec<CString>, String> {
    let shown = path.to_str().ok_or_else(|| format!("the path {} is not UTF-8", path.display()))?;
    let mut all = vec!["selkie".to_owned()];
    let file_options = match std::fs::read_to_string(path.join(OPTIONS_FILE)) {
        Ok(text) => {
            all.push(format!("--defaults-file={shown}/{OPTIONS_FILE}"));
            text
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            all.push("--no-defaults".into());
            String::new()
        }
        Err(error) => return Err(format!("cannot read {shown}/{OPTIONS_FILE}: {error}")),
    };
    // The command line has precedence over the file.
    all.extend(OPTIONS.iter().filter(|option| !is_set_in(option, &file_options)).map(|option| (*option).to_owned()));
    all.extend(FIXED.iter().map(|option| (*option).to_owned()));
    let temporary = path.join(TEMPORARY);
    std::fs::create_dir_all(&temporary).map_err(|error| format!("cannot make {}: {error}", temporary.display()))?;
    all.extend([
        format!("--datadir={shown}"),
        format!("--tmpdir={shown}/{TEMPORARY}"),
        format!("--ignore-db-dirs={TEMPORARY}"),
    ]);
    let terminated = all
        .into_iter()
        .map(|argument| CString::new(argument).map_err(|_| format!("the path {shown} contains a NUL character")));
    terminated.collect()
}

/// Returns whether an options file sets this option, with dashes or underscores.
fn is_set_in(option: &str, file: &str) -> bool {
    let name =
        |text: &str| text.trim().trim_start_matches("--").split('=').next().unwrap_or("").trim().replace('_', "-");
    file.lines().any(|line| name(line) == name(option))
}

/// Returns whether a message is about system tables of an ordinary server, which are not needed.
fn is_expected(message: &str) -> bool {
    message.contains("mysql.plugin") || message.contains("mysql.func") || message.contains("[Note]")
}

fn startup_error(path: &Path, messages: &[String]) -> String {
    let reasons: Vec<&str> = messages.iter().filter(|message| !is_expected(message)).map(String::as_str).collect();
    let reasons = if reasons.is_empty() { "it does not say why".to_owned() } else { reasons.join("; ") };
    format!("MariaDB cannot open {}: {reasons}", path.display())
}

/// Writes a new data directory to disk. InnoDB creates it in memory, and its log is not enough to
/// recreate it: a server killed before its first shutdown never starts again.
fn write_first_pages(database: &Arc<Database>) -> Result<(), String> {
    let failed = |refused: Refused| format!("MariaDB cannot write a new data directory: {}", refused.message);
    let mut session = database.connect().map_err(failed)?;
    let mut rows = Rows::default();
    let mut run = |sql: &str| -> Result<u64, String> {
        session.query(sql, &mut rows).map_err(failed)?;
        let number = rows.range(0).and_then(|range| rows.payloads.get(range)).map(|payload| {
            let value = TextRow::new(payload).next_bytes().ok().flatten().unwrap_or_default();
            String::from_utf8_lossy(value).parse().unwrap_or(0)
        });
        Ok(number.unwrap_or(0))
    };
    const SETTING: &str = "SELECT CAST(@@global.innodb_max_dirty_pages_pct AS UNSIGNED)";
    const DIRTY: &str = "SELECT CAST(SUM(variable_value) AS UNSIGNED) FROM information_schema.global_status WHERE variable_name IN \
                         ('Innodb_buffer_pool_pages_dirty', 'Innodb_checkpoint_age')";
    // The record of the checkpoint itself is always newer than the checkpoint.
    const CHECKPOINT_BYTES: u64 = 256;
    let before = run(SETTING)?;
    run("SET GLOBAL innodb_max_dirty_pages_pct = 0")?;
    let deadline = Instant::now() + TIMEOUT;
    while run(DIRTY)? > CHECKPOINT_BYTES {
        if Instant::now() > deadline {
            return Err(format!("MariaDB did not write a new data directory within {} s", TIMEOUT.as_secs()));
        }
        sleep(CHECK_EVERY);
    }
    run(&format!("SET GLOBAL innodb_max_dirty_pages_pct = {before}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_overrides_options() {
        let file = "[embedded]\n max_allowed_packet = 1G\n#key-buffer-size=3M\ninnodb-buffer-pool-size=1G\n";
        assert!(is_set_in("--max-allowed-packet=256M", file));
        assert!(!is_set_in("--key-buffer-size=1M", file));
        assert!(is_set_in("--innodb-buffer-pool-size", file));
    }

    #[test]
    fn messages_about_system_tables_are_ignored() {
        let messages =
            ["Could not open mysql.plugin table: x".to_owned(), "InnoDB: no".to_owned(), "Unknown engine".to_owned()];
        assert_eq!(startup_error(Path::new("/d"), &messages), "MariaDB cannot open /d: InnoDB: no; Unknown engine");
    }
}
