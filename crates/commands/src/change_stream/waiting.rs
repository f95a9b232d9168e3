//! Waiting for events. An entry is examined once for all streams of a worker that wait: one task
//! reads the feed for them, and wakes only those that the entry may concern.
//!
//! Streams with the same scope, options and filter are one [`Group`]. So an entry costs as much as
//! there are different groups in its scope, and a stream on another collection costs nothing. A
//! filter is a leading `$match`. If it does not let an event through, the streams of the group
//! continue behind the event without having been woken. Whether a stream shows an event is decided
//! by the stream itself, with the rights of its user: here is only decided whether to wake it.

use super::event::{Event, EventKind};
use super::images::Images;
use super::options::{FullDocument, View};
use super::scope::Scope;
use crate::call::Call;
use document::{Collation, Doc, DocBuf};
use error::Result;
use hashbrown::HashMap;
use query::predicate::Node;
use query::{Context, Predicate};
use server::Worker;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use steps::Interruptible;
use store::{DocumentStore, FeedEntry, FeedPosition, Identity, Namespace, identity};

/// How often a stream that waits checks for interruption.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The events that a stream waits for.
#[derive(Clone, Debug)]
pub struct Interest {
    pub scope: Scope,
    pub view: View,
    pub filter: Option<Filter>,
}

/// The condition of events that a stream may show.
#[derive(Clone, Debug)]
pub struct Filter {
    predicate: Arc<Predicate>,
    key: FilterKey,
    /// Whether it may read the document after an update.
    reads_full_document: bool,
}

/// Filters with the same key are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum FilterKey {
    /// The pipeline.
    Stages(Arc<[u8]>),
    Unique(u64),
}

impl Filter {
    /// Returns the filter of a pipeline with this leading `$match`. There is none if a second
    /// evaluation may have another result: expressions may be random.
    pub fn of(predicate: &Arc<Predicate>, stages: Doc<'_>, context: &Context) -> Option<Filter> {
        static UNIQUE: AtomicU64 = AtomicU64::new(0);
        if predicate.has_expression() {
            return None;
        }
        let key = match context.collation == Collation::SIMPLE {
            true => FilterKey::Stages(stages.as_bytes().into()),
            false => FilterKey::Unique(UNIQUE.fetch_add(1, Relaxed)),
        };
        let reads_full_document = reads_full_document(predicate.root());
        Some(Filter { predicate: predicate.clone(), key, reads_full_document })
    }
}

fn reads_full_document(node: &Node) -> bool {
    steps::step();
    match node {
        Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => branches.iter().any(reads_full_document),
        Node::Path { path, .. } => path.first() == "fullDocument",
        Node::Never => false,
        _ => true,
    }
}

/// The streams of a worker that wait.
#[derive(Default)]
struct WaitingStreams {
    /// All entries up to here have been examined for each of them.
    examined: Cell<FeedPosition>,
    /// The entry that is examined, or the last one that was. A stream that joins before it has read
    /// this entry would miss it.
    begun: Cell<FeedPosition>,
    groups: RefCell<HashMap<Scope, Groups, ahash::RandomState>>,
    /// Whether the task runs that examines entries.
    is_running: Cell<bool>,
    last_number: Cell<u64>,
}

type Groups = HashMap<GroupKey, Rc<Group>, ahash::RandomState>;
type GroupKey = (View, Option<FilterKey>);

/// Streams with the same interest.
struct Group {
    view: View,
    filter: Option<Filter>,
    streams: RefCell<HashMap<u64, Rc<WaitingStream>, ahash::RandomState>>,
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
        let key = (interest.view, interest.filter.as_ref().map(|filter| filter.key.clone()));
        let mut scopes = self.groups.borrow_mut();
        let groups = match scopes.get_mut(&interest.scope) {
            Some(groups) => groups,
            None => scopes.entry(interest.scope.clone()).or_default(),
        };
        let new = || {
            let (view, filter) = (interest.view, interest.filter.clone());
            Rc::new(Group { view, filter, streams: RefCell::default() })
        };
        let group = groups.entry(key.clone()).or_insert_with(new).clone();
        let stream = Rc::new(WaitingStream { from, reached: Cell::new(None), waker: RefCell::default() });
        let number = self.last_number.get() + 1;
        self.last_number.set(number);
        group.streams.borrow_mut().insert(number, stream.clone());
        Some(Registered { streams: self.clone(), scope: interest.scope.clone(), key, group, number, stream })
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
        while !self.groups.borrow().is_empty() {
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
        let groups = self.concerned_by(entry.document.as_doc(), &change.namespace);
        if groups.is_empty() {
            return;
        }
        let Some(event) = Event::of(&change, entry) else { return };
        let mut documents = Documents { entry, event: &event, built: Vec::new() };
        for group in groups {
            if group.wants(&mut documents) {
                group.wake(entry.position, self.examined.get());
            }
        }
    }

