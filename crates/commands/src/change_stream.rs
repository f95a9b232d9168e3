//! Change streams: `$changeStream` as the first stage of a pipeline.
//!
//! A stream is a position in the store's [change feed](store::ChangeFeed), a [`scope`] that selects
//! entries, and the stages behind it. All streams of a process share the feed's recent entries, and
//! a commit wakes those that it concerns. In reading order: [`mod@options`], [`scope`], [`event`]
//! (an entry as an event), [`images`] (documents before and after), [`token`], [`waiting`].
//!
//! Source: <https://www.mongodb.com/docs/v6.0/changeStreams/>

mod event;
mod images;
mod options;
mod scope;
mod token;
mod waiting;

use crate::arguments::aggregate::Arguments;
use crate::arguments::options::{budget, context};
use crate::call::Call;
use crate::pipeline::source_stage::behind_first;
use crate::read::followed::FollowedSource;
use crate::read::{Batch, Reader};
use crate::reply::in_executor;
use crate::{time_series, views};
use aggregate::{Execution, Pipeline};
use cache::NotCached;
use document::{Collation, Doc, DocBuf, DocWriter, Value};
use error::{Code, Error, Result};
use event::{Event, EventKind};
use futures_util::future::LocalBoxFuture;
use images::Images;
use options::{Start, StreamOptions, check_stages};
use scope::Scope;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use store::{ChangeFeed, FeedEntry, FeedPosition, Namespace};
use token::{ResumeToken, TokenKind};
use waiting::{Filter, Interest};

/// A change stream, as its cursor holds it.
#[derive(Debug)]
pub struct ChangeStream {
    interest: Interest,
    /// All entries up to here have become events, or are in `entries`.
    position: FeedPosition,
    /// Entries that have been read and are not yet events.
    entries: VecDeque<Arc<FeedEntry>>,
    /// Events that the stages have let through, with their tokens.
    ready: VecDeque<(DocBuf, ResumeToken)>,
    /// The stages behind `$changeStream`.
    execution: Option<Execution>,
    /// The token from which the stream continues behind the last batch.
    token: ResumeToken,
    /// Whether an event has ended it.
    is_invalidated: bool,
}

/// The error for a stage that must be the first.
const NOT_FIRST: Code = Code(40602);

/// Returns the operand of a leading `$changeStream`, if the store has change streams.
pub fn operand<'a>(call: &Call<'_>, pipeline: Doc<'a>) -> Option<Doc<'a>> {
    let first = pipeline.values().next()?.as_document()?.first()?;
    let operand = first.value().as_document().filter(|_| first.key() == "$changeStream");
    operand.filter(|_| call.worker.store.change_feed().is_some())
}

/// Opens a stream. `stage`: the operand of `$changeStream`.
pub async fn open(call: &Call<'_>, namespace: &Namespace, stage: Doc<'_>, arguments: &Arguments<'_>) -> Result<Reader> {
    call.dependencies.refuse(NotCached::NotACollection);
    let Some(feed) = call.worker.store.change_feed() else { return Err(aggregate::no_change_streams()) };
    check_read_concern(call)?;
    let is_collection = call.first().value().as_str().is_some();
    let collation = crate::arguments::options::given_collation(arguments.collation)?.unwrap_or(Collation::SIMPLE);
    let context = context(call, arguments.variables, collation)?;
    let rest = behind_first(arguments.pipeline);
    check_position(rest.as_doc())?;
    let parsed = Pipeline::parse(rest.as_doc(), &context);
    // Whether a stage may follow is checked before its position.
    let is_misplaced = |error: &Error| matches!(error.code(), NOT_FIRST | Code::INVALID_NAMESPACE);
    if parsed.as_ref().map_or_else(is_misplaced, |_| true) {
        check_stages(rest.as_doc())?;
    }
    let searches = |pipeline: &Pipeline| pipeline.leading_match().is_some_and(|filter| filter.text_search().is_some());
    let pipeline = match parsed {
        Err(error) if error.code() == Code::INDEX_NOT_FOUND => return Err(text_not_first()),
        Ok(pipeline) if searches(&pipeline) => return Err(text_not_first()),
        parsed => parsed?,
    };
    let options = StreamOptions::read(stage, namespace, is_collection)?;
    if is_collection {
        check_collection(call, namespace).await?;
    }
    let Begin { position, token, entries } = begin(feed, &options).await.map_err(during)?;
    let filter =
        pipeline.leading_match().and_then(|predicate| Filter::of(predicate, rest.as_doc(), &context, options.view));
    let execution = (!pipeline.is_identity()).then(|| pipeline.start(budget(call, arguments.allow_disk_use)));
    Ok(Reader::following(Box::new(ChangeStream {
        interest: Interest { scope: options.scope, view: options.view, filter },
        position,
        entries,
        ready: VecDeque::new(),
        execution,
        token,
        is_invalidated: false,
    })))
}

