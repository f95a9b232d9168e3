//! Change streams: the time from a write to its event, and the cost of writes while many streams
//! are open. Starts the servers and measures them in turns.

mod follower;

use crate::closed_loop::{ClosedLoop, Workload};
use crate::round_robin::in_turns;
use anyhow::{Context, Result, bail};
use document::{Value, doc};
use follower::{Crowd, Follower, Shows};
use harness::connection::Connection;
use harness::message::{MARKER, Message, check_ok};
use harness::report::{Report, Row, Samples, Stopwatch};
use harness::servers::{EMBEDDED, MARIADB, Sandbox, ServerArgs, mongod_replica_set};
use harness::target::Target;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug, Clone)]
pub struct StreamsArgs {
    #[command(flatten)]
    pub servers: ServerArgs,

    /// Numbers of open streams, measured one after the other
    #[arg(long, default_values_t = [0, 1, 1000])]
    pub streams: Vec<usize>,

    /// The events that each of many streams shows, measured one after the other
    #[arg(long, value_enum, default_values_t = [Shows::Share, Shows::Key, Shows::Nothing, Shows::All])]
    pub shows: Vec<Shows>,

    /// Events whose time of arrival is measured, per server
    #[arg(long, default_value_t = 1000)]
    pub events: u32,

    /// Milliseconds between two of these events
    #[arg(long, default_value_t = 2)]
    pub pause_ms: u64,

    /// Total time of each server, in seconds, per number of streams
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,

