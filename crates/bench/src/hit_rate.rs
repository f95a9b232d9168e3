//! How warm a cache stays under writes, that of answers which a write matters to and, beside it, that of whole collections: YCSB B's mix (reads by `_id` and a few updates, some documents far more often than others) with
//! and without its writes, in a cache that holds a part of the documents.

use crate::cache_figures::CacheFigures;
use crate::client::Connection;
use crate::dataset::{SplitMix, Zipfian, drop_collection};
use crate::drive::{Crowd, Workload};
use crate::message::{MARKER, Message, check_ok, cursor_batch};
use crate::report::{Samples, figure, markdown};
use crate::servers::{Ground, Mariadb, StartArgs};
use crate::target::Target;
use anyhow::{Context, Result, bail};
use document::{DocBuf, Value, doc};
use std::time::Duration;

#[derive(clap::Args, Debug, Clone)]
pub struct WarmArgs {
    #[command(flatten)]
    pub start: StartArgs,

    /// Documents, of 1 KB each
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub documents: u64,

    /// Of a hundred documents, how many the cache has room for
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub room: u64,

    /// Of a hundred operations, how many are updates
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=99))]
    pub updates: u64,

    /// Operations that are measured, after as many that warm up
    #[arg(long, default_value_t = 300_000)]
    pub operations: u64,

    /// Connections that each keep one request under way
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub connections: u64,

    /// What `--cache` is given; several are measured one after the other
    #[arg(long, value_delimiter = ',', default_value = "documents")]
    pub modes: Vec<String>,
}

const COLLECTION: &str = "warm";
const FIELDS: usize = 10;
const FIELD_BYTES: usize = 85;
const LOAD_BATCH: u64 = 1000;
const TURN: Duration = Duration::from_millis(250);

pub fn run(args: &WarmArgs) -> Result<()> {
    let ground = Ground::prepare(&args.start)?;
    let heads = [
        "store",
        "cache",
        "a write takes",
        "limit MiB",
        "hits of reads",
        "with updates",
        "ratio",
        "reads/s",
        "with updates",
    ];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for (store, mariadb) in ground.stores() {
        for mode in &args.modes {
            for (invalidation, takes) in [("precise", "what it matters to"), ("collection", "its collection")] {
                let line = measure(args, &ground, (store, mariadb), mode, (invalidation, takes));
                lines.push(line.with_context(|| format!("{store}, --cache {mode} --invalidation {invalidation}"))?);
            }
        }
    }
    println!("{}", markdown(&lines));
    Ok(())
}

fn measure(
    args: &WarmArgs,
    ground: &Ground,
    (store, mariadb): (&str, Option<&Mariadb>),
    mode: &str,
    (invalidation, takes): (&str, &str),
) -> Result<Vec<String>> {
    let each = {
        let probe = ground.start(&format!("{store}, {mode}, probe"), mariadb, &["--cache", mode])?;
        bytes_of_an_answer(&probe.target, args)?
    };
    let limit = args.documents * args.room / 100 * each;
    let bytes = limit.to_string();
    let options = ["--cache", mode, "--cache-bytes", &bytes, "--invalidation", invalidation];
    let contestant = ground.start(&format!("{store}, {mode}"), mariadb, &options)?;
    let target = &contestant.target;
    load(target, args.documents)?;
    let mut crowd = Crowd::connect(&target.address, args.connections as usize)?;
    let mut worker = Worker::new(args);
    let quiet = hit_rate(target, &mut crowd, &mut worker, 0, args.operations)?;
    let busy = hit_rate(target, &mut crowd, &mut worker, args.updates, args.operations)?;
    let percent = |rate: f64| format!("{:.1} %", rate * 100.0);
    Ok(vec![
        store.to_owned(),
        mode.to_owned(),
        takes.to_owned(),
        figure(limit as f64 / f64::from(1 << 20)),
        percent(quiet.rate),
        percent(busy.rate),
        figure(busy.rate / quiet.rate),
        figure(quiet.per_second),
        figure(busy.per_second),
    ])
}