/// Returns the error for a text search, which requires the index of a collection.
fn text_not_first() -> Error {
    Error::new(Code(17313), "$match with $text is only allowed as the first pipeline stage")
}

/// Fails with 72 for a read concern other than majority.
fn check_read_concern(call: &Call<'_>) -> Result<()> {
    let concern = call.envelope.read_concern.and_then(|concern| concern.value().as_document());
    match concern.and_then(|concern| concern.get("level")?.as_str()) {
        None | Some("majority") => Ok(()),
        Some(level) => {
            let message = format!(
                "Command aggregate does not support {{ readConcern: {{ level: \"{level}\", provenance: \"clientSupplied\" \
                 }} }} :: caused by :: Aggregation stage $changeStream cannot run with a readConcern other than \
                 'majority'. Current readConcern: {level}"
            );
            Err(Error::new(Code::INVALID_OPTIONS, message))
        }
    }
}

/// Fails with 40602 for another `$changeStream`.
fn check_position(rest: Doc<'_>) -> Result<()> {
    let mut stages = rest.values().filter_map(Value::as_document).filter_map(Doc::first);
    match stages.any(|stage| stage.key() == "$changeStream") {
        true => {
            let message = "$_internalChangeStreamOplogMatch is only valid as the first stage in a pipeline";
            Err(Error::new(NOT_FIRST, message))
        }
        false => Ok(()),
    }
}

fn during(error: Error) -> Error {
    in_executor(error, "PlanExecutor error during aggregation")
}

/// Fails with 166 for a view or a time-series collection.
async fn check_collection(call: &Call<'_>, namespace: &Namespace) -> Result<()> {
    let what = match views::definition(call, namespace).await? {
        None => return Ok(()),
        Some(_) if time_series::find(call, namespace).await?.is_some() => "is a timeseries collection",
        Some(_) => "is a view, not a collection",
    };
    Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, format!("Namespace {namespace} {what}")))
}

/// The begin of a stream.
struct Begin {
    position: FeedPosition,
    token: ResumeToken,
    /// Entries at the position that come first.
    entries: VecDeque<Arc<FeedEntry>>,
}

/// Returns where the stream begins. Fails with 286 if the entries from there on have been deleted,
/// and with 280 if there is no event with the token.
async fn begin(feed: &dyn ChangeFeed, options: &StreamOptions) -> Result<Begin> {
    let at = |position, token| Begin { position, token, entries: VecDeque::new() };
    match options.start {
        Start::Now => {
            let latest = feed.current().await?;
            Ok(at(latest, ResumeToken::behind(latest)))
        }
        Start::At(position) => {
            let latest = feed.current().await?;
            feed.check_history(position.min(latest)).await?;
            Ok(at(feed.behind_time(position), ResumeToken { position, kind: TokenKind::HighWaterMark }))
        }
        Start::Behind(token) => {
            feed.current().await?;
            feed.check_history(token.position).await?;
            let entries = entries_behind(feed, token).await?;
            Ok(Begin { entries, ..at(token.resume_position(), token) })
        }
    }
}

/// Returns the entries at an event's position that are behind it: further operations of its
/// transaction. Fails with 280 if there is no such event.
async fn entries_behind(feed: &dyn ChangeFeed, token: ResumeToken) -> Result<VecDeque<Arc<FeedEntry>>> {
    let TokenKind::Event { operation, collection_uuid, .. } = token.kind else { return Ok(VecDeque::new()) };
    // The entry at the position may be the oldest.
    let Ok(entries) = feed.read(token.position.before()).await else { return Ok(VecDeque::new()) };
    let mut same = entries.iter().filter(|entry| entry.position == token.position);
    let event = same.find(|entry| entry.operation == operation);
    let uuid = event.and_then(|entry| entry.change()).map(|change| change.collection_uuid);
    if entries.is_empty() || uuid == Some(collection_uuid) {
        return Ok(same.cloned().collect());
    }
    let message = format!("cannot resume stream; the resume token was not found. {{_data: \"{}\"}}", token.to_text());
    Err(fatal(message))
}

/// Returns error 280: the stream cannot go on, and a driver must not try to resume it.
fn fatal(message: String) -> Error {
    Error::new(Code::CHANGE_STREAM_FATAL_ERROR, message).with_labels(&["NonResumableChangeStreamError"])
}

