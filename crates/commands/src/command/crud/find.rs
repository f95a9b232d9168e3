//! `find`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/find/>

use crate::answers::{self, CachedReply, Rest};
use crate::arguments::{self, namespace_to_read, non_negative, plain_boolean, unknown_field};
use crate::collection_uuid;
use crate::command::{index_bounds, options, shards, views};
use crate::cursor::{History, Holder, Owner};
use crate::dispatch::{Call, Disposition};
use crate::index_filters;
use crate::read::{Batch, Reader, Request};
use crate::reply::{append_namespace, in_executor};
use crate::server::Topology;
use cache::dependencies::{Aspect, DocumentSet};
use cache::{Dependencies, NotCached};
use document::{Collation, Doc, DocWriter, Element, Kind, Value};
use error::{Code, Error, Result};
use query::ReadFields;
use query::{Meta, Needs, Predicate, Projection, Sort};
use store::Namespace;

/// How many documents a first batch holds where the client does not say.
pub const FIRST_BATCH_DOCUMENTS: u64 = 101;

/// The name MongoDB gives to the fields of `find` in messages.
const WITHIN: &str = "FindCommandRequest";

/// The fields of a `find`, read but not yet parsed.
#[derive(Default)]
pub struct Arguments<'a> {
    pub filter: Option<Doc<'a>>,
    pub sort: Option<Doc<'a>>,
    pub projection: Option<Doc<'a>>,
    pub variables: Option<Doc<'a>>,
    pub hint: Option<Value<'a>>,
    pub skip: u64,
    pub limit: Option<u64>,
    batch_size: Option<u64>,
    pub single_batch: bool,
    no_cursor_timeout: bool,
    pub tailable: bool,
    await_data: bool,
    pub allow_disk_use: Option<bool>,
    pub min: Option<Doc<'a>>,
    pub max: Option<Doc<'a>>,
    return_key: bool,
    show_record_id: bool,
    pub collation: Option<Doc<'a>>,
    /// An option that a view, which is read by a pipeline, cannot be read with.
    pub not_in_aggregation: Option<&'static str>,
}

impl<'a> Arguments<'a> {
    pub fn read(fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        let mut arguments = Arguments::default();
        for field in fields {
            match field.key_bytes() {
                b"filter" => arguments.filter = Some(specification(field)?),
                b"sort" => arguments.sort = Some(specification(field)?),
                b"projection" => arguments.projection = Some(specification(field)?),
                b"min" => {
                    arguments.min = Some(specification(field)?).filter(|min| !min.is_empty());
                    arguments.note(arguments.min.is_some(), "min");
                }
                b"max" => {
                    arguments.max = Some(specification(field)?).filter(|max| !max.is_empty());
                    arguments.note(arguments.max.is_some(), "max");
                }
                _ if arguments::is_left_out(field, &["limit", "skip", "batchSize", "let", "ntoreturn"]) => {}
                b"limit" => arguments.limit = Some(non_negative(WITHIN, field)?).filter(|limit| *limit > 0),
                b"skip" => arguments.skip = non_negative(WITHIN, field)?,
                b"batchSize" => arguments.batch_size = Some(non_negative(WITHIN, field)?),
                b"singleBatch" => arguments.single_batch = plain_boolean(field)?,
                b"hint" => arguments.hint = options::hint(field)?,
                b"let" => arguments.variables = Some(arguments::document(WITHIN, field)?),
                b"noCursorTimeout" => {
                    arguments.no_cursor_timeout = plain_boolean(field)?;
                    arguments.note(arguments.no_cursor_timeout, "noCursorTimeout");
                }
                b"readOnce" => arguments.note(plain_boolean(field)?, "readOnce"),
                b"allowPartialResults" => arguments.note(plain_boolean(field)?, "allowPartialResults"),
                b"tailable" => arguments.tailable = plain_boolean(field)?,
                b"awaitData" => arguments.await_data = plain_boolean(field)?,
                b"collation" => {
                    specification(field)?;
                    arguments.collation = options::collation(WITHIN, field)?;
                }
                b"allowDiskUse" => arguments.allow_disk_use = Some(plain_boolean(field)?),
                b"returnKey" => {
                    arguments.return_key = plain_boolean(field)?;
                    arguments.note(arguments.return_key, "returnKey");
                }
                b"showRecordId" => {
                    arguments.show_record_id = plain_boolean(field)?;
                    arguments.note(arguments.show_record_id, "showRecordId");
                }
                b"collectionUUID" => drop(collection_uuid::read(WITHIN, field)?),
                _ => check_known(field)?,
            }
        }
        Ok(arguments)
    }

    fn note(&mut self, given: bool, option: &'static str) {
        if given {
            self.not_in_aggregation.get_or_insert(option);
        }
    }

