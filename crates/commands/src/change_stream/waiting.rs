//! Waiting for events. An entry is examined once for all streams of a worker that wait: one task
//! reads the feed for them, and wakes only those that the entry may concern.
//!
//! Streams with the same scope, options and filter are one [`Group`]. So an entry costs as much as
//! there are different groups in its scope, and a stream on another collection costs nothing. A
//! filter is a leading `$match`. If it does not let an event through, the streams of the group
//! continue behind the event without having been woken. Whether a stream shows an event is decided
//! by the stream itself, with the rights of its user: here is only decided whether to wake it.

mod filter;
mod groups;

pub use filter::Filter;

use super::event::Event;
use super::options::View;
use super::scope::Scope;
use crate::call::Call;
use document::Doc;
use error::Result;
use groups::{Documents, Group, Groups, wake_concerned};
use hashbrown::HashMap;
use server::Worker;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use steps::Interruptible;
use store::{DocumentStore, FeedEntry, FeedPosition, Identity, Namespace, identity};

/// The most groups without streams, beside one for each stream.
const UNUSED_MAX: usize = 64;

/// How often a stream that waits checks for interruption.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The events that a stream waits for.
#[derive(Clone, Debug)]
pub struct Interest {
    pub scope: Scope,
    pub view: View,
    pub filter: Option<Filter>,
}

/// The streams of a worker that wait.
#[derive(Default)]
struct WaitingStreams {
    /// All entries up to here have been examined for each of them.
    examined: Cell<FeedPosition>,
    /// The entry that is examined, or the last one that was. A stream that joins before it has read
    /// this entry would miss it.
    begun: Cell<FeedPosition>,
    scopes: RefCell<HashMap<Scope, Rc<RefCell<Groups>>, ahash::RandomState>>,
    /// How many streams wait.
    count: Cell<usize>,
    /// How many groups there are.
    groups: Cell<usize>,
    /// Whether the task runs that examines entries.
    is_running: Cell<bool>,
    last_number: Cell<u64>,
}

struct WaitingStream {
    /// It has read all entries up to here.
    from: FeedPosition,
    /// The position behind which it continues, once it is woken.
    reached: Cell<Option<FeedPosition>>,
    waker: RefCell<Option<Waker>>,
}

/// Waits until an entry behind `from` may concern a stream, or until `until`. Returns the position
/// behind which it continues: up to there, it has nothing to show. Fails if the operation is
/// killed.
pub async fn wait(call: &Call<'_>, interest: &Interest, from: FeedPosition, until: Instant) -> Result<FeedPosition> {
    let streams = WaitingStreams::of(call.worker);
    let Some(registered) = streams.register(interest, from) else { return Ok(from) };
    streams.start(call.worker, from);
    loop {
        let now = Instant::now();
        if now >= until || call.worker.server.is_stopping() {
            break;
        }
        // Wake up now and then, to notice a kill.
        let look = until.min(now + CHECK_INTERVAL);
        if tokio::time::timeout_at(look.into(), registered.stream.woken()).await.is_ok() {
            break;
        }
        call.operation.check_interrupt()?;
    }
    Ok(registered.stream.reached.get().unwrap_or(streams.examined.get()).max(from))
}

impl WaitingStreams {
    fn of(worker: &Worker) -> Rc<WaitingStreams> {
        let attached = worker.attached.get_or_init(|| Rc::new(WaitingStreams::default()));
        attached.clone().downcast().unwrap_or_default()
    }

    /// Adds a stream. Returns `None` if it is behind the others, and has entries to read.
    fn register(self: &Rc<Self>, interest: &Interest, from: FeedPosition) -> Option<Registered> {
        if self.is_running.get() && from < self.begun.get() {
            return None;
        }
        let mut scopes = self.scopes.borrow_mut();
        let groups = match scopes.get(&interest.scope) {
            Some(groups) => groups,
            None => scopes.entry(interest.scope.clone()).or_default(),
        };
        let (group, is_new) = groups.borrow_mut().with(interest);
        self.groups.set(self.groups.get() + usize::from(is_new));
        let stream = Rc::new(WaitingStream { from, reached: Cell::new(None), waker: RefCell::default() });
        let number = self.last_number.get() + 1;
        self.last_number.set(number);
        group.streams.borrow_mut().insert(number, stream.clone());
        self.count.set(self.count.get() + 1);
        Some(Registered { streams: self.clone(), group, number, stream })
    }

