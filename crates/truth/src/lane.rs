//! A connection and what is under way on it: one operation after the other, each judged when its reply is there.

use super::check::{Observed, Reading, Scope};
use super::kind::Kind;
use super::layout::Id;
use super::model::{Later, Model, Source};
use super::observe::{self, JOINED, WHOLE};
use super::read::{Answer, BATCH, Read, Reader};
use super::tally::Tally;
use super::write::{self, Write};
use anyhow::{Context, Result, bail};
use document::{Doc, DocBuf, Value, doc};
use harness::address::Address;
use harness::connection::Connection;
use harness::message::{Message, cursor_batch, reply_body};
use harness::random::SplitMix;

pub struct Lane {
    pub connection: Connection,
    pub source: Source,
    pending: Option<Pending>,
    /// A document that this connection has written last and not read since.
    own: Option<Id>,
}

enum Pending {
    Read(Read),
    /// The rest of a read in batches.
    More {
        command: DocBuf,
        collection: String,
        reading: Reading,
    },
    Write(Write),
}

/// What a thread's lanes share.
pub struct Shared<'m> {
    pub model: &'m Model,
    pub random: SplitMix,
    pub tally: &'m mut Tally,
    pub later: Later,
    /// Of a hundred operations, how many are reads.
    pub reads: u64,
    /// A change of definitions that the next lane that is free makes.
    pub due: Option<Write>,
    /// Definitions are being changed: the next change has to wait.
    pub defining: bool,
}

/// A read that a server may refuse while an index is dropped.
const QUERY_PLAN_KILLED: i64 = 175;
const CURSOR_NOT_FOUND: i64 = 43;

impl Lane {
    pub fn open(address: &Address, source: Source) -> Result<Lane> {
        let mut connection = Connection::open(address)?;
        connection.handshake()?;
        Ok(Lane { connection, source, pending: None, own: None })
    }

    /// Chooses an operation and sends it.
    pub fn begin(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        shared.model.settle(&mut shared.later);
        let write = shared.due.take().or_else(|| self.choose_write(shared));
        self.pending = Some(match write {
            Some(write) => Pending::Write(write),
            None => Pending::Read(self.choose_read(shared)),
        });
        match &self.pending {
            Some(Pending::Write(write)) => self.connection.send(&write.message),
            Some(Pending::Read(read)) => self.connection.send(&Message::command(read.command.clone())),
            _ => Ok(()),
        }
    }

    fn choose_write(&self, shared: &mut Shared<'_>) -> Option<Write> {
        if shared.random.below(100) < shared.reads {
            return None;
        }
        let reader = Reader { model: shared.model, source: self.source };
        let side = shared.model.layout.side();
        let id = match shared.random.below(8) {
            0 => side.start + shared.random.below((side.end - side.start).into()) as Id,
            _ => reader.pick(&mut shared.random),
        };
        write::any(shared.model, id, &mut shared.random)
    }

    fn choose_read(&mut self, shared: &mut Shared<'_>) -> Read {
        let reader = Reader { model: shared.model, source: self.source };
        match self.own.take() {
            Some(id) if shared.random.below(2) == 0 => Read { kind: Kind::FindOwn, ..reader.by_id(id) },
            _ => reader.any(&mut shared.random),
        }
    }

    /// Judges the reply that is there. Gives whether the operation is over; if not, more of it has been asked for.
    pub fn finish(&mut self, shared: &mut Shared<'_>) -> Result<bool> {
        let Some(pending) = self.pending.take() else { bail!("a reply to nothing") };
        let more = {
            let reply = reply_body(self.connection.reply())?;
            match &pending {
                Pending::Write(write) => {
                    self.own = finish_write(shared, write, reply, self.source)?;
                    None
                }
                Pending::Read(read) => finish_read(shared, read, reply)?,
                Pending::More { command, reading, .. } => finish_more(shared, command, reading, reply)?,
            }
        };
        self.connection.forget_reply();
        let Some(cursor) = more else { return Ok(true) };
        let (command, reading, collection) = match pending {
            Pending::Read(Read { command, reading, answer: Answer::Batches { collection }, .. }) => {
                (command, reading, collection)
            }
            Pending::More { command, reading, collection } => (command, reading, collection),
            _ => return Ok(true),
        };
        let message = Message::command(doc! { "getMore": cursor, "collection": &collection, "batchSize": BATCH });
        self.pending = Some(Pending::More { command, collection, reading });
        self.connection.send(&message)?;
        Ok(false)
    }

    /// The connection is lost. What it was about to write may be written or not, now or later, and nobody writes to those documents again.
    pub fn abandon(&mut self, shared: &mut Shared<'_>) {
        if let Some(Pending::Write(write)) = self.pending.take() {
            shared.tally.unknown += write.changed.len() as u64;
        }
        self.own = None;
    }
}

fn finish_write(shared: &mut Shared<'_>, write: &Write, reply: Doc<'_>, source: Source) -> Result<Option<Id>> {
    if !is_ok(reply) || reply.get("writeErrors").is_some() {
        bail!("the server answered {:?} with {reply:?}", write.command);
    }
    let judged = write.expected.judge(shared.model, reply);
    for id in &write.changed {
        shared.model.acknowledge(*id, source, &mut shared.later);
    }
    let first = write.changed.first().copied();
    shared.defining &= first.is_some();
    if let Some(id) = first {
        shared.model.release(id);
    }
    shared
        .tally
        .count(write.kind, judged.map_err(|wrong| describe(shared.model, write.kind, &write.command, None, &wrong)));
    Ok(first)
}

