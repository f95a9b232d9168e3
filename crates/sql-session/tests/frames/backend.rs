//! A MariaDB that answers with what it receives, or with a frame of the test.

use crate::messages::{self, GREETING, LOGIN};
use crate::packets::{DEPRECATES_EOF, Payload, frame, put};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub struct Backend {
    pub port: u16,
    listener: TcpListener,
}

impl Backend {
    pub async fn listen() -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Backend { port: listener.local_addr().unwrap().port(), listener }
    }

    /// Serves the next connection. Returns all that it has received. `instead`: a frame that is
    /// sent in the place of a reply, and when. The connection is closed then.
    pub async fn serve_one(&self, instead: Option<(&str, &[u8])>) -> Vec<u8> {
        let (stream, _) = self.listener.accept().await.unwrap();
        let mut connection = Connection { stream, received: Vec::new(), at: 0 };
        // The gateway may close at any moment.
        let _ = connection.serve(instead).await;
        let _ = connection.stream.shutdown().await;
        while connection.read().await.is_ok() {}
        connection.received
    }
}

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// Bytes of `received` that have been answered.
    at: usize,
}

impl Connection {
    async fn serve(&mut self, instead: Option<(&str, &[u8])>) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        let (when, instead) = instead.unwrap_or_default();
        if when == GREETING {
            return self.stream.write_all(instead).await;
        }
        self.stream.write_all(&frame("greeting", 0, vec![messages::greeting()]).bytes).await?;
        let (number, login) = self.packet().await?;
        if when == LOGIN {
            return self.stream.write_all(instead).await;
        }
        let capabilities = login.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let user = until_zero(login.get(32..).unwrap_or_default());
        self.send(number.wrapping_add(1), vec![verdict(user)]).await?;
        if user != b"joe" {
            return Ok(());
        }
        loop {
            let (number, command) = self.packet().await?;
            if !when.is_empty() && String::from_utf8_lossy(&command).contains(when) {
                return self.stream.write_all(instead).await;
            }
            if command.first() == Some(&0x01) {
                return Ok(());
            }
            let reply = reply(&command, capabilities & DEPRECATES_EOF != 0);
            self.send(number.wrapping_add(1), reply).await?;
        }
    }

    /// Sends packets in one piece.
    async fn send(&mut self, first: u8, payloads: Vec<Payload>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (number, payload) in (0u8..).zip(payloads) {
            put(&mut bytes, first.wrapping_add(number), &payload.bytes);
        }
        self.stream.write_all(&bytes).await
    }

    async fn packet(&mut self) -> io::Result<(u8, Vec<u8>)> {
        loop {
            let rest = self.received.get(self.at..).unwrap_or_default();
            if let Some([a, b, c, number]) = rest.first_chunk().copied() {
                let length = u32::from_le_bytes([a, b, c, 0]) as usize;
                if let Some(payload) = rest.get(4..4 + length) {
                    let payload = payload.to_vec();
                    self.at += 4 + length;
                    return Ok((number, payload));
                }
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Returns the packet that ends a login.
pub fn verdict(user: &[u8]) -> Payload {
    match user {
        b"joe" => Payload::new(b"\0\0\0\x02\0\0\0"),
        _ => error(1045, "Access denied for '", user),
    }
}

fn error(code: u16, before: &str, echoed: &[u8]) -> Payload {
    messages::error(code, before).with(echoed).with(b"'")
}

/// Returns the reply to a command, which contains the command.
pub fn reply(command: &[u8], deprecates_eof: bool) -> Vec<Payload> {
    let Some((&kind, rest)) = command.split_first() else { return vec![error(1047, "Unknown command '", b"")] };
    match kind {
        0x03 if rest.starts_with(b"VALUES (HEX") => messages::settings(),
        0x03 if rest.starts_with(b"SHOW GRANTS") => {
            messages::result_set(&[b"GRANT USAGE ON *.* TO `joe`@`%`"], deprecates_eof)
        }
        0x03 if rest.starts_with(b"SHOW CREATE TABLE") => messages::table(),
        0x03 if rest.starts_with(b"SELECT") => messages::result_set(&[rest, b"more"], deprecates_eof),
        0x03 if rest.starts_with(b"INSERT") || rest.starts_with(b"VALUES") || rest.starts_with(b"DO") => {
            vec![messages::ok()]
        }
        0x03 => vec![error(1064, "near '", rest)],
        0x02 => vec![error(1049, "Unknown database '", rest)],
        0x04 => messages::result_set(&[], deprecates_eof).split_off(1),
        0x0E | 0x1A | 0x1F => vec![messages::ok()],
        0x11 => vec![verdict(until_zero(rest))],
        0x16 if deprecates_eof => messages::prepared(rest.iter().filter(|byte| **byte == b'?').count() as u16),
        0x16 => vec![Payload::new(b"\0\x01\0\0\0\0\0\0\0\0\0\0")],
        0x17 => messages::result_set(&[rest], deprecates_eof),
        0xFA => vec![messages::ok()],
        0x18 | 0x19 => Vec::new(),
        0x1C => messages::result_set(&[rest], deprecates_eof).split_off(2 + usize::from(!deprecates_eof)),
        _ => vec![error(1047, "Unknown command '", command)],
    }
}
