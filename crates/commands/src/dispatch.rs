//! From a request to its reply: look the command up, check what all share, carry it out, report how it went.

use crate::answers::{self, Body, CachedReply, DependencyRecorder, Lookup};
use crate::arguments;
use crate::between_servers;
use crate::by_uuid;
use crate::clock;
use crate::collection_uuid;
use crate::command::{find, indexes, time_series, transactions};
use crate::envelope::{self, Envelope, Mistakes, Phase, WriteConcern};
use crate::profiling;
use crate::reply;
use crate::running::Running;
use crate::server::{ClientSession, Worker};
use crate::table::{self, Access, Handler, Spec, fields};
use crate::text_indexes;
use crate::write_lock;
use document::{Doc, DocBuf, DocWriter, Element};
use error::{Code, Error, Result};
use fulltext::TextIndexes;
use futures_util::FutureExt;
use mongo_wire::Request;
use mongo_wire::request::RequestKind;
use query::Context;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;
use steps::Interruptible;
use store::PlanSummary;

/// What the connection does with what [`run`] appended.
#[derive(Debug)]
pub enum Disposition {
    /// Send it (unless the request said moreToCome).
    Reply,
    /// Send it flagged moreToCome, then run this body again as if the client had sent it (exhaust cursors, streaming hello).
    /// Only given to requests that allow it.
    ReplyThenRun(DocBuf),
}

/// One command being carried out: everything its handler may look at.
pub struct Call<'a> {
    pub worker: &'a Worker,
    pub session: &'a ClientSession,
    pub request: &'a Request,
    pub spec: &'static Spec,
    pub envelope: Envelope<'a>,
    pub running: &'a Running,
    /// When the command began: milliseconds since 1970.
    pub now_ms: i64,
    /// The capacity of the reply's buffer before anything was written to it.
    reply_capacity: usize,
    /// What answers `$text`, should the command have one.
    text_indexes: TextIndexes,
    /// What the answer depends on, where it is to be kept.
    pub depends: DependencyRecorder,
    /// The answer's beginning, where that is kept and the handler has only to open a cursor behind it.
    pub beginning: Option<Arc<CachedReply>>,
    /// The answer comes from a view's pipeline: MongoDB's `ok` is an int then.
    pub by_view: bool,
}

