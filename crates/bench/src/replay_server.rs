//! A server that only sends recorded replies: the cost of the socket alone.

use anyhow::{Context, Result, bail};
use harness::address::Address;
use harness::message::message_length;
use harness::target::Target;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

/// The name of the server in tables.
const NAME: &str = "replayed bytes";

/// Serves one client until it disconnects, with a recorded reply for each known request.
pub struct ReplayServer {
    pub address: Address,
    thread: JoinHandle<Result<()>>,
}

impl ReplayServer {
    /// Starts the server. `replies` are keyed by whole request messages. It listens on the same
    /// kind of socket as the server at `like`.
    pub fn start(replies: HashMap<Vec<u8>, Vec<u8>>, like: &Address) -> Result<ReplayServer> {
        let (address, thread) = match like {
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
            Address::Tls { .. } | Address::Login { .. } => bail!("bytes are replayed without TLS and without logins"),
            Address::Unix(path) => {
                let path = path.with_extension("replay");
                let listener = UnixListener::bind(&path).with_context(|| path.display().to_string())?;
                (Address::Unix(path), std::thread::spawn(move || serve(listener.accept()?.0, &replies)))
            }
        };
        Ok(ReplayServer { address, thread })
    }

    pub fn target(&self) -> Target {
        Target { name: NAME.into(), address: self.address.clone(), server_pid: None, backend_pids: Vec::new() }
    }

    /// Waits until the client has disconnected.
    pub fn join(self) -> Result<()> {
        self.thread.join().map_err(|_| anyhow::anyhow!("the replay server panicked"))?
    }
}

fn serve(mut stream: impl Read + Write, replies: &HashMap<Vec<u8>, Vec<u8>>) -> Result<()> {
    let mut request = Vec::new();
    while receive(&mut stream, &mut request)? {
        let reply = replies.get(&request).context("a request without a recorded reply")?;
        stream.write_all(reply).context("sending a recorded reply")?;
    }
    Ok(())
}

/// Reads one request; returns false at the end of the stream.
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
