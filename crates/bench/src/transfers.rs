//! Transactions: transfers between two accounts over many connections. Starts the servers and
//! measures them in turns.
//!
//! A transfer is what drivers send for `withTransaction`: two updates and a commit, each in a
//! round trip of its own, and the whole again after a `TransientTransactionError`.

use crate::round_robin::in_turns;
use anyhow::{Context, Result, bail};
use document::{Doc, DocBuf, Value, array, doc};
use harness::address::Address;
use harness::connection::Connection;
use harness::message::{DATABASE, Message, check_ok, cursor_batch, reply_body};
use harness::random::SplitMix;
use harness::report::{Report, Row, Samples, Stopwatch};
use harness::servers::{EMBEDDED, MARIADB, Sandbox, ServerArgs, mongod_replica_set};
use harness::target::Target;
use rustix::event::epoll;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(clap::Args, Debug, Clone)]
pub struct TransfersArgs {
    #[command(flatten)]
    pub servers: ServerArgs,

    /// Connections, each with one transfer in progress; several numbers are measured one after the
    /// other
    #[arg(long, default_values_t = [1, 16])]
    pub connections: Vec<usize>,

    /// Total time of each server, in seconds, per number of connections
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,

    /// Turns that the time is divided into
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Accounts per connection. Each connection uses only its own, unless `--shared`
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(2..=100_000))]
    pub accounts: u64,

    /// Let all connections use all accounts, so that transfers conflict
    #[arg(long)]
    pub shared: bool,

    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const COLLECTION: &str = "accounts";

/// The balance of each account at the beginning.
const BALANCE: i64 = 1000;

pub fn run(args: &TransfersArgs) -> Result<()> {
    let sandbox = Sandbox::prepare(&args.servers.gateway)?;
    let mut servers = Vec::new();
    if let Some(program) = &args.servers.mongod {
        servers.push(mongod_replica_set(program, sandbox.folder())?);
    }
    servers.push(sandbox.start(EMBEDDED, None, &[])?);
    if let Some(mariadb) = &sandbox.mariadb {
        servers.push(sandbox.start(MARIADB, Some(mariadb), &[])?);
    }
    let targets: Vec<Target> = servers.iter().map(|server| server.target.clone()).collect();
    let mut report = Report::default();
    for &connections in &args.connections {
        report.extend(measure(args, connections, &targets)?);
    }
    report.publish(args.json.as_deref())
}

fn measure(args: &TransfersArgs, connections: usize, targets: &[Target]) -> Result<Vec<Row>> {
    let mut servers = targets
        .iter()
        .map(|target| ServerUnderTest::prepare(target, args, connections).with_context(|| target.name.clone()))
        .collect::<Result<Vec<_>>>()?;
    let turn = Duration::from_secs_f64(args.seconds / f64::from(args.rounds));
    in_turns(args.rounds, &mut servers, |server| server.run(turn).with_context(|| server.target.name.clone()))?;
    let plural = if connections == 1 { "" } else { "s" };
    servers
        .iter()
        .map(|server| {
            server.check_sum().with_context(|| server.target.name.clone())?;
            let conflicts = server.clients.iter().map(|client| client.conflicts).sum::<u64>();
            let measure = format!("transfer, {connections} connection{plural}, {conflicts} conflicts");
            Ok(server.samples.row(&measure, &server.target, true))
        })
        .collect()
}

struct ServerUnderTest {
    target: Target,
    clients: Vec<Client>,
    epoll: OwnedFd,
    samples: Samples,
    accounts: u64,
}