impl ChangeStream {
    /// Returns whether an event has ended the stream and nothing is left.
    fn is_over(&self) -> bool {
        self.is_invalidated && self.ready.is_empty()
    }

    /// Adds events to the batch until it is full or no entry is left.
    async fn fill_batch(&mut self, call: &Call<'_>, batch: &mut Batch<'_>) -> Result<()> {
        let store = call.worker.store.clone();
        let feed = store.change_feed().ok_or_else(aggregate::no_change_streams)?;
        while !batch.is_full() {
            call.operation.tick()?;
            call.operation.yield_if_due().await;
            if let Some((event, token)) = self.ready.pop_front() {
                batch.check_size(event.as_doc())?;
                if !batch.push(event.as_doc()) {
                    self.ready.push_front((event, token));
                    return Ok(());
                }
                self.token = token;
                continue;
            }
            if self.is_invalidated {
                return Ok(());
            }
            match self.entries.pop_front() {
                Some(entry) => self.show(call, &entry).await?,
                None => {
                    let entries = call.operation.run_interruptible(feed.read(self.position)).await?;
                    let Some(last) = entries.last() else { return Ok(()) };
                    self.position = last.position;
                    self.entries.extend(entries);
                }
            }
        }
        Ok(())
    }

    /// Makes an entry's events ready.
    async fn show(&mut self, call: &Call<'_>, entry: &Arc<FeedEntry>) -> Result<()> {
        let event = match self.interest.scope.concerns(entry.document.as_doc()) {
            true => entry.change().and_then(|change| Event::of(&change, entry)),
            false => None,
        };
        let shown = event.as_ref().filter(|event| self.interest.view.shows_expanded || !event.is_expanded());
        let Some(event) = shown else {
            self.token = ResumeToken::behind(entry.position);
            return Ok(());
        };
        let images = Images::of(call, event, entry, self.interest.view).await?;
        self.pass(event, &images)?;
        if self.is_ended_by(event) {
            self.pass(&event.invalidate(), &Images::default())?;
            self.is_invalidated = true;
        }
        Ok(())
    }

    /// Passes an event through the stages. Fails with 280 if they change its `_id`.
    fn pass(&mut self, event: &Event<'_>, images: &Images) -> Result<()> {
        let document = event.to_document(images, self.interest.view.shows_expanded);
        let Some(execution) = &mut self.execution else {
            self.ready.push_back((document, event.token));
            return Ok(());
        };
        execution.push(document.as_doc())?;
        let Some(passed) = execution.pop() else {
            // Events before it are in front of the queue.
            if self.ready.is_empty() {
                self.token = event.token;
            }
            return Ok(());
        };
        check_id(document.as_doc(), passed.as_doc())?;
        self.ready.push_back((passed, event.token));
        Ok(())
    }

    /// Returns whether a stream ends with this event: what it is about has gone.
    fn is_ended_by(&self, event: &Event<'_>) -> bool {
        match &self.interest.scope {
            Scope::Collection(_) => matches!(event.kind, EventKind::Drop | EventKind::Rename { .. }),
            Scope::Database(_) => matches!(event.kind, EventKind::DropDatabase),
            Scope::Cluster => false,
        }
    }
}

impl FollowedSource for ChangeStream {
    fn fill<'a>(&'a mut self, call: &'a Call<'_>, batch: &'a mut Batch<'_>) -> LocalBoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            self.fill_batch(call, batch).await?;
            Ok(self.is_over())
        })
    }

    fn wait<'a>(&'a mut self, call: &'a Call<'_>, until: Instant) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let reached = waiting::wait(call, &self.interest, self.position, until).await?;
            if reached > self.position {
                self.position = reached;
                self.token = ResumeToken::behind(reached);
            }
            Ok(())
        })
    }

    fn append_state(&self, cursor: &mut DocWriter<'_>) {
        self.token.append("postBatchResumeToken", cursor);
        if self.is_over() {
            cursor.append("invalidated", true);
        }
    }
}

fn check_id(expected: Doc<'_>, found: Doc<'_>) -> Result<()> {
    let (expected, found) = (expected.get("_id"), found.get("_id"));
    if expected == found {
        return Ok(());
    }
    let shown = |id: Option<Value<'_>>| {
        let document = DocBuf::build(|writer| id.into_iter().for_each(|id| writer.append("_id", id)));
        values::text::value(Value::Document(document.as_doc())).to_string()
    };
    Err(fatal(format!(
        "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. Modifying \
         the _id field of an event makes it impossible to resume the stream from that point. Only transformations that \
         retain the unmodified _id field are allowed. Expected: {} but found: {}",
        shown(expected),
        shown(found)
    )))
}
