//! A closed-loop load generator: one thread keeps one request in flight on each of many
//! connections.
//!
//! A thread per connection would spend more on waking up than on the requests, and the client
//! shares the machine with the server that it measures.

use anyhow::Result;
use harness::address::Address;
use harness::connection::Connection;
use harness::message::Message;
use harness::report::Samples;
use rustix::event::epoll;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Supplies the messages to send, and checks the replies.
pub trait Workload {
    fn next(&mut self) -> &Message;
    fn check(&self, reply: &[u8]) -> Result<()>;
}

pub struct ClosedLoop {
    connections: Vec<LoadConnection>,
    epoll: OwnedFd,
}

struct LoadConnection {
    connection: Connection,
    sent: Instant,
}

impl ClosedLoop {
    /// Opens the connections and sends `hello` on each.
    pub fn connect(address: &Address, connections: usize) -> Result<ClosedLoop> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut opened = Vec::with_capacity(connections);
        for number in 0..connections {
            let connection = Connection::open_with_handshake(address)?;
            epoll::add(&epoll, &connection, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
            opened.push(LoadConnection { connection, sent: Instant::now() });
        }
        Ok(ClosedLoop { connections: opened, epoll })
    }

    /// Keeps all connections busy for `time`, then waits for the last replies.
    pub fn run(&mut self, workload: &mut dyn Workload, time: Duration, samples: &mut Samples) -> Result<()> {
        let end = Instant::now() + time;
        for connection in &mut self.connections {
            connection.send(workload.next())?;
        }
        let mut in_flight = self.connections.len();
        // A single connection needs no epoll: the thread blocks on its reply.
        if let [connection] = self.connections.as_mut_slice() {
            return connection.run_blocking(workload, end, samples);
        }
        let mut events = [MaybeUninit::uninit(); 64];
        while in_flight > 0 {
            let (ready, _) = epoll::wait(&self.epoll, &mut events, None)?;
            for event in ready {
                let connection = &mut self.connections[event.data.u64() as usize];
                if !connection.connection.receive_some()? {
                    continue;
                }
                let now = connection.finish(workload, samples)?;
                if now < end {
                    connection.send(workload.next())?;
                } else {
                    in_flight -= 1;
                }
            }
        }
        Ok(())
    }
}

impl LoadConnection {
    fn send(&mut self, message: &Message) -> Result<()> {
        self.sent = Instant::now();
        self.connection.send(message)
    }

    fn finish(&mut self, workload: &dyn Workload, samples: &mut Samples) -> Result<Instant> {
        let now = Instant::now();
        samples.record(now - self.sent);
        workload.check(self.connection.reply())?;
        self.connection.forget_reply();
        Ok(now)
    }

    fn run_blocking(&mut self, workload: &mut dyn Workload, end: Instant, samples: &mut Samples) -> Result<()> {
        loop {
            while !self.connection.receive_some()? {}
            if self.finish(workload, samples)? >= end {
                return Ok(());
            }
            self.send(workload.next())?;
        }
    }
}
