//! The cost of invalidation for a write: the same updates on a server without a cache, on one with
//! an empty cache, and on one that has cached thousands of filters, none of which the updates
//! match.

use crate::round_robin::order_of_turn;
use anyhow::{Context, Result, bail};
use document::{DocBuf, Value, array, doc};
use harness::cache_statistics::CacheStatistics;
use harness::connection::Connection;
use harness::message::{MARKER, Message, check_ok};
use harness::random::SplitMix;
use harness::report::{Samples, Stopwatch, markdown, three_digits};
use harness::servers::{GatewayArgs, Mariadb, Sandbox, StartedServer};
use std::slice;
use std::time::Instant;

#[derive(clap::Args, Debug, Clone)]
pub struct InvalidationCostArgs {
    #[command(flatten)]
    pub gateway: GatewayArgs,

    /// Cached filters
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub filters: u64,

    /// Documents of the collection
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub documents: u64,

    /// Updates on each server, in turns
    #[arg(long, default_value_t = 10_000)]
    pub writes: u64,

    /// Kinds of filters; all of them if not given
    #[arg(long, value_enum)]
    pub kinds: Vec<FilterKind>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// One field by equality
    Equality,
    /// One field by a bounded range
    Range,
    /// One field by a range without upper bound
    Above,
    /// Two fields, one by equality and one by a range
    Both,
    /// The same, with the same value in all filters
    SameValue,
    /// The beginning of a text
    Prefix,
    /// One field by equality, with a sort and a limit
    Sorted,
    /// One field by a list of values
    In,
    /// Equality on one field or a range of another
    Or,
    /// Another field for each filter, by equality
    Field,
    /// Another field for each filter, which must exist
    Exists,
    /// The end of a text: of this kind and of those below, only some are cached
    Suffix,
    /// An expression
    Expression,
    /// A field that must not have a value
    Unequal,
    /// All of these in turns
    Mixed,
}

const KINDS: [(FilterKind, &str); 15] = [
    (FilterKind::Equality, "{k: …}"),
    (FilterKind::Range, "{n: {$gte: …, $lt: …}}"),
    (FilterKind::Above, "{n: {$gte: …}}"),
    (FilterKind::Both, "{k: …, n: {$gte: …}}"),
    (FilterKind::SameValue, "{same: 1, n: {$gte: …, $lt: …}}"),
    (FilterKind::Prefix, "{text: /^…/}"),
    (FilterKind::Sorted, "{k: …}, sort, limit"),
    (FilterKind::In, "{k: {$in: […, …, …]}}"),
    (FilterKind::Or, "{$or: [{k: …}, {n: {$gte: …, $lt: …}}]}"),
    (FilterKind::Field, "{f…: 1}"),
    (FilterKind::Exists, "{f…: {$exists: true}}"),
    (FilterKind::Suffix, "{text: /…$/}"),
    (FilterKind::Expression, "{$expr: {$eq: [\"$k\", …]}}"),
    (FilterKind::Unequal, "{k: {$ne: …}, text: {$exists: false}}"),
    (FilterKind::Mixed, "all of these"),
];
const COLLECTION: &str = "invalidation";
const LOAD_BATCH: u64 = 1000;
const TURN: u64 = 200;

pub fn run(args: &InvalidationCostArgs) -> Result<()> {
    let sandbox = Sandbox::prepare(&args.gateway)?;
    let heads = [
        "store",
        "filters",
        "cached",
        "no cache, µs of CPU",
        "empty cache",
        "full cache",
        "full − empty",
        "in the cache",
        "still cached",
    ];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for (store, mariadb) in sandbox.stores() {
        let selected = |kind: &FilterKind| args.kinds.is_empty() || args.kinds.contains(kind);
        for (kind, name) in KINDS.iter().filter(|(kind, _)| selected(kind)) {
            let line = measure(args, &sandbox, store, mariadb, *kind, name);
            let line = line.with_context(|| format!("{store}, {name}"))?;
            // All kinds take minutes. Print each result at once, so that it survives an
            // interruption.
            let cells = heads.iter().zip(&line).map(|(head, value)| format!("{head}: {value}"));
            eprintln!("{}", cells.collect::<Vec<_>>().join(", "));
            lines.push(line);
        }
    }
    println!("Server CPU of an update by _id, over one connection.\n");
    println!("{}", markdown(&lines));
    Ok(())
}

fn measure(
    args: &InvalidationCostArgs,
    sandbox: &Sandbox,
    store: &str,
    mariadb: Option<&Mariadb>,
    kind: FilterKind,
    name: &str,
) -> Result<Vec<String>> {
    let mut updaters = Vec::new();
    // CPU time is measured, so a thread must not poll while it waits for the next update.
    let config = sandbox.folder().join("invalidation.toml");
    std::fs::write(&config, "busy-poll-us = 0\n")?;
    let config = config.to_str().context("the folder's name is not UTF-8")?;
    for (number, mode) in ["off", "documents", "documents"].into_iter().enumerate() {
        // The gateways on MariaDB share its tables.
        let collection = format!("{COLLECTION}_{number}");
        let server =
            sandbox.start(&format!("{store}, {kind:?}, {number}"), mariadb, &["--config", config, "--cache", mode])?;
        updaters.push(Updater::prepare(server, collection, args.documents)?);
    }
    updaters[2].fill(kind, args.filters)?;
    let before = updaters[2].statistics()?;
    if before.get("entries") == 0 {
        bail!("{} filters were sent, and the cache is empty", args.filters);
    }
    for turn in 0..args.writes.div_ceil(TURN) as usize {
        for index in order_of_turn(turn, updaters.len()) {
            updaters[index].update(TURN)?;
        }
    }
    let after = updaters[2].statistics()?;
    let gained = |name: &str| (after.get(name) - before.get(name)) as f64;
    let cpu: Vec<f64> = updaters.iter().map(Updater::cpu_us).collect::<Result<_>>()?;
    Ok(vec![
        store.to_owned(),
        name.to_owned(),
        before.get("entries").to_string(),
        three_digits(cpu[0]),
        three_digits(cpu[1]),
        three_digits(cpu[2]),
        three_digits(cpu[2] - cpu[1]),
        three_digits(gained("invalidationMicros") / gained("changes").max(1.0)),
        after.get("entries").to_string(),
    ])
}

