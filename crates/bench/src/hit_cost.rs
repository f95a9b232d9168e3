//! What a cached answer costs: a hit by `_id` against `ping`, and a hit of all 10,000 cars, or of fewer, against a server that does nothing but
//! send as many bytes.

use crate::cache_figures::CacheFigures;
use crate::client::Connection;
use crate::dataset::{CARS, load_cars};
use crate::message::{Message, check_ok, cursor_batch};
use crate::plain::PlainSender;
use crate::report::{Report, Row, Samples};
use crate::servers::{Ground, StartArgs};
use crate::target::Target;
use anyhow::{Result, bail};
use document::doc;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args, Debug, Clone)]
pub struct HitsArgs {
    #[command(flatten)]
    pub start: StartArgs,

    /// What `--cache` is given
    #[arg(long, default_value = "documents")]
    pub mode: String,

    /// How often each of the small things is asked
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub small: u64,

    /// How often many cars are asked for
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..))]
    pub large: u64,

    /// How many cars that are, of 10,000
    #[arg(long, default_value_t = CARS, value_parser = clap::value_parser!(u64).range(1..=CARS))]
    pub cars: u64,

    /// Also write the figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const COLLECTION: &str = "hits";
const SMALL_TURN: u64 = 2000;
const LARGE_TURN: u64 = 10;
const PING: &str = "ping";

pub fn run(args: &HitsArgs) -> Result<()> {
    let ground = Ground::prepare(&args.start)?;
    let mut report = Report::default();
    for (store, mariadb) in ground.stores() {
        let name = format!("Selkie, {store}");
        let contestant = ground.start(&name, mariadb, &["--cache", &args.mode])?;
        let mut connection = Connection::open(&contestant.target.address)?;
        connection.handshake()?;
        load_cars(&mut connection, COLLECTION, CARS)?;
        report.extend(small(&contestant.target, &mut connection, args.small)?);
        report.extend(large(&contestant.target, &mut connection, args.large, args.cars)?);
    }
    report.publish(args.json.as_deref())
}

/// Both on one connection, in turns.
fn small(target: &Target, connection: &mut Connection, count: u64) -> Result<Vec<Row>> {
    let ping = Message::command_on("admin", doc! { "ping": 1i32 });
    let find = Message::command(doc! { "find": COLLECTION, "filter": &doc! { "_id": 4711i32 } });
    warm_up(connection, &find, 1)?;
    let hits = Hits::begin(target)?;
    let mut samples = [Samples::new()?, Samples::new()?];
    let turns = count.div_ceil(SMALL_TURN);
    for turn in 0..turns as usize {
        for index in 0..2 {
            let which = (turn + index) % 2;
            ask(target, connection, [&ping, &find][which], SMALL_TURN, &mut samples[which])?;
        }
    }
    hits.end(target, turns * SMALL_TURN)?;
    let named = |name: &str| Target { name: name.to_owned(), ..target.clone() };
    // What is compared is CPU time.
    let row = |samples: &Samples, name: &str| Row {
        measure: format!("{}: CPU of a hit by _id against ping", target.name),
        mean_ms: None,
        ..samples.row("", &named(name), false)
    };
    Ok(vec![row(&samples[0], PING), row(&samples[1], "hit")])
}

fn large(target: &Target, connection: &mut Connection, count: u64, cars: u64) -> Result<Vec<Row>> {
    let mut body = doc! { "find": COLLECTION, "batchSize": cars as i32 };
    if cars < CARS {
        // No cursor is to be left behind each of them.
        body.append("limit", cars as i32);
    }
    let find = Message::command(body);
    let reply = warm_up(connection, &find, cars)?;
    let sender = PlainSender::start(HashMap::from([(find.as_bytes().to_vec(), reply)]), &target.address)?;
    let plain =
        Target { name: "plain buffer".into(), address: sender.address.clone(), server: None, behind: Vec::new() };
    let mut plain_connection = Connection::open(&plain.address)?;
    let hits = Hits::begin(target)?;
    let mut samples = [Samples::new()?, Samples::new()?];
    let turns = count.div_ceil(LARGE_TURN);
    for turn in 0..turns as usize {
        for index in 0..2 {
            match (turn + index) % 2 {
                0 => ask(&plain, &mut plain_connection, &find, LARGE_TURN, &mut samples[0])?,
                _ => ask(target, connection, &find, LARGE_TURN, &mut samples[1])?,
            }
        }
    }
    hits.end(target, turns * LARGE_TURN)?;
    drop(plain_connection);
    sender.join()?;
    let measure = format!("{}: time of a hit of {cars} cars against as many plain bytes", target.name);
    let hit = Target { name: "hit".into(), ..target.clone() };
    Ok(vec![samples[0].row(&measure, &plain, false), samples[1].row(&measure, &hit, false)])
}

fn ask(
    target: &Target,
    connection: &mut Connection,
    message: &Message,
    count: u64,
    samples: &mut Samples,
) -> Result<()> {
    let started = Samples::start(target);
    for _ in 0..count {
        let before = Instant::now();
        connection.round_trip(message)?;
        samples.record(before.elapsed());
    }
    samples.stop(target, started);
    check_ok(connection.reply()).map(drop)
}

/// Asks until the answer is cached, if it ever is; gives the reply.
fn warm_up(connection: &mut Connection, message: &Message, documents: u64) -> Result<Vec<u8>> {
    let mut reply = Vec::new();
    for _ in 0..3 {
        reply = connection.round_trip(message)?.to_vec();
        let (_, batch) = cursor_batch(check_ok(&reply)?)?;
        if batch.elements().count() as u64 != documents {
            bail!("{} documents instead of {documents}", batch.elements().count());
        }
    }
    Ok(reply)
}

/// Makes sure that what is measured are hits.
struct Hits(i64);

impl Hits {
    fn begin(target: &Target) -> Result<Hits> {
        Ok(Hits(CacheFigures::of(std::slice::from_ref(&target.address))?.get("hits")))
    }

    fn end(self, target: &Target, expected: u64) -> Result<()> {
        let hits = CacheFigures::of(std::slice::from_ref(&target.address))?.get("hits") - self.0;
        if hits < expected as i64 {
            bail!("{hits} hits in {expected} reads: is it cached at all?");
        }
        Ok(())
    }
}
