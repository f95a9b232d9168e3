//! A MariaDB that is another machine's asks for passwords in clear text: it must get nothing.

use super::attempt::Attempt;
use super::audited::AuditedClient;
use super::authentication::{Outcome, Parties};
use super::elsewhere::StoredHashes;
use super::log_in;
use super::proof::Proof;
use crate::cache_filter::CacheFilter;
use crate::context::{SqlContext, Timeouts};
use crate::definitions::{DefinitionCache, DefinitionSource};
use crate::packet_stream::PacketStream;
use crate::privileges::PrivilegeCache;
use server::{Server, Settings};
use service::{ServerSettings, ServiceSettings, WantedRole};
use sql_classify::{Definition, SchemaObject};
use std::future::ready;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use store_testing::MemoryEngine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// An address for documents, which no machine has.
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));

const PASSWORD: &[u8] = b"s3cret\0";

/// One side of a session, and the other end of its connection.
fn side(peer: IpAddr) -> (PacketStream, UnixStream) {
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    let stream = selkie_runtime::Stream::Unix(selkie_runtime::UnixStream::from_std(far).unwrap());
    (PacketStream::new(stream, Some(peer)), UnixStream::from_std(near).unwrap())
}

fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32).to_le_bytes()[..3], &[number], payload].concat()
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// The bytes that arrive until the other side closes, or nothing more can arrive.
async fn all_from(mut stream: UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    bytes
}

/// Lets MariaDB send requests, while a client answers each with its password. Returns what client
/// and MariaDB received, and whether the login was refused.
async fn ask(client: IpAddr, server: IpAddr, plugin: &[u8], requests: &[&[u8]]) -> (Vec<u8>, Vec<u8>, bool) {
    let ((mut client, mut client_end), (mut server, mut server_end)) = (side(client), side(server));
    for (number, request) in (2u8..).step_by(2).zip(requests) {
        server_end.write_all(&packet(number, request)).await.unwrap();
    }
    let answering = async {
        let mut seen = vec![0; 4096];
        let count = client_end.read(&mut seen).await.unwrap();
        seen.truncate(count);
        // A client that is asked sends its password; one that gets an error does not.
        if seen.get(4) != Some(&0xFF) {
            client_end.write_all(&packet(3, PASSWORD)).await.unwrap();
            let mut header = [0; 11];
            server_end.read_exact(&mut header).await.unwrap();
            server_end.write_all(&packet(4, b"\xff\x15\x04#28000no")).await.unwrap();
            return (seen, header.to_vec(), client_end, server_end);
        }
        (seen, Vec::new(), client_end, server_end)
    };
    let authenticating = async {
        let audited = &mut audited(&context().server);
        let mut parties = Parties {
            client: &mut client,
            server: &mut server,
            audited,
            is_verified: false,
            offset: 0,
            proof: Proof::default(),
        };
        let outcome = parties.authenticate(plugin).await.unwrap();
        drop((client, server));
        matches!(outcome, Outcome::Refused(_))
    };
    let (is_refused, (seen, mut received, client_end, server_end)) = tokio::join!(authenticating, answering);
    received.extend(all_from(server_end).await);
    drop(client_end);
    (seen, received, is_refused)
}

#[test]
fn a_mariadb_elsewhere_gets_no_password_in_clear_text() {
    let switch = |plugin: &str| [b"\xfe", plugin.as_bytes(), b"\0abcdefghijklmnopqrst\0"].concat();
    for (client, server) in [(HERE, ELSEWHERE), (ELSEWHERE, HERE), (ELSEWHERE, ELSEWHERE)] {
        for plugin in ["mysql_clear_password", "dialog"] {
            let (seen, received, is_refused) = run(ask(client, server, b"mysql_native_password", &[&switch(plugin)]));
            assert!(is_refused && seen[4] == 0xFF, "{plugin}: {seen:?}");
            assert!(String::from_utf8_lossy(&seen).contains("clear text"), "{plugin}");
            assert_eq!(received, b"", "{plugin}");
        }
    }
    let (_, received, _) = run(ask(HERE, HERE, b"mysql_native_password", &[&switch("mysql_clear_password")]));
    assert_eq!(received, packet(3, PASSWORD), "within one machine it is forwarded");
}

