//! The document cache: replies to commands, given again for as long as they are right.
//!
//! Between the session and the command: a command that only reads is looked up by what it says, less what does not matter to its answer
//! ([`key`]). Where nothing is found, its handler says what the answer depends on ([`PendingEntry`]), and the reply is kept as it was sent.
//! A cursor that goes on is kept with its plan and its position, so that a hit goes on from there.

mod body;
mod key;
mod rules;

pub use body::Body;
pub use key::why_not;
pub use rules::Rules;

use crate::dispatch::Call;
use crate::envelope;
use crate::read::Request;
use cache::{Cache, CacheLookup, CacheObserver, ComputePermit, Dependencies, NotCached};
use document::{Collation, Doc, DocWriter, Element, Value, names};
use mongo_wire::request::RequestKind;
use query::Predicate;
use shared_cache::Shared;
use std::cell::RefCell;
use std::sync::Arc;
use store::{ChangeObserver, Changes, InFlightWrite, Namespace, Plan, Position};

/// What a kept answer takes beside its bytes.
const KEPT_OVERHEAD_BYTES: usize = 224;

/// A reply that is kept.
pub struct CachedReply {
    /// The reply's body.
    pub body: Body,
    /// Where its cursor goes on.
    pub rest: Option<Rest>,
    /// The body cannot be sent as it is.
    pub has_escaped_names: bool,
}

impl CachedReply {
    fn new(body: &[u8], rest: Option<Rest>) -> Arc<CachedReply> {
        let has_escaped_names = names::may_be_escaped() && names::has_mark(body);
        Arc::new(CachedReply { body: Body::new(body), rest, has_escaped_names })
    }

    /// Where in the body the cursor's id is: `{cursor: {firstBatch: […], id, …}, …}`.
    pub fn cursor_id_at(&self) -> Option<usize> {
        const ID: &[u8] = b"\x12id\0";
        let head = |element: Element<'_>| 1 + element.key_bytes().len() + 1;
        let cursor = Doc::from_bytes(&self.body)?.first()?;
        let batch = cursor.value().as_document()?.first()?;
        let at = 4 + head(cursor) + 4 + head(batch) + batch.raw_value().len();
        let id_at = at + ID.len();
        (self.body.get(at..id_at)? == ID).then_some(id_at)
    }
}

/// Where a read goes on behind a batch.
#[derive(Clone, Debug)]
pub struct Rest {
    pub plan: Arc<dyn Plan>,
    pub position: Position,
    pub skip: u64,
    pub limit: Option<u64>,
    /// By which strings compare, as it was settled for the first batch.
    pub collation: Collation,
}

/// What a cursor's batches are kept by: the command that opened it, and what its answer depends on.
#[derive(Debug)]
pub struct Origin {
    key: Box<[u8]>,
    scope: Dependencies,
}

/// The cache as commands see it.
pub struct Answers {
    pub cache: Arc<Cache<CachedReply>>,
    pub rules: Rules,
    /// Replies that are shared with other gateways, if they are.
    pub shared: Option<Arc<Shared>>,
}

/// Which of the caches a connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    pub replies: bool,
    /// Rows that the store keeps.
    pub rows: bool,
}

impl CachePolicy {
    pub const ALL: CachePolicy = CachePolicy { replies: true, rows: true };
    pub const NONE: CachePolicy = CachePolicy { replies: false, rows: false };
}

/// What is kept, on the way of a request.
#[derive(Default)]
pub struct Caches {
    /// What connections use by the listener that they came to; all there is, for listeners beyond.
    pub listeners: Vec<CachePolicy>,
    pub answers: Option<Answers>,
    /// What the result-set cache of the store tells of itself, if there is one.
    pub results: Option<Box<dyn Fn() -> cache::Statistics + Send + Sync>>,
    /// The same for the answers that SQL clients get.
    pub sql: Option<Box<dyn Fn() -> cache::Statistics + Send + Sync>>,
}

