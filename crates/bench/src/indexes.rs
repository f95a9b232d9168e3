//! What indexes are worth: queries, sorts, inserts and updates of a large collection with three secondary indexes, against any
//! number of servers in turns.

mod plain_table;

use crate::client::Connection;
use crate::dataset::{SplitMix, cars, insert, load_cars};
use crate::idle::wait_until_idle;
use crate::message::{Message, check_ok, cursor_batch};
use crate::report::{Report, Row, Samples};
use crate::sql::SqlTarget;
use crate::target::{Target, TargetArgs};
use crate::turns::TurnArgs;
use anyhow::{Context, Result, bail};
use document::{ArrayWriter, DocBuf, doc};
use plain_table::PlainTable;
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug, Clone)]
pub struct IndexesArgs {
    #[command(flatten)]
    pub target: TargetArgs,

    /// A MariaDB, `mysql://user:password@host:port`, in which the same is timed by prepared statements on a plain table: what the
    /// server takes without a gateway
    #[arg(long, value_name = "URL")]
    pub sql: Option<String>,

    /// Documents of the collection
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub documents: u64,

    /// How often each thing is timed on each server
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,

    #[command(flatten)]
    pub turn: TurnArgs,

    /// What to time; all of it if not given
    #[arg(long, value_enum)]
    pub work: Vec<Work>,
}

const COLLECTION: &str = "indexed_cars";
/// Documents of one timed insert.
const INSERTED: u64 = 1000;
/// How long to wait at the most, once everything is loaded, until the machine has nothing to do.
const LOADED_SETTLING_MAX: Duration = Duration::from_secs(60);
/// The same behind a turn's inserts; the CPU time that a server spends in it is theirs.
const INSERTED_SETTLING_MAX: Duration = Duration::from_secs(2);
/// Documents that a query asks for at the most.
const FOUND_MAX: i32 = 1000;

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A thousand documents by equality
    Toyotas,
    /// The first ten by an index's order
    FirstOfMany,
    /// The last ten
    LastOfMany,
    /// The latest twenty of many that are found by one index, in the order of another
    LatestOfFound,
    /// A hundred by one index or another
    Either,
    /// A hundred by equality and range
    Range,
    /// How many there are of each of three makes: fields of an index and no others
    Grouped,
    /// Ten by chance
    Sample,
    /// A thousand new documents at a time
    Insert,
    /// One field that an index is on, as durable as a server makes it by itself
    Update,
    /// The same, acknowledged when it is on disk (`{j: true}`)
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

struct Contestant {
    target: Target,
    way: Way,
    samples: Vec<Samples>,
    building: Samples,
    inserted: u64,
    random: SplitMix,
    documents: u64,
}

/// How it is asked.
enum Way {
    Mongo(Connection),
    Sql(PlainTable),
}

/// What it is asked.
enum Request {
    /// What stands behind the table's name in SQL, where the query has a form in it.
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
    let prepare = |target: &Target| Contestant::by_mongo(target, args.documents).with_context(|| target.name.clone());
    let mut contestants = args.target.targets()?.iter().map(prepare).collect::<Result<Vec<_>>>()?;
    if let Some(url) = &args.sql {
        contestants.push(Contestant::by_sql(url, args.documents).context(PLAIN_TABLE)?);
    }
    // What loading left to be written is no query's.
    wait_until_idle(LOADED_SETTLING_MAX);
    let timed = |work: &Work| args.work.is_empty() || args.work.contains(work);
    for (turn, requests) in args.turn.of(args.iterations).enumerate() {
        for (number, (work, name)) in WORKS.iter().enumerate().filter(|(_, (work, _))| timed(work)) {
            for index in 0..contestants.len() {
                let count = contestants.len();
                let contestant = &mut contestants[(turn + index) % count];
                if !contestant.does(*work) {
                    continue;
                }
                let done = contestant.time(number, *work, requests);
                done.with_context(|| format!("{}: {name}", contestant.target.name))?;
            }
        }
    }
    let works = WORKS.iter().enumerate().filter(|(_, (work, _))| timed(work)).flat_map(|(number, (work, name))| {
        let throughput = *work == Work::Insert;
        let timed = contestants.iter().filter(|one| one.does(*work));
        timed.map(move |one| one.samples[number].row(name, &one.target, throughput))
    });
    let building = contestants.iter().map(|one| one.building.row("createIndexes, three", &one.target, false));
    Ok(works.chain(building).collect())
}

impl Contestant {
    fn by_mongo(target: &Target, documents: u64) -> Result<Contestant> {
        let mut connection = Connection::open(&target.address)?;
        connection.handshake()?;
        load_cars(&mut connection, COLLECTION, documents)?;
        Self::prepare(target.clone(), Way::Mongo(connection), documents)
    }

    fn by_sql(url: &str, documents: u64) -> Result<Contestant> {
        let sql = SqlTarget::parse(url)?;
        Self::prepare(sql.named(PLAIN_TABLE), Way::Sql(PlainTable::load(&sql, documents)?), documents)
    }

    /// Indexes what is loaded.
    fn prepare(target: Target, mut way: Way, documents: u64) -> Result<Contestant> {
        let mut building = Samples::new()?;
        let started = Samples::start(&target);
        let before = Instant::now();
        match &mut way {
            Way::Mongo(connection) => drop(check_ok(connection.round_trip(&create_indexes())?)?),
            Way::Sql(table) => table.create_indexes()?,
        }
        building.record(before.elapsed());
        building.stop(&target, started);
        let samples = WORKS
            .iter()
            .map(|(work, _)| if *work == Work::Insert { Samples::of_many(INSERTED) } else { Samples::new() })
            .collect::<Result<_>>()?;
        Ok(Contestant { target, way, samples, building, inserted: 0, random: SplitMix(documents), documents })
    }

