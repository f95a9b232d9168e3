//! Aggregations and sorts of a large collection, and joins, on any number of servers in turns.

use crate::dataset::load_cars;
use anyhow::{Context, Result, bail};
use document::{DocBuf, array, doc};
use harness::connection::Connection;
use harness::message::{Message, check_ok, cursor_batch};
use harness::report::{Report, Row, Samples, Stopwatch};
use harness::target::{Target, TargetArgs};
use std::time::Instant;

#[derive(clap::Args, Debug, Clone)]
pub struct AggregateArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// Documents of about 200 bytes to group and sort
    #[arg(long, default_value_t = 1_000_000)]
    pub documents: u64,

    /// Documents on each side of the join
    #[arg(long, default_value_t = 10_000)]
    pub joined: u64,

    /// Number of times that each query is timed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,

    /// A tenth of the documents, to try it out
    #[arg(long)]
    pub quick: bool,
}

const COLLECTION: &str = "aggregate";
const JOINED: &str = "aggregate_joined";
/// Batches are as large as a reply can be.
const BATCH: i32 = 1_000_000;

/// A query, and the number of documents in its result.
struct Query {
    name: String,
    collection: &'static str,
    command: DocBuf,
    documents: u64,
}

pub fn run(args: &AggregateArgs) -> Result<()> {
    let targets = args.target.targets()?;
    let scale = if args.quick { 10 } else { 1 };
    let mut report = Report::default();
    report.extend(measure(&targets, args.documents / scale, args.joined / scale, args.rounds)?);
    report.publish(args.target.json.as_deref())
}

pub fn measure(targets: &[Target], documents: u64, joined: u64, rounds: u64) -> Result<Vec<Row>> {
    let mut connections = Vec::new();
    for target in targets {
        let mut connection = Connection::open_with_handshake(&target.address)?;
        load_cars(&mut connection, COLLECTION, documents).with_context(|| target.name.clone())?;
        load_cars(&mut connection, JOINED, joined).with_context(|| target.name.clone())?;
        connections.push(connection);
    }
    let mut rows = Vec::new();
    for query in queries(documents, joined) {
        let mut samples = targets.iter().map(|_| Samples::new()).collect::<Result<Vec<_>>>()?;
        // The first round warms up and checks the results.
        for round in 0..=rounds {
            for (index, target) in targets.iter().enumerate() {
                let started = Stopwatch::start(target);
                let before = Instant::now();
                let count = count_results(&mut connections[index], &query);
                let count = count.with_context(|| format!("{}: {}", target.name, query.name))?;
                if count != query.documents {
                    bail!("{}: {}: {count} documents instead of {}", target.name, query.name, query.documents);
                }
                if round > 0 {
                    samples[index].record(before.elapsed());
                    samples[index].stop(target, started);
                }
            }
        }
        rows.extend(samples.iter().zip(targets).map(|(samples, target)| samples.row(&query.name, target, false)));
    }
    for connection in &mut connections {
        connection.drop_collection(COLLECTION)?;
        connection.drop_collection(JOINED)?;
    }
    Ok(rows)
}

/// Runs the query, reads all batches, and returns the number of documents.
fn count_results(connection: &mut Connection, query: &Query) -> Result<u64> {
    let (mut id, batch) = cursor_batch(connection.run(query.command.clone())?)?;
    let mut count = batch.elements().count() as u64;
    while id != 0 {
        let message = Message::command(doc! { "getMore": id, "collection": query.collection, "batchSize": BATCH });
        let (next, batch) = cursor_batch(check_ok(connection.round_trip(&message)?)?)?;
        count += batch.elements().count() as u64;
        id = next;
    }
    Ok(count)
}

fn queries(documents: u64, joined: u64) -> Vec<Query> {
    let pipeline = |collection: &'static str, name: String, documents: u64, stages: document::ValueBuf| Query {
        name,
        collection,
        command: doc! {
            "aggregate": collection, "pipeline": &stages, "allowDiskUse": true,
            "cursor": &doc! { "batchSize": BATCH },
        },
        documents,
    };
    let sum_and_average = |key: document::Value<'_>| {
        let group = doc! { "_id": key, "sum": &doc! { "$sum": "$Year" }, "average": &doc! { "$avg": "$Year" } };
        array![&doc! { "$group": &group }]
    };
    let sort = doc! { "Category": 1, "Model": 1, "_id": -1 };
    let by_id = doc! { "from": JOINED, "localField": "_id", "foreignField": "_id", "as": "found" };
    let by_field = doc! { "from": JOINED, "localField": "createdAt", "foreignField": "createdAt", "as": "found" };
    let large = doc! { "from": COLLECTION, "localField": "_id", "foreignField": "_id", "as": "found" };
    let find = doc! { "find": COLLECTION, "sort": &doc! { "createdAt": 1 }, "batchSize": BATCH, "allowDiskUse": true };
    let looked_up = |limit: i32, lookup: &DocBuf| array![&doc! { "$limit": limit }, &doc! { "$lookup": lookup }];
    vec![
        pipeline(COLLECTION, format!("$group of {documents}, one group"), 1, sum_and_average(document::Value::Null)),
        pipeline(COLLECTION, format!("$group of {documents} by Make"), 13, sum_and_average("$Make".into())),
        pipeline(COLLECTION, format!("$group of {documents} by _id"), documents, sum_and_average("$_id".into())),
        pipeline(COLLECTION, format!("$sort of {documents}"), documents, array![&doc! { "$sort": &sort }]),
        Query { name: format!("find().sort() of {documents}"), collection: COLLECTION, command: find, documents },
        pipeline(
            COLLECTION,
            format!("$sort and $limit 10 of {documents}"),
            10,
            array![&doc! { "$sort": &sort }, &doc! { "$limit": 10 }],
        ),
        pipeline(JOINED, format!("$lookup of {joined}, _id"), joined, array![&doc! { "$lookup": &by_id }]),
        pipeline(JOINED, format!("$lookup of {joined}, no index"), joined, array![&doc! { "$lookup": &by_field }]),
        pipeline(JOINED, format!("$lookup of 1 in {documents}, _id"), 1, looked_up(1, &large)),
        pipeline(JOINED, format!("$lookup of 100 in {documents}, _id"), 100, looked_up(100, &large)),
    ]
}
