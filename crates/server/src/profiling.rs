//! Operations that took long, or that somebody wants to see: the profiler (`system.profile`) and the slow log.
//!
//! An operation collects [`Facts`] while it is carried out, all of which are at hand anyway. When it is done, one look at the clock tells
//! whether anybody may want them; only then is a document made of them ([`record`]), handed to the [`keeper`], who writes it to
//! the profile beside the requests, and logged.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/database-profiler/>

mod keeper;
mod record;

use crate::command::current_op;
use crate::running::Running;
use crate::server::{ClientSession, Worker};
use crate::table::{self, Access};
use document::{Doc, DocBuf, Element, Value};
use error::Result;
use hashbrown::HashMap;
use mongo_wire::Request;
use query::Predicate;
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use store::{AccessStats, Examined, Plan, PlanSummary, StatementOutcome};

pub use keeper::{COLLECTION, ensure_profile, run};

/// Operations below this time are not looked at in the usual case, by those that have a way of their own through the server.
const NOTICED_MS: i64 = 10;

/// What is known of an operation when it is done.
#[derive(Debug, Default)]
pub struct Facts {
    examined: Cell<Examined>,
    /// The plan it began with.
    plan: OnceCell<Arc<dyn Plan>>,
    counted: Cell<bool>,
    sorted: Cell<bool>,
    /// Time in which it waited for something to happen.
    waited: Cell<Duration>,
    /// The plans of its updates and deletes, and how many of them went by each.
    written: RefCell<Vec<(PlanSummary, u64)>>,
    /// How each update or delete went, where the profiler wants to know.
    statements: RefCell<Vec<(Result<StatementOutcome>, AccessStats)>>,
}

impl Facts {
    /// Notes what a scan of a plan has looked at.
    pub fn note(&self, plan: &Arc<dyn Plan>, examined: Examined) {
        self.examined.set(self.examined.get() + examined);
        if self.plan.get().is_none() {
            let _ = self.plan.set(plan.clone());
        }
    }

    pub fn note_counted(&self, plan: &Arc<dyn Plan>) {
        self.note(plan, plan.examined());
        self.counted.set(true);
    }

    pub fn note_sort(&self) {
        self.sorted.set(true);
    }

    pub fn note_wait(&self, time: Duration) {
        self.waited.set(self.waited.get() + time);
    }

    pub fn note_write(&self, access: &AccessStats) {
        self.examined.set(self.examined.get() + access.examined);
        let mut written = self.written.borrow_mut();
        match written.iter_mut().find(|(plan, _)| *plan == access.summary) {
            Some((_, times)) => *times += 1,
            None if access.summary == PlanSummary::None => {}
            None => written.push((access.summary.clone(), 1)),
        }
    }

    /// The plans that were carried out, and how often. What was counted without looking at documents or keys is none.
    pub fn plans(&self) -> Vec<(PlanSummary, u64)> {
        match self.plan.get() {
            Some(plan) if self.counted.get() && plan.facts().exact => {
                let summary = plan.summary();
                if summary.as_str() == Some("COLLSCAN") { Vec::new() } else { vec![(summary, 1)] }
            }
            Some(plan) => vec![(plan.summary(), 1)],
            None => self.written.borrow().clone(),
        }
    }

    pub fn keep_statements(&self, statements: impl Iterator<Item = (Result<StatementOutcome>, AccessStats)>) {
        self.statements.borrow_mut().extend(statements);
    }

    fn summary(&self) -> PlanSummary {
        match (self.plan.get(), self.counted.get()) {
            (Some(plan), false) => plan.summary(),
            (Some(plan), true) => {
                let about = store::ExplainContext { counted: true, ..Default::default() };
                PlanSummary::of(plan.stages(&about).as_doc())
            }
            (None, _) => self.written.borrow().first().map(|(plan, _)| plan.clone()).unwrap_or_default(),
        }
    }
}

/// A database's settings.
#[derive(Clone, Debug, Default)]
pub struct Level {
    pub level: i32,
    /// As it is shown, and as it is asked.
    pub filter: Option<(DocBuf, Arc<Predicate>)>,
}

/// What the process knows of profiling.
#[derive(Debug)]
pub struct Profiling {
    slow_ms: AtomicI64,
    slow_log: bool,
    /// The bits of a double.
    sample_rate: AtomicU64,
    databases: Mutex<HashMap<String, Level, ahash::RandomState>>,
    /// Some database is profiled or filtered, or everything is slow.
    attentive: AtomicBool,
    keeper: keeper::Keeper,
}

impl Profiling {
    pub fn new(slow_ms: i64, slow_log: bool) -> Profiling {
        Profiling {
            slow_ms: AtomicI64::new(slow_ms),
            slow_log,
            sample_rate: AtomicU64::new(1_f64.to_bits()),
            databases: Mutex::default(),
            attentive: AtomicBool::new(slow_log && slow_ms < NOTICED_MS),
            keeper: keeper::Keeper::default(),
        }
    }

