//! Access to Redis: connections per worker, and a timeout. A failure is counted, and the caller
//! queries the store as if nothing had been found.

use crate::resp::{self, Reply};
use bytes::Bytes;
use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// After a failure no request is sent for this long.
const PAUSE: Duration = Duration::from_secs(1);

/// Idle connections that a worker keeps.
const IDLE_MAX: usize = 8;

/// How long the check at start-up waits for Redis.
const START_LIMIT: Duration = Duration::from_secs(5);

/// Redis's address and credentials.
#[derive(Clone, Debug, Default)]
pub struct Address {
    pub host: String,
    pub port: u16,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
    /// How to authenticate the server; `None`: no TLS.
    pub tls: Option<Tls>,
}

/// The certificates by which Redis is authenticated.
#[derive(Clone, Debug)]
pub struct Tls(Arc<rustls::ClientConfig>);

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    pub hits: u64,
    pub misses: u64,
    /// Replies that were found but lack changes.
    pub outdated: u64,
    pub stored: u64,
    /// Requests that failed or timed out.
    pub errors: u64,
    /// Requests that were not sent because one had just failed.
    pub skipped: u64,
}

#[derive(Default)]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
    outdated: AtomicU64,
    stored: AtomicU64,
    errors: AtomicU64,
    skipped: AtomicU64,
}

pub struct Storage {
    address: Address,
    timeout: Duration,
    counts: Counts,
    born: Instant,
    /// No request is sent before this time, in milliseconds since `born`.
    pause_until_ms: AtomicU64,
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

struct Connection {
    stream: Box<dyn Duplex>,
    buffer: Vec<u8>,
}

thread_local! {
    /// A worker's idle connections. A process has one storage.
    static IDLE: RefCell<Vec<Connection>> = const { RefCell::new(Vec::new()) };
}

impl Address {
    /// Parses `redis://user:password@host:port/database`, or `rediss://` for TLS. Returns the
    /// address, and whether it uses TLS. The error does not contain the URL, which may have a
    /// password.
    pub fn parse(url: &str) -> Result<(Address, bool), String> {
        let wrong =
            || "a URL such as \"redis://user:password@host:6379/0\" is expected here, or rediss:// with TLS".to_owned();
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let tls = match scheme {
            "redis" => false,
            "rediss" => true,
            _ => return Err(wrong()),
        };
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, authority) =
            authority.rsplit_once('@').map_or((None, authority), |(login, authority)| (Some(login), authority));
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => authority.rsplit_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map_or(Ok(6379), str::parse).map_err(|_| wrong())?;
        let database = if database.is_empty() { Ok(0) } else { database.parse() };
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or(("", login))) {
            Some((user, password)) => (Some(user).filter(|user| !user.is_empty()), Some(password)),
            None => (None, None),
        };
        let (user, password) = (user.map(str::to_owned), password.map(str::to_owned));
        let database = database.map_err(|_| wrong())?;
        if host.is_empty() || port == 0 {
            return Err(wrong());
        }
        Ok((Address { host: host.to_owned(), port, user, password, database, tls: None }, tls))
    }
}

impl Tls {
    /// Trusts servers whose certificates are signed by one in this file (PEM). Fails with a
    /// sentence.
    pub fn trusting(file: &Path) -> Result<Tls, String> {
        let settings = tls::ClientSettings { ca: Some(file.to_owned()), ..tls::ClientSettings::default() };
        tls::client_config(&settings, &tls::system_clock())
            .map(Tls)
            .map_err(|error| format!("cannot read certificates: {error}"))
    }
}

impl Storage {
    pub fn new(address: Address, timeout: Duration) -> Storage {
        let (counts, pause_until_ms) = (Counts::default(), AtomicU64::new(0));
        Storage { address, timeout, counts, born: Instant::now(), pause_until_ms }
    }

    pub async fn check(&self) -> Result<(), String> {
        let trial = async {
            let mut connection = Connection::open(&self.address).await?;
            connection.request(&[b"PING"]).await.map(drop)
        };
        let outcome = tokio::time::timeout(START_LIMIT, trial).await;
        outcome.unwrap_or_else(|_| Err("no reply within five seconds".to_owned()))
    }

