//! Many connections, one thread: every connection always has one request under way.
//!
//! A thread per connection would spend more on waking up than on the requests, and the client shares the machine with what
//! it measures.

use crate::client::{Address, Connection};
use crate::message::Message;
use crate::report::Samples;
use anyhow::Result;
use rustix::event::epoll;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Gives the next message to send, and judges replies.
pub trait Workload {
    fn next(&mut self) -> &Message;
    fn check(&self, reply: &[u8]) -> Result<()>;
}

pub struct Crowd {
    lanes: Vec<Lane>,
    epoll: OwnedFd,
}

struct Lane {
    connection: Connection,
    sent: Instant,
}

impl Crowd {
    /// Opens the connections and says hello on each.
    pub fn connect(address: &Address, connections: usize) -> Result<Crowd> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut lanes = Vec::with_capacity(connections);
        for number in 0..connections {
            let mut connection = Connection::open(address)?;
            connection.handshake()?;
            epoll::add(&epoll, &connection, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
            lanes.push(Lane { connection, sent: Instant::now() });
        }
        Ok(Crowd { lanes, epoll })
    }

    /// Keeps all connections busy for that long, then waits for the last replies.
    pub fn drive(&mut self, workload: &mut dyn Workload, time: Duration, samples: &mut Samples) -> Result<()> {
        let end = Instant::now() + time;
        for lane in &mut self.lanes {
            lane.send(workload.next())?;
        }
        let mut under_way = self.lanes.len();
        // With one connection there is nothing to wait for but its reply.
        if let [lane] = self.lanes.as_mut_slice() {
            return lane.alone(workload, end, samples);
        }
        let mut events = [MaybeUninit::uninit(); 64];
        while under_way > 0 {
            let (ready, _) = epoll::wait(&self.epoll, &mut events, None)?;
            for event in ready {
                let lane = &mut self.lanes[event.data.u64() as usize];
                if !lane.connection.receive_some()? {
                    continue;
                }
                let now = lane.finish(workload, samples)?;
                if now < end {
                    lane.send(workload.next())?;
                } else {
                    under_way -= 1;
                }
            }
        }
        Ok(())
    }
}

impl Lane {
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

    fn alone(&mut self, workload: &mut dyn Workload, end: Instant, samples: &mut Samples) -> Result<()> {
        loop {
            while !self.connection.receive_some()? {}
            if self.finish(workload, samples)? >= end {
                return Ok(());
            }
            self.send(workload.next())?;
        }
    }
}