impl ServerUnderTest {
    fn prepare(target: &Target, args: &TransfersArgs, connections: usize) -> Result<ServerUnderTest> {
        let accounts = args.accounts * connections as u64;
        let mut connection = Connection::open_with_handshake(&target.address)?;
        connection.drop_collection(COLLECTION)?;
        let documents: Vec<DocBuf> =
            (0..accounts).map(|number| doc! { "_id": number as i32, "balance": BALANCE }).collect();
        for batch in documents.chunks(1000) {
            let documents = batch.iter().map(DocBuf::as_doc);
            let insert = Message::with_sequence(doc! { "insert": COLLECTION }, "documents", documents);
            check_ok(connection.round_trip(&insert)?)?;
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut clients = Vec::with_capacity(connections);
        for number in 0..connections {
            let own = match args.shared {
                true => 0..accounts,
                false => args.accounts * number as u64..args.accounts * (number as u64 + 1),
            };
            let client = Client::connect(&target.address, (number as u64) << 32 | connections as u64, own)?;
            epoll::add(&epoll, &client.connection, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
            clients.push(client);
        }
        let mut server = ServerUnderTest { target: target.clone(), clients, epoll, samples: Samples::new()?, accounts };
        // Warm up, and fail early if requests fail.
        server.transfer(Duration::from_millis(300))?;
        server.samples = Samples::new()?;
        server.clients.iter_mut().for_each(|client| client.conflicts = 0);
        Ok(server)
    }

    fn run(&mut self, time: Duration) -> Result<()> {
        let started = Stopwatch::start(&self.target);
        self.transfer(time)?;
        self.samples.stop(&self.target, started);
        Ok(())
    }

    /// Keeps all clients busy for `time`, then waits for the ends of their transfers.
    fn transfer(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        for client in &mut self.clients {
            client.begin()?;
        }
        let mut busy = self.clients.len();
        let mut events = [MaybeUninit::uninit(); 64];
        while busy > 0 {
            let (ready, _) = epoll::wait(&self.epoll, &mut events, None)?;
            for event in ready {
                let client = &mut self.clients[event.data.u64() as usize];
                if !client.connection.receive_some()? || !client.go_on()? {
                    continue;
                }
                self.samples.record(client.begun.elapsed());
                match Instant::now() < end {
                    true => client.begin()?,
                    false => busy -= 1,
                }
            }
        }
        Ok(())
    }

    /// Fails if money was made or lost.
    fn check_sum(&self) -> Result<()> {
        let mut connection = Connection::open_with_handshake(&self.target.address)?;
        let group = doc! { "$group": &doc! { "_id": Value::Null, "sum": &doc! { "$sum": "$balance" } } };
        let command = doc! { "aggregate": COLLECTION, "pipeline": &array![&group], "cursor": &doc! {} };
        let sum = cursor_batch(connection.run(command)?)?.1.values().next().and_then(Value::as_document);
        let sum = sum.and_then(|group| group.get("sum")).and_then(Value::to_i64);
        let expected = self.accounts as i64 * BALANCE;
        if sum != Some(expected) {
            bail!("the accounts have {sum:?} in total, not {expected}");
        }
        Ok(())
    }
}

/// A connection with its session.
struct Client {
    connection: Connection,
    session: DocBuf,
    txn_number: i64,
    accounts: std::ops::Range<u64>,
    random: SplitMix,
    /// The accounts of the current transfer.
    from: i32,
    to: i32,
    step: Step,
    begun: Instant,
    conflicts: u64,
}

/// The request whose reply a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Withdraw,
    Deposit,
    Commit,
    Abort,
}

impl Client {
    /// `seed`: a number that no other client of the server has had.
    fn connect(address: &Address, seed: u64, accounts: std::ops::Range<u64>) -> Result<Client> {
        let mut random = SplitMix(seed);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&random.below(u64::MAX).to_le_bytes());
        id[8..].copy_from_slice(&seed.to_le_bytes());
        Ok(Client {
            connection: Connection::open_with_handshake(address)?,
            session: doc! { "id": Value::Binary { subtype: 4, bytes: &id } },
            txn_number: 0,
            accounts,
            random,
            from: 0,
            to: 0,
            step: Step::Withdraw,
            begun: Instant::now(),
            conflicts: 0,
        })
    }

    /// Begins a transfer between two accounts.
    fn begin(&mut self) -> Result<()> {
        let count = self.accounts.end - self.accounts.start;
        let from = self.random.below(count);
        let to = (from + 1 + self.random.below(count - 1)) % count;
        (self.from, self.to) = ((self.accounts.start + from) as i32, (self.accounts.start + to) as i32);
        self.begun = Instant::now();
        self.start_over()
    }

    fn start_over(&mut self) -> Result<()> {
        self.txn_number += 1;
        self.send(Step::Withdraw)
    }

    /// Takes a reply and sends the next request. Returns whether the transfer is done.
    fn go_on(&mut self) -> Result<bool> {
        let reply = reply_body(self.connection.reply())?;
        let is_ok = reply.get("ok").is_some_and(Value::is_truthy) && reply.get("writeErrors").is_none();
        let updated = self.step == Step::Commit || reply.get("n") == Some(Value::Int32(1));
        let next = match (self.step, is_ok) {
            (Step::Withdraw, true) if updated => Some(Step::Deposit),
            (Step::Deposit, true) if updated => Some(Step::Commit),
            (Step::Commit, true) => None,
            // The reply to abortTransaction does not matter.
            (Step::Abort, _) => Some(Step::Withdraw),
            _ if is_transient(reply) => Some(Step::Abort),
            (step, _) => bail!("the server replied to {step:?}: {reply:?}"),
        };
        self.connection.forget_reply();
        match next {
            None => return Ok(true),
            Some(Step::Withdraw) => self.start_over()?,
            Some(step) => {
                self.conflicts += u64::from(step == Step::Abort);
                self.send(step)?;
            }
        }
        Ok(false)
    }

    fn send(&mut self, step: Step) -> Result<()> {
        self.step = step;
        let message = match step {
            Step::Withdraw => self.update(self.from, -1),
            Step::Deposit => self.update(self.to, 1),
            Step::Commit | Step::Abort => {
                let mut body = match step {
                    Step::Commit => doc! { "commitTransaction": 1i32 },
                    _ => doc! { "abortTransaction": 1i32 },
                };
                self.append_numbers(&mut body);
                body.append("writeConcern", &doc! { "w": "majority" });
                Message::command_on("admin", body)
            }
        };
        self.connection.send(&message)
    }

    fn update(&self, account: i32, amount: i64) -> Message {
        let mut body = doc! { "update": COLLECTION };
        self.append_numbers(&mut body);
        if self.step == Step::Withdraw {
            body.append("startTransaction", true);
        }
        let change = doc! { "$inc": &doc! { "balance": amount } };
        let update = doc! { "q": &doc! { "_id": account }, "u": &change };
        Message::with_sequence_on(DATABASE, body, "updates", std::iter::once(update.as_doc()))
    }

    fn append_numbers(&self, body: &mut DocBuf) {
        body.append("lsid", &self.session);
        body.append("txnNumber", self.txn_number);
        body.append("autocommit", false);
    }
}

fn is_transient(reply: Doc<'_>) -> bool {
    let labels = reply.get("errorLabels").and_then(Value::as_array);
    labels.is_some_and(|labels| labels.values().any(|label| label == Value::String("TransientTransactionError")))
}