fn finish_read(shared: &mut Shared<'_>, read: &Read, reply: Doc<'_>) -> Result<Option<i64>> {
    if is_refused(shared, &read.command, reply)? {
        return Ok(None);
    }
    let outcome = judge(shared.model, read, reply);
    let wrong = |wrong: String| describe(shared.model, read.kind, &read.command, Some(&read.reading), &wrong);
    let (judged, more) = match outcome {
        Ok(more) => (Ok(()), more),
        Err(text) => (Err(wrong(text)), None),
    };
    shared.tally.count(read.kind, judged);
    Ok(more)
}

fn finish_more(shared: &mut Shared<'_>, command: &DocBuf, reading: &Reading, reply: Doc<'_>) -> Result<Option<i64>> {
    if is_refused(shared, command, reply)? {
        return Ok(None);
    }
    let model = shared.model;
    let judged = batch_of(model, reading, reply);
    let more = judged.as_ref().ok().and_then(|more| *more);
    let judged = judged.map(drop).map_err(|wrong| describe(model, Kind::GetMore, command, Some(reading), &wrong));
    shared.tally.count(Kind::GetMore, judged);
    Ok(more)
}

/// Judges an answer; the cursor's id is given where the rest of it has to be asked for.
fn judge(model: &Model, read: &Read, reply: Doc<'_>) -> Result<Option<i64>, String> {
    let (layout, reading) = (&model.layout, &read.reading);
    let high = |id| model.high(id);
    match &read.answer {
        Answer::Documents(shape) => {
            let observed = observe::batch(layout, only_batch(reply)?, shape)?;
            reading.documents(layout, high, &observed)?;
            tell(model, reading, &observed);
        }
        Answer::Batches { .. } => return batch_of(model, reading, reply),
        Answer::Count => {
            let count = reply.get("n").and_then(Value::to_i64).ok_or("a count without n")?;
            reading.count(layout, high, count)?;
        }
        Answer::Distinct => {
            let values = reply.get("values").and_then(Value::as_array).ok_or("distinct without values")?;
            reading.distinct(layout, high, &observe::numbers(values)?)?;
        }
        Answer::Groups => reading.groups(layout, high, &observe::groups(only_batch(reply)?)?)?,
        Answer::Joined(inner) => {
            let batch = only_batch(reply)?;
            let observed = observe::batch(layout, batch, JOINED)?;
            reading.documents(layout, high, &observed)?;
            tell(model, reading, &observed);
            for outer in batch.values().filter_map(Value::as_document) {
                let joined = outer.get("joined").and_then(Value::as_array).unwrap_or(Doc::EMPTY);
                let joined = observe::batch(layout, joined, WHOLE)?;
                let judged = inner.documents(layout, high, &joined);
                judged.map_err(|wrong| format!("joined: {wrong} (asked with {:?})", inner.lows))?;
            }
        }
    }
    Ok(None)
}

fn batch_of(model: &Model, reading: &Reading, reply: Doc<'_>) -> Result<Option<i64>, String> {
    let (cursor, batch) = cursor_batch(reply).map_err(|error| error.to_string())?;
    let observed = observe::batch(&model.layout, batch, WHOLE)?;
    reading.documents(&model.layout, |id| model.high(id), &observed)?;
    tell(model, reading, &observed);
    Ok((cursor != 0).then_some(cursor))
}

/// What a read has seen is known to everybody from now on.
fn tell(model: &Model, reading: &Reading, observed: &[Observed]) {
    let seen = |id, version| {
        if let Some(version) = reading.settled(id, model.high(id), version) {
            model.saw(id, version);
        }
    };
    observed.iter().for_each(|one| seen(one.id, Some(one.version)));
    if let (Scope::These(ids), true) = (&reading.scope, reading.whole) {
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

/// Whether a read was refused for a reason that is no fault; any other error ends the run.
fn is_refused(shared: &mut Shared<'_>, command: &DocBuf, reply: Doc<'_>) -> Result<bool> {
    if is_ok(reply) {
        return Ok(false);
    }
    match reply.get("code").and_then(Value::to_i64).context("an error without a code")? {
        QUERY_PLAN_KILLED | CURSOR_NOT_FOUND => {
            shared.tally.refused += 1;
            Ok(true)
        }
        _ => bail!("the server answered {command:?} with {reply:?}"),
    }
}

/// All there is to say about a wrong answer.
fn describe(model: &Model, kind: Kind, command: &DocBuf, reading: Option<&Reading>, wrong: &str) -> String {
    let mut text = format!("{}: {wrong}\n    {command:?}", kind.name());
    let Some(reading) = reading else { return text };
    let concerned = reading.scope.ids().zip(&reading.lows);
    let concerned = concerned.filter(|(id, _)| wrong.contains(&format!("document {id} ")));
    for (id, low) in concerned {
        let fields = model.layout.fields(id, *low);
        text += &format!("\n    document {id}: {}; at version {low} it has {fields:?}", model.age(id));
    }
    text
}
