//! `getMore` and `killCursors`.

use crate::answers::{self, CachedReply, Lookup};
use crate::arguments::{self, is_absent, unknown_field};
use crate::command::options::as_count;
use crate::cursor::{self, Killed};
use crate::dispatch::{Call, Disposition};
use crate::envelope::check_time_limit;
use crate::read::{Batch, Reader};
use crate::reply::{append_namespace, in_executor};
use document::{Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use mongo_wire::request::RequestKind;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Namespace;

/// How long a cursor waits for documents where the client does not say.
const AWAIT_DATA: Duration = Duration::from_secs(1);

/// How often one that waits looks up.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A place in an oplog, which a router asks to wait for.
fn check_op_time(time: Doc<'_>) -> Result<()> {
    let missing = ["ts", "t"].into_iter().find(|name| time.get(name).is_none());
    missing.map_or(Ok(()), |name| Err(arguments::missing_field("OpTimeBase", name)))
}

/// The fields of a `getMore`.
struct Arguments<'a> {
    id: i64,
    collection: &'a str,
    batch_size: u64,
}

impl<'a> Arguments<'a> {
    fn read(call: &Call<'a>, fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        const WITHIN: &str = "getMore";
        let mut collection = None;
        let mut batch_size = 0;
        for field in fields {
            match field.key() {
                "collection" => {
                    let name = arguments::string(WITHIN, field)?;
                    if name.is_empty() {
                        return Err(Error::new(Code::INVALID_NAMESPACE, "Collection names cannot be empty"));
                    }
                    collection = Some(name);
                }
                "batchSize" if is_absent(field) => {}
                "batchSize" => batch_size = arguments::non_negative(WITHIN, field)?,
                "term" if !matches!(field.value(), Value::Int64(_) | Value::Null) => {
                    return Err(arguments::wrong_type(WITHIN, field, "long"));
                }
                "lastKnownCommittedOpTime" if !is_absent(field) => {
                    check_op_time(arguments::document(WITHIN, field)?)?;
                }
                "term" | "lastKnownCommittedOpTime" => {}
                "maxTimeMS" => check_time_limit(WITHIN, field)?,
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        let collection = collection.ok_or_else(|| arguments::missing_field(WITHIN, "collection"))?;
        match call.first().value() {
            Value::Int64(id) => Ok(Arguments { id, collection, batch_size }),
            _ if is_absent(call.first()) => Err(arguments::missing_field(WITHIN, WITHIN)),
            _ => Err(arguments::wrong_type(WITHIN, call.first(), "long")),
        }
    }
}

/// What is wrong with a `getMore` of its own.
pub fn read_get_more_first(call: &Call<'_>) -> Result<()> {
    Arguments::read(call, call.all_fields())?;
    arguments::check_database(call.database())
}

pub async fn get_more(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let Arguments { id, collection, batch_size } = Arguments::read(call, call.fields())?;
    let namespace = Namespace::new(call.database(), collection);
    let worker = call.worker;
    worker.statistics().operations_getmore.add(1);

    let mut checked_out = worker.server.cursors.check_out(id, &namespace, call.envelope.session)?;
    call.running.end_with_cursor(checked_out.killed());
    let awaits = checked_out.reader().is_some_and(|reader| reader.awaits());
    if call.envelope.time_limit.is_some() && !awaits {
        checked_out.check_in(call.now_ms);
        return Err(Error::bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor"));
    }
    let Some(reader) = checked_out.reader() else { return Err(cursor::not_found(id)) };
    let began = Instant::now();
    if awaits {
        // The time is how long to wait, not how long to work.
        call.running.limit(Duration::MAX);
    } else if let Some(time_left) = reader.time_left {
        call.running.limit(time_left);
    }
    let patience = began + call.envelope.time_limit.unwrap_or(AWAIT_DATA);
    // Zero stands for as many as fit.
    let documents_max = if batch_size == 0 { usize::MAX } else { as_count(batch_size) };
    let mut cursor = reply.document("cursor");
    if let Some(kept) = kept_batch(call, reader, batch_size) {
        answers::write_batch(&kept, &mut cursor);
        match &kept.rest {
            Some(rest) => reader.advance(rest),
            None => reader.end(),
        }
    } else {
        let mut batch = Batch::begin(&mut cursor, "nextBatch", documents_max);
        loop {
            // From now on, so that nothing comes unseen between the look and the wait.
            let additions = reader.plan().filter(|_| awaits).map(|plan| worker.store.additions(&**plan));
            let filled = reader.fill(call, &mut batch).await;
            filled.map_err(during_get_more)?;
            let Some(additions) = additions.filter(|_| batch.is_empty()) else { break };
            if Instant::now() >= patience || worker.server.is_stopping() {
                break;
            }
            // Now and then it is looked whether the operation has been killed.
            let until = patience.min(Instant::now() + LOOK_EVERY);
            let waiting = Instant::now();
            let _ = tokio::time::timeout_at(until.into(), additions).await;
            call.running.facts.note_wait(waiting.elapsed());
        }
        worker.statistics().documents_returned.add(batch.len() as u64);
        if !reader.is_done() {
            call.depends.goes_on(reader.rest());
        }
    }
    reader.time_left = reader.time_left.map(|left| left.saturating_sub(began.elapsed()));
    let goes_on = if reader.is_done() {
        checked_out.close();
        false
    } else {
        checked_out.recharge(call.held_beside(&cursor).unwrap_or_default())?;
        checked_out.check_in(call.now_ms)
    };
    cursor.append("id", if goes_on { id } else { 0 });
    append_namespace(&mut cursor, &namespace);
    Ok(match call.request.kind {
        RequestKind::Msg { exhaust_allowed: true, .. } if goes_on => {
            Disposition::ReplyThenRun(DocBuf::from_vec(call.request.body().as_bytes().to_vec()).unwrap_or_default())
        }
        _ => Disposition::Reply,
    })
}

/// The next batch, if it is kept; if not, and it is worth keeping, that is noted.
fn kept_batch(call: &Call<'_>, reader: &Reader, batch_size: u64) -> Option<Arc<CachedReply>> {
    let (answers, origin) = (call.worker.server.answers.as_ref()?, reader.origin.as_ref()?);
    match answers.next_batch(call, origin, &reader.rest()?, batch_size) {
        Lookup::Answer(kept) => Some(kept),
        Lookup::Make(making) => {
            call.depends.begin(Some(making));
            None
        }
        Lookup::Beginning(_) | Lookup::Nothing => None,
    }
}

fn during_get_more(error: Error) -> Error {
    match error.code() {
        // It says so itself, as it may end the work wherever that is.
        Code::CURSOR_KILLED => error,
        // A position that is lost before the end was reached is told without further ado.
        Code::CAPPED_POSITION_LOST if !error.message().contains("tailable") => error,
        _ => in_executor(error, "Executor error during getMore"),
    }
}

/// The ids of the cursors that a `killCursors` names.
fn cursors_to_kill(call: &Call<'_>) -> Result<Vec<i64>> {
    const WITHIN: &str = "killCursors";
    let mut cursors = None;
    for field in call.fields() {
        match field.key() {
            "cursors" => {
                let listed = arguments::array(WITHIN, field)?.elements().map(|element| match element.value() {
                    Value::Int64(id) => Ok(id),
                    _ => Err(arguments::wrong_type("killCursors.cursors", element, "long")),
                });
                cursors = Some(listed.collect::<Result<_>>()?);
            }
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    let cursors = cursors.ok_or_else(|| arguments::missing_field(WITHIN, "cursors"))?;
    // The collection that is named along has no say in it.
    call.check_namespace()?;
    Ok(cursors)
}

/// What is wrong with a `killCursors` of its own.
pub fn read_kill_cursors_first(call: &Call<'_>) -> Result<()> {
    cursors_to_kill(call).map(drop)
}

pub fn kill_cursors(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut killed, mut not_found) = (Vec::new(), Vec::new());
    for id in cursors_to_kill(call)? {
        match call.worker.server.cursors.kill(id) {
            Killed::Yes => killed.push(id),
            Killed::NotFound => not_found.push(id),
        }
    }
    for (key, ids) in [("cursorsKilled", killed), ("cursorsNotFound", not_found)] {
        let mut array = reply.array(key);
        ids.into_iter().for_each(|id| array.push(id));
    }
    drop(reply.array("cursorsAlive"));
    drop(reply.array("cursorsUnknown"));
    Ok(())
}