impl<'a> Call<'a> {
    #[inline]
    fn new(
        worker: &'a Worker,
        session: &'a ClientSession,
        request: &'a Request,
        spec: &'static Spec,
        first: Element<'a>,
        running: &'a Running,
    ) -> Call<'a> {
        let now_ms = clock::now_ms();
        Call {
            worker,
            session,
            request,
            spec,
            envelope: Envelope::new(first),
            running,
            now_ms,
            reply_capacity: 0,
            text_indexes: TextIndexes::default(),
            depends: DependencyRecorder::default(),
            beginning: None,
            by_view: false,
        }
    }

    /// Does for the command what is done alike for all of them.
    fn begin(&mut self, body: Doc<'a>) -> Result<()> {
        self.worker.sweep(self.now_ms);
        let mut mistakes = Mistakes::default();
        self.envelope.read(self.request, body, self.spec, &mut mistakes);
        check_shared(self.worker, self.spec, &mut self.envelope, &mut mistakes);
        if let Some((phase, mistake)) = mistakes.into_first() {
            if self.envelope.asks_for_help && phase > Phase::Internal {
                return Ok(());
            }
            if self.spec.reads.as_ref().is_some_and(|reading| phase >= reading.at) {
                between_servers::take(self)?;
                self.read_own()?;
            }
            return Err(mistake);
        }
        if let Some(session_id) = self.envelope.session {
            self.session.note_logical_session(self.worker, session_id, self.now_ms);
        }
        if let Some(limit) = self.envelope.time_limit {
            self.running.limit(limit);
        }
        Ok(())
    }

    /// Whether the store is not to answer from what it keeps of earlier reads.
    pub fn reads_afresh(&self) -> bool {
        !self.session.uses.get().rows || self.envelope.is_linearizable()
    }

    /// Reads the command's own fields, for what is wrong with them.
    pub fn read_own(&self) -> Result<()> {
        self.spec.reads.as_ref().map_or(Ok(()), |reading| (reading.read)(self))
    }

    /// The error to report beside the outcome of a write whose write concern cannot be satisfied.
    fn unsatisfied(&self) -> Option<&Error> {
        let writes = self.spec.name != "aggregate" || !table::only_reads(envelope::body(self.request).0);
        self.envelope.unsatisfied.as_ref().filter(|_| writes && !self.envelope.asks_for_help)
    }

    /// The answer to `help: true`, which no command that is read as a whole has.
    fn write_help(&self, writer: &mut DocWriter<'_>) {
        writer.append("help", &*format!("help for: {} {}", self.spec.name, self.spec.help));
    }

    /// Returns the bytes that the command holds beside the reply that is being written; `None`
    /// where they are not counted.
    pub fn held_beside(&self, reply: &DocWriter<'_>) -> Option<i64> {
        let reply_growth = reply.capacity() as i64 - self.reply_capacity as i64;
        Some(steps::memory::held()? - reply_growth)
    }

    pub fn database(&self) -> &'a str {
        self.envelope.database
    }

    /// Checks the name of the collection, as commands do that read their own fields first; a name that no collection can
    /// have is refused later.
    pub fn check_namespace(&self) -> Result<()> {
        arguments::namespace(self.database(), self.first())?;
        arguments::check_database(self.database())
    }

    /// The element that names the command; its value is the collection, mostly.
    pub fn first(&self) -> Element<'a> {
        self.envelope.first
    }

    /// The command's own fields, and in their places those of all commands that it reads among its own.
    pub fn all_fields(&self) -> impl Iterator<Item = Element<'a>> + '_ {
        let body = envelope::body(self.request).0;
        let is_own = |field: &Element<'_>| self.fields().any(|own| own.key_bytes() == field.key_bytes());
        let too = self.spec.reads.as_ref().map_or(&[][..], |reading| reading.too);
        body.elements().skip(1).filter(move |field| is_own(field) || too.contains(&field.key()))
    }

    /// The command's own fields, in their order.
    pub fn fields(&self) -> impl Iterator<Item = Element<'a>> + '_ {
        self.envelope.fields.iter().copied()
    }

    /// What parsers of the query language may depend on, without variables.
    pub fn context(&self) -> Context {
        Context { text_indexes: self.text_indexes.clone(), ..Context::at(self.now_ms) }
    }
}

/// What became of a request that was to be answered without waiting.
pub enum AtOnce {
    /// It may have to wait, nothing has happened, and [`run`] is to be asked.
    No,
    /// The reply's body is written.
    Written,
    /// This is the reply's body, to be sent from where it lies, and its end, if that is this reply's own.
    Cached { body: Body, end: Vec<u8> },
}

/// Kept replies from this size on are sent from where they lie; smaller ones are copied, which is cheaper.
const SENT_AS_KEPT_BYTES: usize = 16 << 10;

/// What takes more work than that is not done at once: there it could not be suspended. A few
/// milliseconds.
const STEPS_AT_ONCE_MAX: u64 = 50_000;

