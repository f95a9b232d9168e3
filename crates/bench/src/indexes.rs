//! Indexes: queries, sorts, inserts and updates of a large collection with three secondary indexes,
//! on any number of servers in turns.

mod plain_table;

use crate::dataset::{cars, insert, load_cars};
use crate::idle::wait_until_idle;
use crate::round_robin::RoundRobinArgs;
use crate::round_robin::order_of_turn;
use anyhow::{Context, Result, bail};
use document::{ArrayWriter, DocBuf, doc};
use harness::connection::Connection;
use harness::message::{Message, check_ok, cursor_batch};
use harness::random::SplitMix;
use harness::report::{Report, Row, Samples, Stopwatch};
use harness::sql_connection::SqlTarget;
use harness::target::{Target, TargetArgs};
use plain_table::PlainTable;
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug, Clone)]
pub struct IndexesArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// A MariaDB, `mysql://user:password@host:port`, to time the same work as prepared statements
    /// on a plain table: the cost without a gateway
    #[arg(long, value_name = "URL")]
    pub sql: Option<String>,

    /// Documents of the collection
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub documents: u64,

    /// Number of times that each kind of work is timed on each server
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,

    /// The longest wait for an idle machine after the documents are loaded, in seconds
    #[arg(long, default_value_t = 60)]
    pub settle_seconds: u64,

    #[command(flatten)]
    pub round_robin: RoundRobinArgs,

    /// Kinds of work; all of them if not given
    #[arg(long, value_enum)]
    pub work: Vec<Work>,
}

const COLLECTION: &str = "indexed_cars";
/// Documents of one timed insert.
const INSERTED: u64 = 1000;
/// The longest wait for an idle machine after a turn's inserts. The server's CPU time meanwhile
/// counts as theirs.
const INSERTED_SETTLING_MAX: Duration = Duration::from_secs(2);
/// The largest limit of a query.
const LIMIT_MAX: i32 = 1000;

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A thousand documents by equality
    Toyotas,
    /// The first ten by an index's order
    FirstOfMany,
    /// The last ten
    LastOfMany,
    /// The latest twenty of many matches of one index, sorted by another index
    LatestOfFound,
    /// A hundred by one index or another
    Either,
    /// A hundred by equality and range
    Range,
    /// The number of cars of three makes each: reads only fields of an index
    Grouped,
    /// Ten at random
    Sample,
    /// A thousand new documents at a time
    Insert,
    /// One indexed field, with the server's default durability
    Update,
    /// The same, acknowledged from the disk (`{j: true}`)
    UpdateOnDisk,
}

const WORKS: [(Work, &str); 11] = [
    (Work::Toyotas, "indexed Make = Toyota, 1000 of them"),
    (Work::FirstOfMany, "sort by index, limit 10"),
    (Work::LastOfMany, "sort by index, descending, limit 10"),
    (Work::LatestOfFound, "Make = Toyota, sort by another index, limit 20"),
    (Work::Either, "$or of two indexes, limit 100"),
    (Work::Range, "equality and range, limit 100"),
    (Work::Grouped, "$group of three makes, by one index"),
    (Work::Sample, "$sample of 10"),
    (Work::Insert, "insert with 3 indexes, 1000 at a time"),
    (Work::Update, "update of an indexed field by _id"),
    (Work::UpdateOnDisk, "update of an indexed field by _id, j: true"),
];

/// The name of [`IndexesArgs::sql`] in the report.
const PLAIN_TABLE: &str = "MariaDB, plain table";

struct ServerUnderTest {
    target: Target,
    client: Client,
    samples: Vec<Samples>,
    building: Samples,
    inserted: u64,
    random: SplitMix,
    documents: u64,
}

/// The connection to a server.
enum Client {
    Mongo(Connection),
    Sql(PlainTable),
}