    /// Turns that the time and the events are divided into
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const COLLECTION: &str = "events";

/// Selkie without a log of changes.
const NO_LOG: &str = "Selkie, embedded, no log";

/// The longest time until an event must have arrived.
const PATIENCE: Duration = Duration::from_secs(30);

pub fn run(args: &StreamsArgs) -> Result<()> {
    let sandbox = Sandbox::prepare_with_log(&args.servers.gateway)?;
    let mut servers = Vec::new();
    if let Some(program) = &args.servers.mongod {
        servers.push(mongod_replica_set(program, sandbox.folder())?);
    }
    let log = ["--topology", "replica-set"];
    servers.push(sandbox.start(EMBEDDED, None, &log)?);
    if let Some(mariadb) = &sandbox.mariadb {
        servers.push(sandbox.start(MARIADB, Some(mariadb), &log)?);
    }
    let without_log = sandbox.start(NO_LOG, None, &[])?;
    let targets: Vec<Target> = servers.iter().map(|server| server.target.clone()).collect();
    let mut report = Report::default();
    report.extend(arrivals(args, &targets)?);
    for &streams in &args.streams {
        let without_log = (streams == 0).then(|| without_log.target.clone());
        let targets: Vec<Target> = targets.iter().cloned().chain(without_log).collect();
        let alike = [Shows::Share];
        for &shows in if streams > 1 { &args.shows[..] } else { &alike } {
            report.extend(inserts(args, (streams, shows), &targets)?);
        }
    }
    report.publish(args.json.as_deref())
}

/// Measures the time from sending an insert to the arrival of its event.
fn arrivals(args: &StreamsArgs, targets: &[Target]) -> Result<Vec<Row>> {
    let mut measured = unmeasured(targets)?;
    for target in targets {
        new_collection(target)?;
    }
    in_turns(args.rounds, &mut measured, |(target, samples)| {
        let started = Stopwatch::start(target);
        arrivals_of_turn(args, target, samples).with_context(|| target.name.clone())?;
        samples.stop(target, started);
        Ok(())
    })?;
    Ok(measured.iter().map(|(target, samples)| samples.row("arrival of an event", target, false)).collect())
}

fn arrivals_of_turn(args: &StreamsArgs, target: &Target, samples: &mut Samples) -> Result<()> {
    let sent: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let events = (args.events / args.rounds).max(1) as usize;
    let mut follower = Follower::open(&target.address, COLLECTION, &[])?;
    let reader = {
        let sent = sent.clone();
        std::thread::spawn(move || -> Result<Samples> {
            let (mut samples, mut arrived, begun) = (Samples::new()?, 0, Instant::now());
            while arrived < events {
                let numbers = follower.next_numbers()?;
                let now = Instant::now();
                let sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
                for number in numbers {
                    let Some(sent) = sent.get(number as usize) else { bail!("an event has the number {number}") };
                    samples.record(now - *sent);
                    arrived += 1;
                }
                if begun.elapsed() > PATIENCE {
                    bail!("{arrived} of {events} events arrived within {PATIENCE:?}");
                }
            }
            Ok(samples)
        })
    };
    let mut connection = Connection::open_with_handshake(&target.address)?;
    for number in 0..events {
        sent.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        check_ok(connection.round_trip(&insert(number as i32))?)?;
        sleep(Duration::from_millis(args.pause_ms));
    }
    let read = reader.join().unwrap_or_else(|_| bail!("the reader of the stream panicked"))?;
    samples.add_times(&read)
}

/// Measures inserts while streams are open.
fn inserts(args: &StreamsArgs, (streams, shows): (usize, Shows), targets: &[Target]) -> Result<Vec<Row>> {
    let mut measured = unmeasured(targets)?;
    let turn = Duration::from_secs_f64(args.seconds / f64::from(args.rounds));
    in_turns(args.rounds, &mut measured, |(target, samples)| {
        inserts_of_turn(target, (streams, shows), turn, samples).with_context(|| target.name.clone())
    })?;
    let what = match shows {
        _ if streams == 1 => "",
        Shows::Share => "s",
        Shows::Key => "s of a document each",
        Shows::Nothing => "s of another collection",
        Shows::All => "s of everything",
    };
    let measure = format!("insert, {streams} stream{what}");
    Ok(measured.iter().map(|(target, samples)| samples.row(&measure, target, true)).collect())
}

/// Returns each server with samples that are empty.
fn unmeasured(targets: &[Target]) -> Result<Vec<(&Target, Samples)>> {
    targets.iter().map(|target| Ok((target, Samples::new()?))).collect()
}

/// Replaces the collection by an empty one.
fn new_collection(target: &Target) -> Result<()> {
    let mut connection = Connection::open_with_handshake(&target.address)?;
    connection.drop_collection(COLLECTION)?;
    connection.run(doc! { "create": COLLECTION }).map(drop)
}

fn inserts_of_turn(
    target: &Target,
    (streams, shows): (usize, Shows),
    time: Duration,
    samples: &mut Samples,
) -> Result<()> {
    new_collection(target)?;
    let crowd = Crowd::open(&target.address, COLLECTION, streams, shows)?;
    let mut closed_loop = ClosedLoop::connect(&target.address, 1)?;
    let mut inserts = Inserts { message: insert(MARKER), next: 0 };
    closed_loop.run(&mut inserts, Duration::from_millis(100), &mut Samples::new()?)?;
    let started = Stopwatch::start(target);
    closed_loop.run(&mut inserts, time, samples)?;
    // Events that have not arrived yet are part of the cost.
    let expected = shows.events(inserts.next as u64, streams as u64);
    let arrived = crowd.wait_for(expected, PATIENCE)?;
    samples.stop(target, started);
    crowd.close()?;
    if arrived != expected {
        bail!("{arrived} of {expected} events arrived");
    }
    Ok(())
}

fn insert(number: i32) -> Message {
    let text = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore.";
    // The server generates the _id.
    let document = doc! { "n": number, "text": text };
    Message::with_sequence(doc! { "insert": COLLECTION }, "documents", std::iter::once(document.as_doc()))
}

/// Inserts of documents with consecutive numbers.
struct Inserts {
    message: Message,
    next: i32,
}

impl Workload for Inserts {
    fn next(&mut self) -> &Message {
        self.message.patch(self.next);
        self.next += 1;
        &self.message
    }

    fn check(&self, reply: &[u8]) -> Result<()> {
        let body = check_ok(reply)?;
        if body.get("n") != Some(Value::Int32(1)) {
            bail!("the server replied {body:?}");
        }
        Ok(())
    }
}