/// An answer that is being made to be kept. The handler says what it depends on; one that says nothing is not kept.
pub struct PendingEntry {
    fill: ComputePermit<CachedReply>,
    key: Box<[u8]>,
    scope: Option<Dependencies>,
    rest: Option<Rest>,
    refusal: Option<NotCached>,
    sharing: Option<Sharing>,
}

/// A reply that others may get, too.
struct Sharing {
    shared: Arc<Shared>,
    /// Up to where the log of the store had been read before the store was asked.
    position: shared_cache::Position,
}

/// What the cache has for a command.
pub enum Lookup {
    /// The whole reply.
    Answer(Arc<CachedReply>),
    /// The first batch; the handler opens a cursor behind it.
    Beginning(Arc<CachedReply>),
    Make(Box<PendingEntry>),
    Nothing,
}

impl Answers {
    /// While what is returned is held, nothing about the collection is given or kept; what was kept is forgotten.
    pub fn forget(&self, namespace: &Namespace) -> Box<dyn InFlightWrite> {
        let mut changes = Changes::default();
        changes.add_unspecified(namespace);
        CacheObserver(self.cache.clone()).begin_write(changes)
    }

    /// The reply to a command, if it is kept: all of it, or the beginning, behind which a cursor is to be opened.
    pub fn at_once(&self, call: &Call<'_>) -> Option<Arc<CachedReply>> {
        let mut buffer = call.worker.key_buffer.borrow_mut();
        let key = self.key(call, &mut buffer)?;
        self.cache.get(key, call.now_ms)
    }

    /// As [`Answers::look_up`], for a command that is answered without waiting.
    pub fn make_at_once(&self, call: &Call<'_>) -> Option<Box<PendingEntry>> {
        let mut buffer = call.worker.key_buffer.borrow_mut();
        let key = self.key(call, &mut buffer)?;
        match self.cache.look_up(key, call.now_ms, true) {
            CacheLookup::Compute(fill) => Some(PendingEntry::new(fill, key)),
            _ => None,
        }
    }

    /// What there is for a command. Waits for somebody who is finding it out.
    pub async fn look_up(&self, call: &Call<'_>) -> error::Result<Lookup> {
        let mut key = Vec::new();
        if self.key(call, &mut key).is_none() {
            return Ok(Lookup::Nothing);
        }
        let mut alone = false;
        loop {
            match self.begin(call, &key, alone) {
                CacheLookup::Hit(kept) if kept.rest.is_some() => return Ok(Lookup::Beginning(kept)),
                CacheLookup::Hit(kept) => return Ok(Lookup::Answer(kept)),
                CacheLookup::Wait(mut flight) => {
                    // It ends when the flight does, whatever came of it.
                    let landed = async { Ok(flight.changed().await.is_ok()) };
                    call.running.within(landed).await?;
                    alone = true;
                }
                CacheLookup::Compute(fill) => return Ok(self.look_up_elsewhere(call, fill, &key).await),
                CacheLookup::Bypass => return Ok(Lookup::Nothing),
            }
        }
    }

    /// What another gateway has given to a command; leave to find it out, if there is nothing.
    async fn look_up_elsewhere(&self, call: &Call<'_>, fill: ComputePermit<CachedReply>, key: &[u8]) -> Lookup {
        let Some(shared) = &self.shared else { return Lookup::Make(PendingEntry::new(fill, key)) };
        if let Some(found) = shared.get(key).await {
            let kept = CachedReply::new(&found.body, None);
            let mut namespaces = found.namespaces.into_iter();
            if let Some(first) = namespaces.next() {
                // What it was asked for is not taken apart here, so that any change of its collections counts.
                let scope = Dependencies::all_documents(first, namespaces.collect());
                let bytes = kept.body.bytes_held() + KEPT_OVERHEAD_BYTES;
                let _ = fill.store(kept.clone(), bytes, scope, call.now_ms);
            }
            return Lookup::Answer(kept);
        }
        let sharing = shared.position().map(|position| Sharing { shared: shared.clone(), position });
        Lookup::Make(Box::new(PendingEntry { sharing, ..*PendingEntry::new(fill, key) }))
    }