/// It asks for a harmless plugin first.
#[test]
fn a_second_request_is_no_way_around() {
    let request = b"\xfemysql_clear_password\0".as_slice();
    // A request without a plugin means mysql_old_password.
    for first in [&b"\xfe"[..], b"\xfemysql_native_password\0abcdefghijklmnopqrst\0"] {
        let (seen, received, is_refused) = run(async {
            let ((mut client, mut client_end), (mut server, mut server_end)) = (side(HERE), side(ELSEWHERE));
            server_end.write_all(&packet(2, first)).await.unwrap();
            server_end.write_all(&packet(4, request)).await.unwrap();
            let audited = &mut audited(&context().server);
            let mut parties = Parties {
                client: &mut client,
                server: &mut server,
                audited,
                is_verified: false,
                offset: 0,
                proof: Proof::default(),
            };
            let outcome = parties.authenticate(b"mysql_native_password").await.unwrap();
            drop((client, server));
            let mut seen = Vec::new();
            client_end.read_to_end(&mut seen).await.unwrap();
            (seen, all_from(server_end).await, matches!(outcome, Outcome::Refused(_)))
        });
        assert!(is_refused && String::from_utf8_lossy(&seen).contains("clear text"));
        assert_eq!(received, b"");
    }
}

/// A client that begins with the plugin sends its password in the login itself.
#[test]
fn a_login_that_contains_the_password_is_not_forwarded() {
    let capabilities = 1u32 | 1 << 9 | 1 << 15 | 1 << 19 | 1 << 21;
    let login = [
        &capabilities.to_le_bytes()[..],
        &[0, 0, 0, 1, 45],
        &[0; 23],
        b"joe\0\x07",
        PASSWORD,
        b"mysql_clear_password\0",
    ]
    .concat();
    let greeting = b"\x0a5.5.5-10.11.19-MariaDB\0\x21\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\xff\x81\x15\0\0\0\0\0\0\
        \x1d\0\0\0ijklmnopqrst\0mysql_native_password\0";
    for (client, server, is_forwarded) in [(HERE, ELSEWHERE, false), (ELSEWHERE, HERE, false), (HERE, HERE, true)] {
        let (seen, received) = run(async {
            let ((mut client, mut client_end), (mut server, mut server_end)) = (side(client), side(server));
            server_end.write_all(&packet(0, greeting)).await.unwrap();
            client_end.write_all(&packet(1, &login)).await.unwrap();
            let context = context();
            let mut audited = audited(&context.server);
            let opened = context.service.connect(Duration::ZERO, ready(Some(())), |_| ready(Ok(((), 0))));
            let (mut lease, (), ()) = opened.await.unwrap();
            let refusing = log_in(&mut client, &mut server, &mut audited, (&context, &mut lease));
            // The server does not answer.
            let _ = tokio::time::timeout(Duration::from_millis(200), refusing).await;
            drop((client, server));
            let mut seen = Vec::new();
            client_end.read_to_end(&mut seen).await.unwrap();
            (seen, all_from(server_end).await)
        });
        assert_eq!(String::from_utf8_lossy(&seen).contains("clear text"), !is_forwarded);
        assert_eq!(received.windows(6).any(|bytes| bytes == b"s3cret"), is_forwarded);
        assert_eq!(received.is_empty(), !is_forwarded);
    }
}

/// An attempt that ends in another way than by a wrong password does not count.
#[test]
fn attempts_count_by_their_outcome() {
    let context = context();
    let begin = || run(Attempt::begin(&context.server, Some(ELSEWHERE), b"joe")).expect("a turn");
    (0..4).for_each(|_| begin().failed());
    begin().succeeded();
    (0..4).for_each(|_| begin().failed());
    assert_eq!(context.server.sql_statistics.logins_failed.get(), 8);
    (0..20).for_each(|_| drop(begin()));
}

/// A client for a process without an audit log.
fn audited(server: &Arc<Server>) -> AuditedClient {
    let (users, roles) = Default::default();
    let connection = server::audit::Connection { id: 1, listener: 0, client: None, local: None, users, roles };
    AuditedClient::new(server.clone(), connection)
}

struct NoDefinitions;

impl DefinitionSource for NoDefinitions {
    fn look_up(&self, _: SchemaObject) -> Pin<Box<dyn Future<Output = Option<Definition>> + Send>> {
        Box::pin(std::future::ready(None))
    }
}

/// Returns a service with one server.
fn service() -> Arc<service::Service> {
    let (name, host) = ("db1".to_owned(), "127.0.0.1".to_owned());
    let server = ServerSettings {
        name,
        host,
        port: 1,
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

fn context() -> SqlContext {
    let timeout = Duration::from_secs(10);
    SqlContext {
        service: service(),
        tls: None,
        server: Server::new(Settings::default(), Arc::new(MemoryEngine), Default::default(), 0),
        timeouts: Timeouts { connect: timeout, login: timeout, stalled: timeout, idle: None },
        logins: Arc::new(Semaphore::new(24)),
        cache: None,
        caches_primary: false,
        cache_filter: CacheFilter::default(),
        listeners: Vec::new(),
        observer: None,
        definitions: DefinitionCache::new(Box::new(NoDefinitions)),
        stored_hashes: StoredHashes::default(),
        privileges: PrivilegeCache::new(timeout),
    }
}
