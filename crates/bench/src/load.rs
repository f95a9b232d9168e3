//! Point reads, inserts, updates and a mix of them over N connections: throughput, latency, and CPU
//! time per operation.

use crate::closed_loop::{ClosedLoop, Workload};
use crate::dataset::{car, load_cars};
use crate::round_robin::in_turns;
use anyhow::{Context, Result, bail};
use document::{DocBuf, Value, doc};
use harness::connection::Connection;
use harness::message::{MARKER, Message, check_ok, cursor_batch};
use harness::random::SplitMix;
use harness::report::{Report, Row, Samples, Stopwatch};
use harness::target::{Target, TargetArgs};
use std::time::Duration;

#[derive(clap::Args, Debug, Clone)]
pub struct LoadArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// The operations of the connections
    #[arg(long, value_enum, default_values_t = [Work::Point])]
    pub work: Vec<Work>,

    /// Connections, each with one request in flight; several numbers are measured one after the
    /// other
    #[arg(long, default_values_t = [1, 16])]
    pub connections: Vec<usize>,

    /// Total time of each server, in seconds, per work and number of connections
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,

    /// Turns that the time is divided into
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Documents in the collection that is read and updated
    #[arg(long, default_value_t = 10_000)]
    pub documents: u64,

    /// Percentage of reads in mixed work; the others are updates
    #[arg(long, default_value_t = 95, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub reads: u64,

    /// Documents per command of insert-many
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub batch: u64,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Find one document by its _id
    Point,
    /// Insert one document
    Insert,
    /// Insert many documents with one command
    InsertMany,
    /// Increment a field of one document, found by its _id
    Update,
    /// Point reads and updates
    Mixed,
}

const COLLECTION: &str = "load";
const INSERTED: &str = "load_inserted";

pub fn run(args: &LoadArgs) -> Result<()> {
    let mut report = Report::default();
    for &work in &args.work {
        for &connections in &args.connections {
            report.extend(measure(&args.target.targets()?, args, work, connections)?);
        }
    }
    report.publish(args.target.json.as_deref())
}

pub fn measure(targets: &[Target], args: &LoadArgs, work: Work, connections: usize) -> Result<Vec<Row>> {
    let mut servers = targets
        .iter()
        .map(|target| ServerUnderTest::prepare(target, args, work, connections).with_context(|| target.name.clone()))
        .collect::<Result<Vec<_>>>()?;
    let turn = Duration::from_secs_f64(args.seconds / f64::from(args.rounds));
    in_turns(args.rounds, &mut servers, |server| server.run(turn).with_context(|| server.target.name.clone()))?;
    let plural = if connections == 1 { "" } else { "s" };
    let name = format!("{}, {connections} connection{plural}", work.name(args));
    Ok(servers.iter().map(|server| server.samples.row(&name, &server.target, true)).collect())
}

struct ServerUnderTest {
    target: Target,
    closed_loop: ClosedLoop,
    worker: Worker,
    samples: Samples,
}

impl ServerUnderTest {
    fn prepare(target: &Target, args: &LoadArgs, work: Work, connections: usize) -> Result<ServerUnderTest> {
        let mut connection = Connection::open_with_handshake(&target.address)?;
        load_cars(&mut connection, COLLECTION, args.documents)?;
        load_cars(&mut connection, INSERTED, 0)?;
        let closed_loop = ClosedLoop::connect(&target.address, connections)?;
        let per_sample = if work == Work::InsertMany { args.batch } else { 1 };
        let samples = Samples::of_many(per_sample)?;
        let mut server =
            ServerUnderTest { target: target.clone(), closed_loop, worker: Worker::new(work, args), samples };
        // Warm up, and fail early if requests fail.
        server.closed_loop.run(&mut server.worker, Duration::from_millis(100), &mut Samples::new()?)?;
        Ok(server)
    }

    fn run(&mut self, time: Duration) -> Result<()> {
        let started = Stopwatch::start(&self.target);
        self.closed_loop.run(&mut self.worker, time, &mut self.samples)?;
        self.samples.stop(&self.target, started);
        Ok(())
    }
}

impl Work {
    fn name(self, args: &LoadArgs) -> String {
        match self {
            Work::Point => "point read".into(),
            Work::Insert => "insert".into(),
            Work::InsertMany => format!("insertMany of {}", args.batch),
            Work::Update => "update".into(),
            Work::Mixed => format!("mixed {}/{}", args.reads, 100 - args.reads),
        }
    }
}

/// Generates the messages of one kind of work, and checks their replies.
struct Worker {
    work: Work,
    find: Message,
    update: Message,
    insert: Message,
    insert_many: Message,
    random: SplitMix,
    documents: u64,
    reads: u64,
}

impl Worker {
    fn new(work: Work, args: &LoadArgs) -> Worker {
        let by_id = doc! { "_id": MARKER };
        let find = doc! { "find": COLLECTION, "filter": &by_id, "limit": 1i32, "singleBatch": true };
        let change = doc! { "q": &by_id, "u": &doc! { "$inc": &doc! { "count": 1i32 } } };
        // The server generates the _id, so that the same message can be sent again.
        let new: DocBuf = without_id(&car(1));
        let many: Vec<DocBuf> = (0..args.batch).map(|number| without_id(&car(number))).collect();
        let insert = |documents: &[DocBuf]| {
            let documents = documents.iter().map(DocBuf::as_doc);
            Message::with_sequence(doc! { "insert": INSERTED }, "documents", documents)
        };
        Worker {
            work,
            find: Message::command(find),
            update: Message::with_sequence(doc! { "update": COLLECTION }, "updates", [change.as_doc()].into_iter()),
            insert: insert(&[new]),
            insert_many: insert(&many),
            random: SplitMix(1),
            documents: args.documents,
            reads: args.reads,
        }
    }
}

fn without_id(document: &DocBuf) -> DocBuf {
    DocBuf::build(|writer| {
        let elements = document.as_doc().elements();
        elements.filter(|element| element.key() != "_id").for_each(|element| writer.append_element(element));
    })
}

impl Workload for Worker {
    fn next(&mut self) -> &Message {
        let number = self.random.below(self.documents) as i32;
        let read = match self.work {
            Work::Point => true,
            Work::Update => false,
            Work::Mixed => self.random.below(100) < self.reads,
            Work::Insert => return &self.insert,
            Work::InsertMany => return &self.insert_many,
        };
        let message = if read { &mut self.find } else { &mut self.update };
        message.patch(number);
        message
    }

    /// Fails unless a read found its document or a write changed one.
    fn check(&self, reply: &[u8]) -> Result<()> {
        let body = check_ok(reply)?;
        let done = match body.get("n") {
            Some(Value::Int32(count)) => count > 0,
            Some(_) => false,
            None => cursor_batch(body)?.1.first().is_some(),
        };
        if !done {
            bail!("the server replied {body:?}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_to_insert_have_no_id() {
        assert!(without_id(&car(1)).as_doc().get("_id").is_none());
        assert!(without_id(&car(1)).as_doc().get("Make").is_some());
    }
}
