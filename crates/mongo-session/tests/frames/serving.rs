//! The real server, with one worker and a Unix socket, so that all clients share its buffers.

use crate::messages;
use frame_mutator::compare::Target;
use frame_mutator::memory;
use mongo_session::MongoService;
use selkie_runtime::process::{Listening, Running};
use selkie_runtime::{ListenAddress, Options};
use server::{Server, Settings};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store_testing::MemoryEngine;

pub struct Serving {
    letter: u8,
    running: Option<Running>,
    socket: PathBuf,
    /// Another client, which stays connected.
    other: UnixStream,
    _directory: tempfile::TempDir,
}

impl Serving {
    pub fn new(letter: u8) -> Serving {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let listening = Listening::bind(Options {
            listen: vec![ListenAddress::Unix(socket.clone())],
            workers: 1,
            drain_deadline: Duration::from_secs(2),
            tick: Duration::from_secs(1),
            busy_poll: Duration::ZERO,
            connections: Default::default(),
        });
        let server =
            Server::new(Settings::default(), Arc::new(MemoryEngine), Default::default(), commands::table::COUNT);
        let service = Arc::new(MongoService::new(server));
        let running = selkie_runtime::process::start(listening.unwrap(), vec![service]).unwrap();
        let other = connect(&socket);
        Serving { letter, running: Some(running), socket, other, _directory: directory }
    }
}

fn connect(socket: &PathBuf) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

impl Target for Serving {
    fn disturb(&mut self) {
        memory::fill_with(self.letter);
        for message in messages::of_others(self.letter) {
            self.other.write_all(&message).unwrap();
            let mut length = [0; 4];
            self.other.read_exact(&mut length).unwrap();
            let mut rest = vec![0; u32::from_le_bytes(length) as usize - 4];
            self.other.read_exact(&mut rest).unwrap();
        }
        memory::fill_with(0);
    }

    fn exchange(&mut self, frame: &[u8]) -> Vec<u8> {
        memory::fill_with(self.letter);
        let mut stream = connect(&self.socket);
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(frame);
        let _ = stream.shutdown(Shutdown::Write);
        let mut reply = Vec::new();
        if let Err(error) = stream.read_to_end(&mut reply) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "the server does not answer");
        }
        memory::fill_with(0);
        without_reply_ids(&mut reply);
        reply
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.drain();
            running.join();
        }
    }
}

/// Clears the numbers of replies, which count those to all clients.
fn without_reply_ids(replies: &mut [u8]) {
    let mut rest = replies;
    while let Some(length) = rest.first_chunk().map(|length| u32::from_le_bytes(*length) as usize) {
        if rest.len() < 16 || length < 16 || length > rest.len() {
            return;
        }
        rest[4..8].fill(0);
        rest = &mut rest[length..];
    }
}