    fn begin(&self, call: &Call<'_>, key: &[u8], alone: bool) -> CacheLookup<CachedReply> {
        if let Some(kept) = self.cache.get(key, call.now_ms) {
            return CacheLookup::Hit(kept);
        }
        if key::is_volatile(&call.envelope.fields) {
            self.cache.count_not_cached(NotCached::Volatile);
            return CacheLookup::Bypass;
        }
        self.cache.look_up(key, call.now_ms, alone)
    }

    /// What the command is kept by; `None` where it is not to be looked for.
    fn key<'b>(&self, call: &Call<'_>, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        if !is_cacheable(call) || !self.rules.allow_command(call.spec.name) || !call.session.uses.get().replies {
            return None;
        }
        let collection = call.first().value().as_str()?;
        if why_not(call.database(), collection).is_some() || !self.rules.allow(call.database(), collection) {
            return None;
        }
        key::write(&call.envelope, buffer);
        Some(buffer)
    }

    /// Looks for the next batch of a cursor.
    pub fn next_batch(&self, call: &Call<'_>, origin: &Origin, rest: &Rest, batch_size: u64) -> Lookup {
        if !call.session.uses.get().replies {
            return Lookup::Nothing;
        }
        let mut key = origin.key.to_vec();
        key::write_position(rest, batch_size, &mut key);
        match self.cache.look_up(&key, call.now_ms, true) {
            CacheLookup::Hit(kept) => Lookup::Answer(kept),
            CacheLookup::Compute(fill) => {
                let mut making = PendingEntry::new(fill, &origin.key);
                making.scope = Some(origin.scope.clone());
                Lookup::Make(making)
            }
            CacheLookup::Wait(_) | CacheLookup::Bypass => Lookup::Nothing,
        }
    }
}

/// Whether the command is one of those that are kept.
fn is_cacheable(call: &Call<'_>) -> bool {
    call.spec.cacheable && matches!(call.request.kind, RequestKind::Msg { .. }) && !call.envelope.is_linearizable()
}

impl PendingEntry {
    fn new(fill: ComputePermit<CachedReply>, key: &[u8]) -> Box<PendingEntry> {
        Box::new(PendingEntry { fill, key: key.into(), scope: None, rest: None, refusal: None, sharing: None })
    }

    /// Keeps the reply.
    pub fn finish(self, body: &[u8], now_ms: i64) {
        let PendingEntry { fill, key, scope, rest, refusal, sharing } = self;
        match (scope, refusal) {
            (Some(scope), None) => {
                let rest_bytes = rest.as_ref().map_or(0, |_| 512);
                // A cursor is this gateway's own.
                let sharing = sharing.filter(|_| rest.is_none());
                let namespaces = sharing.as_ref().map(|_| scope.namespaces());
                let kept = CachedReply::new(body, rest);
                let bytes = kept.body.bytes_held() + KEPT_OVERHEAD_BYTES + rest_bytes;
                let body = kept.body.clone();
                // Why it was not kept is counted there.
                if fill.store(kept, bytes, scope, now_ms).is_ok()
                    && let (Some(Sharing { shared, position }), Some(namespaces)) = (sharing, namespaces)
                {
                    shared.put(&key, position, namespaces, body.into_bytes());
                }
            }
            (_, refusal) => fill.discard(refusal.unwrap_or(NotCached::NotACollection)),
        }
    }

    pub fn fail(self) {
        self.fill.discard(NotCached::Failed);
    }
}

/// The place in a [`Call`] where handlers say what their answers depend on.
#[derive(Default)]
pub struct DependencyRecorder(RefCell<Option<Box<PendingEntry>>>);

impl DependencyRecorder {
    pub fn begin(&self, making: Option<Box<PendingEntry>>) {
        *self.0.borrow_mut() = making;
    }

    pub fn take(&self) -> Option<Box<PendingEntry>> {
        self.0.borrow_mut().take()
    }