    /// Returns the value of a key.
    pub async fn get(&self, key: &[u8]) -> Option<Bytes> {
        match self.request(&[b"GET", key]).await? {
            Reply::Text(bytes) => Some(bytes),
            _ => {
                self.counts.misses.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    pub async fn set(&self, key: &[u8], value: &[u8], ttl: Duration) {
        let ttl = ttl.as_millis().max(1).to_string();
        if self.request(&[b"SET", key, value, b"PX", ttl.as_bytes()]).await.is_some() {
            self.counts.stored.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a reply that was found. `is_right`: it includes all known changes.
    pub fn count_found(&self, is_right: bool) {
        let count = if is_right { &self.counts.hits } else { &self.counts.outdated };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn statistics(&self) -> Statistics {
        let Counts { hits, misses, outdated, stored, errors, skipped } = &self.counts;
        let [hits, misses, outdated, stored, errors, skipped] =
            [hits, misses, outdated, stored, errors, skipped].map(|count| count.load(Ordering::Relaxed));
        Statistics { hits, misses, outdated, stored, errors, skipped }
    }

    /// Sends a command and waits for the reply within the timeout. Returns `None` if it fails.
    async fn request(&self, command: &[&[u8]]) -> Option<Reply> {
        let now_ms = self.born.elapsed().as_millis() as u64;
        if now_ms < self.pause_until_ms.load(Ordering::Relaxed) {
            self.counts.skipped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let response = async {
            let idle = IDLE.with_borrow_mut(Vec::pop);
            let mut connection = match idle {
                Some(connection) => connection,
                None => Connection::open(&self.address).await?,
            };
            let reply = connection.request(command).await?;
            Ok((connection, reply))
        };
        let outcome: Result<_, String> = tokio::time::timeout(self.timeout, response)
            .await
            .unwrap_or_else(|_| Err("the request timed out".to_owned()));
        match outcome {
            Ok((connection, reply)) => {
                IDLE.with_borrow_mut(|idle| {
                    if idle.len() < IDLE_MAX {
                        idle.push(connection);
                    }
                });
                Some(reply)
            }
            Err(why) => {
                self.counts.errors.fetch_add(1, Ordering::Relaxed);
                let pause_until = now_ms + self.timeout.as_millis() as u64 + PAUSE.as_millis() as u64;
                let before = self.pause_until_ms.swap(pause_until, Ordering::Relaxed);
                // The idle connections are to the same server.
                IDLE.with_borrow_mut(Vec::clear);
                if before + 10_000 < now_ms || before == 0 {
                    tracing::warn!("replies are not shared through Redis for a moment: {why}");
                }
                None
            }
        }
    }
}

impl Connection {
    async fn open(address: &Address) -> Result<Connection, String> {
        let authority = (address.host.as_str(), address.port);
        let stream = TcpStream::connect(authority).await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let stream: Box<dyn Duplex> = match &address.tls {
            None => Box::new(stream),
            Some(Tls(config)) => {
                let name = tls::server_name(&address.host).map_err(|error| error.to_string())?;
                let connecting = tokio_rustls::TlsConnector::from(config.clone()).connect(name, stream);
                Box::new(connecting.await.map_err(|error| format!("TLS: {error}"))?)
            }
        };
        let mut connection = Connection { stream, buffer: Vec::new() };
        if let Some(password) = &address.password {
            match &address.user {
                Some(user) => connection.request(&[b"AUTH", user.as_bytes(), password.as_bytes()]).await?,
                None => connection.request(&[b"AUTH", password.as_bytes()]).await?,
            };
        }
        if address.database != 0 {
            connection.request(&[b"SELECT", address.database.to_string().as_bytes()]).await?;
        }
        Ok(connection)
    }

    /// Sends a command and returns the reply. Fails if Redis returns an error.
    async fn request(&mut self, command: &[&[u8]]) -> Result<Reply, String> {
        let mut bytes = Vec::with_capacity(command.iter().map(|part| part.len() + 16).sum::<usize>() + 16);
        resp::encode(command, &mut bytes);
        let message = |error: io::Error| error.to_string();
        self.stream.write_all(&bytes).await.map_err(message)?;
        self.stream.flush().await.map_err(message)?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await.map_err(message)? == 0 {
                return Err("the server closed the connection".to_owned());
            }
            match resp::decode(&self.buffer)? {
                Some((Reply::Error(error), _)) => return Err(error),
                Some((reply, length)) if length == self.buffer.len() => return Ok(reply),
                Some(_) => return Err("unexpected bytes after the reply".to_owned()),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let show = |url: &str| {
            let (address, tls) = Address::parse(url)?;
            let Address { host, port, user, password, database, .. } = address;
            let [user, password] = [user, password].map(Option::unwrap_or_default);
            Ok(format!("{host} {port} {user:?} {password:?} {database} {tls}"))
        };
        for (url, expected) in [
            ("redis://h", r#"h 6379 "" "" 0 false"#),
            ("rediss://joe:s@cret@h:1/3", r#"h 1 "joe" "s@cret" 3 true"#),
            ("redis://:secret@[::1]:7", r#"::1 7 "" "secret" 0 false"#),
            ("redis://secret@h/", r#"h 6379 "" "secret" 0 false"#),
        ] {
            assert_eq!(show(url).as_deref(), Ok(expected), "{url}");
        }
        for url in ["h:6379", "http://h", "redis://", "redis://h:x", "redis://h/x", "redis://a:secret@h:0"] {
            let error: Result<String, String> = show(url);
            assert!(error.as_ref().is_err_and(|error| !error.contains("secret")), "{url}: {error:?}");
        }
    }

    #[test]
    fn an_unreachable_server_is_not_used_for_a_while() {
        let (address, _) = Address::parse("redis://127.0.0.1:1").unwrap();
        let storage = Storage::new(address, Duration::from_millis(200));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            assert!(storage.get(b"k").await.is_none() && storage.get(b"k").await.is_none());
            assert!(storage.check().await.is_err());
        });
        let Statistics { errors, skipped, .. } = storage.statistics();
        assert_eq!((errors, skipped), (1, 1));
    }

    #[test]
    fn a_certificate_is_required() {
        let folder = std::env::temp_dir();
        assert!(Tls::trusting(&folder.join("no such file")).is_err());
        assert!(Tls::trusting(Path::new("Cargo.toml")).is_err_and(|error| error.contains("no certificate")));
    }
}