/// One timed request.
enum BenchRequest {
    /// A query, and its SQL after the name of the table if it has an SQL form.
    Query(Message, Option<&'static str>),
    Insert(Vec<DocBuf>),
    Update {
        id: i32,
        year: i32,
        on_disk: bool,
    },
}

pub fn run(args: &IndexesArgs) -> Result<()> {
    let mut report = Report::default();
    report.extend(measure(args)?);
    report.publish(args.target.json.as_deref())
}

fn measure(args: &IndexesArgs) -> Result<Vec<Row>> {
    let prepare =
        |target: &Target| ServerUnderTest::by_mongo(target, args.documents).with_context(|| target.name.clone());
    let mut servers = args.target.targets()?.iter().map(prepare).collect::<Result<Vec<_>>>()?;
    if let Some(url) = &args.sql {
        servers.push(ServerUnderTest::by_sql(url, args.documents).context(PLAIN_TABLE)?);
    }
    // Deferred writes of the load must not count as part of the queries.
    wait_until_idle(Duration::from_secs(args.settle_seconds));
    let selected = |work: &Work| args.work.is_empty() || args.work.contains(work);
    for (turn, requests) in args.round_robin.turns(args.iterations).enumerate() {
        for (number, (work, name)) in WORKS.iter().enumerate().filter(|(_, (work, _))| selected(work)) {
            for index in order_of_turn(turn, servers.len()) {
                let server = &mut servers[index];
                if !server.supports(*work) {
                    continue;
                }
                let timed = server.time(number, *work, requests);
                timed.with_context(|| format!("{}: {name}", server.target.name))?;
            }
        }
    }
    let works = WORKS.iter().enumerate().filter(|(_, (work, _))| selected(work)).flat_map(|(number, (work, name))| {
        let throughput = *work == Work::Insert;
        let measured = servers.iter().filter(|server| server.supports(*work));
        measured.map(move |server| server.samples[number].row(name, &server.target, throughput))
    });
    let building = servers.iter().map(|server| server.building.row("createIndexes, three", &server.target, false));
    Ok(works.chain(building).collect())
}

impl ServerUnderTest {
    fn by_mongo(target: &Target, documents: u64) -> Result<ServerUnderTest> {
        let mut connection = Connection::open_with_handshake(&target.address)?;
        load_cars(&mut connection, COLLECTION, documents)?;
        Self::prepare(target.clone(), Client::Mongo(connection), documents)
    }

    fn by_sql(url: &str, documents: u64) -> Result<ServerUnderTest> {
        let sql = SqlTarget::parse(url)?;
        Self::prepare(sql.named(PLAIN_TABLE), Client::Sql(PlainTable::load(&sql, documents, INSERTED)?), documents)
    }

    /// Creates the indexes.
    fn prepare(target: Target, mut client: Client, documents: u64) -> Result<ServerUnderTest> {
        let mut building = Samples::new()?;
        let started = Stopwatch::start(&target);
        let before = Instant::now();
        match &mut client {
            Client::Mongo(connection) => drop(check_ok(connection.round_trip(&create_indexes())?)?),
            Client::Sql(table) => table.create_indexes()?,
        }
        building.record(before.elapsed());
        building.stop(&target, started);
        let samples = WORKS
            .iter()
            .map(|(work, _)| if *work == Work::Insert { Samples::of_many(INSERTED) } else { Samples::new() })
            .collect::<Result<_>>()?;
        Ok(ServerUnderTest { target, client, samples, building, inserted: 0, random: SplitMix(documents), documents })
    }

    /// Returns whether the work has a form for this server.
    fn supports(&self, work: Work) -> bool {
        matches!(self.client, Client::Mongo(_)) || !matches!(work, Work::Sample | Work::Grouped)
    }

    fn time(&mut self, number: usize, work: Work, count: u64) -> Result<()> {
        let started = Stopwatch::start(&self.target);
        for _ in 0..count {
            let request = self.request(work);
            self.samples[number].record(self.client.run(request)?);
        }
        // Work that a server defers until it is idle belongs to the inserts, not to the next reads.
        let settle = || {
            if work == Work::Insert {
                wait_until_idle(INSERTED_SETTLING_MAX);
            }
        };
        self.samples[number].stop_after(settle, &self.target, started);
        Ok(())
    }