/// Carries out a request that has nothing to wait for, as [`run`] does but without a future; most requests are like that, and
/// futures that hold a whole command are large and go through memory several times.
pub fn run_at_once(worker: &Worker, session: &ClientSession, request: &Request, reply: &mut Vec<u8>) -> AtOnce {
    let (body, first) = envelope::body(request);
    let Some((first, index)) = first.and_then(|first| Some((first, table::find(first.key_bytes())?))) else {
        return AtOnce::No;
    };
    let Some(spec) = table::COMMANDS.get(index) else { return AtOnce::No };
    if matches!(request.kind, RequestKind::Query { .. }) || by_uuid::is_given(spec, first) {
        return AtOnce::No;
    }
    let start = reply.len();
    // Who watches operations is shown those of the ordinary way.
    let answers = worker.server.answers.as_ref().filter(|_| spec.cacheable && !worker.server.profiling.is_attentive());
    if let Some(answers) = answers {
        let began = Instant::now();
        let running = Running::default();
        let mut call = Call::new(worker, session, request, spec, first, &running);
        // What is wrong is told on the ordinary way.
        let begun = call.begin(body).is_ok() && !call.envelope.asks_for_help;
        let kept = begun.then(|| answers.at_once(&call)).flatten();
        let parts = kept.as_ref().and_then(|kept| parts_at_once(&call, kept));
        if let (Some(kept), Some((shared, end))) = (kept, parts) {
            count(worker, index);
            count_answer(worker, spec, &kept);
            worker.shared.usage.note(spec, body, began.elapsed(), &[]);
            if shared.len() >= SENT_AS_KEPT_BYTES && !kept.has_escaped_names {
                return AtOnce::Cached { body: shared, end };
            }
            reply.extend_from_slice(&shared);
            reply.extend_from_slice(&end);
            return AtOnce::Written;
        }
    }
    let mut answer = |handler: &dyn Fn(&mut Call<'_>, &mut DocWriter<'_>) -> Result<bool>| {
        let running = Running::default();
        let mut call = Call::new(worker, session, request, spec, first, &running);
        call.begin(body)?;
        if let Some(answers) = answers {
            call.depends.begin(answers.make_at_once(&call));
        }
        let mut writer = DocWriter::begin(reply);
        let answered = match call.envelope.asks_for_help {
            true => {
                call.write_help(&mut writer);
                true
            }
            false => handler(&mut call, &mut writer)?,
        };
        if let Some(error) = call.unsatisfied() {
            envelope::write_unsatisfied(error, &mut writer);
        }
        writer.append("ok", 1.0);
        drop(writer);
        if let Some(making) = call.depends.take().filter(|_| answered) {
            making.finish(reply.get(start..).unwrap_or_default(), call.now_ms);
        }
        Ok(answered)
    };
    match &spec.handler {
        Handler::Mostly(..) if worker.server.profiling.is_attentive() => AtOnce::No,
        Handler::Mostly(at_once, _) if (at_once.is_likely)(request) => {
            let began = Instant::now();
            let attempt = || answer(&|call, writer| (at_once.handler)(call, writer));
            let answered = catch_unwind(AssertUnwindSafe(|| steps::bounded(STEPS_AT_ONCE_MAX, attempt)));
            if matches!(answered, Ok(Ok(Ok(true)))) {
                count(worker, index);
                worker.shared.usage.note(spec, body, began.elapsed(), &[(PlanSummary::Name("IDHACK"), 1)]);
                return AtOnce::Written;
            }
            // What is wrong will be found again, and told, on the ordinary way.
            reply.truncate(start);
            AtOnce::No
        }
        // One that writes may have to wait for `fsyncUnlock`.
        Handler::Immediate(_) if worker.server.write_lock.is_locked() => AtOnce::No,
        Handler::Immediate(handler) => {
            count(worker, index);
            let answered =
                catch_unwind(AssertUnwindSafe(|| answer(&|call, writer| handler(call, writer).map(|()| true))));
            let answered = answered.unwrap_or_else(|_| Err(panicked(worker, session, Some(first))));
            if let Err(error) = answered {
                report(worker, Some(index), &error, start, reply);
            }
            AtOnce::Written
        }
        Handler::Mostly(..) | Handler::Waiting(_) => AtOnce::No,
    }
}

/// Carries out one request and appends the reply's body, one BSON document, to `reply`. Never fails: errors are replies.
pub async fn run(worker: &Worker, session: &ClientSession, request: &Request, reply: &mut Vec<u8>) -> Disposition {
    let start = reply.len();
    let began = Instant::now();
    let running = Running::default();
    let (body, first) = envelope::body(request);
    let command = first.and_then(|first| table::find(first.key_bytes()));
    profiling::settle(worker, first).await;
    let outcome = {
        // Pinned here, for it is large, and being passed on would move it.
        let work = pin!(carry_out(worker, session, request, command, &running, reply));
        let work = pin!(Interruptible::new(work, || running.check()));
        let watched = worker.shared.operations.watch(&running, &session.identity, || request.share(body), work);
        AssertUnwindSafe(watched).catch_unwind().await
    };
    let outcome = outcome.unwrap_or_else(|_| Err(panicked(worker, session, first)));
    let disposition = outcome.unwrap_or_else(|error| {
        report(worker, command, &error, start, reply);
        Disposition::Reply
    });
    let elapsed = began.elapsed();
    if let Some(spec) = command.and_then(|index| table::COMMANDS.get(index)) {
        worker.shared.usage.note(spec, body, elapsed, &running.facts.plans());
    }
    if worker.server.profiling.may_concern(elapsed) {
        let reply = reply.get(start..).unwrap_or_default();
        profiling::note(worker, session, request, command, &running, reply, elapsed);
    }
    disposition
}

