//! What a write pays for the answers that are cached: the same updates on a server without a cache, on one with an empty cache, and on
//! one that has thousands of filters in it, none of which the updates concern.

use crate::cache_figures::CacheFigures;
use crate::client::Connection;
use crate::dataset::{SplitMix, drop_collection};
use crate::message::{MARKER, Message, check_ok};
use crate::report::{Samples, figure, markdown};
use crate::servers::{Contestant, Ground, Mariadb, StartArgs};
use anyhow::{Context, Result, bail};
use document::{DocBuf, Value, array, doc};
use std::slice;
use std::time::Instant;

#[derive(clap::Args, Debug, Clone)]
pub struct InvalidationArgs {
    #[command(flatten)]
    pub start: StartArgs,

    /// Cached filters
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub filters: u64,

    /// Documents of the collection
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub documents: u64,

    /// Updates on each server, in turns
    #[arg(long, default_value_t = 10_000)]
    pub writes: u64,

    /// What the filters ask; all of it if not given
    #[arg(long, value_enum)]
    pub kinds: Vec<Filters>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filters {
    /// One field by equality
    Equality,
    /// One field by a range of its own
    Range,
    /// One field by a range that is open above
    Above,
    /// Two fields, one by equality and one by a range
    Both,
    /// The same, with the same value in all filters
    Crowd,
    /// How a text begins
    Beginning,
    /// One field by equality, with a sort and a limit
    Sorted,
    /// One field by a list of values
    In,
    /// Equality on one field or a range of another
    Or,
    /// Another field for each filter, by equality
    Field,
    /// Another field for each filter, which has to be there
    Exists,
    /// How a text ends: of these, and of those below, some are kept
    Ending,
    /// An expression
    Expression,
    /// A field that must not have a value
    Unequal,
    /// All of these in turns
    Mixed,
}

const KINDS: [(Filters, &str); 15] = [
    (Filters::Equality, "{k: …}"),
    (Filters::Range, "{n: {$gte: …, $lt: …}}"),
    (Filters::Above, "{n: {$gte: …}}"),
    (Filters::Both, "{k: …, n: {$gte: …}}"),
    (Filters::Crowd, "{same: 1, n: {$gte: …, $lt: …}}"),
    (Filters::Beginning, "{text: /^…/}"),
    (Filters::Sorted, "{k: …}, sort, limit"),
    (Filters::In, "{k: {$in: […, …, …]}}"),
    (Filters::Or, "{$or: [{k: …}, {n: {$gte: …, $lt: …}}]}"),
    (Filters::Field, "{f…: 1}"),
    (Filters::Exists, "{f…: {$exists: true}}"),
    (Filters::Ending, "{text: /…$/}"),
    (Filters::Expression, "{$expr: {$eq: [\"$k\", …]}}"),
    (Filters::Unequal, "{k: {$ne: …}, text: {$exists: false}}"),
    (Filters::Mixed, "all of these"),
];
const COLLECTION: &str = "invalidation";
const LOAD_BATCH: u64 = 1000;
const TURN: u64 = 200;

pub fn run(args: &InvalidationArgs) -> Result<()> {
    let ground = Ground::prepare(&args.start)?;
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
    for (store, mariadb) in ground.stores() {
        let wanted = |kind: &Filters| args.kinds.is_empty() || args.kinds.contains(kind);
        for (kind, name) in KINDS.iter().filter(|(kind, _)| wanted(kind)) {
            let line = measure(args, &ground, store, mariadb, *kind, name);
            let line = line.with_context(|| format!("{store}, {name}"))?;
            // All kinds take minutes: what is known when somebody stops it is not to be lost.
            let told = heads.iter().zip(&line).map(|(head, figure)| format!("{head}: {figure}"));
            eprintln!("{}", told.collect::<Vec<_>>().join(", "));
            lines.push(line);
        }
    }
    println!("Server CPU of an update by _id, over one connection.\n");
    println!("{}", markdown(&lines));
    Ok(())
}

fn measure(
    args: &InvalidationArgs,
    ground: &Ground,
    store: &str,
    mariadb: Option<&Mariadb>,
    kind: Filters,
    name: &str,
) -> Result<Vec<String>> {
    let mut updaters = Vec::new();
    // What is counted is CPU time: a thread that waits for the next update is to spend none.
    let config = ground.folder().join("invalidation.toml");
    std::fs::write(&config, "busy-poll-us = 0\n")?;
    let config = config.to_str().context("a folder whose name is no text")?;
    for (number, mode) in ["off", "documents", "documents"].into_iter().enumerate() {
        // Those on MariaDB share its tables.
        let collection = format!("{COLLECTION}_{number}");
        let contestant =
            ground.start(&format!("{store}, {kind:?}, {number}"), mariadb, &["--config", config, "--cache", mode])?;
        updaters.push(Updater::prepare(contestant, collection, args.documents)?);
    }
    updaters[2].fill(kind, args.filters)?;
    let before = updaters[2].figures()?;
    if before.get("answers") == 0 {
        bail!("{} filters were asked, and nothing is in the cache", args.filters);
    }
    for turn in 0..args.writes.div_ceil(TURN) as usize {
        for index in 0..updaters.len() {
            let count = updaters.len();
            updaters[(turn + index) % count].update(TURN)?;
        }
    }
    let after = updaters[2].figures()?;
    let gained = |name: &str| (after.get(name) - before.get(name)) as f64;
    let cpu: Vec<f64> = updaters.iter().map(Updater::cpu_us).collect::<Result<_>>()?;
    Ok(vec![
        store.to_owned(),
        name.to_owned(),
        before.get("answers").to_string(),
        figure(cpu[0]),
        figure(cpu[1]),
        figure(cpu[2]),
        figure(cpu[2] - cpu[1]),
        figure(gained("changesMicros") / gained("changes").max(1.0)),
        after.get("answers").to_string(),
    ])
}

struct Updater {
    contestant: Contestant,
    collection: String,
    connection: Connection,
    message: Message,
    random: SplitMix,
    documents: u64,
    samples: Samples,
}

impl Updater {
    fn prepare(contestant: Contestant, collection: String, documents: u64) -> Result<Updater> {
        let mut connection = Connection::open(&contestant.target.address)?;
        connection.handshake()?;
        drop_collection(&mut connection, &collection)?;
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
        // Both fields change, to what no filter asks for: those ask for even numbers below, these are odd.
        let set = doc! { "$set": &doc! { "k": MARKER, "n": -1i32 } };
        let change = doc! { "q": &doc! { "_id": 0i32 }, "u": &set };
        let message = Message::with_sequence(doc! { "update": &collection }, "updates", [change.as_doc()].into_iter());
        let samples = Samples::new()?;
        Ok(Updater { contestant, collection, connection, message, random: SplitMix(1), documents, samples })
    }