    fn request(&mut self, work: Work) -> BenchRequest {
        match work {
            Work::Toyotas => BenchRequest::Query(
                find(doc! { "Make": "Toyota" }, doc! {}, LIMIT_MAX),
                Some("WHERE `Make` = 'Toyota' LIMIT 1000"),
            ),
            Work::FirstOfMany => {
                let message = find(doc! {}, doc! { "Year": 1, "Make": 1 }, 10);
                BenchRequest::Query(message, Some("ORDER BY `Year`, `Make` LIMIT 10"))
            }
            Work::LastOfMany => {
                let message = find(doc! {}, doc! { "Year": -1, "Make": -1 }, 10);
                BenchRequest::Query(message, Some("ORDER BY `Year` DESC, `Make` DESC LIMIT 10"))
            }
            Work::LatestOfFound => {
                let message = find(doc! { "Make": "Toyota" }, doc! { "createdAt": -1 }, 20);
                BenchRequest::Query(message, Some("WHERE `Make` = 'Toyota' ORDER BY `createdAt` DESC LIMIT 20"))
            }
            Work::Either => {
                let (make, year) = (doc! { "Make": "Volvo" }, doc! { "Year": 2001 });
                let message = find(doc! { "$or": &document::array![&make, &year] }, doc! {}, 100);
                BenchRequest::Query(message, Some("WHERE `Make` = 'Volvo' OR `Year` = 2001 LIMIT 100"))
            }
            Work::Range => {
                let message = find(doc! { "Year": 2000, "Make": &doc! { "$gte": "T" } }, doc! {}, 100);
                BenchRequest::Query(message, Some("WHERE `Year` = 2000 AND `Make` >= 'T' LIMIT 100"))
            }
            Work::Grouped => {
                let makes = document::array!["Saab", "Toyota", "Volvo"];
                let group = doc! { "_id": "$Make", "cars": &doc! { "$sum": 1 } };
                aggregate(&[doc! { "$match": &doc! { "Make": &doc! { "$in": &makes } } }, doc! { "$group": &group }])
            }
            Work::Sample => aggregate(&[doc! { "$sample": &doc! { "size": 10 } }]),
            Work::Insert => {
                self.inserted += INSERTED;
                BenchRequest::Insert(cars(self.documents + self.inserted, INSERTED))
            }
            Work::Update | Work::UpdateOnDisk => {
                let id = self.random.below(self.documents) as i32;
                let year = 1992 + self.random.below(29) as i32;
                BenchRequest::Update { id, year, on_disk: work == Work::UpdateOnDisk }
            }
        }
    }
}

impl Client {
    /// Runs a request and returns the time from before it was sent until its reply was read.
    fn run(&mut self, request: BenchRequest) -> Result<Duration> {
        match self {
            Client::Mongo(connection) => {
                let is_query = matches!(request, BenchRequest::Query(..));
                let message = request.into_message();
                let before = Instant::now();
                let reply = connection.round_trip(&message)?;
                let time = before.elapsed();
                check(reply, is_query)?;
                Ok(time)
            }
            Client::Sql(table) => {
                let before = Instant::now();
                match request {
                    BenchRequest::Query(_, sql) => table.query(sql.context("the query has no SQL form")?)?,
                    BenchRequest::Insert(cars) => table.insert(&cars)?,
                    // Durability is a setting of the server.
                    BenchRequest::Update { id, year, on_disk: _ } => table.update(id, year)?,
                }
                Ok(before.elapsed())
            }
        }
    }
}

impl BenchRequest {
    fn into_message(self) -> Message {
        match self {
            BenchRequest::Query(message, _) => message,
            BenchRequest::Insert(cars) => insert(COLLECTION, &cars),
            BenchRequest::Update { id, year, on_disk } => update(id, year, on_disk),
        }
    }
}

fn find(filter: DocBuf, sort: DocBuf, limit: i32) -> Message {
    Message::command(
        doc! { "find": COLLECTION, "filter": &filter, "sort": &sort, "limit": limit, "batchSize": limit, "singleBatch": true },
    )
}

fn aggregate(stages: &[DocBuf]) -> BenchRequest {
    let command = DocBuf::build(|writer| {
        writer.append("aggregate", COLLECTION);
        let mut pipeline = writer.array("pipeline");
        stages.iter().for_each(|stage| pipeline.push(stage));
        drop(pipeline);
        writer.append("cursor", &doc! {});
    });
    BenchRequest::Query(Message::command(command), None)
}

fn update(id: i32, year: i32, on_disk: bool) -> Message {
    let change = doc! { "q": &doc! { "_id": id }, "u": &doc! { "$set": &doc! { "Year": year } } };
    let mut command = doc! { "update": COLLECTION, "updates": &document::array![&change] };
    if on_disk {
        command.append("writeConcern", &doc! { "w": 1, "j": true });
    }
    Message::command(command)
}

fn create_indexes() -> Message {
    let add = |mut array: ArrayWriter<'_>| {
        for (name, key) in [
            ("make", doc! { "Make": 1 }),
            ("year", doc! { "Year": 1, "Make": 1 }),
            ("created", doc! { "createdAt": 1 }),
        ] {
            array.push(&doc! { "name": name, "key": &key });
        }
    };
    Message::command(DocBuf::build(|writer| {
        writer.append("createIndexes", COLLECTION);
        add(writer.array("indexes"));
    }))
}

fn check(reply: &[u8], is_query: bool) -> Result<()> {
    let body = check_ok(reply)?;
    if is_query {
        return match cursor_batch(body)?.1.elements().next() {
            Some(_) => Ok(()),
            None => bail!("the query found nothing"),
        };
    }
    match body.get("writeErrors") {
        Some(errors) => bail!("{errors:?}"),
        None => Ok(()),
    }
}
