//! Measures the five queries, and loading the collection.

use crate::dataset::{CARS, TOYOTAS, insert_cars, load_cars};
use crate::replay_server::ReplayServer;
use crate::round_robin::{RoundRobinArgs, order_of_turn};
use anyhow::{Context, Result, bail};
use document::{DocBuf, doc};
use harness::connection::Connection;
use harness::message::{Message, check_ok, cursor_batch};
use harness::report::{Row, Samples, Stopwatch};
use harness::target::Target;
use std::time::Instant;

const COLLECTION: &str = "cars";

/// Number of times that each query is timed on each server.
#[derive(Clone, Copy)]
pub struct Repetitions {
    pub iterations: u64,
    pub round_robin: RoundRobinArgs,
}

/// A query, and the number of documents in its first batch.
struct Query {
    name: &'static str,
    message: Message,
    documents: u64,
}

struct ServerUnderTest {
    target: Target,
    collection: String,
    queries: Vec<Query>,
    connection: Connection,
    /// Length of the right reply to each query, to check timed replies.
    reply_bytes: Vec<usize>,
    samples: Vec<Samples>,
    loading: Samples,
}

/// Measures `loads` loads of the collection and then the queries, on each target.
pub fn measure(targets: &[Target], repetitions: Repetitions, loads: u64) -> Result<Vec<Row>> {
    let prepare = |target: &Target| ServerUnderTest::prepare(target, COLLECTION).with_context(|| target.name.clone());
    let mut servers = targets.iter().map(prepare).collect::<Result<Vec<_>>>()?;
    for turn in 0..loads as usize {
        for index in order_of_turn(turn, servers.len()) {
            let server = &mut servers[index];
            server.time_load().with_context(|| format!("{}: loading", server.target.name))?;
        }
    }
    time_queries(&mut servers, repetitions)?;
    Ok(rows(&servers, loads > 0))
}

/// Measures the queries on each target, and on a server that replays the first target's replies.
/// Each target has a collection of its own, as several may serve the same data.
pub fn measure_with_replay(targets: &[(&Target, &str)], repetitions: Repetitions) -> Result<Vec<Row>> {
    let prepare = |(target, collection): &(&Target, &str)| {
        ServerUnderTest::prepare(target, collection).with_context(|| target.name.clone())
    };
    let mut servers = targets.iter().map(prepare).collect::<Result<Vec<_>>>()?;
    let Some(first) = servers.first_mut() else { return Ok(Vec::new()) };
    let (replay, replay_server) = first.replay()?;
    servers.push(replay);
    time_queries(&mut servers, repetitions)?;
    let rows = rows(&servers, false);
    drop(servers);
    replay_server.join()?;
    Ok(rows)
}

fn time_queries(servers: &mut [ServerUnderTest], repetitions: Repetitions) -> Result<()> {
    let names = query_names();
    for (turn, count) in repetitions.round_robin.turns(repetitions.iterations).enumerate() {
        for (number, name) in names.iter().enumerate() {
            for index in order_of_turn(turn, servers.len()) {
                let server = &mut servers[index];
                let timed = server.time(number, count);
                timed.with_context(|| format!("{}: {name}", server.target.name))?;
            }
        }
    }
    Ok(())
}

fn query_names() -> Vec<&'static str> {
    queries(COLLECTION).into_iter().map(|query| query.name).collect()
}

fn rows(servers: &[ServerUnderTest], loaded: bool) -> Vec<Row> {
    let queries = query_names().into_iter().enumerate().flat_map(|(number, name)| {
        servers.iter().map(move |server| server.samples[number].row(name, &server.target, false))
    });
    let loads = servers.iter().map(|server| server.loading.row("insertMany of 10,000", &server.target, true));
    queries.chain(loads.filter(|_| loaded)).collect()
}

