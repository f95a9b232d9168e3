//! A TCP connection or a Unix socket, as one type.

use crate::server_url::Address;
use selkie_runtime::UnixStream;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

#[derive(Debug)]
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub async fn connect(address: &Address) -> io::Result<Stream> {
        match address {
            Address::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Address::Socket(path) => Ok(Stream::Unix(UnixStream::connect(path).await?)),
        }
    }

    /// Reads into `buffer`, which must not be empty; returns the number of bytes, 0 at the end.
    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        // Unlike `try_read`, this remembers that a short read has emptied the socket, which saves a
        // system call per answer.
        let mut buffer = ReadBuf::new(buffer);
        let ready = match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, &mut buffer),
            Stream::Unix(stream) => stream.poll_read(context, &mut buffer),
        };
        ready.map_ok(|()| buffer.filled().len())
    }

    pub fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Unix(stream) => stream.poll_write(context, bytes),
        }
    }
}
