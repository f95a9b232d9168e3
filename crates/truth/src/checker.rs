//! A checker for stale reads: many connections read and write at random, and every answer is held against what may be true.
//!
//! Documents are functions of their number and version ([`layout`]), so that the model is no more than two numbers per document: the
//! version that has been acknowledged and the one that has been started ([`model`]). [`check`] judges answers by them, [`read`] and
//! [`write`](mod@write) make the operations, a [`lane`] is a connection, [`crowd`] a thread with many of them, [`sql`] writes beside them.

mod check;
mod crowd;
mod kind;
mod lane;
mod layout;
mod model;
mod observe;
mod read;
mod sql;
mod stop_signal;
mod tally;
mod write;

use crate::cache_figures::CacheFigures;
use crate::client::{Address, Connection};
use crate::dataset::drop_collection;
use crate::sql::SqlTarget;
use crate::target::Target;
use anyhow::{Context, Result, bail};
use crowd::Driven;
use document::doc;
use kind::Kind;
use layout::{Id, Layout, MAIN, Place, RENAMED, SIDE, TERRITORY, TURNS, Version, shown};
use model::Model;
use read::{away, home};
use std::time::{Duration, Instant};
use tally::Tally;
use write::list;

#[derive(clap::Args, Debug, Clone)]
pub struct TruthArgs {
    /// The server, as `mongodb://host:port` or `mongodb://%2Fpath%2Fto.sock`; several are gateways to the same data
    #[arg(long = "uri", value_name = "URI", required = true)]
    pub uris: Vec<String>,

    /// End after so many operations
    #[arg(long, default_value_t = 1_000_000)]
    pub operations: u64,

    /// End after so long, if that is earlier
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Connections that each keep one request under way
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub connections: u64,

    /// Threads that drive them
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub threads: u64,

    /// The same seed makes the same choices, as far as the server's timing lets them be the same
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Documents in the main collection; they are rounded up to whole territories of 64
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..=1_000_000))]
    pub documents: u32,

    /// Bytes that each document carries along
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=4096))]
    pub pad: u32,

    /// Of a hundred operations, how many are reads
    #[arg(long, default_value_t = 85, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub reads: u64,

    /// A collection is renamed, dropped or made anew every so many milliseconds; 0 leaves that out
    #[arg(long, default_value_t = 100, value_name = "MS")]
    pub move_ms: u64,

    /// An index comes or goes, or a validator is set, every so many milliseconds; 0 leaves that out
    #[arg(long, default_value_t = 2000, value_name = "MS")]
    pub define_ms: u64,

    /// What is written by SQL, or by another of several gateways, may be unknown for so long
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub staleness_ms: u64,
    /// What a read has shown need not be known to all before its writer has been told: for a cache that notices writes by SQL before
    /// their commit returns, and not before others see them
    #[arg(long)]
    pub until_told: bool,

    /// Also write by SQL to the MariaDB behind the gateways: `mysql://user:password@host:port`
    #[arg(long, value_name = "URL")]
    pub sql: Option<String>,

    /// Connections that write by SQL
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub sql_connections: u64,

    /// How long each of them rests between two writes, in microseconds
    #[arg(long, default_value_t = 500, value_name = "US")]
    pub sql_pause_us: u64,

    /// Cut whoever reads MariaDB's log off it every so many milliseconds, with --sql; 0 leaves that out
    #[arg(long, default_value_t = 0, value_name = "MS", requires = "sql")]
    pub cut_ms: u64,

    /// Connect again for so long when the server goes away, instead of giving up
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub ride_out: u64,
}

/// Documents of one insert.
const LOAD_BATCH: usize = 1000;

