//! `createIndexes`, `listIndexes`, `dropIndexes`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/createIndexes/>

use crate::arguments;
use crate::arguments::options;
use crate::arguments::options::display;
use crate::arguments::{is_absent, namespace_to_write, unknown_field};
use crate::call::{Call, Disposition};
use crate::collection_options::clustered;
use crate::envelope::collection_uuid;
use crate::index_definition::specification;
use crate::read::list_cursor::write_list_cursor;
use crate::{time_series, views};
use document::{Collation, Doc, DocBuf, DocWriter, Element, Kind, Value, ValueBuf, names};
use error::{Code, Error, Result};
use server::Topology;
use std::borrow::Cow;
use std::sync::Arc;
use store::{IndexSelection, IndexSpec, Namespace, Progress, index_kind, index_rules};

/// The fields of `createIndexes` in which null counts as absent.
const MAY_BE_NULL: [&str; 4] = ["commitQuorum", "ignoreUnknownIndexOptions", "v", "isTimeseriesNamespace"];

/// The most indexes of a collection, including the one on `_id`.
const INDEXES_MAX: usize = 64;

/// Returns the specifications of a `createIndexes`, and whether it has a commit quorum.
fn indexes_to_create(call: &Call<'_>) -> Result<(Vec<DocBuf>, bool)> {
    const WITHIN: &str = "createIndexes";
    let (mut indexes, mut ignore_unknown, mut asks_for_quorum) = (None, false, false);
    for field in call.all_fields() {
        match field.key() {
            "indexes" => {
                let listed = arguments::array(WITHIN, field)?;
                let is_wrong = |element: &Element<'_>| !is_absent(*element) && element.value().as_document().is_none();
                if let Some(wrong) = listed.elements().find(is_wrong) {
                    return Err(arguments::wrong_type("createIndexes.indexes", wrong, "object"));
                }
                indexes = Some(listed);
            }
            _ if arguments::is_left_out(field, &MAY_BE_NULL) => {}
            "collectionUUID" => drop(collection_uuid::read(WITHIN, field)?),
            "commitQuorum" => {
                check_commit_quorum(field)?;
                asks_for_quorum = true;
            }
            "ignoreUnknownIndexOptions" => ignore_unknown = arguments::boolean_or_number(WITHIN, field)?,
            "v" => drop(arguments::integer(WITHIN, field)?),
            "isTimeseriesNamespace" => drop(arguments::boolean(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    let indexes = indexes.ok_or_else(|| arguments::missing_field(WITHIN, "indexes"))?;
    Ok((sent_specifications(indexes, ignore_unknown), asks_for_quorum))
}

/// Parses the fields of a `createIndexes`.
pub fn parse_create(call: &Call<'_>) -> Result<()> {
    indexes_to_create(call)?;
    call.check_namespace()
}

/// Returns the indexes to create, each checked by itself. `collectionUUID` is compared after these
/// checks.
fn checked_to_create(call: &Call<'_>) -> Result<(Vec<DocBuf>, bool)> {
    let (indexes, asks_for_quorum) = indexes_to_create(call)?;
    if indexes.is_empty() {
        return Err(Error::bad_value("Must specify at least one index to create"));
    }
    indexes.iter().try_for_each(|spec| specification::check(spec.as_doc(), call))?;
    indexes.iter().try_for_each(|spec| specification::check_expiry(spec.as_doc()))?;
    if indexes.iter().any(|spec| spec.as_doc().get("name") == Some(Value::String("*"))) {
        index_rules::check_name("*")?;
    }
    Ok((indexes, asks_for_quorum))
}

/// Checks the indexes of a `createIndexes` by themselves.
pub fn check_operands(call: &Call<'_>) -> Result<()> {
    checked_to_create(call).map(drop)
}

pub async fn create_indexes(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let (mut indexes, asks_for_quorum) = checked_to_create(call)?;
    let namespace = namespace_to_write(call.database(), call.first())?;
    if asks_for_quorum && call.worker.server.settings.topology == Topology::Standalone {
        return Err(Error::bad_value("Standalones can't specify commitQuorum"));
    }
    check_namespace(&namespace)?;
    let mut info = call.worker.store.collection(&namespace).await?;
    let mut namespace = namespace;
    if info.is_none()
        && let Some(series) = time_series::find(call, &namespace).await?
    {
        let translated = indexes.iter().map(|spec| time_series::indexes::of_buckets(spec.as_doc(), &series));
        indexes = translated.collect::<Result<_>>()?;
        for spec in &indexes {
            time_series::indexes::check_arrays(call, &series, spec.as_doc()).await?;
        }
        info = series.options(call).await?;
        namespace = series.buckets;
    }
    let cluster = info.as_ref().and_then(|info| clustered::of(info.options.as_doc()));
    indexes.iter().try_for_each(|spec| check_beside_cluster(spec.as_doc(), cluster, info.is_some()))?;
    let buckets = info.as_ref().is_some_and(|info| time_series::is_of_buckets(info.options.as_doc()));
    let clusters = usize::from(cluster.is_some() || buckets);
    let default = call.worker.store.default_collation(&namespace).await?;
    let mut specs = Vec::new();
    for sent in &indexes {
        let index = specification::read(sent.as_doc(), &default, call)?;
        specs.push(index_kind::complete(index, sent.as_doc())?);
    }
    let is_id_index = |spec: &IndexSpec| index_rules::is_id_key(spec.key.as_doc());
    specs
        .iter()
        .filter(|spec| is_id_index(spec) && cluster.is_none())
        .try_for_each(|spec| check_id_collation(spec, &default))?;
    // The index on `_id` always exists.
    specs.retain(|spec| !is_id_index(spec));
    if specs.iter().any(|spec| spec.spec.as_doc().get("expireAfterSeconds").is_some())
        && info.as_ref().is_some_and(|info| options::is_set(info.options.as_doc(), "capped"))
    {
        return Err(Error::new(Code::CANNOT_CREATE_INDEX, "Cannot create TTL index on a capped collection"));
    }
    let progress = Arc::new(Progress::default());
    call.operation.publish_progress(&progress);
    let known = call.worker.store.indexes(&namespace).await?.unwrap_or_default();
    check_count(&namespace, &known, clusters, &specs)?;
    let made: Vec<DocBuf> = (specs.iter())
        .filter(|spec| known.iter().all(|known| known.name != spec.name))
        .map(|spec| spec.key.clone())
        .collect();
    let build = call.worker.store.build_indexes(&namespace, specs, progress.clone());
    let outcome = call.operation.run_stoppable(&progress, build).await?;
    made.iter().for_each(|key| call.worker.server.reset_index_usage(&namespace, key.as_doc()));
    reply.append("numIndexesBefore", (outcome.indexes_before - clusters) as i32);
    reply.append("numIndexesAfter", (outcome.indexes_after - clusters) as i32);
    let nothing_new = outcome.indexes_before == outcome.indexes_after;
    if outcome.created_collection || !nothing_new {
        reply.append("createdCollectionAutomatically", outcome.created_collection);
    }
    if nothing_new {
        reply.append("note", "all indexes already exist");
    } else if outcome.indexes_after - outcome.indexes_before < indexes.len() {
        reply.append("note", "index already exists");
    }
    Ok(Disposition::Reply)
}

/// Fails with 67 if the collection would have more indexes than MongoDB allows.
fn check_count(namespace: &Namespace, known: &[IndexSpec], clusters: usize, specs: &[IndexSpec]) -> Result<()> {
    let is_new = |spec: &&IndexSpec| known.iter().all(|known| known.name != spec.name);
    // A new collection is created with the index on `_id`.
    let before = known.len().max(1).saturating_sub(clusters);
    match specs.iter().filter(is_new).nth(INDEXES_MAX.saturating_sub(before)) {
        Some(spec) => {
            let key = display(spec.key.as_doc());
            let message = format!("add index fails, too many indexes for {namespace} key:{key}");
            Err(Error::new(Code::CANNOT_CREATE_INDEX, message))
        }
        None => Ok(()),
    }
}

/// Returns the specifications as they were sent, without absent fields, and without unknown options
/// if they are to be ignored.
fn sent_specifications(indexes: Doc<'_>, ignore_unknown: bool) -> Vec<DocBuf> {
    let unknown = |option: &str| ignore_unknown && !specification::is_known(option);
    let sent = indexes.values().filter_map(Value::as_document).map(|spec| options::without(spec, unknown));
    sent.map(with_escaped_name).collect()
}

/// Escapes a name that is not UTF-8; indexes are mostly named after their fields.
fn with_escaped_name(spec: DocBuf) -> DocBuf {
    let name = |value: Value<'_>| value.well_formed().is_none().then(|| value.as_name()).flatten().map(Cow::into_owned);
    let Some(escaped) = spec.as_doc().get("name").and_then(name) else { return spec };
    with_name(spec.as_doc(), Value::String(&escaped))
}

fn with_name(spec: Doc<'_>, name: Value<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        for field in spec.elements() {
            match field.key_bytes() {
                b"name" => writer.append("name", name),
                _ => writer.append_element(field),
            }
        }
    })
}

/// Checks the commit quorum. One server builds, so every quorum is reached; a standalone server
/// refuses it.
fn check_commit_quorum(field: Element<'_>) -> Result<()> {
    match (field.value(), field.value().to_i64()) {
        (Value::String(""), _) => Err(Error::failed_to_parse("commitQuorum can't be an empty string")),
        (Value::String(_), _) | (_, Some(0..=50)) => Ok(()),
        (_, Some(_)) => {
            let message = "commitQuorum has to be a non-negative number and not greater than 50";
            Err(Error::failed_to_parse(message))
        }
        (_, None) => Err(arguments::wrong_types("createIndexes", field, "'[long, int, decimal, double, string']")),
    }
}

fn check_namespace(namespace: &Namespace) -> Result<()> {
    match (&*namespace.database, &*namespace.collection) {
        ("config", "transactions") => {
            Err(Error::new(Code::ILLEGAL_OPERATION, "not allowed to create index on config.transactions"))
        }
        _ => Ok(()),
    }
}

/// Checks an index against the clustered index: no other one may be `clustered`, or have its name.
fn check_beside_cluster(spec: Doc<'_>, cluster: Option<Doc<'_>>, exists: bool) -> Result<()> {
    let is_id_index = index_rules::is_id_key(specification::key(spec));
    let refuse = |code: i32, reason: String| {
        let spec = display(specification::with_version(spec).as_doc());
        Err(Error::new(Code(code), format!("Error in specification {spec} :: caused by :: {reason}")))
    };
    if options::is_set(spec, "clustered") {
        if !exists {
            let message = "Cannot implicitly create a new collection with createIndex 'clustered' option";
            return Err(Error::new(Code(6100900), message));
        }
        if cluster.is_none() || !is_id_index {
            let reason = "Cannot create index with option 'clustered' that does not match an existing clustered index";
            return refuse(6243700, reason.to_owned());
        }
    }
    let name = spec.get("name").and_then(Value::as_str);
    match cluster {
        Some(cluster) if !is_id_index && name == Some(clustered::name(cluster)) => refuse(
            6100906,
            format!(
                "Cannot create an index where the name matches the clusteredIndex but the key does not - indexSpec: {}, \
                 clusteredIndex: {}",
                display(specification::with_version(spec).as_doc()),
                display(cluster)
            ),
        ),
        _ => Ok(()),
    }
}

fn refuse_to_drop_cluster(which: &IndexSelection, cluster: &str) -> Result<()> {
    let drops = match which {
        IndexSelection::All => false,
        IndexSelection::Names(names) => names.iter().any(|name| name == cluster),
        IndexSelection::Key(key) => index_rules::is_id_key(key.as_doc()),
    };
    if drops {
        return Err(Error::new(Code(5979800), "It is illegal to drop the clusteredIndex"));
    }
    match which {
        IndexSelection::Names(names) if names.iter().any(|name| name == "_id_") => {
            Err(Error::new(Code::INDEX_NOT_FOUND, "index not found with name [_id_]"))
        }
        _ => Ok(()),
    }
}

/// Fails with 2 if the index on `_id` has another collation than its collection.
fn check_id_collation(index: &IndexSpec, collection: &Collation) -> Result<()> {
    let own = index.spec.as_doc().get("collation").and_then(Value::as_document);
    let of_collection = collection.specification().map(DocBuf::as_doc);
    if own == of_collection {
        return Ok(());
    }
    let simple = document::doc! { "locale": "simple" };
    let shown = |collation: Option<Doc<'_>>| display(collation.unwrap_or(simple.as_doc()));
    Err(Error::bad_value(format!(
        "The _id index must have the same collation as the collection. Index collation: {}, collection collation: {}",
        shown(own),
        shown(of_collection)
    )))
}
const LISTING_MAY_BE_NULL: [&str; 4] =
    ["cursor", "includeBuildUUIDs", "includeIndexBuildInfo", "isTimeseriesNamespace"];

/// The fields of a `listIndexes`.
#[derive(Default)]
struct Listing {
    batch_size: Option<u64>,
    build_ids: bool,
    build_info: bool,
}

impl Listing {
    fn read(call: &Call<'_>) -> Result<Listing> {
        const WITHIN: &str = "listIndexes";
        let mut listing = Listing::default();
        for field in call.fields() {
            match field.key() {
                _ if arguments::is_left_out(field, &LISTING_MAY_BE_NULL) => {}
                "cursor" => listing.batch_size = options::cursor_batch_size(WITHIN, field)?,
                "includeBuildUUIDs" => listing.build_ids = arguments::boolean_or_number(WITHIN, field)?,
                "includeIndexBuildInfo" => listing.build_info = arguments::boolean_or_number(WITHIN, field)?,
                "isTimeseriesNamespace" => drop(arguments::boolean(WITHIN, field)?),
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        Ok(listing)
    }
}

/// Parses the fields of a `listIndexes`.
pub fn parse_list(call: &Call<'_>) -> Result<()> {
    Listing::read(call)?;
    call.check_namespace()
}

pub async fn list_indexes(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let Listing { batch_size, build_ids, build_info } = Listing::read(call)?;
    let namespace = arguments::namespace(call.database(), call.first())?;
    if build_ids && build_info {
        let message = "The includeBuildUUIDs flag and includeBuildIndexInfo flag cannot both be set to true";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    let listed = match listed(call, &namespace).await? {
        Some(listed) => listed,
        None => match time_series::find(call, &namespace).await? {
            Some(series) => {
                let listed = listed(call, &series.buckets).await?.unwrap_or_default();
                listed.iter().map(|spec| time_series::indexes::listed(spec.as_doc(), &series)).collect()
            }
            None => {
                views::refuse(call, &namespace).await?;
                return Err(Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns does not exist: {namespace}")));
            }
        },
    };
    let entries = match build_info {
        true => listed.iter().map(|spec| document::doc! { "spec": spec }).collect(),
        false => listed,
    };
    write_list_cursor(call, reply, namespace, entries, batch_size).await?;
    Ok(Disposition::Reply)
}

/// Returns the indexes of a collection as they are listed; `None` if it does not exist.
async fn listed(call: &Call<'_>, namespace: &Namespace) -> Result<Option<Vec<DocBuf>>> {
    let Some(indexes) = call.worker.store.indexes(namespace).await? else { return Ok(None) };
    let collation = call.worker.store.default_collation(namespace).await?;
    let info = call.worker.store.collection(namespace).await?;
    let cluster = info.as_ref().and_then(|info| clustered::of(info.options.as_doc()));
    let buckets = info.as_ref().is_some_and(|info| time_series::is_of_buckets(info.options.as_doc()));
    let listed = indexes.into_iter().filter(|index| !buckets || index.name != "_id_").map(|mut index| {
        if let (Some(cluster), "_id_") = (cluster, &*index.name) {
            return clustered::listed(cluster, collation.specification());
        }
        if let (Some(collation), true) = (collation.specification(), index.name == "_id_") {
            index.spec.append("collation", collation);
        }
        let listed = in_order_of_fields(index.spec.as_doc());
        match names::restore(&index.name) {
            Cow::Borrowed(_) => listed,
            Cow::Owned(name) => with_name(listed.as_doc(), ValueBuf::from_string_bytes(&name).as_value()),
        }
    });
    Ok(Some(listed.collect()))
}

/// `reIndex`: lists the indexes. They are written with their documents, so they need no rebuilding.
pub async fn re_index(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let namespace = options::strict_name(call.database(), call.first())?;
    let missing = || Error::new(Code::NAMESPACE_NOT_FOUND, "collection does not exist");
    if call.worker.store.collection(&namespace).await?.is_none() {
        views::refuse(call, &namespace).await?;
        return Err(missing());
    }
    let mut listed = listed(call, &namespace).await?.ok_or_else(missing)?;
    // The order of a clustered collection does not count as an index here.
    listed.retain(|index| index.as_doc().get("clustered").is_none());
    reply.append("nIndexesWas", listed.len() as i32);
    reply.append("nIndexes", listed.len() as i32);
    let mut indexes = reply.array("indexes");
    listed.iter().for_each(|index| indexes.push(index));
    Ok(Disposition::Reply)
}

/// Returns an index's specification with its fields in MongoDB's order.
fn in_order_of_fields(spec: Doc<'_>) -> DocBuf {
    const ORDER: &[&str] = &[
        "v",
        "key",
        "name",
        "ns",
        "background",
        "unique",
        "hidden",
        "partialFilterExpression",
        "sparse",
        "expireAfterSeconds",
        "storageEngine",
        "weights",
        "default_language",
        "language_override",
        "textIndexVersion",
        "2dsphereIndexVersion",
        "coarsestIndexedLevel",
        "finestIndexedLevel",
        "bits",
        "min",
        "max",
        "bucketSize",
        "collation",
        "wildcardProjection",
    ];
    let place = |field: &Element<'_>| ORDER.iter().position(|name| *name == field.key()).unwrap_or(ORDER.len());
    let omitted = |field: &Element<'_>| {
        matches!(field.key(), "unique" | "hidden" | "prepareUnique") && !field.value().is_truthy()
    };
    let mut fields: Vec<Element<'_>> = spec.elements().filter(|field| !omitted(field)).collect();
    fields.sort_by_key(place);
    DocBuf::build(|writer| {
        fields.iter().for_each(|field| match field.key() {
            // Any true value is listed as `true`.
            "unique" => writer.append("unique", true),
            _ => writer.append_element(*field),
        });
    })
}

/// Returns the indexes that a `dropIndexes` names.
fn indexes_to_drop(call: &Call<'_>) -> Result<IndexSelection> {
    const WITHIN: &str = "dropIndexes";
    let mut index = None;
    for field in call.all_fields() {
        match field.key() {
            "index" => index = Some(index_selection(field)?),
            "collectionUUID" => drop(collection_uuid::read(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    index.ok_or_else(|| arguments::missing_field(WITHIN, "index"))
}

fn index_selection(index: Element<'_>) -> Result<IndexSelection> {
    Ok(match index.value() {
        Value::String("*") => IndexSelection::All,
        name if name.kind() == Kind::String => {
            IndexSelection::Names(name.as_name().into_iter().map(Cow::into_owned).collect())
        }
        Value::Array(names) if names.values().eq([Value::String("*")]) => IndexSelection::All,
        Value::Array(names) => {
            let names = names.elements().map(|name| match name.value().as_name() {
                Some(name) => Ok(name.into_owned()),
                None => arguments::string("dropIndexes.index", name).map(str::to_owned),
            });
            IndexSelection::Names(names.collect::<Result<_>>()?)
        }
        Value::Document(key) => IndexSelection::Key(key.to_owned()),
        _ => return Err(arguments::wrong_types("dropIndexes", index, "'[string, object']")),
    })
}

/// Parses the fields of a `dropIndexes`.
pub fn parse_drop(call: &Call<'_>) -> Result<()> {
    indexes_to_drop(call)?;
    call.check_namespace()
}

pub async fn drop_indexes(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let which = indexes_to_drop(call)?;
    let mut namespace = arguments::namespace(call.database(), call.first())?;
    let mut info = call.worker.store.collection(&namespace).await?;
    let mut series = None;
    if info.is_none()
        && let Some(found) = time_series::find(call, &namespace).await?
    {
        info = found.options(call).await?;
        namespace = found.buckets.clone();
        series = Some(found);
    }
    let which = match (which, &series) {
        (IndexSelection::Key(key), Some(series)) => {
            IndexSelection::Key(time_series::indexes::key_of_buckets(key.as_doc(), series))
        }
        (which, _) => which,
    };
    let cluster = info.as_ref().and_then(|info| clustered::of(info.options.as_doc()));
    let buckets = info.as_ref().is_some_and(|info| time_series::is_of_buckets(info.options.as_doc()));
    if let Some(cluster) = cluster {
        refuse_to_drop_cluster(&which, clustered::name(cluster))?;
    }
    let names_id_index = match &which {
        IndexSelection::Names(names) => names.iter().any(|name| name == "_id_"),
        IndexSelection::Key(key) => index_rules::is_id_key(key.as_doc()),
        IndexSelection::All => false,
    };
    if names_id_index && buckets {
        return Err(Error::new(Code(5979800), "It is illegal to drop the clusteredIndex"));
    }
    if names_id_index {
        return Err(Error::new(Code::INVALID_OPTIONS, "cannot drop _id index"));
    }
    let all = which == IndexSelection::All;
    let before = match call.worker.store.drop_indexes(&namespace, which).await {
        Err(error) if error.code() == Code::NAMESPACE_NOT_FOUND => {
            views::refuse(call, &namespace).await?;
            return Err(error);
        }
        dropped => dropped?,
    };
    reply.append("nIndexesWas", (before - usize::from(cluster.is_some() || buckets)) as i32);
    if all {
        reply.append("msg", "non-_id indexes dropped for collection");
    }
    Ok(Disposition::Reply)
}