    /// Asks so many different filters, twice each.
    fn fill(&mut self, kind: Filters, filters: u64) -> Result<()> {
        for _ in 0..2 {
            for number in 0..filters {
                let kind = match kind {
                    Filters::Mixed => KINDS[number as usize % (KINDS.len() - 1)].0,
                    kind => kind,
                };
                let filter = filter(kind, number as i32 * 2);
                let mut find = doc! { "find": &self.collection, "filter": &filter };
                if kind == Filters::Sorted {
                    find.append("sort", &doc! { "n": 1i32 });
                    find.append("limit", 10i32);
                }
                self.connection.run(find)?;
            }
        }
        Ok(())
    }

    fn figures(&self) -> Result<CacheFigures> {
        CacheFigures::of(slice::from_ref(&self.contestant.target.address))
    }

    fn update(&mut self, count: u64) -> Result<()> {
        let started = Samples::start(&self.contestant.target);
        for _ in 0..count {
            let odd = self.random.below(self.documents) as i32 * 2 + 1;
            self.message.patch(odd);
            let before = Instant::now();
            let reply = self.connection.round_trip(&self.message)?;
            self.samples.record(before.elapsed());
            if check_ok(reply)?.get("n") != Some(Value::Int32(1)) {
                bail!("an update found nothing");
            }
        }
        self.samples.stop(&self.contestant.target, started);
        Ok(())
    }

    fn cpu_us(&self) -> Result<f64> {
        let row = self.samples.row("", &self.contestant.target, false);
        row.cpu_us.context("the server's CPU time is out of sight")
    }
}

fn filter(kind: Filters, even: i32) -> DocBuf {
    match kind {
        Filters::Equality | Filters::Sorted | Filters::Mixed => doc! { "k": even },
        Filters::Range => doc! { "n": &doc! { "$gte": even, "$lt": even + 1 } },
        Filters::Above => doc! { "n": &doc! { "$gte": even } },
        Filters::Both => doc! { "k": even, "n": &doc! { "$gte": 0i32 } },
        Filters::Crowd => doc! { "same": 1i32, "n": &doc! { "$gte": even, "$lt": even + 1 } },
        Filters::Beginning => doc! { "text": &doc! { "$regex": &*format!("^{even} is") } },
        Filters::In => doc! { "k": &doc! { "$in": &array![even, even + 2_000_000, even + 4_000_000] } },
        Filters::Or => {
            doc! { "$or": &array![&doc! { "k": even }, &doc! { "n": &doc! { "$gte": even, "$lt": even + 1 } }] }
        }
        Filters::Field => DocBuf::build(|writer| writer.append(&format!("f{even}"), 1i32)),
        Filters::Exists => DocBuf::build(|writer| writer.append(&format!("f{even}"), &doc! { "$exists": true })),
        Filters::Ending => doc! { "text": &doc! { "$regex": &*format!("{even}$") } },
        Filters::Expression => doc! { "$expr": &doc! { "$eq": &array!["$k", even] } },
        Filters::Unequal => doc! { "k": &doc! { "$ne": even }, "text": &doc! { "$exists": false } },
    }
}

/// Filters find documents with even numbers; the first document, which is updated, has odd ones.
fn document(number: u64) -> DocBuf {
    let even = if number == 0 { 1 } else { number as i32 * 2 };
    let text = format!("{even} is a number, and this a text of some length, as documents have them");
    doc! { "_id": number as i32, "k": even, "n": even, "same": 1i32, "text": &*text }
}
