//! Loads the collections, runs the checker and prints what it found.

use crate::args::TruthArgs;
use crate::driver::{self, Driven};
use crate::kind::Kind;
use crate::layout::{Id, Layout, MAIN, Place, RENAMED, SIDE, TERRITORY, TURNS, Version, shown};
use crate::model::Model;
use crate::read::{away, home};
use crate::stop_signal;
use crate::tally::Tally;
use crate::write::list;
use anyhow::{Context, Result, bail};
use document::doc;
use harness::address::Address;
use harness::cache_statistics::CacheStatistics;
use harness::connection::Connection;
use harness::sql_connection::SqlTarget;
use harness::target::Target;
use std::time::{Duration, Instant};

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
    let before = CacheStatistics::of(&addresses)?;
    let stop = stop_signal::stop_at_signal()?;
    let began = Instant::now();
    let Driven { tally, failure } = driver::drive_all(args, &addresses, sql.as_ref(), &model, stop);
    let elapsed = began.elapsed();
    // What was found is told also of servers that are gone.
    let after = CacheStatistics::of(&addresses);
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
        connection.drop_collection(collection)?;
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
        connection.drop_collection(&home(number))?;
        connection.drop_collection(&away(number))?;
    }
    Ok(())
}

/// Prints what was done, what the cache did meanwhile (its figures before and after, if they are known), and what was wrong.
fn report(tally: &Tally, elapsed: Duration, cache: Option<(&CacheStatistics, &CacheStatistics)>) {
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