    /// Whether the answer is to be kept.
    pub fn is_asked(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// The answer depends on this.
    pub fn on(&self, scope: impl FnOnce() -> Dependencies) {
        if let Some(making) = &mut *self.0.borrow_mut() {
            making.scope = Some(scope());
        }
    }

    /// The answer is not to be kept.
    pub fn refuse(&self, why: NotCached) {
        if let Some(making) = &mut *self.0.borrow_mut() {
            making.refusal = Some(why);
        }
    }

    /// Narrows what the answer depends on, now that it is known.
    pub fn narrow(&self, narrow: impl FnOnce(&mut Dependencies)) {
        if let Some(scope) = self.0.borrow_mut().as_mut().and_then(|making| making.scope.as_mut()) {
            narrow(scope);
        }
    }

    /// The answer is the beginning of one that goes on there; nowhere that could be kept, if `None`. Gives what the cursor is kept by.
    pub fn goes_on(&self, rest: Option<Rest>) -> Option<Arc<Origin>> {
        let mut making = self.0.borrow_mut();
        let making = making.as_mut()?;
        match (&making.scope, rest) {
            (Some(scope), Some(rest)) => {
                making.rest = Some(rest);
                Some(Arc::new(Origin { key: making.key.clone(), scope: scope.clone() }))
            }
            _ => {
                making.refusal = Some(NotCached::OpenCursor);
                None
            }
        }
    }
}

/// What the batches of a cursor are kept by that goes on from a kept beginning.
pub fn origin(call: &Call<'_>, namespace: &Namespace, request: &Request<'_>) -> Arc<Origin> {
    let mut key = Vec::new();
    key::write(&call.envelope, &mut key);
    let predicate = request.predicate.clone().unwrap_or_else(Predicate::everything);
    let scope = Dependencies::matching(namespace.clone(), predicate, cache::dependencies::Aspect::Documents);
    Arc::new(Origin { key: key.into(), scope })
}

/// Writes a kept batch into a reply's cursor, under the name it was kept by.
pub fn write_batch(kept: &CachedReply, cursor: &mut DocWriter<'_>) {
    if let Some(batch) = batch(kept) {
        cursor.append_element(batch);
    }
}

/// The batch of a kept reply.
pub fn batch(kept: &CachedReply) -> Option<Element<'_>> {
    let cursor = Doc::from_bytes(&kept.body)?.get("cursor").and_then(Value::as_document)?;
    cursor.first()
}

/// The namespace, key and reasons of a command within another one, for those who ask why.
pub fn reason(call: &Call<'_>, command: Doc<'_>) -> (&'static str, &'static str) {
    let Some(answers) = &call.worker.server.answers else {
        return ("no", "there is no cache: the server was started without --cache, or with one that keeps result sets");
    };
    let Some(first) = command.first() else { return ("no", "there is no command") };
    let Some(spec) = crate::table::find(first.key_bytes()).and_then(|at| crate::table::COMMANDS.get(at)) else {
        return ("no", "there is no such command");
    };
    if !spec.cacheable {
        return ("no", "replies to this command are not cached: those to find, count, distinct and aggregate are");
    }
    let Some(collection) = first.value().as_str() else { return ("no", "it names no collection") };
    if let Some(why) = why_not(call.database(), collection) {
        return ("no", why);
    }
    if !answers.rules.allow(call.database(), collection) || !answers.rules.allow_command(spec.name) {
        return ("no", "the rules leave this collection or this command out");
    }
    let fields: smallvec::SmallVec<[Element<'_>; 8]> = envelope::own_fields(command).collect();
    if key::is_volatile(&fields) {
        return ("no", "it has something in it whose value depends on more than documents, or that writes");
    }
    if !call.session.uses.get().replies {
        return ("no", "this connection does not use the cache");
    }
    if answers.cache.is_follower_lost() {
        return ("no", "writes from elsewhere cannot be followed at the moment");
    }
    let mut key = Vec::new();
    key::write_parts(call.database(), first, &fields, &mut key);
    match answers.cache.explain(&key, call.now_ms) {
        Ok(()) => ("yes", "the answer is kept"),
        Err(None) => ("no", "it was not asked since, or has gone: by a change, for want of memory, or for its age"),
        Err(Some(why)) => ("no", why.explanation()),
    }
}
