//! The array slice cache: `$push` with `$each` and `$slice: -10` by `_id` over many connections, each acknowledged from the disk
//! (`j: true`). Starts MongoDB, Selkie on its own store and Selkie on a private MariaDB, and measures them in turns.

use crate::client::Connection;
use crate::dataset::{SplitMix, drop_collection};
use crate::drive::{Crowd, Workload};
use crate::message::{MARKER, Message, check_ok, cursor_batch};
use crate::report::{Report, Row, Samples, figure, markdown};
use crate::servers::{self, EMBEDDED, MARIADB, MONGODB, Mariadb};
use crate::target::Target;
use anyhow::{Context, Result, bail};
use document::{ArrayWriter, Doc, DocBuf, Value, ValueBuf, doc};
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args, Debug, Clone)]
pub struct SliceArgs {
    /// The mongod to compare with; without it, Selkie on its own store is what MariaDB is compared with
    #[arg(long, value_name = "PROGRAM")]
    pub mongod: Option<PathBuf>,

    /// The mariadbd behind the second Selkie; `none` leaves it out
    #[arg(long, value_name = "PROGRAM", default_value = "mariadbd")]
    pub mariadbd: PathBuf,

    /// The Selkie to measure; this program if not given
    #[arg(long, value_name = "PROGRAM")]
    pub selkie: Option<PathBuf>,

    /// Connections that each keep one update under way
    #[arg(long, default_value_t = 16)]
    pub connections: usize,

    /// How long each server is driven in all, in seconds
    #[arg(long, default_value_t = 15.0)]
    pub seconds: f64,

    /// In how many turns that time is given
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Posts that comments are written to, drawn at random; several numbers are measured one after the other
    #[arg(long, default_values_t = [1000, 1], value_parser = clap::value_parser!(u64).range(1..))]
    pub posts: Vec<u64>,

    /// Also write the figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const COLLECTION: &str = "posts";

/// How many comments a post keeps. It has as many from the beginning.
const KEPT: usize = 10;

/// So many comments are made beforehand and pushed one after the other, so that no update leaves a post as it was.
const COMMENTS: usize = 64;

/// At least so many times MongoDB's updates per second, by server.
const GOALS: [(&str, f64); 2] = [(EMBEDDED, 1.5), (MARIADB, 0.5)];

/// No more than so many medians for the 99th percentile.
const P99_MEDIANS_MAX: f64 = 5.0;

pub fn run(args: &SliceArgs) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("selkie-bench-").tempdir()?;
    let mariadb = match args.mariadbd.to_str() {
        Some("none") => None,
        _ => Some(Mariadb::start(&args.mariadbd, folder.path())?),
    };
    let contestants = servers::all(args.mongod.as_ref(), args.selkie.as_ref(), folder.path(), mariadb.as_ref())?;
    let targets: Vec<Target> = contestants.iter().map(|one| one.target.clone()).collect();
    let mut report = Report::default();
    for &posts in &args.posts {
        report.extend(measure(args, posts, &targets)?);
    }
    report.publish(args.json.as_deref())?;
    println!("{}", markdown(&goals(&report.rows)));
    Ok(())
}

fn measure(args: &SliceArgs, posts: u64, targets: &[Target]) -> Result<Vec<Row>> {
    let mut lanes = targets
        .iter()
        .map(|target| Lane::prepare(target, posts, args.connections).with_context(|| target.name.clone()))
        .collect::<Result<Vec<_>>>()?;
    let turn = Duration::from_secs_f64(args.seconds / f64::from(args.rounds));
    let count = lanes.len();
    for round in 0..args.rounds as usize {
        for index in 0..count {
            let lane = &mut lanes[(round + index) % count];
            lane.drive(turn).with_context(|| lane.target.name.clone())?;
        }
    }
    let plural = if posts == 1 { "" } else { "s" };
    let measure = format!("push to {posts} post{plural}, {} connections", args.connections);
    let row = |lane: &Lane| {
        lane.check(posts).with_context(|| lane.target.name.clone())?;
        Ok(Row { p95_ms: Some(lane.samples.quantile_ms(0.95)), ..lane.samples.row(&measure, &lane.target, true) })
    };
    lanes.iter().map(row).collect()
}

/// One server while it is measured.
struct Lane {
    target: Target,
    crowd: Crowd,
    pushes: Pushes,
    samples: Samples,
}

