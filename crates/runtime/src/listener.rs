//! Binds sockets: one per worker and TCP address (SO_REUSEPORT), one per Unix socket.

use crate::address::ListenAddress;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use std::fmt;
use std::io;
use std::net::{self, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net as unix;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Connections that the kernel queues while the workers are busy.
const BACKLOG: i32 = 4096;

/// After this long without a byte the kernel probes the client, so that connections of vanished
/// machines are closed. As long as in MongoDB.
const KEEPALIVE: Duration = Duration::from_secs(300);

/// A bound socket that listens.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(net::TcpListener),
    Unix(unix::UnixListener),
}

/// Why an address cannot be bound, and what to do about it.
#[derive(Debug)]
pub struct BindError {
    address: ListenAddress,
    source: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BindError { address, source } = self;
        match source.kind() {
            io::ErrorKind::AddrInUse => write!(
                f,
                "{address} is in use by another process; stop that one, or choose another address with --listen"
            ),
            io::ErrorKind::AddrNotAvailable => write!(
                f,
                "{address} is not an address of this machine; name one that is with --listen (`ip address` shows them)"
            ),
            io::ErrorKind::PermissionDenied => write!(
                f,
                "no permission to listen on {address}; choose a port above 1023 or a directory you may write to with --listen"
            ),
            io::ErrorKind::NotFound => {
                write!(f, "the directory of the socket {address} does not exist; create it first")
            }
            _ => write!(f, "cannot listen on {address}: {source}"),
        }
    }
}

impl std::error::Error for BindError {}

/// The bound listeners of each worker with their numbers, and the effective addresses (port 0
/// replaced by the port assigned).
pub(crate) struct Bound {
    pub listeners: Vec<Vec<(usize, Listener)>>,
    pub addresses: Vec<ListenAddress>,
}

pub(crate) fn bind(addresses: &[ListenAddress], workers: usize) -> Result<Bound, BindError> {
    let mut bound = Bound { listeners: (0..workers).map(|_| Vec::new()).collect(), addresses: Vec::new() };
    for (number, address) in addresses.iter().enumerate() {
        let failed = |source| BindError { address: address.clone(), source };
        match address {
            ListenAddress::Tcp(address) => {
                let address = bind_tcp(*address, number, &mut bound.listeners).map_err(failed)?;
                bound.addresses.push(ListenAddress::Tcp(address));
            }
            ListenAddress::Unix(path) => {
                // SO_REUSEPORT does not share a path, so one worker accepts for all.
                let listener = bind_unix(path).map_err(failed)?;
                if let Some(first) = bound.listeners.first_mut() {
                    first.push((number, Listener::Unix(listener)));
                }
                bound.addresses.push(address.clone());
            }
        }
    }
    Ok(bound)
}

fn bind_tcp(mut address: SocketAddr, number: usize, workers: &mut [Vec<(usize, Listener)>]) -> io::Result<SocketAddr> {
    // SO_REUSEPORT would let a second process of the same user share the port unnoticed. A socket
    // without it does not.
    if address.port() != 0 {
        drop(tcp_socket(address, false)?);
    }
    for listeners in workers {
        let socket = tcp_socket(address, true)?;
        if let Some(given) = socket.local_addr()?.as_socket() {
            address = given;
        }
        socket.listen(BACKLOG)?;
        listeners.push((number, Listener::Tcp(socket.into())));
    }
    Ok(address)
}

fn tcp_socket(address: SocketAddr, share_port: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(share_port)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Accepted connections inherit these options, which saves system calls for each of them.
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn bind_unix(path: &Path) -> io::Result<unix::UnixListener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    // A socket file without a listener was left behind by a process that was killed.
    if is_socket && unix::UnixStream::connect(path).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused) {
        std::fs::remove_file(path)?;
    }
    let listener = unix::UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Removes the socket files when the process ends in good order.
pub(crate) fn remove_socket_files(addresses: &[ListenAddress]) {
    let paths = addresses.iter().filter_map(|address| match address {
        ListenAddress::Unix(path) => Some(path as &PathBuf),
        ListenAddress::Tcp(_) => None,
    });
    for path in paths {
        if let Err(error) = std::fs::remove_file(path) {
            tracing::warn!(path = %path.display(), %error, "the socket's file could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_inherit_their_options() {
        let bound = bind(&["127.0.0.1:0".parse().unwrap()], 2).unwrap();
        let [ListenAddress::Tcp(address)] = *bound.addresses else { panic!("one address") };
        let _client = net::TcpStream::connect(address).unwrap();
        let accepted = std::iter::repeat_with(|| {
            bound.listeners.iter().flatten().find_map(|(_, listener)| match listener {
                Listener::Tcp(listener) => listener.accept().ok(),
                Listener::Unix(_) => None,
            })
        });
        let (accepted, _) = accepted.flatten().next().unwrap();
        assert!(accepted.nodelay().unwrap());
        assert_eq!(socket2::SockRef::from(&accepted).tcp_keepalive_time().unwrap(), KEEPALIVE);
    }

    #[test]
    fn a_port_in_use_is_reported() {
        let taken = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = ListenAddress::Tcp(taken.local_addr().unwrap());
        let error = bind(&[address], 1).map(drop).expect_err("bound").to_string();
        assert!(error.contains("in use") && error.contains("--listen"), "{error}");
    }
}
