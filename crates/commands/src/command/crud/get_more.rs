//! `getMore` and `killCursors`.

use crate::arguments;
use crate::arguments::options::as_count;
use crate::arguments::{is_absent, unknown_field};
use crate::call::{Call, Disposition};
use crate::document_cache::{self, Lookup};
use crate::envelope::check_time_limit;
use crate::read::{Batch, Reader};
use crate::reply::{append_namespace, in_executor};
use crate::table::spec::TimeLimitField;
use document::{Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use mongo_wire::request::RequestKind;
use server::cursor;
use server::cursor::{CursorReader, KillOutcome};
use server::document_cache::CachedReply;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Namespace;
use store::read_preference::under;

/// How long a tailable cursor waits for documents by default.
const AWAIT_DATA_DEFAULT: Duration = Duration::from_secs(1);

/// How often a waiting cursor checks for interruption.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Checks a position in an oplog, which a router asks to wait for.
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
                "maxTimeMS" => check_time_limit(WITHIN, TimeLimitField::Number, field)?,
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

/// Parses the fields of a `getMore`.
pub fn parse_get_more(call: &Call<'_>) -> Result<()> {
    Arguments::read(call, call.all_fields())?;
    arguments::check_database(call.database())
}

pub async fn get_more(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let Arguments { id, collection, batch_size } = Arguments::read(call, call.fields())?;
    let namespace = Namespace::new(call.database(), collection);
    let worker = call.worker;
    worker.statistics().operations_getmore.add(1);

    let mut checked_out = call.session.with_login(|login, privileges| {
        let reader = CursorReader { user: login.map(|login| &login.name), privileges };
        let reader = worker.server.access_control.is_enabled().then_some(reader);
        worker.server.cursors.check_out(id, &namespace, (call.envelope.session, call.envelope.transaction()), reader)
    })?;
    call.operation.end_with_cursor(checked_out.killed());
    let awaits = checked_out.state::<Reader>().is_some_and(|reader| reader.awaits());
    if call.envelope.time_limit.is_some() && !awaits {
        checked_out.check_in(call.steady_ms);
        return Err(Error::bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor"));
    }
    let Some(reader) = checked_out.state::<Reader>() else { return Err(cursor::not_found(id)) };
    let began = Instant::now();
    if awaits {
        // maxTimeMS limits the wait, not the work.
        call.operation.set_time_limit(Duration::MAX);
    } else if let Some(time_left) = reader.time_left {
        call.operation.set_time_limit(time_left);
    }
    let wait_until = began + call.envelope.time_limit.unwrap_or(AWAIT_DATA_DEFAULT);
    // Zero means as many as fit.
    let documents_max = if batch_size == 0 { usize::MAX } else { as_count(batch_size) };
    let mut cursor = reply.document("cursor");
    if let Some(cached) = cached_batch(call, reader, batch_size) {
        document_cache::write_batch(&cached, &mut cursor);
        match &cached.continuation {
            Some(continuation) => reader.advance(continuation),
            None => reader.end(),
        }
    } else {
        let mut batch = Batch::begin(&mut cursor, "nextBatch", documents_max);
        loop {
            // Subscribed before the scan, so that no addition is missed between the scan and the
            // wait.
            let additions = reader.additions(&*worker.store);
            let filled = match reader.read_preference.clone() {
                None => reader.fill(call, &mut batch).await,
                // Boxed because it is rare, and would enlarge the future of every command.
                preference => Box::pin(under(preference, reader.fill(call, &mut batch))).await,
            };
            filled.map_err(during_get_more)?;
            if !awaits || !batch.is_empty() || reader.is_done() {
                break;
            }
            let waiting = Instant::now();
            if waiting >= wait_until || worker.server.is_stopping() {
                break;
            }
            match additions {
                Some(additions) => {
                    // Wake up now and then, to notice a kill.
                    let until = wait_until.min(waiting + CHECK_INTERVAL);
                    let _ = tokio::time::timeout_at(until.into(), additions).await;
                }
                None if reader.follows_changes() => reader.wait_for_changes(call, wait_until).await?,
                None => break,
            }
            call.operation.stats.add_wait(waiting.elapsed());
        }
        worker.statistics().documents_returned.add(batch.len() as u64);
        if !reader.is_done() {
            call.dependencies.set_continuation(reader.continuation());
        }
    }
    reader.append_state(&mut cursor);
    reader.time_left = reader.time_left.map(|left| left.saturating_sub(began.elapsed()));
    let continues = if reader.is_done() {
        checked_out.close();
        false
    } else {
        checked_out.recharge(call.held_beside(&cursor).unwrap_or_default())?;
        checked_out.check_in(call.steady_ms)
    };
    cursor.append("id", if continues { id } else { 0 });
    append_namespace(&mut cursor, &namespace);
    call.append_snapshot_time(&mut cursor);
    Ok(match call.request.kind {
        RequestKind::Msg { exhaust_allowed: true, .. } if continues => {
            Disposition::ReplyThenRun(DocBuf::from_vec(call.request.body().as_bytes().to_vec()).unwrap_or_default())
        }
        _ => Disposition::Reply,
    })
}

/// Returns the next batch from the document cache; on a miss, prepares to cache it.
fn cached_batch(call: &Call<'_>, reader: &Reader, batch_size: u64) -> Option<Arc<CachedReply>> {
    let (cache, batch_key) = (call.worker.server.document_cache.as_ref()?, reader.batch_key.as_ref()?);
    match document_cache::next_batch(cache, call, batch_key, &reader.continuation()?, batch_size) {
        Lookup::Hit(cached) => Some(cached),
        Lookup::Compute(pending) => {
            call.dependencies.begin(Some(pending));
            None
        }
        Lookup::FirstBatch(_) | Lookup::Bypass => None,
    }
}

fn during_get_more(error: Error) -> Error {
    match error.code() {
        // The message already names the getMore, because the kill is noticed anywhere.
        Code::CURSOR_KILLED => error,
        // MongoDB adds no context to a position that is lost before the end was reached.
        Code::CAPPED_POSITION_LOST if !error.message().contains("tailable") => error,
        _ => in_executor(error, "Executor error during getMore"),
    }
}

/// Returns the ids of the cursors that a `killCursors` names.
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
    // The collection's name must be valid, but is not compared with the cursors'.
    call.check_namespace()?;
    Ok(cursors)
}

/// Parses the fields of a `killCursors`.
pub fn parse_kill_cursors(call: &Call<'_>) -> Result<()> {
    cursors_to_kill(call).map(drop)
}

pub fn kill_cursors(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut killed, mut not_found) = (Vec::new(), Vec::new());
    for id in cursors_to_kill(call)? {
        match call.worker.server.cursors.kill(id) {
            KillOutcome::Yes => killed.push(id),
            KillOutcome::NotFound => not_found.push(id),
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