impl Lane {
    fn prepare(target: &Target, posts: u64, connections: usize) -> Result<Lane> {
        let mut connection = Connection::open(&target.address)?;
        connection.handshake()?;
        drop_collection(&mut connection, COLLECTION)?;
        let documents: Vec<DocBuf> = (0..posts).map(post).collect();
        for batch in documents.chunks(1000) {
            let documents = batch.iter().map(DocBuf::as_doc);
            check_ok(connection.round_trip(&Message::with_sequence(
                doc! { "insert": COLLECTION },
                "documents",
                documents,
            ))?)?;
        }
        let crowd = Crowd::connect(&target.address, connections)?;
        let mut lane = Lane { target: target.clone(), crowd, pushes: Pushes::new(posts), samples: Samples::new()? };
        // Warms up and finds out what fails, without counting.
        lane.crowd.drive(&mut lane.pushes, Duration::from_millis(300), &mut Samples::new()?)?;
        Ok(lane)
    }

    fn drive(&mut self, time: Duration) -> Result<()> {
        let started = Samples::start(&self.target);
        self.crowd.drive(&mut self.pushes, time, &mut self.samples)?;
        self.samples.stop(&self.target, started);
        Ok(())
    }

    /// Every post must have as many comments as it is to keep.
    fn check(&self, posts: u64) -> Result<()> {
        let mut connection = Connection::open(&self.target.address)?;
        connection.handshake()?;
        for number in 0..posts {
            let by_id = doc! { "_id": number as i32 };
            let body = connection.run(doc! { "find": COLLECTION, "filter": &by_id, "singleBatch": true })?;
            let post = cursor_batch(body)?.1.values().next().and_then(Value::as_document).unwrap_or(Doc::EMPTY);
            let Some(Value::Array(comments)) = post.get("latestComments") else { bail!("post {number} is {post:?}") };
            if comments.values().count() != KEPT {
                bail!("post {number} has other than {KEPT} comments: {post:?}");
            }
        }
        Ok(())
    }
}

/// A post with as many comments as it keeps, so that the measure is of the same documents from the beginning to the end.
fn post(number: u64) -> DocBuf {
    let comments = array((0..KEPT).map(|index| comment(index as u64)));
    doc! {
        "_id": number as i32,
        "title": "What a cache is good for",
        "author": "somebody",
        "text": "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore.",
        "latestComments": comments.as_value(),
    }
}

fn comment(number: u64) -> DocBuf {
    doc! {
        "number": number as i32,
        "author": "somebody else",
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

/// The updates, one after the other; each goes to a post that is drawn.
struct Pushes {
    messages: Vec<Message>,
    next: usize,
    random: SplitMix,
    posts: u64,
}

impl Pushes {
    fn new(posts: u64) -> Pushes {
        let message = |number: usize| {
            let each = array(std::iter::once(comment((KEPT + number) as u64)));
            let push = doc! { "$each": each.as_value(), "$slice": -(KEPT as i32) };
            let change = doc! { "$push": &doc! { "latestComments": &push } };
            let update = doc! { "q": &doc! { "_id": MARKER }, "u": &change };
            let durable = doc! { "w": 1i32, "j": true };
            let command = doc! { "update": COLLECTION, "writeConcern": &durable };
            Message::with_sequence(command, "updates", std::iter::once(update.as_doc()))
        };
        Pushes { messages: (0..COMMENTS).map(message).collect(), next: 0, random: SplitMix(1), posts }
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
            bail!("the server answered {body:?}");
        }
        Ok(())
    }
}

/// The lines of the table that says which goals are reached, measure by measure.
fn goals(rows: &[Row]) -> Vec<Vec<String>> {
    let heads = ["measure", "server", "goal", "figure", "reached"];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    let has_base = rows.first().is_some_and(|row| row.target == MONGODB);
    for row in rows {
        let Some((server, bound)) = GOALS.iter().find(|(server, _)| *server == row.target) else { continue };
        let mut line = |goal: String, value: Option<f64>, reached: &dyn Fn(f64) -> bool| {
            let Some(value) = value else { return };
            let reached = if reached(value) { "yes" } else { "no" };
            lines.push(vec![row.measure.clone(), (*server).to_owned(), goal, figure(value), reached.to_owned()]);
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
    fn goals_are_judged_by_ratio_and_medians() {
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
    fn posts_have_all_their_comments() {
        let post = post(7);
        let Some(Value::Array(comments)) = post.as_doc().get("latestComments") else { panic!() };
        assert_eq!(comments.values().count(), KEPT);
    }
}
