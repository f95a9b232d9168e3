//! The real service on the test's own thread, with its client and its MariaDB: the three take turns
//! in one runtime, so that a frame costs no change of threads, and replies do not depend on time.

use crate::FrameTarget;
use crate::backend::Backend;
use crate::messages::{self, GRANTS, GREETING, HOSTILE, HOSTILE_STATEMENT, LOGIN, SETTINGS, Sender};
use crate::packets::put;
use frame_mutator::compare::Target;
use frame_mutator::memory;
use selkie_runtime::{Connection, Service, Stream, WorkerService};
use server::{LoginLimits, Server, Settings};
use service::{ServerSettings, ServiceSettings, WantedRole};
use sql_classify::{Definition, SchemaObject, TableDefinition, TableKind};
use sql_session::{
    CacheFilter, CachedResult, DefinitionCache, DefinitionSource, PrivilegeCache, SqlContext, SqlService, StoredHashes,
    Timeouts,
};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use store_testing::MemoryEngine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

pub struct Serving {
    letter: u8,
    sender: Sender,
    /// Frames that were sent.
    asked: usize,
    cache: Arc<cache::Cache<CachedResult>>,
    service: Rc<dyn WorkerService>,
    backend: Backend,
    runtime: Runtime,
}

/// All tables are plain ones.
struct PlainTables;

impl DefinitionSource for PlainTables {
    fn look_up(&self, _: SchemaObject) -> Pin<Box<dyn Future<Output = Option<Definition>> + Send>> {
        let kind = TableKind::Base { engine: "InnoDB".to_owned() };
        let table = TableDefinition { kind, triggers: Vec::new() };
        Box::pin(std::future::ready(Some(Definition::Table(table))))
    }
}

impl Serving {
    pub fn new(letter: u8) -> Serving {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let cache = cache::Cache::new(cache_settings());
        let (backend, service) = {
            let _inside = runtime.enter();
            let backend = runtime.block_on(Backend::listen());
            let service = SqlService(Arc::new(context(backend.port, cache.clone()))).open(0).unwrap();
            (backend, service)
        };
        Serving { letter, sender: Sender::Client, asked: 0, cache, service, backend, runtime }
    }

    pub fn cache_hits(&self) -> u64 {
        self.cache.statistics().hits
    }

    /// Lets a client talk on a new connection. Returns all that comes back, and then all that
    /// MariaDB received. `instead`: a frame that MariaDB sends once, in the place of a reply.
    fn talk(&self, instead: Option<(&str, &[u8])>, talk: impl AsyncFnOnce(&mut Client)) -> Vec<u8> {
        memory::fill_with(self.letter);
        let seen = self.runtime.block_on(async {
            let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
            near.set_nonblocking(true).unwrap();
            far.set_nonblocking(true).unwrap();
            let mut client = Client { stream: UnixStream::from_std(near).unwrap(), seen: Vec::new() };
            let stream = Stream::Unix(selkie_runtime::UnixStream::from_std(far).unwrap());
            let serving = self.service.clone().serve(Connection::unlisted(stream).unwrap());
            let talking = async {
                talk(&mut client).await;
                while client.receive().await {}
                client.seen
            };
            let all = async { tokio::join!(serving, talking, self.backend.serve_one(instead)) };
            let ((), mut seen, received) =
                tokio::time::timeout(Duration::from_secs(20), all).await.expect("the gateway does not answer");
            seen.extend(b"; MariaDB received: ");
            seen.extend(received);
            seen
        });
        memory::fill_with(0);
        seen
    }
}

impl FrameTarget for Serving {
    fn set_sender(&mut self, sender: Sender) {
        self.sender = sender;
    }
}

impl Target for Serving {
    fn disturb(&mut self) {
        let messages = messages::of_others(self.letter);
        self.talk(None, async |client| {
            client.log_in(&messages::login_of_others()).await;
            client.send(&messages).await;
        });
    }

