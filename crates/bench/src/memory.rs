//! Memory of servers: idle, loaded, while a large collection is iterated, and per idle connection;
//! and whether a first batch costs the same for a small and a large collection.

use crate::dataset::{CARS, load_cars};
use anyhow::{Context, Result, bail};
use document::doc;
use harness::connection::Connection;
use harness::message::{Message, check_ok, cursor_batch};
use harness::process::{Pid, peak_resident_bytes, reset_peak, resident_bytes};
use harness::report::{Report, Row, Samples, Stopwatch};
use harness::target::{Target, TargetArgs};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Instant;

#[derive(clap::Args, Debug, Clone)]
pub struct MemoryArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// Documents to load
    #[arg(long, default_value_t = 100_000)]
    pub documents: u64,

    /// Documents in the collection that is iterated; 0 skips that
    #[arg(long, default_value_t = 1_000_000)]
    pub large: u64,

    /// Idle connections; 0 skips that
    #[arg(long, default_value_t = 5000)]
    pub connections: u64,
}

const COLLECTION: &str = "memory";
const LARGE: &str = "memory_large";
const FIRST_BATCHES: u64 = 300;

pub fn run(args: &MemoryArgs) -> Result<()> {
    let targets = args.target.targets()?;
    let mut report = Report::default();
    // Idle means just started, so this comes first.
    let idle = targets.iter().map(|target| resident("resident, idle", target)).collect::<Result<_>>()?;
    report.extend(idle);
    report.extend(each(&targets, |target| loaded(target, args.documents))?);
    if args.connections > 0 {
        report.extend(each(&targets, |target| idle_connections(target, args.connections))?);
    }
    if args.large > 0 {
        report.extend(first_batches(&targets, args.large)?);
        report.extend(each(&targets, iterate)?);
    }
    report.publish(args.target.json.as_deref())
}

fn each(targets: &[Target], measure: impl Fn(&Target) -> Result<Row>) -> Result<Vec<Row>> {
    targets.iter().map(|target| measure(target).with_context(|| target.name.clone())).collect()
}

/// Measures the resident memory of the process that listens, now.
pub fn resident(measure: &str, target: &Target) -> Result<Row> {
    Ok(Row { mebibytes: Some(mebibytes(resident_bytes(server_pid(target)?)?)), ..Row::new(measure, target) })
}

/// Measures the resident memory once the documents are loaded; drops the collection again.
pub fn loaded(target: &Target, documents: u64) -> Result<Row> {
    let mut connection = connect(target)?;
    load_cars(&mut connection, COLLECTION, documents)?;
    let row = resident(&format!("resident, {documents} documents loaded"), target)?;
    connection.drop_collection(COLLECTION)?;
    Ok(row)
}

/// Measures the total memory of many connections that have only sent `hello`.
pub fn idle_connections(target: &Target, count: u64) -> Result<Row> {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most })?;
    let pid = server_pid(target)?;
    let before = resident_bytes(pid)?;
    let connections = (0..count).map(|_| connect(target)).collect::<Result<Vec<_>>>()?;
    let grown = resident_bytes(pid)?.saturating_sub(before);
    drop(connections);
    let measure = format!("{count} idle connections");
    Ok(Row { operations: Some(count), mebibytes: Some(mebibytes(grown)), ..Row::new(&measure, target) })
}

/// Measures the first batches of a small and a large collection, in turns.
pub fn first_batches(targets: &[Target], large: u64) -> Result<Vec<Row>> {
    let sizes = [(COLLECTION, CARS), (LARGE, large)];
    let mut rows = [Vec::new(), Vec::new()];
    for target in targets {
        let mut connection = connect(target)?;
        for (collection, size) in sizes {
            load_cars(&mut connection, collection, size).with_context(|| target.name.clone())?;
        }
        let mut samples = [Samples::new()?, Samples::new()?];
        for _ in 0..FIRST_BATCHES {
            for ((collection, _), samples) in sizes.iter().zip(&mut samples) {
                let started = Stopwatch::start(target);
                let before = Instant::now();
                let body = connection.run(doc! { "find": *collection })?;
                let id = cursor_batch(body)?.0;
                samples.record(before.elapsed());
                samples.stop(target, started);
                connection.run(kill_cursor(collection, id))?;
            }
        }
        for ((_, size), (rows, samples)) in sizes.iter().zip(rows.iter_mut().zip(&samples)) {
            rows.push(samples.row(&format!("first batch of {size}"), target, false));
        }
    }
    Ok(rows.into_iter().flatten().collect())
}

fn kill_cursor(collection: &str, id: i64) -> document::DocBuf {
    doc! { "killCursors": collection, "cursors": &document::array![id] }
}

/// Iterates the large collection in default batches: measures documents per second and peak memory.
/// Drops the collection.
pub fn iterate(target: &Target) -> Result<Row> {
    let pid = server_pid(target)?;
    let mut connection = connect(target)?;
    reset_peak(pid)?;
    let started = Instant::now();
    let (mut id, batch) = cursor_batch(connection.run(doc! { "find": LARGE })?)?;
    let mut documents = batch.elements().count() as u64;
    while id != 0 {
        let message = Message::command(doc! { "getMore": id, "collection": LARGE });
        let (next, batch) = cursor_batch(check_ok(connection.round_trip(&message)?)?)?;
        documents += batch.elements().count() as u64;
        id = next;
    }
    let per_second = documents as f64 / started.elapsed().as_secs_f64();
    let peak = peak_resident_bytes(pid)?;
    connection.drop_collection(LARGE)?;
    Ok(Row {
        operations: Some(documents),
        per_second: Some(per_second),
        mebibytes: Some(mebibytes(peak)),
        ..Row::new("peak while iterating it", target)
    })
}

fn connect(target: &Target) -> Result<Connection> {
    let connection = Connection::open_with_handshake(&target.address)?;
    Ok(connection)
}

fn server_pid(target: &Target) -> Result<Pid> {
    match target.server_pid {
        Some(pid) => Ok(pid),
        None => bail!("{}: its process is not on this machine, or may not be inspected", target.name),
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