/// What one document costs in the cache, by what the server says of some that it has.
fn bytes_of_an_answer(target: &Target, args: &WarmArgs) -> Result<u64> {
    let documents = args.documents.min(1000);
    load(target, documents)?;
    let mut connection = Connection::open(&target.address)?;
    let before = CacheFigures::of(std::slice::from_ref(&target.address))?;
    for number in 0..documents {
        connection.run(find(number as i32))?;
    }
    let after = CacheFigures::of(std::slice::from_ref(&target.address))?;
    let gained = |name: &str| after.get(name) - before.get(name);
    match (gained("bytes"), gained("answers")) {
        (bytes, answers) if bytes > 0 && answers > 0 => Ok((bytes / answers) as u64),
        _ => bail!("serverStatus.cache does not tell bytes and answers: is it cached at all?"),
    }
}

struct Rate {
    rate: f64,
    per_second: f64,
}

/// Hits per read, once as many operations have been made to warm up.
fn hit_rate(target: &Target, crowd: &mut Crowd, worker: &mut Worker, updates: u64, operations: u64) -> Result<Rate> {
    worker.updates = updates;
    let address = std::slice::from_ref(&target.address);
    drive(crowd, worker, operations)?;
    let before = CacheFigures::of(address)?;
    worker.sent_reads = 0;
    let elapsed = drive(crowd, worker, operations)?;
    let hits = CacheFigures::of(address)?.get("hits") - before.get("hits");
    let reads = worker.sent_reads as f64;
    Ok(Rate { rate: hits as f64 / reads, per_second: reads / elapsed.as_secs_f64() })
}

fn drive(crowd: &mut Crowd, worker: &mut Worker, operations: u64) -> Result<Duration> {
    let begun = std::time::Instant::now();
    worker.sent = 0;
    while worker.sent < operations {
        crowd.drive(worker, TURN, &mut Samples::new()?)?;
    }
    Ok(begun.elapsed())
}

fn load(target: &Target, documents: u64) -> Result<()> {
    let mut connection = Connection::open(&target.address)?;
    connection.handshake()?;
    drop_collection(&mut connection, COLLECTION)?;
    let mut first = 0;
    while first < documents {
        let batch: Vec<DocBuf> = (first..documents.min(first + LOAD_BATCH)).map(document).collect();
        let insert =
            Message::with_sequence(doc! { "insert": COLLECTION }, "documents", batch.iter().map(DocBuf::as_doc));
        check_ok(connection.round_trip(&insert)?)?;
        first += LOAD_BATCH;
    }
    Ok(())
}

/// A document of 1 KB: ten fields of text, as YCSB's.
fn document(number: u64) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("_id", number as i32);
        for field in 0..FIELDS {
            writer.append(&format!("field{field}"), &content(number + field as u64));
        }
    })
}

fn content(number: u64) -> String {
    let mut random = SplitMix(number);
    (0..FIELD_BYTES).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

fn find(number: i32) -> DocBuf {
    doc! { "find": COLLECTION, "filter": &doc! { "_id": number } }
}

struct Worker {
    find: Message,
    update: Message,
    random: SplitMix,
    zipfian: Zipfian,
    updates: u64,
    sent: u64,
    sent_reads: u64,
}

impl Worker {
    fn new(args: &WarmArgs) -> Worker {
        let set = doc! { "$set": &doc! { "field0": &content(args.documents) } };
        let change = doc! { "q": &doc! { "_id": MARKER }, "u": &set };
        Worker {
            find: Message::command(find(MARKER)),
            update: Message::with_sequence(doc! { "update": COLLECTION }, "updates", [change.as_doc()].into_iter()),
            random: SplitMix(1),
            zipfian: Zipfian::below(args.documents),
            updates: 0,
            sent: 0,
            sent_reads: 0,
        }
    }
}

impl Workload for Worker {
    fn next(&mut self) -> &Message {
        let number = self.zipfian.next(&mut self.random) as i32;
        let update = self.random.below(100) < self.updates;
        self.sent += 1;
        self.sent_reads += u64::from(!update);
        let message = if update { &mut self.update } else { &mut self.find };
        message.patch(number);
        message
    }

    fn check(&self, reply: &[u8]) -> Result<()> {
        let body = check_ok(reply)?;
        let found = match body.get("n") {
            Some(count) => count == Value::Int32(1),
            None => cursor_batch(body)?.1.first().is_some(),
        };
        if found { Ok(()) } else { bail!("the server answered {body:?}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_a_kilobyte() {
        assert!((950..1050).contains(&document(7).as_bytes().len()), "{}", document(7).as_bytes().len());
    }
}
