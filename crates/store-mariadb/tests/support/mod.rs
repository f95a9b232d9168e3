//! A MariaDB server of our own, in a directory that goes with it.

pub mod client;

use document::{DocBuf, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use store::{Engine, StoredDoc};
use store_mariadb::{MariaDbEngine, Options};

pub struct Server {
    directory: tempfile::TempDir,
    /// How it is started, besides what all servers have.
    arguments: Vec<String>,
    process: Mutex<Child>,
}

#[allow(dead_code)]
static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());

static INSTALLING: Mutex<()> = Mutex::new(());

/// The tests of one program share a server while any of them runs. `None`, with a message, where
/// MariaDB is not installed.
#[allow(dead_code)]
pub fn server() -> Option<Arc<Server>> {
    let mut shared = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(server) = shared.upgrade() {
        return Some(server);
    }
    let server = Arc::new(Server::start()?);
    *shared = Arc::downgrade(&server);
    Some(server)
}

impl Server {
    #[allow(dead_code)]
    pub fn start() -> Option<Server> {
        Server::start_with(&["--skip-log-bin"])
    }

    /// Starts a server with these arguments.
    pub fn start_with(arguments: &[&str]) -> Option<Server> {
        let (Some(install), Some(program)) = (find("mariadb-install-db"), find("mariadbd")) else {
            eprintln!("skipped: MariaDB is not installed (apt-get install mariadb-server)");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let _one_at_a_time = INSTALLING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let done = Command::new(install)
            .args(["--no-defaults", "--user=root", "--skip-test-db", "--auth-root-authentication-method=normal"])
            .arg(format!("--datadir={}", directory.path().join("data").display()))
            .env("TMPDIR", directory.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "mariadb-install-db: {done:?}");
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let process = Mutex::new(spawn(&program, directory.path(), &arguments));
        let server = Server { directory, arguments, process };
        server.wait();
        Some(server)
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    pub fn url(&self) -> String {
        format!("mysql://root@localhost/?socket={}", self.socket().display())
    }

    #[allow(dead_code)]
    pub fn engine(&self) -> Arc<dyn Engine> {
        MariaDbEngine::connect(&self.url(), Options::default()).unwrap()
    }

    /// Runs SQL as another client would; gives its output.
    #[allow(dead_code)]
    pub fn sql(&self, sql: &str) -> String {
        self.try_sql(sql).unwrap_or_else(|| panic!("{sql}"))
    }

    /// As [`Server::sql`]; `None`, and a message, when the server refuses.
    #[allow(dead_code)]
    pub fn try_sql(&self, sql: &str) -> Option<String> {
        let output = Command::new(find("mariadb").unwrap())
            .args([
                "--no-defaults",
                "--user=root",
                "--batch",
                "--raw",
                "--skip-column-names",
                "--default-character-set=utf8mb4",
            ])
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!("--execute={sql}"))
            .output()
            .unwrap();
        if !output.status.success() {
            eprintln!("{sql}: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        String::from_utf8(output.stdout).ok()
    }

    /// Kills the server without warning.
    #[allow(dead_code)]
    pub fn kill(&self) {
        let mut process = self.process.lock().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Starts it again.
    #[allow(dead_code)]
    pub fn restart(&self) {
        *self.process.lock().unwrap() = spawn(&find("mariadbd").unwrap(), self.directory.path(), &self.arguments);
        self.wait();
    }

    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while MariaDbEngine::connect(&self.url(), Options::default()).is_err() {
            assert!(Instant::now() < deadline, "MariaDB does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

fn spawn(program: &Path, directory: &Path, arguments: &[String]) -> Child {
    let log = std::fs::File::create(directory.join("log")).unwrap();
    Command::new(program)
        .args(["--no-defaults", "--user=root", "--skip-networking", "--max-allowed-packet=128M"])
        .args(["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=2"])
        .args(arguments)
        .arg(format!("--datadir={}", directory.join("data").display()))
        // A server that starts removes what others have in a common directory for temporary tables.
        .arg(format!("--tmpdir={}", directory.display()))
        .arg(format!("--socket={}", directory.join("socket").display()))
        .arg(format!("--pid-file={}", directory.join("pid").display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(process) = self.process.get_mut() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let also = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(also).map(|directory| directory.join(program)).find(|file| file.is_file())
}

/// Makes BSON of what the store gives.
#[allow(dead_code)]
pub fn decode(document: StoredDoc<'_>) -> DocBuf {
    match document {
        StoredDoc::Bson(document) => document.to_owned(),
        StoredDoc::Json(text) => {
            let mut bson = Vec::new();
            json::json_to_bson(text, &mut bson).unwrap();
            DocBuf::from_vec(bson).unwrap()
        }
    }
}