struct Updater {
    server: StartedServer,
    collection: String,
    connection: Connection,
    message: Message,
    random: SplitMix,
    documents: u64,
    samples: Samples,
}

impl Updater {
    fn prepare(server: StartedServer, collection: String, documents: u64) -> Result<Updater> {
        let mut connection = Connection::open_with_handshake(&server.target.address)?;
        connection.drop_collection(&collection)?;
        let mut first = 0;
        while first < documents {
            let batch: Vec<DocBuf> = (first..documents.min(first + LOAD_BATCH)).map(document).collect();
            let body = doc! { "insert": &collection };
            let insert = Message::with_sequence(body, "documents", batch.iter().map(DocBuf::as_doc));
            check_ok(connection.round_trip(&insert)?)?;
            first += LOAD_BATCH;
        }
        let index = doc! { "key": &doc! { "k": 1i32 }, "name": "k" };
        let other = doc! { "key": &doc! { "n": 1i32 }, "name": "n" };
        let indexes = array![&index, &other];
        connection.run(doc! { "createIndexes": &collection, "indexes": &indexes })?;
        // Both fields change to odd numbers, which no filter matches: filters ask for even numbers.
        let set = doc! { "$set": &doc! { "k": MARKER, "n": -1i32 } };
        let change = doc! { "q": &doc! { "_id": 0i32 }, "u": &set };
        let message = Message::with_sequence(doc! { "update": &collection }, "updates", [change.as_doc()].into_iter());
        let samples = Samples::new()?;
        Ok(Updater { server, collection, connection, message, random: SplitMix(1), documents, samples })
    }

    /// Sends `filters` different filters, twice each.
    fn fill(&mut self, kind: FilterKind, filters: u64) -> Result<()> {
        for _ in 0..2 {
            for number in 0..filters {
                let kind = match kind {
                    FilterKind::Mixed => KINDS[number as usize % (KINDS.len() - 1)].0,
                    kind => kind,
                };
                let filter = filter(kind, number as i32 * 2);
                let mut find = doc! { "find": &self.collection, "filter": &filter };
                if kind == FilterKind::Sorted {
                    find.append("sort", &doc! { "n": 1i32 });
                    find.append("limit", 10i32);
                }
                self.connection.run(find)?;
            }
        }
        Ok(())
    }

    fn statistics(&self) -> Result<CacheStatistics> {
        CacheStatistics::of(slice::from_ref(&self.server.target.address))
    }

    fn update(&mut self, count: u64) -> Result<()> {
        let started = Stopwatch::start(&self.server.target);
        for _ in 0..count {
            let odd = self.random.below(self.documents) as i32 * 2 + 1;
            self.message.patch(odd);
            let before = Instant::now();
            let reply = self.connection.round_trip(&self.message)?;
            self.samples.record(before.elapsed());
            if check_ok(reply)?.get("n") != Some(Value::Int32(1)) {
                bail!("an update matched no document");
            }
        }
        self.samples.stop(&self.server.target, started);
        Ok(())
    }

    fn cpu_us(&self) -> Result<f64> {
        let row = self.samples.row("", &self.server.target, false);
        row.cpu_us.context("the server's CPU time cannot be read")
    }
}

fn filter(kind: FilterKind, even: i32) -> DocBuf {
    match kind {
        FilterKind::Equality | FilterKind::Sorted | FilterKind::Mixed => doc! { "k": even },
        FilterKind::Range => doc! { "n": &doc! { "$gte": even, "$lt": even + 1 } },
        FilterKind::Above => doc! { "n": &doc! { "$gte": even } },
        FilterKind::Both => doc! { "k": even, "n": &doc! { "$gte": 0i32 } },
        FilterKind::SameValue => doc! { "same": 1i32, "n": &doc! { "$gte": even, "$lt": even + 1 } },
        FilterKind::Prefix => doc! { "text": &doc! { "$regex": &*format!("^{even} is") } },
        FilterKind::In => doc! { "k": &doc! { "$in": &array![even, even + 2_000_000, even + 4_000_000] } },
        FilterKind::Or => {
            doc! { "$or": &array![&doc! { "k": even }, &doc! { "n": &doc! { "$gte": even, "$lt": even + 1 } }] }
        }
        FilterKind::Field => DocBuf::build(|writer| writer.append(&format!("f{even}"), 1i32)),
        FilterKind::Exists => DocBuf::build(|writer| writer.append(&format!("f{even}"), &doc! { "$exists": true })),
        FilterKind::Suffix => doc! { "text": &doc! { "$regex": &*format!("{even}$") } },
        FilterKind::Expression => doc! { "$expr": &doc! { "$eq": &array!["$k", even] } },
        FilterKind::Unequal => doc! { "k": &doc! { "$ne": even }, "text": &doc! { "$exists": false } },
    }
}

/// FilterKind find documents with even numbers; the first document, which is updated, has odd ones.
fn document(number: u64) -> DocBuf {
    let even = if number == 0 { 1 } else { number as i32 * 2 };
    let text = format!("{even} is a number, and this a text of some length, as documents have them");
    doc! { "_id": number as i32, "k": even, "n": even, "same": 1i32, "text": &*text }
}