    /// Returns the groups whose scope contains an entry.
    fn concerned_by(&self, entry: Doc<'_>, namespace: &Namespace) -> Vec<Rc<Group>> {
        let scopes = self.groups.borrow();
        let mut concerned = Vec::new();
        let mut add = |scope: &Scope, groups: &Groups| {
            if scope.concerns(entry) {
                concerned.extend(groups.values().cloned());
            }
        };
        // A command may be about several collections.
        if &*namespace.collection == "$cmd" {
            scopes.iter().for_each(|(scope, groups)| add(scope, groups));
            return concerned;
        }
        let database = Scope::Database(namespace.database.clone());
        for scope in [Scope::Collection(namespace.clone()), database, Scope::Cluster] {
            scopes.get(&scope).into_iter().for_each(|groups| add(&scope, groups));
        }
        concerned
    }

    /// Lets all streams look for themselves.
    fn wake_all(&self) {
        for group in self.groups.borrow().values().flat_map(HashMap::values) {
            group.wake(FeedPosition { time: u32::MAX, increment: u32::MAX }, FeedPosition::default());
        }
    }
}

/// The task that examines entries, while it runs.
struct Running<'w>(&'w WaitingStreams);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.wake_all();
        self.0.is_running.set(false);
    }
}

impl Group {
    /// Returns whether its streams may show an event, or fail or end with it.
    fn wants(&self, documents: &mut Documents<'_>) -> bool {
        let event = documents.event;
        if event.is_expanded() && !self.view.shows_expanded {
            return false;
        }
        let ends = matches!(event.kind, EventKind::Drop | EventKind::Rename { .. } | EventKind::DropDatabase);
        let Some(filter) = self.filter.as_ref().filter(|_| !ends) else { return true };
        let Some(document) = documents.seen_by(self.view, filter) else { return true };
        filter.predicate.matches(document).unwrap_or(true)
    }

    /// Wakes the streams that have not read the entry at `position`. They continue behind
    /// `examined`.
    fn wake(&self, position: FeedPosition, examined: FeedPosition) {
        self.streams.borrow_mut().retain(|_, stream| {
            let is_ahead = stream.from >= position;
            if !is_ahead {
                stream.reached.set(Some(examined));
                stream.waker.take().into_iter().for_each(Waker::wake);
            }
            is_ahead
        });
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
    scope: Scope,
    key: GroupKey,
    group: Rc<Group>,
    number: u64,
    stream: Rc<WaitingStream>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.group.streams.borrow_mut().remove(&self.number);
        if !self.group.streams.borrow().is_empty() {
            return;
        }
        let mut scopes = self.streams.groups.borrow_mut();
        let Some(groups) = scopes.get_mut(&self.scope) else { return };
        if groups.get(&self.key).is_some_and(|group| Rc::ptr_eq(group, &self.group)) {
            groups.remove(&self.key);
        }
        if groups.is_empty() {
            scopes.remove(&self.scope);
        }
    }
}

/// An event as documents, each built when it is first needed.
struct Documents<'e> {
    entry: &'e FeedEntry,
    event: &'e Event<'e>,
    built: Vec<(View, Option<DocBuf>)>,
}

impl Documents<'_> {
    /// Returns the event as a filter sees it; `None` if that must be found out by the stream.
    fn seen_by(&mut self, view: View, filter: &Filter) -> Option<Doc<'_>> {
        // What the filter does not read is left out, unless the stream fails without it.
        let full_document = match view.full_document {
            FullDocument::UpdateLookup | FullDocument::WhenAvailable if !filter.reads_full_document => {
                FullDocument::Default
            }
            other => other,
        };
        let view = View { full_document, ..view };
        let index = self.built.iter().position(|(built, _)| *built == view).unwrap_or_else(|| {
            let images = Images::logged(self.event, self.entry, view).ok().flatten();
            let document = images.map(|images| self.event.to_document(&images, view.shows_expanded));
            self.built.push((view, document));
            self.built.len() - 1
        });
        self.built.get(index)?.1.as_ref().map(DocBuf::as_doc)
    }
}
