//! Both sides of a connection, on sockets with small buffers.

use super::*;
use crate::connection::{FirstBytes, Stream};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::sync::Arc;
use std::time::Duration;
use tls::rustls::pki_types::ServerName;
use tls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::AsyncReadExt;

fn configurations() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], signing_key.into())
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

fn tcp_pair() -> (Stream, Stream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    let stream = |stream: std::net::TcpStream| {
        socket2::SockRef::from(&stream).set_send_buffer_size(16 << 10).unwrap();
        stream.set_nonblocking(true).unwrap();
        Stream::Tcp(TcpStream::from_std(stream).unwrap())
    };
    (stream(near), stream(far))
}

fn unix_pair() -> (Stream, Stream) {
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    let stream = |stream: std::os::unix::net::UnixStream| {
        stream.set_nonblocking(true).unwrap();
        Stream::Unix(UnixStream::from_std(stream).unwrap())
    };
    (stream(near), stream(far))
}

/// Returns the client's and the server's end of a connection.
async fn connected((near, far): (Stream, Stream)) -> (Stream, Stream) {
    let (server, client) = configurations();
    let name = ServerName::try_from("localhost").unwrap();
    let (near, far) = tokio::join!(near.connect_tls(client, name), async {
        assert_eq!(far.first_bytes().await.unwrap(), FirstBytes::Tls);
        far.accept_tls(server, Vec::new()).await
    });
    (near.unwrap(), far.unwrap())
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|number| (number / 3 % 251) as u8).collect()
}

/// Large amounts in both directions, with writes of one and of several pieces.
#[tokio::test(flavor = "current_thread")]
async fn everything_arrives_in_order() {
    for pair in [tcp_pair(), unix_pair()] {
        let (mut near, mut far) = connected(pair).await;
        let sent = bytes(3_000_000);
        let reading = async {
            // The writer must fill the socket first.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let mut received = vec![0; sent.len()];
            near.read_exact(&mut received).await.unwrap();
            received
        };
        let writing = async {
            let mut rest = &sent[..];
            while !rest.is_empty() {
                let (one, two) = rest.split_at(rest.len().min(10));
                match far.try_write_vectored(&[IoSlice::new(one), IoSlice::new(&[]), IoSlice::new(two)]) {
                    Ok(written) => rest = &rest[written..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => far.writable().await.unwrap(),
                    Err(error) => panic!("{error}"),
                }
            }
        };
        let (received, ()) = tokio::join!(reading, writing);
        assert!(received == sent);

        let reading = async {
            let mut received = vec![0; sent.len()];
            far.read_exact(&mut received).await.unwrap();
            received
        };
        let (received, written) = tokio::join!(reading, near.write_all(&sent));
        written.unwrap();
        assert!(received == sent);
    }
}

/// A client that does not read takes no more memory than a batch of records.
#[tokio::test(flavor = "current_thread")]
async fn a_full_socket_accepts_nothing_more() {
    let (near, far) = connected(tcp_pair()).await;
    let sent = bytes(64 << 20);
    let mut written = 0;
    let refused = loop {
        match far.try_write(&sent[written..]) {
            Ok(count) => written += count,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    assert!(written < 16 << 20, "{written}");
    let Stream::Tls(stream) = &far else { panic!("no TLS") };
    assert!(stream.unreported.get() <= READ_BYTES);
    drop(near);
}

#[tokio::test(flavor = "current_thread")]
async fn an_end_is_announced_and_seen() {
    let (mut near, far) = connected(tcp_pair()).await;
    far.write_all(b"last words").await.unwrap();
    drop(far);
    let mut received = Vec::new();
    near.read_to_end(&mut received).await.unwrap();
    assert_eq!(received, b"last words");

    // A client that only drops its socket is seen, too.
    let (near, mut far) = connected(unix_pair()).await;
    drop(near);
    far.hung_up().await;
    assert_eq!(far.read(&mut [0; 10]).await.unwrap(), 0);
}

#[tokio::test(flavor = "current_thread")]
async fn decrypted_bytes_count_as_readable() {
    let (mut near, far) = connected(tcp_pair()).await;
    far.write_all(&bytes(100)).await.unwrap();
    assert_eq!(near.read(&mut [0; 40]).await.unwrap(), 40);
    std::future::poll_fn(|context| near.poll_read_ready(context)).await.unwrap();
    let mut rest = [0; 60];
    near.read_exact(&mut rest).await.unwrap();
    assert_eq!(rest, bytes(100)[40..]);
    let mut context = Context::from_waker(std::task::Waker::noop());
    let mut buffer = [0; 1];
    assert!(Pin::new(&mut near).poll_read(&mut context, &mut ReadBuf::new(&mut buffer)).is_pending());
    assert!(near.poll_read_ready(&mut context).is_pending());
}

#[tokio::test(flavor = "current_thread")]
async fn a_failed_handshake_is_an_error_on_both_sides() {
    let (near, far) = tcp_pair();
    let (server, _) = configurations();
    let (_, client_of_another) = configurations();
    let name = ServerName::try_from("localhost").unwrap();
    let (near, far) =
        tokio::join!(near.connect_tls(client_of_another, name), far.accept_tls(server.clone(), Vec::new()));
    assert!(near.unwrap_err().to_string().contains("invalid peer certificate"));
    assert!(far.unwrap_err().to_string().contains("alert"));

    let (near, far) = tcp_pair();
    near.write_all(b"this is not a handshake").await.unwrap();
    assert_eq!(far.first_bytes().await.unwrap(), FirstBytes::Other);
    assert!(far.accept_tls(server, Vec::new()).await.is_err());
    let (near, far) = tcp_pair();
    drop(near);
    assert_eq!(far.first_bytes().await.unwrap(), FirstBytes::Nothing);
}

/// As MariaDB's clients do: the handshake follows a message that the server reads.
#[tokio::test(flavor = "current_thread")]
async fn bytes_of_the_handshake_may_have_been_read() {
    let (near, mut far) = tcp_pair();
    let (server, client) = configurations();
    let name = ServerName::try_from("localhost").unwrap();
    let accepting = async {
        let mut received = vec![0; 50];
        far.read_exact(&mut received).await.unwrap();
        far.accept_tls(server, received).await
    };
    let (near, far) = tokio::join!(near.connect_tls(client, name), accepting);
    let (mut near, far) = (near.unwrap(), far.unwrap());
    far.write_all(b"welcome").await.unwrap();
    let mut received = [0; 7];
    near.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"welcome");
    assert_eq!(far.tls_facts().unwrap().version, "1.3");
}