    /// A client sends nothing behind a login before it is answered, as the gateway would forward
    /// it as a part of the login.
    fn exchange(&mut self, frame: &[u8]) -> Vec<u8> {
        self.asked += 1;
        let asked = self.asked;
        match self.sender {
            Sender::ClientAtLogin => self.talk(None, async |client| {
                client.send(frame).await;
                let is_answered = client.receive_packets(1).await && is_whole(frame) && client.receive_packets(2).await;
                if is_answered && client.is_logged_in() {
                    client.send(&packet(b"\x03SELECT 'joe' FROM t")).await;
                }
                client.end().await;
            }),
            Sender::Client | Sender::ClientAtChange => self.talk(None, async |client| {
                client.log_in(&messages::own_login()).await;
                client.send(frame).await;
                if self.sender == Sender::ClientAtChange && is_whole(frame) {
                    client.receive_packets(3).await;
                }
                client.end().await;
            }),
            // The client waits until MariaDB, which has sent the frame, closes.
            Sender::Server(when) => self.talk(Some((when, frame)), async |client| {
                if matches!(when, GREETING | LOGIN | SETTINGS | GRANTS) {
                    return client.send(&messages::own_login()).await;
                }
                client.log_in(&messages::own_login()).await;
                // Never answered from the cache.
                let command = match when {
                    HOSTILE_STATEMENT => format!("\x16{when}"),
                    HOSTILE => format!("\x03SELECT '{when}' FROM t WHERE id = {asked}"),
                    _ => format!("\x03SELECT a FROM t WHERE id = {asked}"),
                };
                client.send(&packet(command.as_bytes())).await;
            }),
        }
    }
}

/// A client's connection.
struct Client {
    stream: UnixStream,
    seen: Vec<u8>,
}

impl Client {
    /// Sends bytes. The server may close the connection before it has read everything.
    async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    async fn end(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Receives some bytes. Returns false at the end.
    async fn receive(&mut self) -> bool {
        match self.stream.read_buf(&mut self.seen).await {
            Ok(count) => count > 0,
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
                false
            }
        }
    }

    /// Waits until so many packets have been received since the begin. Returns false at the end.
    async fn receive_packets(&mut self, count: usize) -> bool {
        while packets_in(&self.seen) < count {
            if !self.receive().await {
                return false;
            }
        }
        true
    }

    async fn log_in(&mut self, login: &[u8]) {
        self.send(login).await;
        self.receive_packets(2).await;
    }

    /// Returns whether the second packet is an OK packet.
    fn is_logged_in(&self) -> bool {
        let greeting = payload_bytes(&self.seen).unwrap_or_default();
        self.seen.get(4 + greeting + 4) == Some(&0)
    }
}

fn packet(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, 0, payload);
    bytes
}

fn payload_bytes(bytes: &[u8]) -> Option<usize> {
    let [a, b, c, _] = *bytes.first_chunk()?;
    Some(u32::from_le_bytes([a, b, c, 0]) as usize)
}

/// Returns whether the first packet is not longer than the bytes.
fn is_whole(bytes: &[u8]) -> bool {
    packets_in(bytes) > 0
}

fn packets_in(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Some(rest) = payload_bytes(bytes).and_then(|length| bytes.get(4 + length..)) {
        bytes = rest;
        count += 1;
    }
    count
}

fn cache_settings() -> cache::CacheSettings {
    cache::CacheSettings {
        bytes: 4 << 20,
        shards: 1,
        per_thread: false,
        soft_ttl_ms: None,
        hard_ttl_ms: None,
        stale_ms: None,
        invalidate_by_collection: false,
        ignore_concurrent_writes: false,
    }
}

fn context(port: u16, cache: Arc<cache::Cache<CachedResult>>) -> SqlContext {
    let timeout = Duration::from_secs(10);
    let server = Server::new(Settings::default(), Arc::new(MemoryEngine), Default::default(), 0);
    // Many logins fail.
    server.access_control.throttle.set_limits(LoginLimits { free_failures: 0, delay_max: Duration::ZERO });
    SqlContext {
        service: service(port),
        tls: None,
        server,
        timeouts: Timeouts { connect: timeout, login: timeout, stalled: timeout, idle: None },
        logins: Arc::new(Semaphore::new(24)),
        observer: Some(Arc::new(cache::CacheObserver(cache.clone()))),
        cache: Some(cache),
        caches_primary: false,
        cache_filter: CacheFilter::default(),
        listeners: vec![true],
        definitions: DefinitionCache::new(Box::new(PlainTables)),
        stored_hashes: StoredHashes::default(),
        privileges: PrivilegeCache::new(Duration::from_secs(3600)),
    }
}

/// Returns a service with one server.
fn service(port: u16) -> Arc<service::Service> {
    let (name, host) = ("db1".to_owned(), "127.0.0.1".to_owned());
    let server = ServerSettings {
        name,
        host,
        port,
        tls: Default::default(),
        weight: 1,
        connections_max: None,
        tags: Vec::new(),
    };
    let (name, servers) = ("app".to_owned(), vec!["db1".to_owned()]);
    let settings = ServiceSettings {
        name,
        servers,
        role: WantedRole::Any,
        account: None,
        connections_per_user: None,
        router: Default::default(),
        filters: Vec::new(),
    };
    service::Service::new(settings, vec![service::Backend::new(server)], Arc::default())
}
