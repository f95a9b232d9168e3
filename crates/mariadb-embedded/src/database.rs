//! The library's life: started once in a process, stopped when its sessions are closed.

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

/// A file of options beside the data (sections `server` and `embedded`), for what follows here to be said otherwise.
const OPTIONS_FILE: &str = "selkie.cnf";

/// Temporary tables: servers that share a directory for them remove one another's.
const TEMPORARY: &str = ".selkie-tmp";

/// Options that the file may change. Statistics of tables are kept in memory, because tables for them are an ordinary server's to make (and
/// where they are missing, each statement would look for them again, which doubles the time of a read by key); documents of 16 MiB fit into a packet as JSON; names are compared as they are written.
/// The adaptive hash index spares a search of the table's tree for each document that is found by another index: 1,000 small ones take a quarter less.
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

/// Options on which it depends that data survives a kill, or that others notice nothing.
///
/// The library does not work in the data directory, so the log that it recovers from names files by their whole path, and it looks for them
/// below the data directory: a table that has a file of its own, and was made shortly before a kill, is then not found, and nothing is
/// recovered. Tables that share one file have no names to be looked for.
///
/// The limit of the stack counts what the caller has used of it already.
const FIXED: [&str; 3] = ["--innodb-file-per-table=OFF", "--skip-log-bin", "--thread-stack=7M"];

/// How long the first pages may take to get on disk, and what is left of sessions to end.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The library keeps its state in global variables: it is started once.
static STARTED: AtomicBool = AtomicBool::new(false);

/// MariaDB in this process.
pub struct Database {
    /// `10.11.19-MariaDB`.
    version: String,
    sessions: AtomicUsize,
    /// Set when no more sessions may begin.
    closing: AtomicBool,
    /// Locked for as long as MariaDB uses it.
    directory: Mutex<Option<Directory>>,
}

/// The stack of a thread that executes statements; more than the library is told.
pub const STACK_BYTES: usize = 8 << 20;

/// How stopping went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    Cleanly,
    /// Statements are still running; the next start recovers as after a kill.
    StillBusy,
}

impl Database {
    /// Opens a data directory, which is made if it is not there.
    ///
    /// Errors are one sentence that says what to do; MariaDB's own messages are part of it where it wrote any.
    pub fn open(path: &Path) -> Result<Arc<Database>, String> {
        let version = library_version();
        let mut directory = Directory::claim(path, &version)?;
        if STARTED.swap(true, Ordering::AcqRel) {
            return Err("MariaDB was started in this process before, which it can be only once".into());
        }
        apart(|| start(&directory.path))?;
        let database = Arc::new(Database {
            version,
            sessions: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            directory: Mutex::default(),
        });
        apart(|| {
            if directory.is_new {
                write_first_pages(&database)?;
            }
            directory.is_ready(&database.version)
        })?;
        *database.directory.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory);
        Ok(database)
    }

    /// The version of the library: `10.11.19-MariaDB`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its first two numbers, 10 and 11.
    pub fn series(&self) -> (u16, u16) {
        directory::release(&self.version).unwrap_or_default()
    }

    /// A session for whoever calls.
    pub fn connect(self: &Arc<Self>) -> Result<Session, Refused> {
        // Counted before it is looked, as `close` sets before it counts.
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

    /// Has the session with this id end its statement, which fails, and take no more.
    pub fn kill(self: &Arc<Self>, id: u64) {
        let killed = self.connect().and_then(|mut session| session.query(&format!("KILL {id}"), &mut Rows::default()));
        if let Err(refused) = killed {
            // It has ended by itself.
            tracing::debug!(id, "not killed: {}", refused.message);
        }
    }

    /// Stops MariaDB, once the sessions and the threads that used them have ended.
    pub fn close(&self) -> Closed {
        self.closing.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + PATIENCE;
        while self.sessions.load(Ordering::SeqCst) > 0 || thread::known() > 0 {
            if Instant::now() > deadline {
                return Closed::StillBusy;
            }
            sleep(LOOK_EVERY);
        }
        // The directory is given up last.
        let directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner).take();
        if directory.is_some() {
            // Not by `apart`: the library itself ends the thread's data.
            let stopping =
                std::thread::Builder::new().name("mariadb-stop".into()).stack_size(STACK_BYTES).spawn(|| {
                    // SAFETY: was started; no session is left, and no more begins.
                    unsafe { ffi::mysql_server_end() };
                });
            if stopping.map(std::thread::JoinHandle::join).is_err() {
                return Closed::StillBusy;
            }
            // To an ordinary server it would be a database with a strange name.
            directory.iter().for_each(|directory| drop(std::fs::remove_dir_all(directory.path.join(TEMPORARY))));
        }
        Closed::Cleanly
    }

    pub(crate) fn session_ended(&self) {
        self.sessions.fetch_sub(1, Ordering::SeqCst);
    }
}

/// `10.11.19-MariaDB`, of the library that was linked.
fn library_version() -> String {
    // SAFETY: needs no start; what it gives lives for ever.
    unsafe { CStr::from_ptr(ffi::mysql_get_client_info()) }.to_string_lossy().into_owned()
}

