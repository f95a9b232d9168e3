//! The array slice cache: `$push` with `$each` and `$slice: -10` by `_id` over many connections,
//! each acknowledged from the disk (`j: true`). Starts the servers and measures them in turns.

use crate::closed_loop::{ClosedLoop, Workload};
use crate::round_robin::in_turns;
use anyhow::{Context, Result, bail};
use document::{ArrayWriter, Doc, DocBuf, Value, ValueBuf, doc};
use harness::connection::Connection;
use harness::message::{MARKER, Message, check_ok, cursor_batch};
use harness::random::SplitMix;
use harness::report::{Report, Row, Samples, Stopwatch, markdown, three_digits};
use harness::servers::{EMBEDDED, MARIADB, MONGODB, Sandbox, ServerArgs};
use harness::target::Target;
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args, Debug, Clone)]
pub struct SliceArgs {
    #[command(flatten)]
    pub servers: ServerArgs,

    /// Connections, each with one update in flight
    #[arg(long, default_value_t = 16)]
    pub connections: usize,

    /// Total time of each server, in seconds
    #[arg(long, default_value_t = 15.0)]
    pub seconds: f64,

    /// Turns that the time is divided into
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Posts, chosen at random for each comment; several numbers are measured one after the other
    #[arg(long, default_values_t = [1000, 1], value_parser = clap::value_parser!(u64).range(1..))]
    pub posts: Vec<u64>,

    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const COLLECTION: &str = "posts";

/// Comments of a post, from the beginning.
const COMMENTS_PER_POST: usize = 10;

/// Comments that are prepared and pushed one after the other, so that every update changes its
/// post.
const PREPARED_COMMENTS: usize = 64;

/// The minimum of updates per second by server, as a multiple of MongoDB's.
const GOALS: [(&str, f64); 2] = [(EMBEDDED, 1.5), (MARIADB, 0.5)];

/// The maximum of the 99th percentile, as a multiple of the median.
const P99_MEDIANS_MAX: f64 = 5.0;

pub fn run(args: &SliceArgs) -> Result<()> {
    let sandbox = Sandbox::prepare(&args.servers.gateway)?;
    let servers = sandbox.start_all(args.servers.mongod.as_ref())?;
    let targets: Vec<Target> = servers.iter().map(|server| server.target.clone()).collect();
    let mut report = Report::default();
    for &posts in &args.posts {
        report.extend(measure(args, posts, &targets)?);
    }
    report.publish(args.json.as_deref())?;
    println!("{}", markdown(&goals(&report.rows)));
    Ok(())
}

fn measure(args: &SliceArgs, posts: u64, targets: &[Target]) -> Result<Vec<Row>> {
    let mut servers = targets
        .iter()
        .map(|target| ServerUnderTest::prepare(target, posts, args.connections).with_context(|| target.name.clone()))
        .collect::<Result<Vec<_>>>()?;
    let turn = Duration::from_secs_f64(args.seconds / f64::from(args.rounds));
    in_turns(args.rounds, &mut servers, |server| server.run(turn).with_context(|| server.target.name.clone()))?;
    let plural = if posts == 1 { "" } else { "s" };
    let measure = format!("push to {posts} post{plural}, {} connections", args.connections);
    let row = |server: &ServerUnderTest| {
        server.check(posts).with_context(|| server.target.name.clone())?;
        let samples = &server.samples;
        Ok(Row { p95_ms: Some(samples.quantile_ms(0.95)), ..samples.row(&measure, &server.target, true) })
    };
    servers.iter().map(row).collect()
}

struct ServerUnderTest {
    target: Target,
    closed_loop: ClosedLoop,
    pushes: Pushes,
    samples: Samples,
}

impl ServerUnderTest {
    fn prepare(target: &Target, posts: u64, connections: usize) -> Result<ServerUnderTest> {
        let mut connection = Connection::open_with_handshake(&target.address)?;
        connection.drop_collection(COLLECTION)?;
        let documents: Vec<DocBuf> = (0..posts).map(post).collect();
        for batch in documents.chunks(1000) {
            let documents = batch.iter().map(DocBuf::as_doc);
            check_ok(connection.round_trip(&Message::with_sequence(
                doc! { "insert": COLLECTION },
                "documents",
                documents,
            ))?)?;
        }
        let closed_loop = ClosedLoop::connect(&target.address, connections)?;
        let (target, pushes, samples) = (target.clone(), Pushes::new(posts), Samples::new()?);
        let mut server = ServerUnderTest { target, closed_loop, pushes, samples };
        // Warm up, and fail early if requests fail.
        server.closed_loop.run(&mut server.pushes, Duration::from_millis(300), &mut Samples::new()?)?;
        Ok(server)
    }

    fn run(&mut self, time: Duration) -> Result<()> {
        let started = Stopwatch::start(&self.target);
        self.closed_loop.run(&mut self.pushes, time, &mut self.samples)?;
        self.samples.stop(&self.target, started);
        Ok(())
    }

