//! The cost of a cache hit: a hit by `_id` compared with `ping`, and a hit of all 10,000 cars, or
//! of fewer, compared with a server that replays the same bytes.

use crate::dataset::{CARS, load_cars};
use crate::replay_server::ReplayServer;
use crate::round_robin::order_of_turn;
use anyhow::{Result, bail};
use document::doc;
use harness::cache_statistics::CacheStatistics;
use harness::connection::Connection;
use harness::message::{Message, check_ok, cursor_batch};
use harness::report::{Report, Row, Samples, Stopwatch};
use harness::servers::{GatewayArgs, Sandbox};
use harness::target::Target;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args, Debug, Clone)]
pub struct HitCostArgs {
    #[command(flatten)]
    pub gateway: GatewayArgs,

    /// The value of `--cache`
    #[arg(long, default_value = "documents")]
    pub mode: String,

    /// Number of pings and of hits by _id
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub small: u64,

    /// Number of hits of many cars
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..))]
    pub large: u64,

    /// Cars of such a hit, of 10,000
    #[arg(long, default_value_t = CARS, value_parser = clap::value_parser!(u64).range(1..=CARS))]
    pub cars: u64,

    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const COLLECTION: &str = "hit_cost";
const SMALL_TURN: u64 = 2000;
const LARGE_TURN: u64 = 10;
const PING: &str = "ping";

pub fn run(args: &HitCostArgs) -> Result<()> {
    let sandbox = Sandbox::prepare(&args.gateway)?;
    let mut report = Report::default();
    for (store, mariadb) in sandbox.stores() {
        let name = format!("Selkie, {store}");
        let server = sandbox.start(&name, mariadb, &["--cache", &args.mode])?;
        let mut connection = Connection::open_with_handshake(&server.target.address)?;
        load_cars(&mut connection, COLLECTION, CARS)?;
        report.extend(small(&server.target, &mut connection, args.small)?);
        report.extend(large(&server.target, &mut connection, args.large, args.cars)?);
    }
    report.publish(args.json.as_deref())
}

/// Measures `ping` and a hit by `_id` on one connection, in turns.
fn small(target: &Target, connection: &mut Connection, count: u64) -> Result<Vec<Row>> {
    let ping = Message::command_on("admin", doc! { "ping": 1i32 });
    let find = Message::command(doc! { "find": COLLECTION, "filter": &doc! { "_id": 4711i32 } });
    warm_up(connection, &find, 1)?;
    let hits = HitCheck::begin(target)?;
    let mut samples = [Samples::new()?, Samples::new()?];
    let turns = count.div_ceil(SMALL_TURN);
    for turn in 0..turns as usize {
        for which in order_of_turn(turn, 2) {
            send(target, connection, [&ping, &find][which], SMALL_TURN, &mut samples[which])?;
        }
    }
    hits.end(target, turns * SMALL_TURN)?;
    let named = |name: &str| Target { name: name.to_owned(), ..target.clone() };
    // Without a mean time, the ratio is of CPU time.
    let row = |samples: &Samples, name: &str| Row {
        measure: format!("{}: CPU of a hit by _id compared with ping", target.name),
        mean_ms: None,
        ..samples.row("", &named(name), false)
    };
    Ok(vec![row(&samples[0], PING), row(&samples[1], "hit")])
}

fn large(target: &Target, connection: &mut Connection, count: u64, cars: u64) -> Result<Vec<Row>> {
    let mut body = doc! { "find": COLLECTION, "batchSize": cars as i32 };
    if cars < CARS {
        // With a limit, the server leaves no cursor open.
        body.append("limit", cars as i32);
    }
    let find = Message::command(body);
    let reply = warm_up(connection, &find, cars)?;
    let replies = HashMap::from([(find.as_bytes().to_vec(), reply)]);
    let replay_server = ReplayServer::start(replies, &target.address)?;
    let replay = replay_server.target();
    let mut replay_connection = Connection::open(&replay.address)?;
    let hits = HitCheck::begin(target)?;
    let mut samples = [Samples::new()?, Samples::new()?];
    let turns = count.div_ceil(LARGE_TURN);
    for turn in 0..turns as usize {
        for which in order_of_turn(turn, 2) {
            match which {
                0 => send(&replay, &mut replay_connection, &find, LARGE_TURN, &mut samples[0])?,
                _ => send(target, connection, &find, LARGE_TURN, &mut samples[1])?,
            }
        }
    }
    hits.end(target, turns * LARGE_TURN)?;
    drop(replay_connection);
    replay_server.join()?;
    let measure = format!("{}: time of a hit of {cars} cars compared with replayed bytes", target.name);
    let hit = Target { name: "hit".into(), ..target.clone() };
    Ok(vec![samples[0].row(&measure, &replay, false), samples[1].row(&measure, &hit, false)])
}

/// Sends the message `count` times and records the times.
fn send(
    target: &Target,
    connection: &mut Connection,
    message: &Message,
    count: u64,
    samples: &mut Samples,
) -> Result<()> {
    let started = Stopwatch::start(target);
    for _ in 0..count {
        let before = Instant::now();
        connection.round_trip(message)?;
        samples.record(before.elapsed());
    }
    samples.stop(target, started);
    check_ok(connection.reply()).map(drop)
}

/// Sends the message until its reply is cached; returns the reply.
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

/// Checks that the measured reads were hits.
struct HitCheck(i64);

impl HitCheck {
    fn begin(target: &Target) -> Result<HitCheck> {
        Ok(HitCheck(CacheStatistics::of(std::slice::from_ref(&target.address))?.get("hits")))
    }

    fn end(self, target: &Target, expected: u64) -> Result<()> {
        let hits = CacheStatistics::of(std::slice::from_ref(&target.address))?.get("hits") - self.0;
        if hits < expected as i64 {
            bail!("{hits} hits in {expected} reads: the replies were not all cached");
        }
        Ok(())
    }
}