    /// Whether operations are watched that are not slow in the usual sense.
    #[inline]
    pub fn is_attentive(&self) -> bool {
        self.attentive.load(Relaxed)
    }

    /// Whether an operation that took so long may be for the profiler or the log.
    #[inline]
    pub fn may_concern(&self, elapsed: Duration) -> bool {
        self.is_attentive() || milliseconds(elapsed) > self.slow_ms.load(Relaxed)
    }

    pub fn slow_ms(&self) -> i64 {
        self.slow_ms.load(Relaxed)
    }

    pub fn sample_rate(&self) -> f64 {
        f64::from_bits(self.sample_rate.load(Relaxed))
    }

    pub fn level(&self, database: &str) -> Level {
        self.lock().get(database).cloned().unwrap_or_default()
    }

    pub fn set_level(&self, database: &str, level: Level) {
        self.lock().insert(database.to_owned(), level);
        self.settle_attention();
    }

    pub fn set_slow_ms(&self, slow_ms: i64) {
        self.slow_ms.store(slow_ms, Relaxed);
        self.settle_attention();
    }

    pub fn set_sample_rate(&self, rate: f64) {
        self.sample_rate.store(rate.to_bits(), Relaxed);
    }

    fn settle_attention(&self) {
        let watched = self.lock().values().any(|level| level.level > 0 || level.filter.is_some());
        self.attentive.store(watched || self.slow_log && self.slow_ms() < NOTICED_MS, Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Level, ahash::RandomState>> {
        self.databases.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn is_sampled(&self) -> bool {
        let rate = self.sample_rate();
        rate >= 1.0 || rand::random::<f64>() < rate
    }
}

fn milliseconds(time: Duration) -> i64 {
    (time.as_secs() as i64).saturating_mul(1000) + i64::from(time.subsec_millis())
}

/// Brings what is still on its way to a profile there, before a command that looks at one.
pub async fn settle(worker: &Worker, first: Option<Element<'_>>) {
    let reads_profile = || {
        first.is_some_and(|first| {
            first.key_bytes() == b"profile" || matches!(first.value(), Value::String(name) if name == COLLECTION)
        })
    };
    if worker.server.profiling.keeper.has_entries() && reads_profile() {
        Box::pin(keeper::write_down(worker)).await;
    }
}

/// An operation as it is when it is done.
struct Done<'d> {
    session: &'d ClientSession,
    request: &'d Request,
    body: Doc<'d>,
    reply: Doc<'d>,
    reply_bytes: usize,
    facts: &'d Facts,
    namespace: String,
    milliseconds: i64,
    now_ms: i64,
}

/// Tells the profiler and the log of an operation that one of them may want to know of.
pub fn note(
    worker: &Worker,
    session: &ClientSession,
    request: &Request,
    command: Option<usize>,
    running: &Running,
    reply: &[u8],
    elapsed: Duration,
) {
    let Some(spec) = command.and_then(|index| table::COMMANDS.get(index)) else { return };
    if spec.access == Access::Nothing || spec.name == "profile" {
        return;
    }
    let profiling = &worker.server.profiling;
    let body = request.body();
    let namespace = current_op::namespace(body);
    let (database, collection) = namespace.split_once('.').unwrap_or_default();
    if collection == COLLECTION {
        return;
    }
    let facts = &running.facts;
    let milliseconds = milliseconds(elapsed.saturating_sub(facts.waited.get()));
    let Level { level, filter } = profiling.level(database);
    let slow = milliseconds > profiling.slow_ms();
    let (mut profiled, mut logged) = match &filter {
        Some(_) => (level > 0, profiling.slow_log),
        None => {
            let sampled = slow && profiling.is_sampled();
            (level >= 2 || level == 1 && sampled, sampled && profiling.slow_log)
        }
    };
    profiled &= !collection.starts_with("$cmd");
    if !profiled && !logged {
        return;
    }
    let reply_bytes = reply.len();
    let reply = Doc::from_bytes(reply).unwrap_or(Doc::EMPTY);
    let now_ms = crate::clock::now_ms();
    let namespace = namespace.clone();
    let done = Done { session, request, body, reply, reply_bytes, facts, namespace, milliseconds, now_ms };
    let is_wanted =
        |record: Doc<'_>| filter.as_ref().is_none_or(|(_, predicate)| predicate.matches(record).unwrap_or_default());
    if logged {
        logged = filter.is_none() || is_wanted(done.whole().as_doc());
    }
    if logged {
        done.log();
    }
    if profiled {
        let records = done.records().into_iter().filter(|record| is_wanted(record.as_doc()));
        profiling.keeper.take(database, records);
    }
}
