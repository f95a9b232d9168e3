//! A blocking TLS connection.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use tls::rustls::ClientConnection;
use tls::{ClientSettings, Verify, client_config, server_name, system_clock};

pub struct TlsSocket {
    pub stream: TcpStream,
    session: ClientConnection,
}

impl TlsSocket {
    /// Performs the handshake. The server's certificate must be for `host`, and signed by an
    /// authority of the file `ca`.
    pub fn establish(stream: TcpStream, host: &str, ca: &Path) -> Result<TlsSocket> {
        let settings = ClientSettings { verify: Verify::Host, ca: Some(ca.to_owned()), ..ClientSettings::default() };
        let config = client_config(&settings, &system_clock())?;
        let session = ClientConnection::new(config, server_name(host)?)?;
        let mut socket = TlsSocket { stream, session };
        while socket.session.is_handshaking() {
            socket.session.complete_io(&mut socket.stream).context("the handshake of TLS")?;
        }
        Ok(socket)
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            // The library buffers a part of a long message.
            let taken = self.session.writer().write(rest)?;
            rest = rest.get(taken..).unwrap_or_default();
            while self.session.wants_write() {
                self.session.write_tls(&mut self.stream)?;
            }
        }
        Ok(())
    }

    /// Reads from the socket once, and returns whether it is still open. [`TlsSocket::take`] then
    /// returns the bytes.
    pub fn receive(&mut self) -> std::io::Result<bool> {
        if self.session.read_tls(&mut self.stream)? == 0 {
            return Ok(false);
        }
        self.session.process_new_packets().map_err(std::io::Error::other)?;
        Ok(true)
    }

    /// Moves decrypted bytes to `buffer`. Returns their number; 0 if there are no more for now.
    pub fn take(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.session.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            taken => taken,
        }
    }
}