    /// Parses what was read, by the collation that holds.
    pub fn prepare(&self, call: &Call<'_>, collation: Collation) -> Result<Request<'a>> {
        if self.await_data && !self.tailable {
            return Err(Error::failed_to_parse("Cannot set 'awaitData' without also setting 'tailable'"));
        }
        if self.tailable {
            self.check_tailable()?;
        }
        let context = options::context(call, self.variables, collation)?;
        index_bounds::check_fields(self.min, self.max)?;
        let filter = self.filter.unwrap_or(Doc::EMPTY);
        let predicate = Predicate::parse_query(filter, &context)?;
        if predicate.near().is_some() && self.tailable {
            return Err(Error::bad_value("Tailable cursors and geo $near cannot be used together"));
        }
        // While documents are being found, nothing is known of them.
        context.requests.take();
        let sort = match self.sort.filter(|sort| !sort.is_empty()) {
            Some(sort) => Some(Sort::parse(sort, &context)?),
            None => None,
        };
        check_natural(sort.as_ref(), self.hint)?;
        let projection = match self.projection.filter(|projection| !projection.is_empty()) {
            Some(projection) => Some(Projection::parse(projection, filter, &context)?),
            None => None,
        };
        let needs = context.requests.take();
        needs.check(Needs::given_by(filter))?;
        if needs.contains(Meta::SortKey) && sort.is_none() {
            return Err(aggregate::no_sort_key());
        }
        let projection = match (self.return_key, self.show_record_id) {
            (true, _) => Some(projection.unwrap_or_default().into_index_key()),
            (false, true) => Some(projection.unwrap_or_default().with_record_id()),
            (false, false) => projection,
        };
        let needs = projection.as_ref().map_or(needs, |projection| needs.and(projection.needs()));
        // Bounds read the fields of their index, too.
        let order = self.sort.unwrap_or(Doc::EMPTY);
        let is_bounded = self.min.is_some() || self.max.is_some();
        let fields = self.projection.filter(|_| !is_bounded && !self.return_key);
        let fields = fields.and_then(|projection| ReadFields::of_find(filter, order, projection));
        let compared = if is_bounded { None } else { ReadFields::of_filter_and_sort(filter, order) };
        Ok(Request {
            fields,
            compared,
            needs,
            predicate: Some(predicate),
            budget: sort.is_some().then(|| options::budget(call, self.allow_disk_use)),
            sort,
            skip: self.skip,
            limit: self.limit.or(self.names_one_document(&context.collation).then_some(1)),
            projection,
            hint: self.hint,
            afresh: call.reads_afresh(),
            ..Request::default()
        })
    }

    fn check_tailable(&self) -> Result<()> {
        let mut sort = self.sort.unwrap_or(Doc::EMPTY).iter();
        let natural = match (sort.next(), sort.next()) {
            (None, _) => true,
            (Some(("$natural", direction)), None) => arguments::number_to_i64(direction) == Some(1),
            _ => false,
        };
        if !natural {
            let message = "cannot use tailable option with a sort other than {$natural: 1}";
            return Err(Error::bad_value(message));
        }
        if self.single_batch {
            return Err(Error::bad_value("cannot use tailable option with the 'singleBatch' option"));
        }
        Ok(())
    }

    /// Whether the filter is `{_id: <value>}`: at most one document matches, so there is no need to look for a second.
    fn names_one_document(&self, collation: &Collation) -> bool {
        let mut elements = self.filter.unwrap_or(Doc::EMPTY).elements();
        let id = elements.next().filter(|element| element.key_bytes() == b"_id" && elements.next().is_none());
        id.is_some_and(|id| {
            !collation.concerns(id.kind)
                && !matches!(id.kind, Kind::Document | Kind::Array | Kind::Regex | Kind::Null | Kind::Undefined)
        }) && self.skip == 0
    }
}

/// What is to be read in natural order is read by no index, nor the other way round.
fn check_natural(sort: Option<&Sort>, hint: Option<Value<'_>>) -> Result<()> {
    let (Some(forward), Some(hint)) = (sort.and_then(Sort::natural), hint) else { return Ok(()) };
    let pattern = hint.as_document();
    match pattern.map(|pattern| pattern.get("$natural").and_then(arguments::number_to_i64)) {
        Some(_) if pattern.is_some_and(Doc::is_empty) => Ok(()),
        Some(Some(direction)) if (direction > 0) == forward => Ok(()),
        Some(Some(_)) => Err(Error::bad_value("$natural hint must be in the same direction as $natural sort order")),
        _ => Err(Error::bad_value("index hint not allowed with $natural sort order")),
    }
}

fn specification<'a>(field: Element<'a>) -> Result<Doc<'a>> {
    // The missing blank is MongoDB's.
    let wrong_type = || Error::type_mismatch(format!("Expected field {}to be of type object", field.key()));
    field.value().as_document().ok_or_else(wrong_type)
}