pub fn run(args: &TruthArgs) -> Result<()> {
    let addresses = args.uris.iter().map(|uri| Target::parse(uri).map(|target| target.address));
    let addresses = addresses.collect::<Result<Vec<_>>>()?;
    let layout = Layout { main: args.documents.next_multiple_of(TERRITORY), pad: args.pad as usize };
    let sql = args.sql.as_deref().map(SqlTarget::parse).transpose()?;
    // What is written by SQL is one source more.
    let sources = addresses.len() + usize::from(sql.is_some());
    let tolerance = Duration::from_millis(args.staleness_ms);
    let mut model = Model::new(layout, sources, tolerance, |id| first_version(&layout, id));
    if args.until_told {
        model.count_told_only();
    }
    load(&addresses[0], &layout).context("loading")?;
    let before = CacheFigures::of(&addresses)?;
    let stop = stop_signal::stop_at_signal()?;
    let began = Instant::now();
    let Driven { tally, failure } = crowd::drive_all(args, &addresses, sql.as_ref(), &model, stop);
    let elapsed = began.elapsed();
    // What was found is told also of servers that are gone.
    let after = CacheFigures::of(&addresses);
    report(&tally, elapsed, after.as_ref().ok().map(|after| (&before, after)));
    if let Some(failure) = failure {
        return Err(failure.context(format!("ended early, with {} wrong answers", tally.violation_count)));
    }
    if tally.violation_count > 0 {
        bail!("{} answers were wrong", tally.violation_count);
    }
    after.context("reading what the cache did").map(|_| ())
}

/// Documents begin with version 1, what is renamed with being not there.
fn first_version(layout: &Layout, id: Id) -> Version {
    match layout.place(id) {
        Place::Home(_) | Place::Away(_) => TURNS - 1,
        _ => 1,
    }
}

fn load(address: &Address, layout: &Layout) -> Result<()> {
    let mut connection = Connection::open(address)?;
    connection.handshake()?;
    for (collection, ids, place) in [(MAIN, 0..layout.main, Place::Main), (SIDE, layout.side(), Place::Side)] {
        drop_collection(&mut connection, collection)?;
        let ids: Vec<Id> = ids.filter(|id| shown(place, *id, 1).is_some()).collect();
        for ids in ids.chunks(LOAD_BATCH) {
            let documents = list(ids.iter().map(|id| layout.document(*id, 1)));
            connection.run(doc! { "insert": collection, "documents": &documents })?;
        }
    }
    let index = |name, key| doc! { "key": &key, "name": name };
    let indexes = list([
        index("g", doc! { "g": 1i32 }),
        index("t n", doc! { "t": 1i32, "n": 1i32 }),
        index("b", doc! { "b": 1i32 }),
        index("j", doc! { "j": 1i32 }),
    ]);
    connection.run(doc! { "createIndexes": MAIN, "indexes": &indexes })?;
    for number in 0..RENAMED {
        drop_collection(&mut connection, &home(number))?;
        drop_collection(&mut connection, &away(number))?;
    }
    Ok(())
}

/// Prints what was done, what the cache did meanwhile (its figures before and after, if they are known), and what was wrong.
fn report(tally: &Tally, elapsed: Duration, cache: Option<(&CacheFigures, &CacheFigures)>) {
    for kind in Kind::ALL.iter().filter(|kind| tally.of(**kind) > 0) {
        println!("{:>12}  {}", tally.of(*kind), kind.name());
    }
    let operations = tally.operations();
    let seconds = elapsed.as_secs_f64();
    println!("{operations:>12}  operations in {seconds:.1} s, {:.0} a second", operations as f64 / seconds);
    if tally.refused > 0 {
        println!("{:>12}  reads given up by the server while an index was dropped", tally.refused);
    }
    if tally.unknown > 0 {
        println!("{:>12}  documents whose last write was lost with its connection", tally.unknown);
    }
    if let Some((before, after)) = cache {
        for (name, number) in after.all() {
            println!("{:>12}  cache: {name}, and now {number}", number - before.get(name));
        }
    }
    println!("{:>12}  wrong answers", tally.violation_count);
    for violation in &tally.violations {
        println!("\n  {violation}");
    }
}
