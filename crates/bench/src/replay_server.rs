//! A server that does nothing but send: what the socket alone costs of an answer.

use crate::client::Address;
use crate::message::message_length;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

/// Serves one client until it goes, from a plain buffer for each request that it knows.
pub struct PlainSender {
    pub address: Address,
    thread: JoinHandle<Result<()>>,
}

impl PlainSender {
    /// Replies by the whole message that asks for them, over the same kind of socket as a server's at `beside`.
    pub fn start(replies: HashMap<Vec<u8>, Vec<u8>>, beside: &Address) -> Result<PlainSender> {
        let (address, thread) = match beside {
            Address::Tcp(_) => {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                let address = Address::Tcp(listener.local_addr()?.to_string());
                let thread = std::thread::spawn(move || {
                    let (stream, _) = listener.accept()?;
                    stream.set_nodelay(true)?;
                    serve(stream, &replies)
                });
                (address, thread)
            }
            Address::Unix(path) => {
                let path = path.with_extension("plain");
                let listener = UnixListener::bind(&path).with_context(|| path.display().to_string())?;
                (Address::Unix(path), std::thread::spawn(move || serve(listener.accept()?.0, &replies)))
            }
        };
        Ok(PlainSender { address, thread })
    }

    /// Waits for the end that it comes to once its client is gone.
    pub fn join(self) -> Result<()> {
        self.thread.join().map_err(|_| anyhow::anyhow!("the plain sender panicked"))?
    }
}

fn serve(mut stream: impl Read + Write, replies: &HashMap<Vec<u8>, Vec<u8>>) -> Result<()> {
    let mut request = Vec::new();
    while receive(&mut stream, &mut request)? {
        let reply = replies.get(&request).context("a request that has no plain reply")?;
        stream.write_all(reply).context("sending plain bytes")?;
    }
    Ok(())
}

/// Reads one request; gives whether there was one.
fn receive(stream: &mut impl Read, request: &mut Vec<u8>) -> Result<bool> {
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
