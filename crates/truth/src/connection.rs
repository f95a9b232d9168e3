//! A connection and its operation in flight: one operation after the other, each checked when its
//! reply has arrived.

use super::check::{Observed, Scope, SentRead};
use super::decode::{self, ALL_FIELDS, JOINED_FIELDS};
use super::kind::OperationKind;
use super::layout::Id;
use super::model::{Model, Propagations, Source};
use super::read::{BATCH, ExpectedReply, Read, ReadGenerator};
use super::tally::Tally;
use super::write::{self, Write};
use anyhow::{Context, Result, bail};
use document::{Doc, DocBuf, Value, doc};
use harness::address::Address;
use harness::connection::Connection;
use harness::message::{Message, cursor_batch, reply_body};
use harness::random::SplitMix;

pub struct CheckedConnection {
    pub connection: Connection,
    pub source: Source,
    pending: Option<Pending>,
    /// The document that this connection wrote last, unless it has read it since.
    last_written: Option<Id>,
}

enum Pending {
    Read(Read),
    /// The next batch of a read.
    More {
        command: DocBuf,
        collection: String,
        sent: SentRead,
    },
    Write(Write),
}

/// The state that a thread's connections share.
pub struct ThreadState<'m> {
    pub model: &'m Model,
    pub random: SplitMix,
    pub tally: &'m mut Tally,
    pub propagations: Propagations,
    /// Percentage of operations that are reads.
    pub reads: u64,
    /// A change of definitions, which the next idle connection makes.
    pub due: Option<Write>,
    /// A change of definitions is in flight, so the next one must wait.
    pub defining: bool,
}

/// Errors that a server may return to a read while an index is dropped.
const QUERY_PLAN_KILLED: i64 = 175;
const CURSOR_NOT_FOUND: i64 = 43;

impl CheckedConnection {
    pub fn open(address: &Address, source: Source) -> Result<CheckedConnection> {
        let mut connection = Connection::open(address)?;
        connection.handshake()?;
        Ok(CheckedConnection { connection, source, pending: None, last_written: None })
    }

    /// Chooses an operation and sends it.
    pub fn begin(&mut self, state: &mut ThreadState<'_>) -> Result<()> {
        state.model.propagate_due(&mut state.propagations);
        let write = state.due.take().or_else(|| self.choose_write(state));
        self.pending = Some(match write {
            Some(write) => Pending::Write(write),
            None => Pending::Read(self.choose_read(state)),
        });
        match &self.pending {
            Some(Pending::Write(write)) => self.connection.send(&write.message),
            Some(Pending::Read(read)) => self.connection.send(&Message::command(read.command.clone())),
            _ => Ok(()),
        }
    }

    fn choose_write(&self, state: &mut ThreadState<'_>) -> Option<Write> {
        if state.random.below(100) < state.reads {
            return None;
        }
        let reads = ReadGenerator { model: state.model, source: self.source };
        let side = state.model.layout.side();
        let id = match state.random.below(8) {
            0 => side.start + state.random.below((side.end - side.start).into()) as Id,
            _ => reads.pick(&mut state.random),
        };
        write::random_write(state.model, id, &mut state.random)
    }

    fn choose_read(&mut self, state: &mut ThreadState<'_>) -> Read {
        let reads = ReadGenerator { model: state.model, source: self.source };
        match self.last_written.take() {
            Some(id) if state.random.below(2) == 0 => Read { kind: OperationKind::FindOwn, ..reads.by_id(id) },
            _ => reads.any(&mut state.random),
        }
    }