/// A kept reply as it is sent: its body, and the end that is not shared because it names a cursor that is opened for it. `None`
/// if that is not to be done without waiting.
fn parts_at_once(call: &Call<'_>, kept: &CachedReply) -> Option<(Body, Vec<u8>)> {
    if kept.rest.is_none() {
        return Some((kept.body.clone(), Vec::new()));
    }
    let id_at = kept.cursor_id_at()?;
    let id = find::go_on_at_once(call, kept).ok()?;
    let behind = kept.body.get(id_at + size_of_val(&id)..)?;
    Some((kept.body.slice(..id_at), [&id.to_le_bytes()[..], behind].concat()))
}

/// Counts what a command does whose answer was kept.
fn count_answer(worker: &Worker, spec: &Spec, kept: &CachedReply) {
    let statistics = worker.statistics();
    if spec.name != "find" {
        statistics.operations_command.add(1);
        return;
    }
    statistics.operations_query.add(1);
    // Larger batches are not gone through to be counted.
    let documents = answers::batch(kept).and_then(|batch| batch.value().as_array());
    let small = documents.filter(|documents| documents.size() < SENT_AS_KEPT_BYTES);
    statistics.documents_returned.add(small.map_or(1, |documents| documents.elements().count()) as u64);
}

/// Notes that a command is carried out.
fn count(worker: &Worker, command: usize) {
    if let Some((carried_out, _)) = worker.statistics().commands.get(command) {
        carried_out.add(1);
    }
}

/// Puts an error's reply into the place of what has been written from `start` on.
fn report(worker: &Worker, command: Option<usize>, error: &Error, start: usize, reply: &mut Vec<u8>) {
    if let Some((_, failed)) = command.and_then(|index| worker.statistics().commands.get(index)) {
        failed.add(1);
    }
    worker.statistics().asserts_user.add(1);
    reply.truncate(start);
    reply::write_error(error, reply);
}

fn panicked(worker: &Worker, session: &ClientSession, first: Option<Element<'_>>) -> Error {
    worker.statistics().asserts_regular.add(1);
    let name = first.map_or("", |first| first.key());
    tracing::error!(command = name, connection = session.connection_id, "the command ended in a panic");
    Error::internal("internal error; the server's log has the details")
}

async fn carry_out(
    worker: &Worker,
    session: &ClientSession,
    request: &Request,
    command: Option<usize>,
    running: &Running,
    reply: &mut Vec<u8>,
) -> Result<Disposition> {
    let (body, first) = envelope::body(request);
    let Some(first) = first else {
        return Err(Error::new(Code::COMMAND_NOT_FOUND, "no such command: ''"));
    };
    let Some((spec, index)) = command.and_then(|index| Some((table::COMMANDS.get(index)?, index))) else {
        worker.statistics().operations_command.add(1);
        envelope::check_database_of(body)?;
        return Err(Error::new(Code::COMMAND_NOT_FOUND, format!("no such command: '{}'", first.key())));
    };
    count(worker, index);
    let resolved = match by_uuid::is_given(spec, first) {
        true => Some(Box::pin(by_uuid::resolve(worker, body, first)).await?),
        false => None,
    };
    let first = resolved.as_ref().and_then(by_uuid::Resolved::first).unwrap_or(first);
    let mut call = Call::new(worker, session, request, spec, first, running);
    call.reply_capacity = reply.capacity();
    call.begin(body)?;
    if let Some(resolved) = &resolved {
        call.read_own()?;
        resolved.check()?;
    }
    if call.envelope.asks_for_help {
        let mut writer = DocWriter::begin(reply);
        call.write_help(&mut writer);
        writer.append("ok", 1.0);
        return Ok(Disposition::Reply);
    }
    between_servers::take(&mut call)?;
    if let Some(wanted) = collection_uuid::take(&mut call)? {
        call.read_own()?;
        if spec.name == "createIndexes" {
            indexes::checked_to_create(&call)?;
        }
        // Seldom given, and not to make the future of every command larger.
        Box::pin(collection_uuid::settle(&mut call, wanted)).await?;
    }
    let write_lock = &worker.server.write_lock;
    if write_lock.is_locked() && write_lock::writes(spec, body) {
        Box::pin(write_lock.wait(running)).await?;
    }
    call.text_indexes = text_indexes::mentioned(&call).await?;
    if let Some(answers) = worker.server.answers.as_ref().filter(|_| spec.cacheable && resolved.is_none()) {
        match Box::pin(answers.look_up(&call)).await? {
            Lookup::Answer(kept) => {
                count_answer(worker, spec, &kept);
                reply.extend_from_slice(&kept.body);
                return Ok(Disposition::Reply);
            }
            Lookup::Beginning(kept) => call.beginning = Some(kept),
            Lookup::Make(making) => call.depends.begin(Some(making)),
            Lookup::Nothing => {}
        }
    }
    let retryable_write = call.envelope.txn_number.is_some();
    let start = reply.len();
    let outcome = {
        let mut writer = DocWriter::begin(reply);
        let outcome = match &spec.handler {
            Handler::Immediate(handler) => handler(&mut call, &mut writer).map(|()| Disposition::Reply),
            Handler::Waiting(handler) | Handler::Mostly(_, handler) => {
                let work = handler(&mut call, &mut writer);
                if ends_by_itself(spec, body) { work.await } else { running.within(work).await }
            }
        };
        if let Some(error) = call.unsatisfied().filter(|_| outcome.is_ok()) {
            envelope::write_unsatisfied(error, &mut writer);
        }
        match outcome {
            Ok(_) if call.by_view => writer.append("ok", 1),
            Ok(_) => writer.append("ok", 1.0),
            Err(_) => {}
        }
        outcome
    };
    match outcome {
        Ok(disposition) => {
            if let Some(making) = call.depends.take() {
                making.finish(reply.get(start..).unwrap_or_default(), call.now_ms);
            }
            Ok(disposition)
        }
        Err(error) if error.code() == Code::COMMAND_NOT_SUPPORTED_ON_VIEW => {
            // Seldom, and not to make the future of every command larger.
            Err(Box::pin(time_series::named(&call, error)).await)
        }
        Err(error) if retryable_write && error.labels().is_empty() && reply::is_retryable(error.code()) => {
            Err(error.with_labels(&["RetryableWriteError"]))
        }
        Err(error) => Err(error),
    }
}