    /// Starts the task unless it runs.
    fn start(self: &Rc<Self>, worker: &Worker, from: FeedPosition) {
        if self.is_running.replace(true) {
            return;
        }
        self.examined.set(from);
        self.begun.set(from);
        let (streams, store) = (self.clone(), worker.store.clone());
        tokio::task::spawn_local(async move {
            let work = Box::pin(streams.examine_entries(&*store));
            // It reads for no user in particular.
            let work = identity::under(Identity::Gateway, Interruptible::new(work, || Ok(())));
            work.await.unwrap_or_else(|error: error::Error| tracing::error!(%error, "examining changes failed"));
        });
    }

    /// Examines entries as long as streams wait.
    async fn examine_entries(&self, store: &dyn DocumentStore) -> Result<()> {
        let _running = Running(self);
        let Some(feed) = store.change_feed() else { return Ok(()) };
        while self.count.get() > 0 {
            self.prune();
            let entries = match feed.read(self.examined.get()).await {
                Ok(entries) => entries,
                // They read it themselves, and report the error.
                Err(_) => return Ok(()),
            };
            if entries.is_empty() {
                feed.wait(self.examined.get()).await;
            }
            for entry in entries {
                // A position may have several entries.
                self.examined.set(self.begun.replace(entry.position).min(entry.position.before()));
                self.examine(&entry);
                tokio::task::coop::consume_budget().await;
            }
            self.examined.set(self.begun.get());
        }
        Ok(())
    }

    fn examine(&self, entry: &FeedEntry) {
        let Some(change) = entry.change() else { return };
        let scopes = self.concerned_by(entry.document.as_doc(), &change.namespace);
        if scopes.is_empty() {
            return;
        }
        let Some(event) = Event::of(&change, entry) else { return };
        let mut documents = Documents::of(entry, &event);
        scopes.iter().for_each(|groups| wake_concerned(groups, &mut documents, self.examined.get()));
    }

    /// Returns the groups of the scopes that contain an entry.
    fn concerned_by(&self, entry: Doc<'_>, namespace: &Namespace) -> Vec<Rc<RefCell<Groups>>> {
        let scopes = self.scopes.borrow();
        // A command may be about several collections.
        if &*namespace.collection == "$cmd" {
            let concerned = scopes.iter().filter(|(scope, _)| scope.concerns(entry));
            return concerned.map(|(_, groups)| groups.clone()).collect();
        }
        let database = Scope::Database(namespace.database.clone());
        let mut concerned = vec![Scope::Collection(namespace.clone()), database, Scope::Cluster];
        concerned.retain(|scope| scope.concerns(entry));
        concerned.iter().filter_map(|scope| scopes.get(scope)).cloned().collect()
    }

    /// Removes groups without streams, if they are many. Others may be used again soon.
    fn prune(&self) {
        if self.groups.get() > 2 * self.count.get() + UNUSED_MAX {
            let mut scopes = self.scopes.borrow_mut();
            scopes.values().for_each(|groups| groups.borrow_mut().prune());
            scopes.retain(|_, groups| groups.borrow().len() > 0);
            self.groups.set(scopes.values().map(|groups| groups.borrow().len()).sum());
        }
    }

    /// Lets all streams look for themselves.
    fn wake_all(&self) {
        for groups in self.scopes.borrow().values() {
            let all = FeedPosition { time: u32::MAX, increment: u32::MAX };
            groups.borrow().all().for_each(|group| group.wake(all, FeedPosition::default()));
        }
    }
}

/// The task that examines entries, while it runs.
struct Running<'w>(&'w WaitingStreams);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.wake_all();
        self.0.scopes.borrow_mut().clear();
        self.0.groups.set(0);
        self.0.is_running.set(false);
    }
}

impl WaitingStream {
    async fn woken(&self) {
        poll_fn(|task| match self.reached.get() {
            Some(_) => Poll::Ready(()),
            None => {
                self.waker.replace(Some(task.waker().clone()));
                Poll::Pending
            }
        })
        .await;
    }
}

/// A stream that waits; removed when this is dropped.
struct Registered {
    streams: Rc<WaitingStreams>,
    group: Rc<Group>,
    number: u64,
    stream: Rc<WaitingStream>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.group.streams.borrow_mut().remove(&self.number);
        self.streams.count.set(self.streams.count.get() - 1);
    }
}
