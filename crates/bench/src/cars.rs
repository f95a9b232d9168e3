//! Five reads of a collection of 10,000 cars, and loading it, against any number of servers in turns.
//!
//! The experiment is the one MariaDB published for MaxScale's document cache: the collection is dropped and loaded, each query
//! is run to warm up and checked to give what it should, then every query is timed many times over one connection.

pub mod modes;

use crate::client::Connection;
use crate::dataset::{CARS, TOYOTAS, drop_collection, insert_cars, load_cars};
use crate::message::{Message, check_ok, cursor_batch};
use crate::plain::PlainSender;
use crate::report::{Report, Row, Samples};
use crate::target::{Target, TargetArgs};
use crate::turns::TurnArgs;
use anyhow::{Context, Result, bail};
use document::{DocBuf, doc};
use modes::ModesArgs;
use std::time::Instant;

#[derive(clap::Args, Debug, Clone)]
pub struct CarsArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// How often each query is timed on each server [default: 500, with --modes 100]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,

    /// How often the collection is dropped and loaded anew; 0 leaves that out
    #[arg(long, default_value_t = 10)]
    pub loads: u64,

    #[command(flatten)]
    pub turn: TurnArgs,

    #[command(flatten)]
    pub modes: ModesArgs,
}

const COLLECTION: &str = "cars";
/// How often each query is timed in the published experiment.
const PUBLISHED_ITERATIONS: u64 = 100;
/// What the server is called that sends the same bytes and does nothing else.
const PLAIN: &str = "plain buffer";

/// A query, and how many documents its first batch has to hold.
struct Question {
    name: &'static str,
    message: Message,
    documents: u64,
}

struct Contestant {
    target: Target,
    collection: String,
    questions: Vec<Question>,
    connection: Connection,
    /// Length of the right reply to each question: what timed replies are checked against.
    reply_bytes: Vec<usize>,
    samples: Vec<Samples>,
    loading: Samples,
}

pub fn run(args: &CarsArgs) -> Result<()> {
    if args.modes.is_wanted() {
        return modes::run(args);
    }
    let mut report = Report::default();
    let reading = Reading { iterations: args.iterations.unwrap_or(500), turn: args.turn };
    report.extend(measure(&args.target.targets()?, reading, args.loads)?);
    report.publish(args.target.json.as_deref())
}

impl CarsArgs {
    pub fn mode_reading(&self) -> Reading {
        Reading { iterations: self.iterations.unwrap_or(PUBLISHED_ITERATIONS), turn: self.turn }
    }
}

/// How often each query is timed on each server.
#[derive(Clone, Copy)]
pub struct Reading {
    pub iterations: u64,
    pub turn: TurnArgs,
}

pub fn measure(targets: &[Target], reading: Reading, loads: u64) -> Result<Vec<Row>> {
    let prepare = |target: &Target| Contestant::prepare(target, COLLECTION).with_context(|| target.name.clone());
    let mut contestants = targets.iter().map(prepare).collect::<Result<Vec<_>>>()?;
    for turn in 0..loads as usize {
        for index in 0..contestants.len() {
            let contestant = turn_of(&mut contestants, turn + index);
            contestant.time_load().with_context(|| format!("{}: loading", contestant.target.name))?;
        }
    }
    read(&mut contestants, reading)?;
    Ok(rows(&contestants, loads > 0))
}

/// As [`measure`] without loading, with a collection for each target, as several may serve the same data; and beside them a server that sends
/// the first one's replies from plain buffers.
pub fn measure_beside_plain(targets: &[(&Target, &str)], reading: Reading) -> Result<Vec<Row>> {
    let prepare = |(target, collection): &(&Target, &str)| {
        Contestant::prepare(target, collection).with_context(|| target.name.clone())
    };
    let mut contestants = targets.iter().map(prepare).collect::<Result<Vec<_>>>()?;
    let Some(first) = contestants.first_mut() else { return Ok(Vec::new()) };
    let (plain, sender) = first.plain()?;
    contestants.push(plain);
    read(&mut contestants, reading)?;
    let rows = rows(&contestants, false);
    drop(contestants);
    sender.join()?;
    Ok(rows)
}

fn read(contestants: &mut [Contestant], reading: Reading) -> Result<()> {
    let names = names();
    for (turn, count) in reading.turn.of(reading.iterations).enumerate() {
        for (number, name) in names.iter().enumerate() {
            for index in 0..contestants.len() {
                let contestant = turn_of(contestants, turn + index);
                let timed = contestant.time(number, count);
                timed.with_context(|| format!("{}: {name}", contestant.target.name))?;
            }
        }
    }
    Ok(())
}

fn names() -> Vec<&'static str> {
    questions(COLLECTION).into_iter().map(|question| question.name).collect()
}

/// Whose turn it is: everyone begins once, so that nobody always comes after the same one.
fn turn_of(contestants: &mut [Contestant], index: usize) -> &mut Contestant {
    let count = contestants.len();
    &mut contestants[index % count]
}

