//! `find`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/find/>

use crate::arguments;
use crate::arguments::options;
use crate::arguments::{namespace_to_read, non_negative, plain_boolean, unknown_field};
use crate::call::{Call, Disposition};
use crate::document_cache;
use crate::envelope::collection_uuid;
use crate::pipeline::shard_list;
use crate::read::index_bounds;
use crate::read::index_filters;
use crate::read::{Batch, ReadSpec, Reader};
use crate::reply::{append_namespace, in_executor};
use crate::views;
use cache::dependencies::{Aspect, DocumentSet};
use cache::{Dependencies, NotCached};
use document::{Collation, Doc, DocWriter, Element, Kind, Value};
use error::{Code, Error, Result};
use query::ReadFields;
use query::{Meta, Needs, Predicate, Projection, Sort};
use server::Topology;
use server::cursor::{CursorHistory, CursorOwner, QuotaHolder};
use server::document_cache::{CachedReply, Continuation};
use store::Namespace;

/// The default size of a first batch.
pub const FIRST_BATCH_DOCUMENTS: u64 = 101;

/// What MongoDB's messages call the fields of `find`.
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
    /// An option that pipelines do not have, so that a view cannot be read with it.
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

    /// Parses the arguments with the collation in effect.
    pub fn prepare(&self, call: &Call<'_>, collation: Collation) -> Result<ReadSpec<'a>> {
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
        // A filter cannot use metadata, which exists only after the match.
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
        // Bounds also read the fields of their index.
        let order = self.sort.unwrap_or(Doc::EMPTY);
        let is_bounded = self.min.is_some() || self.max.is_some();
        let fields = self.projection.filter(|_| !is_bounded && !self.return_key);
        let fields = fields.and_then(|projection| ReadFields::of_find(filter, order, projection));
        let compared = if is_bounded { None } else { ReadFields::of_filter_and_sort(filter, order) };
        Ok(ReadSpec {
            fields,
            compared,
            needs,
            predicate: Some(predicate),
            budget: sort.is_some().then(|| options::budget(call, self.allow_disk_use)),
            sort,
            skip: self.skip,
            limit: self.limit.or(self.matches_at_most_one(&context.collation).then_some(1)),
            projection,
            hint: self.hint,
            bypass_row_cache: call.bypasses_row_cache(),
            ..ReadSpec::default()
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

    /// Returns whether the filter is `{_id: <value>}`: at most one document matches, so the scan can stop at the first.
    fn matches_at_most_one(&self, collation: &Collation) -> bool {
        let mut elements = self.filter.unwrap_or(Doc::EMPTY).elements();
        let id = elements.next().filter(|element| element.key_bytes() == b"_id" && elements.next().is_none());
        id.is_some_and(|id| {
            !collation.concerns(id.kind)
                && !matches!(id.kind, Kind::Document | Kind::Array | Kind::Regex | Kind::Null | Kind::Undefined)
        }) && self.skip == 0
    }
}

/// Fails with 2 if a sort by `$natural` is combined with an index hint, or with a hint of the other direction.
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
    // The missing space is MongoDB's.
    let wrong_type = || Error::type_mismatch(format!("Expected field {}to be of type object", field.key()));
    field.value().as_document().ok_or_else(wrong_type)
}

/// Checks the fields that have no effect here: one server answers, and it reads from no replica.
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

/// Parses the fields of a `find`.
pub fn parse(call: &Call<'_>) -> Result<()> {
    Arguments::read(call.all_fields())?;
    namespace_to_read(call.database(), call.first()).map(drop)
}

pub async fn find(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let arguments = Arguments::read(call.fields())?;
    let namespace = namespace_to_read(call.database(), call.first())?;
    let collation = options::settle_collation(call, &namespace, arguments.collation).await?;
    let spec = arguments.prepare(call, collation.clone())?;
    let worker = call.worker;
    worker.statistics().operations_query.add(1);
    if let Some(cached) = call.first_batch.take() {
        return continue_cached(call, &namespace, &arguments, spec, &cached, reply);
    }
    call.dependencies.depend_on(|| {
        let predicate = spec.predicate.clone().unwrap_or_else(Predicate::everything);
        Dependencies::matching(namespace.clone(), predicate, Aspect::Documents)
    });
    let order = spec.sort.clone().filter(|sort| call.dependencies.is_recording() && sort.needs().is_empty());
    let first_few = spec.limit.filter(|_| spec.projection.is_none() && spec.skip == 0);

    if arguments.tailable {
        check_oplog(call, &namespace)?;
    }
    let tail = if arguments.tailable { worker.store.tail(&namespace).await? } else { None };
    let mut reader = match tail {
        Some(plan) => Reader::follow(plan, ReadSpec { limit: arguments.limit, ..spec }, arguments.await_data),
        None => {
            let index_filter = index_filters::of_read(call, &namespace, &spec, arguments.collation).await?;
            let hint = index_filters::hint(&index_filter, spec.hint);
            let spec = ReadSpec { hint, ..spec };
            let spec = index_bounds::apply(call, &namespace, &arguments, &collation, spec).await?;
            Reader::open(&*worker.store, &namespace, spec).await?
        }
    };
    let view = reader.is_view();
    if shard_list::is_list(call, &namespace) {
        reader = shard_list::open_find(call, &namespace, &arguments).await?;
    }
    if view {
        call.dependencies.refuse(NotCached::NotACollection);
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
            depend_on_first(call, sort, batch.last());
        }
    }
    // A tailable cursor on an empty collection is closed at once.
    let dead = reader.is_tail() && reader.examined == 0 && batch_size > 0;
    let keep = !reader.is_done() && !arguments.single_batch && !dead;
    // A batch of size zero has not read the collection yet; if it does not exist, there is nothing to continue.
    let keep = keep && (batch_size > 0 || view || worker.store.collection(&namespace).await?.is_some());
    if keep {
        // Bounds depend on the index, which is not part of the cache key.
        let bounded = arguments.min.is_some() || arguments.max.is_some();
        let continuation = reader.continuation().filter(|_| !bounded).map(|next| Continuation { collation, ..next });
        reader.batch_key = call.dependencies.set_continuation(continuation);
    }
    let no_timeout = arguments.no_cursor_timeout;
    let id = if keep { open_cursor(call, &namespace, reader, no_timeout, &cursor)? } else { 0 };
    cursor.append("id", id);
    append_namespace(&mut cursor, &namespace);
    Ok(Disposition::Reply)
}

/// Refuses to tail the oplog, which does not exist: with an empty, closed cursor, clients would retry forever.
fn check_oplog(call: &Call<'_>, namespace: &Namespace) -> Result<()> {
    let is_oplog = (&*namespace.database, &*namespace.collection) == ("local", "oplog.rs");
    if is_oplog && call.worker.server.settings.topology != Topology::Standalone {
        let message = "this server has no oplog: local.oplog.rs cannot be followed";
        return Err(Error::new(Code::NOT_IMPLEMENTED, message));
    }
    Ok(())
}

/// Writes a cached first batch, and opens a cursor behind it.
fn continue_cached(
    call: &Call<'_>,
    namespace: &Namespace,
    arguments: &Arguments<'_>,
    spec: ReadSpec<'_>,
    cached: &CachedReply,
    reply: &mut DocWriter<'_>,
) -> Result<Disposition> {
    let mut cursor = reply.document("cursor");
    document_cache::write_batch(cached, &mut cursor);
    let id = open_behind(call, namespace, arguments, spec, cached)?;
    cursor.append("id", id);
    append_namespace(&mut cursor, namespace);
    Ok(Disposition::Reply)
}

/// Opens a cursor behind a cached first batch without waiting; returns its id.
pub fn continue_immediately(call: &Call<'_>, cached: &CachedReply) -> Result<i64> {
    let continuation = continuation_of(cached)?;
    let namespace = namespace_to_read(call.database(), call.first())?;
    let arguments = Arguments::read(call.fields())?;
    let spec = arguments.prepare(call, continuation.collation.clone())?;
    open_behind(call, &namespace, &arguments, spec, cached)
}

fn open_behind(
    call: &Call<'_>,
    namespace: &Namespace,
    arguments: &Arguments<'_>,
    spec: ReadSpec<'_>,
    cached: &CachedReply,
) -> Result<i64> {
    let continuation = continuation_of(cached)?;
    if arguments.single_batch {
        return Ok(0);
    }
    let batch_key = document_cache::batch_key(call, namespace, &spec);
    let mut reader = Reader::resume(continuation, spec);
    reader.batch_key = Some(batch_key);
    if call.request.is_silent() {
        return Ok(0);
    }
    register_cursor(call, namespace, reader, arguments.no_cursor_timeout, estimated_size(call))
}

fn continuation_of(cached: &CachedReply) -> Result<&Continuation> {
    cached.continuation.as_ref().ok_or_else(|| Error::internal("a cached reply has no continuation"))
}

/// Narrows the reply's dependencies: documents behind its last one, in the requested order, do not affect it.
fn depend_on_first(call: &Call<'_>, sort: Sort, last: Option<Doc<'_>>) {
    let mut key = Vec::new();
    if let Some(last) = last
        && sort.natural().is_none()
        && sort.key(last, &mut key).is_ok()
    {
        call.dependencies.narrow(|scope| {
            if let DocumentSet::Matching { aspect, .. } = &mut scope.documents {
                *aspect = Aspect::First { sort: Box::new(sort), last: key.into() };
            }
        });
    }
}

/// Registers the cursor of a read that continues; returns its id. `cursor`: the document that is being written in the
/// reply. A client that wants no reply would not learn the id, and gets no cursor.
pub fn open_cursor(
    call: &Call<'_>,
    namespace: &Namespace,
    reader: Reader,
    no_timeout: bool,
    cursor: &DocWriter<'_>,
) -> Result<i64> {
    if call.request.is_silent() {
        return Ok(0);
    }
    let held = call.held_beside(cursor).unwrap_or_else(|| estimated_size(call));
    register_cursor(call, namespace, reader, no_timeout, held)
}

fn register_cursor(
    call: &Call<'_>,
    namespace: &Namespace,
    mut reader: Reader,
    no_timeout: bool,
    held: i64,
) -> Result<i64> {
    reader.time_left = call.operation.time_left();
    let session = call.envelope.session;
    let holder = session.map_or(QuotaHolder::Connection(call.session.connection_id), QuotaHolder::Session);
    let cursors = &call.worker.server.cursors;
    let charge = cursors.charge(holder, held.max(CURSOR_BYTES_MIN))?;
    call.worker.statistics().cursors_opened.add(1);
    let history = CursorHistory::of(call.request.body(), call.now_ms);
    let owner = CursorOwner { namespace: namespace.clone(), session };
    Ok(cursors.insert(owner, charge, Box::new(reader), no_timeout, history))
}

/// The smallest charge of a cursor: itself, its plan and its entry.
const CURSOR_BYTES_MIN: i64 = 4096;

/// Estimates the memory of a cursor that was not measured: it holds no documents, and a parsed filter takes about twice
/// the size of its BSON.
fn estimated_size(call: &Call<'_>) -> i64 {
    call.request.body().size() as i64 * 2
}
