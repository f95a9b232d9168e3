//! A server that does nothing but send: what the socket alone costs of an answer.

use crate::client::Address;
use crate::message::message_length;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// Serves one client until it goes, from a plain buffer for each request that it knows.
pub struct PlainSender {
    pub address: Address,
    thread: JoinHandle<Result<()>>,
}

impl PlainSender {
    /// Replies by the whole message that asks for them.
    pub fn start(replies: HashMap<Vec<u8>, Vec<u8>>) -> Result<PlainSender> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = Address::Tcp(listener.local_addr()?.to_string());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            let mut request = Vec::new();
            while receive(&mut stream, &mut request)? {
                let reply = replies.get(&request).context("a request that has no plain reply")?;
                stream.write_all(reply).context("sending plain bytes")?;
            }
            Ok(())
        });
        Ok(PlainSender { address, thread })
    }

    /// Waits for the end that it comes to once its client is gone.
    pub fn join(self) -> Result<()> {
        self.thread.join().map_err(|_| anyhow::anyhow!("the plain sender panicked"))?
    }
}

/// Reads one request; gives whether there was one.
fn receive(stream: &mut TcpStream, request: &mut Vec<u8>) -> Result<bool> {
    request.clear();
    let mut buffer = [0; 4096];
    while message_length(request).is_none_or(|length| request.len() < length) {
        match stream.read(&mut buffer)? {
            0 => return Ok(false),
            count => request.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(true)
}