    /// Checks the reply. Returns whether the operation is complete; if not, requests its next
    /// batch.
    pub fn finish(&mut self, state: &mut ThreadState<'_>) -> Result<bool> {
        let Some(pending) = self.pending.take() else { bail!("a reply without a request") };
        let more = {
            let reply = reply_body(self.connection.reply())?;
            match &pending {
                Pending::Write(write) => {
                    self.last_written = finish_write(state, write, reply, self.source)?;
                    None
                }
                Pending::Read(read) => finish_read(state, read, reply)?,
                Pending::More { command, sent, .. } => finish_more(state, command, sent, reply)?,
            }
        };
        self.connection.forget_reply();
        let Some(cursor) = more else { return Ok(true) };
        let (command, sent, collection) = match pending {
            Pending::Read(Read { command, sent, expected: ExpectedReply::Batches { collection }, .. }) => {
                (command, sent, collection)
            }
            Pending::More { command, sent, collection } => (command, sent, collection),
            _ => return Ok(true),
        };
        let message = Message::command(doc! { "getMore": cursor, "collection": &collection, "batchSize": BATCH });
        self.pending = Some(Pending::More { command, collection, sent });
        self.connection.send(&message)?;
        Ok(false)
    }

    /// Handles the loss of the connection. Its write may or may not take effect, now or later, so
    /// its documents stay claimed and are not written again.
    pub fn abandon(&mut self, state: &mut ThreadState<'_>) {
        if let Some(Pending::Write(write)) = self.pending.take() {
            state.tally.unknown_writes += write.changed.len() as u64;
        }
        self.last_written = None;
    }
}

fn finish_write(state: &mut ThreadState<'_>, write: &Write, reply: Doc<'_>, source: Source) -> Result<Option<Id>> {
    if !is_ok(reply) || reply.get("writeErrors").is_some() {
        bail!("the server replied to {:?} with {reply:?}", write.command);
    }
    let judged = write.expected.check(state.model, reply);
    for id in &write.changed {
        state.model.acknowledge(*id, source, &mut state.propagations);
    }
    let first = write.changed.first().copied();
    state.defining &= first.is_some();
    if let Some(id) = first {
        state.model.release(id);
    }
    state
        .tally
        .count(write.kind, judged.map_err(|wrong| describe(state.model, write.kind, &write.command, None, &wrong)));
    Ok(first)
}

fn finish_read(state: &mut ThreadState<'_>, read: &Read, reply: Doc<'_>) -> Result<Option<i64>> {
    if is_killed(state, &read.command, reply)? {
        return Ok(None);
    }
    let outcome = check_reply(state.model, read, reply);
    let wrong = |wrong: String| describe(state.model, read.kind, &read.command, Some(&read.sent), &wrong);
    let (judged, more) = match outcome {
        Ok(more) => (Ok(()), more),
        Err(text) => (Err(wrong(text)), None),
    };
    state.tally.count(read.kind, judged);
    Ok(more)
}

fn finish_more(state: &mut ThreadState<'_>, command: &DocBuf, sent: &SentRead, reply: Doc<'_>) -> Result<Option<i64>> {
    if is_killed(state, command, reply)? {
        return Ok(None);
    }
    let model = state.model;
    let judged = batch_of(model, sent, reply);
    let more = judged.as_ref().ok().and_then(|more| *more);
    let judged = judged.map(drop).map_err(|wrong| describe(model, OperationKind::GetMore, command, Some(sent), &wrong));
    state.tally.count(OperationKind::GetMore, judged);
    Ok(more)
}