/// Whether a command that is killed or over time brings its work to an end itself, as what it
/// leaves behind depends on that. Any other is given up wherever it waits.
fn ends_by_itself(spec: &Spec, body: Doc<'_>) -> bool {
    match spec.access {
        Access::Write => true,
        Access::Read => !table::only_reads(body),
        Access::Admin => matches!(spec.name, "createIndexes" | "fsync"),
        Access::Nothing => false,
    }
}

/// What is checked alike for every command.
fn check_shared(worker: &Worker, spec: &Spec, envelope: &mut Envelope<'_>, mistakes: &mut Mistakes) {
    if spec.admin_database_only && envelope.database != "admin" {
        let message = format!("{} may only be run against the admin database.", spec.name);
        mistakes.hear::<()>(Phase::AdminOnly, Err(Error::new(Code::UNAUTHORIZED, message)));
    }
    if let Some(write_concern) = envelope.write_concern {
        if spec.takes_write_concern {
            let parsed = WriteConcern::parse_for(write_concern, &worker.server.settings.topology);
            let parsed = mistakes.hear(Phase::WriteConcern, parsed);
            (envelope.durability, envelope.unsatisfied) = parsed.unwrap_or_default();
        } else {
            let unsupported = Error::new(Code::INVALID_OPTIONS, "Command does not support writeConcern");
            mistakes.hear::<()>(Phase::WriteConcern, Err(unsupported));
        }
    }
    if let Some(known) = spec.own_fields {
        let phase = spec.reads.as_ref().map_or(Phase::Running, |reading| reading.at);
        mistakes.hear(phase, fields::check(spec.name, known, envelope.fields.iter().copied()));
    }
    if let Some(read_concern) = envelope.read_concern {
        let checked =
            envelope::check_read_concern(read_concern, spec.name, spec.access, &worker.server.settings.topology);
        let waits = checked.as_ref().is_err_and(|error| error.code() == Code::NOT_A_REPLICA_SET);
        mistakes.hear(if waits { Phase::ReadConcernWait } else { Phase::ReadConcern }, checked);
    }
    if envelope.txn_number.is_some() && envelope.session.is_none() {
        let message = "Transaction number requires a session ID to also be specified";
        mistakes.hear::<()>(Phase::SessionUse, Err(Error::new(Code::INVALID_OPTIONS, message)));
    }
    mistakes.hear(Phase::SessionUse, transactions::check(worker, spec, envelope));
}
