//! One command being executed.

use crate::arguments;
use crate::document_cache::pending_entry::DependencyRecorder;
use crate::envelope::{Envelope, collection_by_uuid};
use crate::table::lookup::CommandTable;
use crate::table::spec::Spec;
use document::{DocBuf, DocWriter, Element};
use error::{Error, Result};
use fulltext::TextIndexes;
use mongo_wire::Request;
use query::Context;
use server::document_cache::CachedReply;
use server::operation::OperationContext;
use server::snapshots::KeptSnapshot;
use server::{ClientSession, Worker, clock};
use std::sync::Arc;
use std::time::Duration;
use store::ReadPreference;

/// The commands that may be executed on another server than the primary.
const READS_ELSEWHERE: &[&str] = &["find", "aggregate", "count", "distinct"];

/// What the connection must do with the reply.
#[derive(Debug)]
pub enum Disposition {
    /// Send it, unless the request said moreToCome.
    Reply,
    /// Send it flagged moreToCome, then run this body again as if the client had sent it (exhaust
    /// cursors, streaming hello). Returned only for requests that allow it.
    ReplyThenRun(DocBuf),
    /// Close the connection without a reply, as a fail point demands.
    Close,
}

/// A command being executed: everything that its handler may use.
pub struct Call<'a> {
    pub worker: &'a Worker,
    pub session: &'a ClientSession,
    pub request: &'a Request,
    /// All commands, for those that list or explain others.
    pub table: &'static CommandTable,
    pub spec: &'static Spec,
    pub envelope: Envelope<'a>,
    pub operation: &'a OperationContext,
    /// When the command began: milliseconds since 1970.
    pub now_ms: i64,
    /// The same by a clock that is never set, for durations.
    pub steady_ms: i64,
    /// The capacity of the reply's buffer before anything was written to it.
    pub(crate) reply_capacity: usize,
    /// The text indexes for the command's `$text`, if it has one.
    pub(crate) text_indexes: TextIndexes,
    /// What the reply depends on, if it will be cached.
    pub dependencies: DependencyRecorder,
    /// The cached first batch: the handler must only open a cursor behind it.
    pub first_batch: Option<Arc<CachedReply>>,
    /// Why the UUID in place of the collection's name cannot be resolved.
    pub unresolved: Option<Error>,
    /// Whether the command is part of another one, which was authorized as a whole.
    pub is_trusted: bool,
    /// How long a fail point delayed the command.
    pub delayed: Duration,
    /// Whether a view's pipeline produced the reply: MongoDB's `ok` is an int then.
    pub by_view: bool,
    /// The preference of a read that may be executed on another server than the primary. Decided
    /// once: a reply of another server must not be cached because there was a primary before.
    pub reads_elsewhere: Option<Arc<ReadPreference>>,
    /// The snapshot that it reads outside of a transaction.
    pub snapshot: Option<Arc<KeptSnapshot>>,
}

impl<'a> Call<'a> {
    #[inline]
    pub(crate) fn new(
        worker: &'a Worker,
        session: &'a ClientSession,
        request: &'a Request,
        command: (&'static CommandTable, &'static Spec),
        first: Element<'a>,
        operation: &'a OperationContext,
    ) -> Call<'a> {
        let (table, spec) = command;
        Call {
            worker,
            session,
            request,
            table,
            spec,
            envelope: Envelope::new(first),
            operation,
            now_ms: clock::now_ms(),
            steady_ms: clock::steady_ms(),
            reply_capacity: 0,
            text_indexes: TextIndexes::default(),
            dependencies: DependencyRecorder::default(),
            first_batch: None,
            unresolved: None,
            is_trusted: false,
            delayed: Duration::ZERO,
            by_view: false,
            reads_elsewhere: None,
            snapshot: None,
        }
    }

    /// Returns the preference of a read that may be executed on another server than the primary at
    /// this moment.
    pub fn preference_elsewhere(&self) -> Option<Arc<ReadPreference>> {
        self.envelope.read_preference?;
        let body = self.request.body();
        if !READS_ELSEWHERE.contains(&self.spec.name) || !self.spec.only_reads(body) || self.envelope.in_transaction {
            return None;
        }
        let preference = self.envelope.read_preference()?;
        self.worker.store.reads_elsewhere(&preference).then(|| Arc::new(preference))
    }

    /// Returns whether the store must not answer from its own caches.
    pub fn bypasses_row_cache(&self) -> bool {
        !self.session.cache_policy.get().rows || self.envelope.is_linearizable()
    }

    /// Appends the time of the snapshot that the command has read, if it has read one.
    pub fn append_snapshot_time(&self, reply: &mut DocWriter<'_>) {
        if let Some(snapshot) = &self.snapshot {
            reply.append("atClusterTime", snapshot.time.value());
        }
    }

    /// Parses the command's own fields and drops the result. Fails with their first error.
    pub fn parse_own(&self) -> Result<()> {
        self.spec.parsing.as_ref().map_or(Ok(()), |parsing| (parsing.parse)(self))
    }

    /// Returns the bytes that the command holds beside the reply that is being written; `None` if
    /// memory is not measured.
    pub fn held_beside(&self, reply: &DocWriter<'_>) -> Option<i64> {
        let reply_growth = reply.capacity() as i64 - self.reply_capacity as i64;
        Some(steps::memory::held()? - reply_growth)
    }

    pub fn database(&self) -> &'a str {
        self.envelope.database
    }

    /// Checks the collection's name for commands that parse their own fields first. A name that no
    /// collection can have is refused later, and so is a UUID.
    pub fn check_namespace(&self) -> Result<()> {
        if !collection_by_uuid::is_given(self.spec, self.first()) {
            arguments::namespace(self.database(), self.first())?;
        }
        arguments::check_database(self.database())
    }

    /// Returns the element that names the command; its value is mostly the collection.
    pub fn first(&self) -> Element<'a> {
        self.envelope.first
    }

    /// Returns the command's own fields, and those of all commands that it parses among them, in
    /// the order of the body.
    pub fn all_fields(&self) -> impl Iterator<Item = Element<'a>> + '_ {
        let body = crate::envelope::body(self.request).0;
        let is_own = |field: &Element<'_>| self.fields().any(|own| own.key_bytes() == field.key_bytes());
        body.elements().skip(1).filter(move |field| is_own(field) || self.spec.parses_shared(field.key()))
    }

    /// Returns the command's own fields, in their order.
    pub fn fields(&self) -> impl Iterator<Item = Element<'a>> + '_ {
        self.envelope.fields.iter().copied()
    }

    /// Returns the context for parsers of the query language, without variables.
    pub fn context(&self) -> Context {
        Context { text_indexes: self.text_indexes.clone(), ..Context::at(self.now_ms) }
    }
}