/// Fields that are known, and ask for nothing here: one server answers, and it reads from no replica.
fn check_known(field: Element<'_>) -> Result<()> {
    match field.key() {
        "oplogReplay" | "allowPartialResults" | "allowDiskUse" | "returnKey" | "showRecordId" | "readOnce" => {
            plain_boolean(field).map(drop)
        }
        "limit" | "skip" | "batchSize" | "singleBatch" | "hint" | "let" | "noCursorTimeout" | "tailable"
        | "awaitData" | "collation" | "min" | "max" => Ok(()),
        "options" => arguments::document(WITHIN, field).map(drop),
        "ntoreturn" => {
            let message = "the ntoreturn find command parameter is not supported when FCV >= 5.1";
            Err(Error::new(Code(5746102), message))
        }
        other => Err(unknown_field(WITHIN, other)),
    }
}

/// What is wrong with a `find` of its own.
pub fn read_first(call: &Call<'_>) -> Result<()> {
    Arguments::read(call.all_fields())?;
    namespace_to_read(call.database(), call.first()).map(drop)
}

pub async fn find(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let arguments = Arguments::read(call.fields())?;
    let namespace = namespace_to_read(call.database(), call.first())?;
    let collation = options::settle_collation(call, &namespace, arguments.collation).await?;
    let request = arguments.prepare(call, collation.clone())?;
    let worker = call.worker;
    worker.statistics().operations_query.add(1);
    if let Some(beginning) = call.beginning.take() {
        return go_on(call, &namespace, &arguments, request, &beginning, reply);
    }
    call.depends.on(|| {
        let predicate = request.predicate.clone().unwrap_or_else(Predicate::everything);
        Dependencies::matching(namespace.clone(), predicate, Aspect::Documents)
    });
    let order = request.sort.clone().filter(|sort| call.depends.is_asked() && sort.needs().is_empty());
    let first_few = request.limit.filter(|_| request.projection.is_none() && request.skip == 0);

    if arguments.tailable {
        check_oplog(call, &namespace)?;
    }
    let tail = if arguments.tailable { worker.store.tail(&namespace).await? } else { None };
    let mut reader = match tail {
        Some(plan) => Reader::follow(plan, Request { limit: arguments.limit, ..request }, arguments.await_data),
        None => {
            let index_filter = index_filters::of_request(call, &namespace, &request, arguments.collation).await?;
            let hint = index_filters::hint(&index_filter, request.hint);
            let request = Request { hint, ..request };
            let request = index_bounds::apply(call, &namespace, &arguments, &collation, request).await?;
            Reader::open(&*worker.store, &namespace, request).await?
        }
    };
    let view = reader.is_view();
    if shards::is_list(call, &namespace) {
        reader = shards::open_find(call, &namespace, &arguments).await?;
    }
    if view {
        call.depends.refuse(NotCached::NotACollection);
        reader = views::open_find(call, &namespace, &arguments).await?;
    }
    let batch_size = arguments.batch_size.unwrap_or(FIRST_BATCH_DOCUMENTS);
    let mut cursor = reply.document("cursor");
    {
        let mut batch = Batch::begin(&mut cursor, "firstBatch", options::as_count(batch_size));
        let filled = reader.fill(call, &mut batch).await;
        filled.map_err(|error| in_executor(error, "Executor error during find command"))?;
        worker.statistics().documents_returned.add(batch.len() as u64);
        if let (Some(sort), Some(limit)) = (order, first_few)
            && batch.len() as u64 == limit
            && reader.is_done()
        {
            note_last(call, sort, batch.last());
        }
    }
    // There is nothing to follow in a collection that has no document yet.
    let dead = reader.is_tail() && reader.examined == 0 && batch_size > 0;
    let keep = !reader.is_done() && !arguments.single_batch && !dead;
    // An empty batch has not looked at the collection yet: without one there is nothing to come back for.
    let keep = keep && (batch_size > 0 || view || worker.store.collection(&namespace).await?.is_some());
    if keep {
        // Bounds are a part of what is looked for that the command's fields do not tell alone.
        let bounded = arguments.min.is_some() || arguments.max.is_some();
        let rest = reader.rest().filter(|_| !bounded).map(|rest| Rest { collation, ..rest });
        reader.origin = call.depends.goes_on(rest);
    }
    let no_timeout = arguments.no_cursor_timeout;
    let id = if keep { keep_cursor(call, &namespace, reader, no_timeout, &cursor)? } else { 0 };
    cursor.append("id", id);
    append_namespace(&mut cursor, &namespace);
    Ok(Disposition::Reply)
}