fn queries(collection: &str) -> Vec<Query> {
    let find = |filter: Option<&DocBuf>, batch_size: Option<i32>| {
        let mut body = doc! { "find": collection };
        filter.inspect(|filter| body.append("filter", *filter));
        batch_size.inspect(|size| body.append("batchSize", *size));
        Message::command(body)
    };
    let query = |name, documents, message| Query { name, message, documents };
    let all = Some(CARS as i32);
    vec![
        query("first 101", 101, find(None, None)),
        query("all 10,000", CARS, find(None, all)),
        query("Make = Toyota", TOYOTAS, find(Some(&doc! { "Make": "Toyota" }), all)),
        query("_id $eq", 1, find(Some(&doc! { "_id": &doc! { "$eq": 4711i32 } }), None)),
        query("_id", 1, find(Some(&doc! { "_id": 4711i32 }), None)),
    ]
}

impl ServerUnderTest {
    fn prepare(target: &Target, collection: &str) -> Result<ServerUnderTest> {
        let queries = queries(collection);
        let mut connection = Connection::open_with_handshake(&target.address)?;
        load_cars(&mut connection, collection, CARS)?;
        let reply_bytes = queries
            .iter()
            .map(|query| warm_up(&mut connection, query).with_context(|| query.name))
            .collect::<Result<_>>()?;
        let samples = queries.iter().map(|_| Samples::new()).collect::<Result<_>>()?;
        let loading = Samples::of_many(CARS)?;
        let (target, collection) = (target.clone(), collection.to_owned());
        Ok(ServerUnderTest { target, collection, queries, connection, reply_bytes, samples, loading })
    }

    /// Starts a server that replays this server's replies.
    fn replay(&mut self) -> Result<(ServerUnderTest, ReplayServer)> {
        let connection = &mut self.connection;
        let replies = self.queries.iter().map(|query| {
            let reply = connection.round_trip(&query.message)?;
            Ok((query.message.as_bytes().to_vec(), reply.to_vec()))
        });
        let replay_server = ReplayServer::start(replies.collect::<Result<_>>()?, &self.target.address)?;
        let target = replay_server.target();
        let replay = ServerUnderTest {
            connection: Connection::open(&target.address)?,
            target,
            collection: self.collection.clone(),
            queries: queries(&self.collection),
            reply_bytes: self.reply_bytes.clone(),
            samples: self.queries.iter().map(|_| Samples::new()).collect::<Result<_>>()?,
            loading: Samples::of_many(CARS)?,
        };
        Ok((replay, replay_server))
    }

    fn time(&mut self, number: usize, count: u64) -> Result<()> {
        let (query, samples) = (&self.queries[number], &mut self.samples[number]);
        let started = Stopwatch::start(&self.target);
        for _ in 0..count {
            let before = Instant::now();
            let length = self.connection.round_trip(&query.message)?.len();
            samples.record(before.elapsed());
            if length != self.reply_bytes[number] {
                bail!("a reply of {length} bytes, after one of {}", self.reply_bytes[number]);
            }
        }
        samples.stop(&self.target, started);
        Ok(())
    }

    /// Times one command that loads the whole collection. The queries find the same data
    /// afterwards.
    fn time_load(&mut self) -> Result<()> {
        let message = insert_cars(&self.collection, 0, CARS);
        self.connection.drop_collection(&self.collection)?;
        let started = Stopwatch::start(&self.target);
        let before = Instant::now();
        let reply = self.connection.round_trip(&message)?;
        self.loading.record(before.elapsed());
        check_ok(reply)?;
        self.loading.stop(&self.target, started);
        Ok(())
    }
}

/// Runs a query a few times, checks the number of documents, and returns the length of the reply.
fn warm_up(connection: &mut Connection, query: &Query) -> Result<usize> {
    let mut length = 0;
    for _ in 0..3 {
        let reply = connection.round_trip(&query.message)?;
        length = reply.len();
        let (_, batch) = cursor_batch(check_ok(reply)?)?;
        let documents = batch.elements().count() as u64;
        if documents != query.documents {
            bail!("{documents} documents instead of {}", query.documents);
        }
    }
    Ok(length)
}
