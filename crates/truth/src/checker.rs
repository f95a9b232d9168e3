//! Loads the collections, runs the checker and prints the result.

use crate::args::TruthArgs;
use crate::driver::{self, RunResult};
use crate::kind::OperationKind;
use crate::layout::{
    Id, LIFECYCLE_STEPS, Layout, Location, MAIN, PARTITION, RENAMED_COLLECTIONS, SIDE, Version, visible_version,
};
use crate::model::Model;
use crate::read::{original_name, temporary_name};
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

/// The pause between two attempts to reach a server.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// Documents per insert.
const LOAD_BATCH: usize = 1000;

pub fn run(args: &TruthArgs) -> Result<()> {
    let addresses = args.uris.iter().map(|uri| Target::parse(uri).map(|target| target.address));
    let addresses = addresses.collect::<Result<Vec<_>>>()?;
    let layout = Layout { main: args.documents.next_multiple_of(PARTITION), pad: args.pad as usize };
    let sql = args.sql.as_deref().map(SqlTarget::parse).transpose()?;
    // Writes by SQL are one more source.
    let sources = addresses.len() + usize::from(sql.is_some());
    let tolerance = Duration::from_millis(args.staleness_ms);
    let mut model = Model::new(layout, sources, tolerance, |id| first_version(&layout, id));
    if args.acknowledged_only {
        model.set_acknowledged_only();
    }
    load(&addresses[0], &layout).context("loading")?;
    let before = CacheStatistics::of(&addresses)?;
    let stop = stop_signal::stop_at_signal()?;
    let began = Instant::now();
    let RunResult { tally, failure } = driver::run_all(args, &addresses, sql.as_ref(), &model, stop);
    let elapsed = began.elapsed();
    // The result is printed even if the servers are gone.
    let after = statistics_at_end(&addresses, Duration::from_secs(args.reconnect_seconds));
    report(&tally, elapsed, after.as_ref().ok().map(|after| (&before, after)));
    if let Some(failure) = failure {
        return Err(failure.context(format!("ended early, with {} wrong replies", tally.violation_count)));
    }
    if tally.violation_count > 0 {
        bail!("{} replies were wrong", tally.violation_count);
    }
    after.context("reading the statistics of the cache").map(|_| ())
}

/// Reads the statistics of the servers, which may be starting again.
fn statistics_at_end(addresses: &[Address], patience: Duration) -> Result<CacheStatistics> {
    let deadline = Instant::now() + patience;
    loop {
        let statistics = CacheStatistics::of(addresses);
        if statistics.is_ok() || Instant::now() >= deadline {
            return statistics;
        }
        std::thread::sleep(RECONNECT_PAUSE);
    }
}

/// Returns the version of a document at the start: 1, and for renamed collections the last step of
/// the lifecycle, at which they do not exist.
fn first_version(layout: &Layout, id: Id) -> Version {
    match layout.location(id) {
        Location::Original(_) | Location::Temporary(_) => LIFECYCLE_STEPS - 1,
        _ => 1,
    }
}

fn load(address: &Address, layout: &Layout) -> Result<()> {
    let mut connection = Connection::open(address)?;
    connection.handshake()?;
    for (collection, ids, location) in [(MAIN, 0..layout.main, Location::Main), (SIDE, layout.side(), Location::Side)] {
        connection.drop_collection(collection)?;
        let ids: Vec<Id> = ids.filter(|id| visible_version(location, *id, 1).is_some()).collect();
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
    for number in 0..RENAMED_COLLECTIONS {
        connection.drop_collection(&original_name(number))?;
        connection.drop_collection(&temporary_name(number))?;
    }
    Ok(())
}

/// Prints the number of operations of each kind, the change of the cache's statistics if they are
/// known, and the wrong replies.
fn report(tally: &Tally, elapsed: Duration, cache: Option<(&CacheStatistics, &CacheStatistics)>) {
    for kind in OperationKind::ALL.iter().filter(|kind| tally.of(**kind) > 0) {
        println!("{:>12}  {}", tally.of(*kind), kind.name());
    }
    let operations = tally.operations();
    let seconds = elapsed.as_secs_f64();
    println!("{operations:>12}  operations in {seconds:.1} s, {:.0} a second", operations as f64 / seconds);
    if tally.killed_reads > 0 {
        println!("{:>12}  reads killed by the server while an index was dropped", tally.killed_reads);
    }
    if tally.unknown_writes > 0 {
        println!("{:>12}  documents whose last write was lost with its connection", tally.unknown_writes);
    }
    if let Some((before, after)) = cache {
        for (name, number) in after.all() {
            println!("{:>12}  cache: {name}, and now {number}", number - before.get(name));
        }
    }
    println!("{:>12}  wrong replies", tally.violation_count);
    for violation in &tally.violations {
        println!("\n  {violation}");
    }
}