/// Checks a reply; returns the id of the cursor if there are more batches.
fn check_reply(model: &Model, read: &Read, reply: Doc<'_>) -> Result<Option<i64>, String> {
    let (layout, sent) = (&model.layout, &read.sent);
    let high = |id| model.newest_visible(id);
    match &read.expected {
        ExpectedReply::Documents(shape) => {
            let observed = decode::batch(layout, only_batch(reply)?, shape)?;
            sent.check_documents(layout, high, &observed)?;
            record_seen(model, sent, &observed);
        }
        ExpectedReply::Batches { .. } => return batch_of(model, sent, reply),
        ExpectedReply::Count => {
            let count = reply.get("n").and_then(Value::to_i64).ok_or("a count without n")?;
            sent.check_count(layout, high, count)?;
        }
        ExpectedReply::Distinct => {
            let values = reply.get("values").and_then(Value::as_array).ok_or("distinct without values")?;
            sent.check_distinct(layout, high, &decode::numbers(values)?)?;
        }
        ExpectedReply::Groups => sent.check_groups(layout, high, &decode::groups(only_batch(reply)?)?)?,
        ExpectedReply::Joined(inner) => {
            let batch = only_batch(reply)?;
            let observed = decode::batch(layout, batch, JOINED_FIELDS)?;
            sent.check_documents(layout, high, &observed)?;
            record_seen(model, sent, &observed);
            for outer in batch.values().filter_map(Value::as_document) {
                let joined = outer.get("joined").and_then(Value::as_array).unwrap_or(Doc::EMPTY);
                let joined = decode::batch(layout, joined, ALL_FIELDS)?;
                let judged = inner.check_documents(layout, high, &joined);
                judged.map_err(|wrong| format!("joined: {wrong} (oldest versions {:?})", inner.oldest))?;
            }
        }
    }
    Ok(None)
}

fn batch_of(model: &Model, sent: &SentRead, reply: Doc<'_>) -> Result<Option<i64>, String> {
    let (cursor, batch) = cursor_batch(reply).map_err(|error| error.to_string())?;
    let observed = decode::batch(&model.layout, batch, ALL_FIELDS)?;
    sent.check_documents(&model.layout, |id| model.newest_visible(id), &observed)?;
    record_seen(model, sent, &observed);
    Ok((cursor != 0).then_some(cursor))
}

/// Records the versions that a read has seen: every later read must see them too.
fn record_seen(model: &Model, sent: &SentRead, observed: &[Observed]) {
    let seen = |id, version| {
        if let Some(version) = sent.seen_version(id, model.newest_visible(id), version) {
            model.record_seen(id, version);
        }
    };
    observed.iter().for_each(|one| seen(one.id, Some(one.version)));
    if let (Scope::Ids(ids), true) = (&sent.scope, sent.complete) {
        let missing = ids.iter().filter(|id| !observed.iter().any(|one| one.id == **id));
        missing.for_each(|id| seen(*id, None));
    }
}

fn only_batch(reply: Doc<'_>) -> Result<Doc<'_>, String> {
    match cursor_batch(reply).map_err(|error| error.to_string())? {
        (0, batch) => Ok(batch),
        (_, batch) => Err(format!("a batch of {}, and a cursor for more", batch.elements().count())),
    }
}

fn is_ok(reply: Doc<'_>) -> bool {
    reply.get("ok").and_then(Value::to_i64) == Some(1)
}

/// Returns whether a read was killed for a valid reason; fails for any other error.
fn is_killed(state: &mut ThreadState<'_>, command: &DocBuf, reply: Doc<'_>) -> Result<bool> {
    if is_ok(reply) {
        return Ok(false);
    }
    match reply.get("code").and_then(Value::to_i64).context("an error without a code")? {
        QUERY_PLAN_KILLED | CURSOR_NOT_FOUND => {
            state.tally.killed_reads += 1;
            Ok(true)
        }
        _ => bail!("the server replied to {command:?} with {reply:?}"),
    }
}

/// Describes a wrong reply.
fn describe(model: &Model, kind: OperationKind, command: &DocBuf, sent: Option<&SentRead>, wrong: &str) -> String {
    let mut text = format!("{}: {wrong}\n    {command:?}", kind.name());
    let Some(sent) = sent else { return text };
    let concerned = sent.scope.ids().zip(&sent.oldest);
    let concerned = concerned.filter(|(id, _)| wrong.contains(&format!("document {id} ")));
    for (id, low) in concerned {
        let fields = model.layout.fields(id, *low);
        text += &format!("\n    document {id}: {}; at version {low} it has {fields:?}", model.age(id));
    }
    text
}