/// Runs on a thread of its own, which is not the process's first: there the library would be slow.
fn apart<T: Send>(work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
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
    let captured = Captured::begin().map_err(|error| format!("cannot listen to what MariaDB says: {error}"))?;
    // The library sets the process's mask of rights for new files.
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    // SAFETY: the first call of the library (`STARTED`). The arguments end with a null pointer, and live for as long as the process, because
    // the library keeps pointers to them.
    let failed = unsafe { ffi::embedded_start(count, pointers.as_mut_ptr()) } != 0;
    rustix::process::umask(mask);
    // The library has made this thread one of its own.
    thread::enter();
    let said = captured.end();
    std::mem::forget((arguments, pointers));
    if failed {
        return Err(refusal(path, &said));
    }
    for message in said.iter().filter(|message| !is_expected(message)) {
        tracing::warn!("MariaDB: {message}");
    }
    Ok(())
}

fn arguments(path: &Path) -> Result<Vec<CString>, String> {
    let shown = path.to_str().ok_or_else(|| format!("the path {} is not UTF-8", path.display()))?;
    let mut all = vec!["selkie".to_owned()];
    let said = match std::fs::read_to_string(path.join(OPTIONS_FILE)) {
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
    // What is said on a command line goes before what is said in a file.
    all.extend(OPTIONS.iter().filter(|option| !is_said(option, &said)).map(|option| (*option).to_owned()));
    all.extend(FIXED.iter().map(|option| (*option).to_owned()));
    let temporary = path.join(TEMPORARY);
    std::fs::create_dir_all(&temporary).map_err(|error| format!("cannot make {}: {error}", temporary.display()))?;
    all.extend([
        format!("--datadir={shown}"),
        format!("--tmpdir={shown}/{TEMPORARY}"),
        format!("--ignore-db-dirs={TEMPORARY}"),
    ]);
    let terminated = all.into_iter().map(|argument| {
        CString::new(argument).map_err(|_| format!("the path {shown} has a character in it that ends a path"))
    });
    terminated.collect()
}

/// Whether a file of options names this one, in either spelling.
fn is_said(option: &str, file: &str) -> bool {
    let name =
        |text: &str| text.trim().trim_start_matches("--").split('=').next().unwrap_or("").trim().replace('_', "-");
    file.lines().any(|line| name(line) == name(option))
}

/// Tables of an ordinary server, which are not there and not needed.
fn is_expected(message: &str) -> bool {
    message.contains("mysql.plugin") || message.contains("mysql.func") || message.contains("[Note]")
}

fn refusal(path: &Path, said: &[String]) -> String {
    let told: Vec<&str> = said.iter().filter(|message| !is_expected(message)).map(String::as_str).collect();
    let told = if told.is_empty() { "it does not say why".to_owned() } else { told.join("; ") };
    format!("MariaDB cannot open {}: {told}", path.display())
}

/// Has everything that was made written to disk. InnoDB makes a data directory in memory, and what its log says of it is not enough to
/// make it again: a server that is killed before its first shutdown never starts again.
fn write_first_pages(database: &Arc<Database>) -> Result<(), String> {
    let told = |refused: Refused| format!("MariaDB cannot write a new data directory: {}", refused.message);
    let mut session = database.connect().map_err(told)?;
    let mut rows = Rows::default();
    let mut run = |sql: &str| -> Result<u64, String> {
        session.query(sql, &mut rows).map_err(told)?;
        let number = rows.range(0).and_then(|range| rows.payloads.get(range)).map(|payload| {
            let value = TextRow::new(payload).next_bytes().ok().flatten().unwrap_or_default();
            String::from_utf8_lossy(value).parse().unwrap_or(0)
        });
        Ok(number.unwrap_or(0))
    };
    const SETTING: &str = "SELECT CAST(@@global.innodb_max_dirty_pages_pct AS UNSIGNED)";
    const DIRTY: &str = "SELECT CAST(SUM(variable_value) AS UNSIGNED) FROM information_schema.global_status WHERE variable_name IN \
                         ('Innodb_buffer_pool_pages_dirty', 'Innodb_checkpoint_age')";
    // Of the log, a little is always younger than the checkpoint: the note of it.
    const NEXT_TO_NOTHING: u64 = 256;
    let before = run(SETTING)?;
    run("SET GLOBAL innodb_max_dirty_pages_pct = 0")?;
    let deadline = Instant::now() + PATIENCE;
    while run(DIRTY)? > NEXT_TO_NOTHING {
        if Instant::now() > deadline {
            return Err(format!("MariaDB has not written a new data directory within {} s", PATIENCE.as_secs()));
        }
        sleep(LOOK_EVERY);
    }
    run(&format!("SET GLOBAL innodb_max_dirty_pages_pct = {before}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_goes_before_what_may_be_changed() {
        let file = "[embedded]\n max_allowed_packet = 1G\n#key-buffer-size=3M\ninnodb-buffer-pool-size=1G\n";
        assert!(is_said("--max-allowed-packet=256M", file));
        assert!(!is_said("--key-buffer-size=1M", file));
        assert!(is_said("--innodb-buffer-pool-size", file));
    }

    #[test]
    fn what_an_ordinary_server_would_have_is_not_missed() {
        let said =
            ["Could not open mysql.plugin table: x".to_owned(), "InnoDB: no".to_owned(), "Unknown engine".to_owned()];
        assert_eq!(refusal(Path::new("/d"), &said), "MariaDB cannot open /d: InnoDB: no; Unknown engine");
    }
}
