//! What servers hold in memory: idle, loaded, while a large collection is read through, and per idle connection; and whether a
//! first batch costs the same whatever the collection's size.

use crate::client::Connection;
use crate::dataset::{CARS, drop_collection, load_cars};
use crate::message::{Message, check_ok, cursor_batch};
use crate::process::{Pid, forget_peak, peak_resident_bytes, resident_bytes};
use crate::report::{Report, Row, Samples};
use crate::target::{Target, TargetArgs};
use anyhow::{Context, Result, bail};
use document::doc;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Instant;

#[derive(clap::Args, Debug, Clone)]
pub struct MemoryArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// Documents whose loading is looked at
    #[arg(long, default_value_t = 100_000)]
    pub documents: u64,

    /// Documents in the collection that is read through; 0 leaves that out
    #[arg(long, default_value_t = 1_000_000)]
    pub large: u64,

    /// Idle connections; 0 leaves that out
    #[arg(long, default_value_t = 5000)]
    pub connections: u64,
}

const COLLECTION: &str = "memory";
const LARGE: &str = "memory_large";
const FIRST_BATCHES: u64 = 300;

pub fn run(args: &MemoryArgs) -> Result<()> {
    let targets = args.target.targets()?;
    let mut report = Report::default();
    // Idle means just started: look before anything else is done.
    let idle = targets.iter().map(|target| resident("resident, idle", target)).collect::<Result<_>>()?;
    report.extend(idle);
    report.extend(each(&targets, |target| loaded(target, args.documents))?);
    if args.connections > 0 {
        report.extend(each(&targets, |target| idle_connections(target, args.connections))?);
    }
    if args.large > 0 {
        report.extend(first_batches(&targets, args.large)?);
        report.extend(each(&targets, read_through)?);
    }
    report.publish(args.target.json.as_deref())
}

fn each(targets: &[Target], measure: impl Fn(&Target) -> Result<Row>) -> Result<Vec<Row>> {
    targets.iter().map(|target| measure(target).with_context(|| target.name.clone())).collect()
}

/// Resident memory of the process that listens, now.
pub fn resident(measure: &str, target: &Target) -> Result<Row> {
    Ok(Row { mebibytes: Some(mebibytes(resident_bytes(server(target)?)?)), ..Row::new(measure, target) })
}

/// Loads the documents and looks at the memory then; leaves the collection empty.
pub fn loaded(target: &Target, documents: u64) -> Result<Row> {
    let mut connection = connect(target)?;
    load_cars(&mut connection, COLLECTION, documents)?;
    let row = resident(&format!("resident, {documents} documents loaded"), target)?;
    drop_collection(&mut connection, COLLECTION)?;
    Ok(row)
}

/// Memory that many connections cost together which said hello and nothing more.
pub fn idle_connections(target: &Target, count: u64) -> Result<Row> {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most })?;
    let pid = server(target)?;
    let before = resident_bytes(pid)?;
    let connections = (0..count).map(|_| connect(target)).collect::<Result<Vec<_>>>()?;
    let grown = resident_bytes(pid)?.saturating_sub(before);
    drop(connections);
    let measure = format!("{count} idle connections");
    Ok(Row { operations: Some(count), mebibytes: Some(mebibytes(grown)), ..Row::new(&measure, target) })
}

/// Times first batches of a small and a large collection, in turns.
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
                let started = Samples::start(target);
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

/// Reads the large collection from end to end in default batches: documents per second, and the peak memory meanwhile.
/// Drops the collection.
pub fn read_through(target: &Target) -> Result<Row> {
    let pid = server(target)?;
    let mut connection = connect(target)?;
    forget_peak(pid)?;
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
    drop_collection(&mut connection, LARGE)?;
    Ok(Row {
        operations: Some(documents),
        per_second: Some(per_second),
        mebibytes: Some(mebibytes(peak)),
        ..Row::new("peak while reading it through", target)
    })
}

fn connect(target: &Target) -> Result<Connection> {
    let mut connection = Connection::open(&target.address)?;
    connection.handshake()?;
    Ok(connection)
}

fn server(target: &Target) -> Result<Pid> {
    match target.server {
        Some(pid) => Ok(pid),
        None => bail!("{}: the process that listens there is not on this machine, or not ours to look at", target.name),
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