/// Refuses to follow the oplog of a replica set, which does not exist: an empty, closed cursor would have clients ask forever.
fn check_oplog(call: &Call<'_>, namespace: &Namespace) -> Result<()> {
    let is_oplog = (&*namespace.database, &*namespace.collection) == ("local", "oplog.rs");
    if is_oplog && call.worker.server.settings.topology != Topology::Standalone {
        let message = "this server has no oplog: local.oplog.rs cannot be followed";
        return Err(Error::new(Code::NOT_IMPLEMENTED, message));
    }
    Ok(())
}

/// Answers with a first batch that is kept and a cursor behind it.
fn go_on(
    call: &Call<'_>,
    namespace: &Namespace,
    arguments: &Arguments<'_>,
    request: Request<'_>,
    beginning: &CachedReply,
    reply: &mut DocWriter<'_>,
) -> Result<Disposition> {
    let mut cursor = reply.document("cursor");
    answers::write_batch(beginning, &mut cursor);
    let id = open_behind(call, namespace, arguments, request, beginning)?;
    cursor.append("id", id);
    append_namespace(&mut cursor, namespace);
    Ok(Disposition::Reply)
}

/// Opens a cursor behind a first batch that is kept, without waiting; gives its id.
pub fn go_on_at_once(call: &Call<'_>, beginning: &CachedReply) -> Result<i64> {
    let rest = rest_of(beginning)?;
    let namespace = namespace_to_read(call.database(), call.first())?;
    let arguments = Arguments::read(call.fields())?;
    let request = arguments.prepare(call, rest.collation.clone())?;
    open_behind(call, &namespace, &arguments, request, beginning)
}

fn open_behind(
    call: &Call<'_>,
    namespace: &Namespace,
    arguments: &Arguments<'_>,
    request: Request<'_>,
    beginning: &CachedReply,
) -> Result<i64> {
    let rest = rest_of(beginning)?;
    if arguments.single_batch {
        return Ok(0);
    }
    let origin = answers::origin(call, namespace, &request);
    let mut reader = Reader::resume(rest, request);
    reader.origin = Some(origin);
    if call.request.is_silent() {
        return Ok(0);
    }
    enter_cursor(call, namespace, reader, arguments.no_cursor_timeout, size_without_figures(call))
}

fn rest_of(beginning: &CachedReply) -> Result<&Rest> {
    beginning.rest.as_ref().ok_or_else(|| Error::internal("a kept answer does not go on"))
}

/// What comes behind the last document in the order that was asked for does not matter to the answer.
fn note_last(call: &Call<'_>, sort: Sort, last: Option<Doc<'_>>) {
    let mut key = Vec::new();
    if let Some(last) = last
        && sort.natural().is_none()
        && sort.key(last, &mut key).is_ok()
    {
        call.depends.narrow(|scope| {
            if let DocumentSet::Matching { aspect, .. } = &mut scope.documents {
                *aspect = Aspect::First { sort: Box::new(sort), last: key.into() };
            }
        });
    }
}

/// Enters a read that goes on into the registry; gives its cursor's id. `cursor` is being written
/// in the reply. A client that wants no reply would not learn the id, and gets no cursor.
pub fn keep_cursor(
    call: &Call<'_>,
    namespace: &Namespace,
    reader: Reader,
    no_timeout: bool,
    cursor: &DocWriter<'_>,
) -> Result<i64> {
    if call.request.is_silent() {
        return Ok(0);
    }
    let held = call.held_beside(cursor).unwrap_or_else(|| size_without_figures(call));
    enter_cursor(call, namespace, reader, no_timeout, held)
}

fn enter_cursor(
    call: &Call<'_>,
    namespace: &Namespace,
    mut reader: Reader,
    no_timeout: bool,
    held: i64,
) -> Result<i64> {
    reader.time_left = call.running.time_left();
    let session = call.envelope.session;
    let holder = session.map_or(Holder::Connection(call.session.connection_id), Holder::Session);
    let cursors = &call.worker.server.cursors;
    let charge = cursors.charge(holder, held.max(CURSOR_BYTES_MIN))?;
    call.worker.statistics().cursors_opened.add(1);
    let history = History::of(call.request.body(), call.now_ms);
    let owner = Owner { namespace: namespace.clone(), session };
    Ok(cursors.insert(owner, charge, Box::new(reader), no_timeout, history))
}

/// What a cursor holds at least: itself, its plan and its entry.
const CURSOR_BYTES_MIN: i64 = 4096;

/// About what a cursor holds whose memory was not measured: it has no documents, and a parsed
/// filter takes about twice its text.
fn size_without_figures(call: &Call<'_>) -> i64 {
    call.request.body().size() as i64 * 2
}
