//! The hit rate of a cache under writes, with precise invalidation and with invalidation of whole
//! collections. Runs YCSB B's mix (reads by `_id` and a few updates, some documents far more often
//! than others) with and without its writes, in a cache that holds a part of the documents.

use crate::closed_loop::{ClosedLoop, Workload};
use anyhow::{Context, Result, bail};
use document::{DocBuf, Value, doc};
use harness::cache_statistics::CacheStatistics;
use harness::connection::Connection;
use harness::message::{MARKER, Message, check_ok, cursor_batch};
use harness::random::{SplitMix, Zipfian};
use harness::report::{Samples, markdown, three_digits};
use harness::servers::{GatewayArgs, Mariadb, Sandbox};
use harness::target::Target;
use std::time::Duration;

#[derive(clap::Args, Debug, Clone)]
pub struct HitRateArgs {
    #[command(flatten)]
    pub gateway: GatewayArgs,

    /// Documents, of 1 KB each
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub documents: u64,

    /// Percentage of the documents that the cache has space for
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub cached_percent: u64,

    /// Percentage of operations that are updates
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=99))]
    pub updates: u64,

    /// Operations to measure, after as many to warm up
    #[arg(long, default_value_t = 300_000)]
    pub operations: u64,

    /// Connections, each with one request in flight
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub connections: u64,

    /// The value of `--cache`; several are measured one after the other
    #[arg(long, value_delimiter = ',', default_value = "documents")]
    pub modes: Vec<String>,
}

const COLLECTION: &str = "hit_rate";
const FIELDS: usize = 10;
const FIELD_BYTES: usize = 85;
const LOAD_BATCH: u64 = 1000;
const TURN: Duration = Duration::from_millis(250);

pub fn run(args: &HitRateArgs) -> Result<()> {
    let sandbox = Sandbox::prepare(&args.gateway)?;
    let heads = [
        "store",
        "cache",
        "a write invalidates",
        "limit MiB",
        "hits of reads",
        "with updates",
        "ratio",
        "reads/s",
        "with updates",
    ];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for (store, mariadb) in sandbox.stores() {
        for mode in &args.modes {
            for (invalidation, scope) in [("precise", "affected replies"), ("collection", "its collection")] {
                let line = measure(args, &sandbox, (store, mariadb), mode, (invalidation, scope));
                lines.push(line.with_context(|| format!("{store}, --cache {mode} --invalidation {invalidation}"))?);
            }
        }
    }
    println!("{}", markdown(&lines));
    Ok(())
}

fn measure(
    args: &HitRateArgs,
    sandbox: &Sandbox,
    (store, mariadb): (&str, Option<&Mariadb>),
    mode: &str,
    (invalidation, scope): (&str, &str),
) -> Result<Vec<String>> {
    let reply_bytes = {
        let probe = sandbox.start(&format!("{store}, {mode}, probe"), mariadb, &["--cache", mode])?;
        bytes_per_reply(&probe.target, args)?
    };
    let limit = args.documents * args.cached_percent / 100 * reply_bytes;
    let bytes = limit.to_string();
    let options = ["--cache", mode, "--cache-bytes", &bytes, "--invalidation", invalidation];
    let server = sandbox.start(&format!("{store}, {mode}"), mariadb, &options)?;
    let target = &server.target;
    load(target, args.documents)?;
    let mut closed_loop = ClosedLoop::connect(&target.address, args.connections as usize)?;
    let mut worker = Worker::new(args);
    let quiet = hit_rate(target, &mut closed_loop, &mut worker, 0, args.operations)?;
    let busy = hit_rate(target, &mut closed_loop, &mut worker, args.updates, args.operations)?;
    let percent = |rate: f64| format!("{:.1} %", rate * 100.0);
    Ok(vec![
        store.to_owned(),
        mode.to_owned(),
        scope.to_owned(),
        three_digits(limit as f64 / f64::from(1 << 20)),
        percent(quiet.rate),
        percent(busy.rate),
        three_digits(busy.rate / quiet.rate),
        three_digits(quiet.per_second),
        three_digits(busy.per_second),
    ])
}

/// Returns the size of one cached document, from the server's statistics.
fn bytes_per_reply(target: &Target, args: &HitRateArgs) -> Result<u64> {
    let documents = args.documents.min(1000);
    load(target, documents)?;
    let mut connection = Connection::open(&target.address)?;
    let before = CacheStatistics::of(std::slice::from_ref(&target.address))?;
    for number in 0..documents {
        connection.run(find(number as i32))?;
    }
    let after = CacheStatistics::of(std::slice::from_ref(&target.address))?;
    let gained = |name: &str| after.get(name) - before.get(name);
    match (gained("bytes"), gained("entries")) {
        (bytes, entries) if bytes > 0 && entries > 0 => Ok((bytes / entries) as u64),
        _ => bail!("serverStatus.cache has no bytes and entries: nothing was cached"),
    }
}

struct Rate {
    rate: f64,
    per_second: f64,
}

/// Returns the hits per read, after as many operations to warm up.
fn hit_rate(
    target: &Target,
    closed_loop: &mut ClosedLoop,
    worker: &mut Worker,
    updates: u64,
    operations: u64,
) -> Result<Rate> {
    worker.updates = updates;
    let address = std::slice::from_ref(&target.address);
    drive(closed_loop, worker, operations)?;
    let before = CacheStatistics::of(address)?;
    worker.sent_reads = 0;
    let elapsed = drive(closed_loop, worker, operations)?;
    let hits = CacheStatistics::of(address)?.get("hits") - before.get("hits");
    let reads = worker.sent_reads as f64;
    Ok(Rate { rate: hits as f64 / reads, per_second: reads / elapsed.as_secs_f64() })
}

fn drive(closed_loop: &mut ClosedLoop, worker: &mut Worker, operations: u64) -> Result<Duration> {
    let started = std::time::Instant::now();
    worker.sent = 0;
    while worker.sent < operations {
        closed_loop.run(worker, TURN, &mut Samples::new()?)?;
    }
    Ok(started.elapsed())
}

fn load(target: &Target, documents: u64) -> Result<()> {
    let mut connection = Connection::open_with_handshake(&target.address)?;
    connection.drop_collection(COLLECTION)?;
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

/// Returns a document of 1 KB with ten fields of text, like YCSB's.
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
    fn new(args: &HitRateArgs) -> Worker {
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
        if found { Ok(()) } else { bail!("the server replied {body:?}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_a_kilobyte() {
        assert!((950..1050).contains(&document(7).as_bytes().len()), "{}", document(7).as_bytes().len());
    }
}