fn rows(contestants: &[Contestant], loaded: bool) -> Vec<Row> {
    let reads = names().into_iter().enumerate().flat_map(|(number, name)| {
        contestants.iter().map(move |one| one.samples[number].row(name, &one.target, false))
    });
    let loads = contestants.iter().map(|one| one.loading.row("insertMany of 10,000", &one.target, true));
    reads.chain(loads.filter(|_| loaded)).collect()
}

fn questions(collection: &str) -> Vec<Question> {
    let find = |filter: Option<&DocBuf>, batch_size: Option<i32>| {
        let mut body = doc! { "find": collection };
        filter.inspect(|filter| body.append("filter", *filter));
        batch_size.inspect(|size| body.append("batchSize", *size));
        Message::command(body)
    };
    let question = |name, documents, message| Question { name, message, documents };
    let everything = Some(CARS as i32);
    vec![
        question("first 101", 101, find(None, None)),
        question("all 10,000", CARS, find(None, everything)),
        question("Make = Toyota", TOYOTAS, find(Some(&doc! { "Make": "Toyota" }), everything)),
        question("_id $eq", 1, find(Some(&doc! { "_id": &doc! { "$eq": 4711i32 } }), None)),
        question("_id", 1, find(Some(&doc! { "_id": 4711i32 }), None)),
    ]
}

impl Contestant {
    fn prepare(target: &Target, collection: &str) -> Result<Contestant> {
        let questions = questions(collection);
        let mut connection = Connection::open(&target.address)?;
        connection.handshake()?;
        load_cars(&mut connection, collection, CARS)?;
        let reply_bytes = questions
            .iter()
            .map(|question| warm_up(&mut connection, question).with_context(|| question.name))
            .collect::<Result<_>>()?;
        let samples = questions.iter().map(|_| Samples::new()).collect::<Result<_>>()?;
        let loading = Samples::of_many(CARS)?;
        let (target, collection) = (target.clone(), collection.to_owned());
        Ok(Contestant { target, collection, questions, connection, reply_bytes, samples, loading })
    }

    /// One that gets the same replies from plain buffers, and who sends them.
    fn plain(&mut self) -> Result<(Contestant, PlainSender)> {
        let connection = &mut self.connection;
        let replies = self.questions.iter().map(|question| {
            let reply = connection.round_trip(&question.message)?;
            Ok((question.message.as_bytes().to_vec(), reply.to_vec()))
        });
        let sender = PlainSender::start(replies.collect::<Result<_>>()?, &self.target.address)?;
        let target = Target { name: PLAIN.into(), address: sender.address.clone(), server: None, behind: Vec::new() };
        let plain = Contestant {
            connection: Connection::open(&target.address)?,
            target,
            collection: self.collection.clone(),
            questions: questions(&self.collection),
            reply_bytes: self.reply_bytes.clone(),
            samples: self.questions.iter().map(|_| Samples::new()).collect::<Result<_>>()?,
            loading: Samples::of_many(CARS)?,
        };
        Ok((plain, sender))
    }

    fn time(&mut self, number: usize, count: u64) -> Result<()> {
        let (question, samples) = (&self.questions[number], &mut self.samples[number]);
        let started = Samples::start(&self.target);
        for _ in 0..count {
            let before = Instant::now();
            let length = self.connection.round_trip(&question.message)?.len();
            samples.record(before.elapsed());
            if length != self.reply_bytes[number] {
                bail!("a reply of {length} bytes, after one of {}", self.reply_bytes[number]);
            }
        }
        samples.stop(&self.target, started);
        Ok(())
    }

    /// Loads the collection in one command. It is the same one afterwards, for the queries.
    fn time_load(&mut self) -> Result<()> {
        let message = insert_cars(&self.collection, 0, CARS);
        drop_collection(&mut self.connection, &self.collection)?;
        let started = Samples::start(&self.target);
        let before = Instant::now();
        let reply = self.connection.round_trip(&message)?;
        self.loading.record(before.elapsed());
        check_ok(reply)?;
        self.loading.stop(&self.target, started);
        Ok(())
    }
}

/// Asks a few times, counts the documents, and gives the length of the reply. Where a cursor stays open, it is closed.
fn warm_up(connection: &mut Connection, question: &Question) -> Result<usize> {
    let mut length = 0;
    for _ in 0..3 {
        let reply = connection.round_trip(&question.message)?;
        length = reply.len();
        let (_, batch) = cursor_batch(check_ok(reply)?)?;
        let documents = batch.elements().count() as u64;
        if documents != question.documents {
            bail!("{documents} documents instead of {}", question.documents);
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_turn_goes_round() {
        assert_eq!(
            questions(COLLECTION).iter().map(|question| question.documents).collect::<Vec<_>>(),
            [101, 10_000, 579, 1, 1]
        );
    }
}