    /// Fails unless every post has [`COMMENTS_PER_POST`] comments.
    fn check(&self, posts: u64) -> Result<()> {
        let mut connection = Connection::open_with_handshake(&self.target.address)?;
        for number in 0..posts {
            let by_id = doc! { "_id": number as i32 };
            let body = connection.run(doc! { "find": COLLECTION, "filter": &by_id, "singleBatch": true })?;
            let post = cursor_batch(body)?.1.values().next().and_then(Value::as_document).unwrap_or(Doc::EMPTY);
            let Some(Value::Array(comments)) = post.get("latestComments") else { bail!("post {number} is {post:?}") };
            if comments.values().count() != COMMENTS_PER_POST {
                bail!("post {number} has other than {COMMENTS_PER_POST} comments: {post:?}");
            }
        }
        Ok(())
    }
}

/// Returns a post with all its comments, so that the size of documents does not change.
fn post(number: u64) -> DocBuf {
    let comments = array((0..COMMENTS_PER_POST).map(|index| comment(index as u64)));
    doc! {
        "_id": number as i32,
        "title": "What a cache is good for",
        "author": "the author of the post",
        "text": "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore.",
        "latestComments": comments.as_value(),
    }
}

fn comment(number: u64) -> DocBuf {
    doc! {
        "number": number as i32,
        "author": "a reader",
        "at": Value::DateTime(1_600_000_000_000 + number as i64 * 1000),
        "text": "Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat nulla pariatur.",
    }
}

fn array(documents: impl Iterator<Item = DocBuf>) -> ValueBuf {
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    documents.for_each(|document| writer.push(&document));
    drop(writer);
    Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)).to_owned()
}

/// The updates, one after the other, each of a random post.
struct Pushes {
    messages: Vec<Message>,
    next: usize,
    random: SplitMix,
    posts: u64,
}

impl Pushes {
    fn new(posts: u64) -> Pushes {
        let message = |number: usize| {
            let each = array(std::iter::once(comment((COMMENTS_PER_POST + number) as u64)));
            let push = doc! { "$each": each.as_value(), "$slice": -(COMMENTS_PER_POST as i32) };
            let change = doc! { "$push": &doc! { "latestComments": &push } };
            let update = doc! { "q": &doc! { "_id": MARKER }, "u": &change };
            let durable = doc! { "w": 1i32, "j": true };
            let command = doc! { "update": COLLECTION, "writeConcern": &durable };
            Message::with_sequence(command, "updates", std::iter::once(update.as_doc()))
        };
        Pushes { messages: (0..PREPARED_COMMENTS).map(message).collect(), next: 0, random: SplitMix(1), posts }
    }
}

impl Workload for Pushes {
    fn next(&mut self) -> &Message {
        self.next = (self.next + 1) % self.messages.len();
        let message = &mut self.messages[self.next];
        message.patch(self.random.below(self.posts) as i32);
        message
    }

    fn check(&self, reply: &[u8]) -> Result<()> {
        let body = check_ok(reply)?;
        if body.get("n") != Some(Value::Int32(1)) || body.get("nModified") != Some(Value::Int32(1)) {
            bail!("the server replied {body:?}");
        }
        Ok(())
    }
}

/// Returns the table of the goals, with whether each is reached.
fn goals(rows: &[Row]) -> Vec<Vec<String>> {
    let heads = ["measure", "server", "goal", "value", "reached"];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    let has_base = rows.first().is_some_and(|row| row.target == MONGODB);
    for row in rows {
        let Some((server, bound)) = GOALS.iter().find(|(server, _)| *server == row.target) else { continue };
        let mut line = |goal: String, value: Option<f64>, reached: &dyn Fn(f64) -> bool| {
            let Some(value) = value else { return };
            let reached = if reached(value) { "yes" } else { "no" };
            lines.push(vec![row.measure.clone(), (*server).to_owned(), goal, three_digits(value), reached.to_owned()]);
        };
        let ratio = row.ratio.filter(|_| has_base);
        line(format!("{bound} times MongoDB's throughput"), ratio, &|value| value >= *bound);
        let medians = row.p99_ms.zip(row.p50_ms).map(|(p99, p50)| p99 / p50);
        line(format!("p99 at most {P99_MEDIANS_MAX} medians"), medians, &|value| value <= P99_MEDIANS_MAX);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_checked_by_ratio_and_medians() {
        let row = |target: &str, ratio, p99| Row {
            target: target.into(),
            ratio: Some(ratio),
            p50_ms: Some(1.0),
            p99_ms: Some(p99),
            ..Row::default()
        };
        let lines = goals(&[row(MONGODB, 1.0, 9.0), row(EMBEDDED, 1.4, 2.0), row(MARIADB, 0.6, 5.5)]);
        let reached: Vec<_> = lines[1..].iter().map(|line| line[4].as_str()).collect();
        assert_eq!(reached, ["no", "yes", "yes", "no"]);
        assert_eq!(goals(&[row(EMBEDDED, 1.0, 2.0)]).len(), 2);
    }

    #[test]
    fn posts_begin_with_all_comments() {
        let post = post(7);
        let Some(Value::Array(comments)) = post.as_doc().get("latestComments") else { panic!() };
        assert_eq!(comments.values().count(), COMMENTS_PER_POST);
    }
}
