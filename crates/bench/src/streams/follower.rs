//! Readers of change streams.

use anyhow::{Context, Result, bail};
use document::{Doc, DocBuf, Value, array, doc};
use harness::address::Address;
use harness::connection::Connection;
use harness::message::{Message, check_ok, cursor_batch};
use rustix::event::epoll;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// The longest time that a `getMore` waits for an event.
const WAIT_MS: i32 = 5000;

/// A stream of the inserts of one collection, on a connection of its own.
pub struct Follower {
    connection: Connection,
    get_more: Message,
    /// The events of the first batch, which arrived with the cursor.
    first: Vec<i32>,
}

impl Follower {
    /// Opens a stream with `stages` behind its first stage.
    pub fn open(address: &Address, collection: &str, stages: &[DocBuf]) -> Result<Follower> {
        let mut connection = Connection::open_with_handshake(address)?;
        let stream = doc! { "$changeStream": &doc! {} };
        let pipeline = match stages {
            [] => array![&stream],
            [stage, ..] => array![&stream, stage],
        };
        let command = doc! { "aggregate": collection, "pipeline": &pipeline, "cursor": &doc! {} };
        let (cursor, batch) = cursor_batch(connection.run(command)?)?;
        let first = numbers(batch)?;
        connection.forget_reply();
        let get_more = Message::command(doc! { "getMore": cursor, "collection": collection, "maxTimeMS": WAIT_MS });
        Ok(Follower { connection, get_more, first })
    }

    /// Returns the numbers of the documents that were inserted; none if no event came in time.
    pub fn next_numbers(&mut self) -> Result<Vec<i32>> {
        if !self.first.is_empty() {
            return Ok(std::mem::take(&mut self.first));
        }
        numbers(cursor_batch(check_ok(self.connection.round_trip(&self.get_more)?)?)?.1)
    }
}

/// Returns the numbers of the inserted documents of a batch of events.
fn numbers(batch: Doc<'_>) -> Result<Vec<i32>> {
    let number = |event: Value<'_>| {
        let document = event.as_document()?.get("fullDocument")?.as_document()?;
        document.get("n")?.to_i64()
    };
    batch.values().map(|event| Ok(number(event).context("an event is not that of an insert")? as i32)).collect()
}

/// The events that each of many streams shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shows {
    /// Of `n` streams, the `k`-th one shows the documents whose number is `k` modulo `n`.
    Share,
    /// The `k`-th one shows the document with the number `k`.
    Key,
    /// All events of a collection that is not written.
    Nothing,
    /// All events.
    All,
}

impl Shows {
    /// Returns how many events arrive at all streams, of so many inserts.
    pub fn events(self, inserts: u64, streams: u64) -> u64 {
        match self {
            Shows::Share => {
                if streams > 0 {
                    inserts
                } else {
                    0
                }
            }
            Shows::Key => inserts.min(streams),
            Shows::Nothing => 0,
            Shows::All => inserts * streams,
        }
    }

    /// Returns the stages of the `k`-th of `n` streams.
    fn stages(self, k: i32, n: i32) -> Vec<DocBuf> {
        let condition = match self {
            Shows::Share => doc! { "fullDocument.n": &doc! { "$mod": &array![n, k] } },
            Shows::Key => doc! { "fullDocument.n": k },
            Shows::Nothing | Shows::All => return Vec::new(),
        };
        vec![doc! { "$match": &condition }]
    }
}

/// Many streams of one collection, read by one thread.
pub struct Crowd {
    reader: JoinHandle<Result<()>>,
    arrived: Arc<AtomicU64>,
    closing: Arc<AtomicBool>,
}

impl Crowd {
    pub fn open(address: &Address, collection: &str, streams: usize, shows: Shows) -> Result<Crowd> {
        let elsewhere = format!("{collection}_elsewhere");
        let collection = if shows == Shows::Nothing { &elsewhere } else { collection };
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut followers = Vec::with_capacity(streams);
        for number in 0..streams {
            let stages = shows.stages(number as i32, streams as i32);
            let mut follower = Follower::open(address, collection, &stages)?;
            epoll::add(&epoll, &follower.connection, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
            follower.connection.send(&follower.get_more)?;
            followers.push(follower);
        }
        let (arrived, closing) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let reader = {
            let (arrived, closing) = (arrived.clone(), closing.clone());
            std::thread::spawn(move || -> Result<()> {
                let mut events = [MaybeUninit::uninit(); 64];
                let brief = epoll_timeout(Duration::from_millis(50));
                while !closing.load(Relaxed) {
                    let (ready, _) = epoll::wait(&epoll, &mut events, Some(&brief))?;
                    for event in ready {
                        let follower = &mut followers[event.data.u64() as usize];
                        if !follower.connection.receive_some()? {
                            continue;
                        }
                        let batch = numbers(cursor_batch(check_ok(follower.connection.reply())?)?.1)?;
                        follower.connection.forget_reply();
                        arrived.fetch_add(batch.len() as u64, Relaxed);
                        follower.connection.send(&follower.get_more)?;
                    }
                }
                Ok(())
            })
        };
        Ok(Crowd { reader, arrived, closing })
    }

    /// Waits until `events` have arrived, or the reader has failed. Returns their number after
    /// `patience` at the latest.
    pub fn wait_for(&self, events: u64, patience: Duration) -> Result<u64> {
        let deadline = Instant::now() + patience;
        while self.arrived.load(Relaxed) < events && Instant::now() < deadline && !self.reader.is_finished() {
            sleep(Duration::from_micros(200));
        }
        Ok(self.arrived.load(Relaxed))
    }

    /// Closes the connections, and with them the streams.
    pub fn close(self) -> Result<()> {
        self.closing.store(true, Relaxed);
        match self.reader.join() {
            Ok(outcome) => outcome.context("reading the streams"),
            Err(_) => bail!("the reader of the streams panicked"),
        }
    }
}

fn epoll_timeout(time: Duration) -> rustix::time::Timespec {
    rustix::time::Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}