    /// Whether it has a way to do that.
    fn does(&self, work: Work) -> bool {
        matches!(self.way, Way::Mongo(_)) || !matches!(work, Work::Sample | Work::Grouped)
    }

    fn time(&mut self, number: usize, work: Work, count: u64) -> Result<()> {
        let started = Samples::start(&self.target);
        for _ in 0..count {
            let request = self.request(work);
            self.samples[number].record(self.way.ask(request)?);
        }
        // What a server puts off until nothing comes in is work that inserts make, and no read's that comes behind them.
        let settle = || {
            if work == Work::Insert {
                wait_until_idle(INSERTED_SETTLING_MAX);
            }
        };
        self.samples[number].stop_after(settle, &self.target, started);
        Ok(())
    }

    fn request(&mut self, work: Work) -> Request {
        match work {
            Work::Toyotas => Request::Query(
                find(doc! { "Make": "Toyota" }, doc! {}, FOUND_MAX),
                Some("WHERE `Make` = 'Toyota' LIMIT 1000"),
            ),
            Work::FirstOfMany => {
                let message = find(doc! {}, doc! { "Year": 1, "Make": 1 }, 10);
                Request::Query(message, Some("ORDER BY `Year`, `Make` LIMIT 10"))
            }
            Work::LastOfMany => {
                let message = find(doc! {}, doc! { "Year": -1, "Make": -1 }, 10);
                Request::Query(message, Some("ORDER BY `Year` DESC, `Make` DESC LIMIT 10"))
            }
            Work::LatestOfFound => {
                let message = find(doc! { "Make": "Toyota" }, doc! { "createdAt": -1 }, 20);
                Request::Query(message, Some("WHERE `Make` = 'Toyota' ORDER BY `createdAt` DESC LIMIT 20"))
            }
            Work::Either => {
                let (make, year) = (doc! { "Make": "Volvo" }, doc! { "Year": 2001 });
                let message = find(doc! { "$or": &document::array![&make, &year] }, doc! {}, 100);
                Request::Query(message, Some("WHERE `Make` = 'Volvo' OR `Year` = 2001 LIMIT 100"))
            }
            Work::Range => {
                let message = find(doc! { "Year": 2000, "Make": &doc! { "$gte": "T" } }, doc! {}, 100);
                Request::Query(message, Some("WHERE `Year` = 2000 AND `Make` >= 'T' LIMIT 100"))
            }
            Work::Grouped => {
                let makes = document::array!["Saab", "Toyota", "Volvo"];
                let group = doc! { "_id": "$Make", "cars": &doc! { "$sum": 1 } };
                aggregate(&[doc! { "$match": &doc! { "Make": &doc! { "$in": &makes } } }, doc! { "$group": &group }])
            }
            Work::Sample => aggregate(&[doc! { "$sample": &doc! { "size": 10 } }]),
            Work::Insert => {
                self.inserted += INSERTED;
                Request::Insert(cars(self.documents + self.inserted, INSERTED))
            }
            Work::Update | Work::UpdateOnDisk => {
                let id = self.random.below(self.documents) as i32;
                let year = 1992 + self.random.below(29) as i32;
                Request::Update { id, year, on_disk: work == Work::UpdateOnDisk }
            }
        }
    }
}

impl Way {
    /// How long it took from before the request was sent until its reply was read.
    fn ask(&mut self, request: Request) -> Result<Duration> {
        match self {
            Way::Mongo(connection) => {
                let is_query = matches!(request, Request::Query(..));
                let message = request.into_message();
                let before = Instant::now();
                let reply = connection.round_trip(&message)?;
                let took = before.elapsed();
                check(reply, is_query)?;
                Ok(took)
            }
            Way::Sql(table) => {
                let before = Instant::now();
                match request {
                    Request::Query(_, sql) => table.query(sql.context("no such query in SQL")?)?,
                    Request::Insert(cars) => table.insert(&cars)?,
                    // How durable it is, is a setting of the server.
                    Request::Update { id, year, on_disk: _ } => table.update(id, year)?,
                }
                Ok(before.elapsed())
            }
        }
    }
}

impl Request {
    fn into_message(self) -> Message {
        match self {
            Request::Query(message, _) => message,
            Request::Insert(cars) => insert(COLLECTION, &cars),
            Request::Update { id, year, on_disk } => update(id, year, on_disk),
        }
    }
}

fn find(filter: DocBuf, sort: DocBuf, limit: i32) -> Message {
    Message::command(
        doc! { "find": COLLECTION, "filter": &filter, "sort": &sort, "limit": limit, "batchSize": limit, "singleBatch": true },
    )
}

fn aggregate(stages: &[DocBuf]) -> Request {
    let command = DocBuf::build(|writer| {
        writer.append("aggregate", COLLECTION);
        let mut pipeline = writer.array("pipeline");
        stages.iter().for_each(|stage| pipeline.push(stage));
        drop(pipeline);
        writer.append("cursor", &doc! {});
    });
    Request::Query(Message::command(command), None)
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
            None => bail!("nothing found"),
        };
    }
    match body.get("writeErrors") {
        Some(errors) => bail!("{errors:?}"),
        None => Ok(()),
    }
}
