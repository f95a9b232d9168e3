//! `drop`, `listCollections`, `renameCollection`.

use crate::arguments;
use crate::arguments::options;
use crate::arguments::{is_absent, unknown_field};
use crate::authorization::cursors::LIST_OF_COLLECTIONS;
use crate::call::{Call, Disposition};
use crate::collection_options::clustered;
use crate::envelope::collection_uuid;
use crate::envelope::uuid;
use crate::read::list_cursor::write_list_cursor;
use crate::time_series;
use crate::time_series::Series;
use crate::views;
use crate::views::definitions;
use auth::Resource;
use document::{Doc, DocBuf, DocWriter, Element, Kind, Value};
use error::{Code, Error, Result};
use query::Predicate;
use server::logical_session::uuid_text;
use server::profiling;
use store::{CollectionInfo, Namespace};

/// Parses the fields of a `drop`.
pub fn parse_drop(call: &Call<'_>) -> Result<()> {
    const WITHIN: &str = "drop";
    for field in call.all_fields() {
        match field.key() {
            "collectionUUID" => drop(collection_uuid::read(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    call.check_namespace()
}

pub async fn drop_collection(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    parse_drop(call)?;
    let namespace = arguments::namespace(call.database(), call.first())?;
    if namespace.collection.starts_with('.') {
        let message = format!("Collection names cannot start with '.': {}", namespace.collection);
        return Err(Error::new(Code::INVALID_NAMESPACE, message));
    }
    if &*namespace.collection == profiling::COLLECTION
        && call.worker.server.profiling.of_database(&namespace.database).level > 0
    {
        let message = "turn off profiling before dropping system.profile collection";
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    if &*namespace.collection == store::views::COLLECTION {
        refuse_with_series(call, &namespace).await?;
    }
    // The buckets of a time-series collection are dropped with it.
    let namespace = time_series::owner(&namespace).unwrap_or(namespace);
    let info = call.worker.store.collection(&namespace).await?;
    if info.is_some() && is_permanent(&namespace) {
        let message = format!("can't drop system collection {namespace}");
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    if info.is_none()
        && let Some(series) = time_series::find(call, &namespace).await?
    {
        let buckets = series.options(call).await?;
        let indexes = call.worker.store.drop_collection(&series.buckets).await?.unwrap_or(1);
        definitions::drop_view(call, &namespace).await?;
        if let Some(buckets) = buckets {
            let lost = plan_killed(format!("collection dropped. UUID {}", uuid_text(&buckets.uuid)));
            let is_one = |name: &Namespace| *name == namespace || *name == series.buckets;
            call.worker.server.cursors.invalidate_where(|owner| is_one(&owner.namespace), &lost);
        }
        reply.append("nIndexesWas", indexes.saturating_sub(1) as i32);
        reply.append("ns", &namespace.to_string());
        return Ok(Disposition::Reply);
    }
    if info.is_none() && definitions::drop_view(call, &namespace).await? {
        reply.append("ns", &namespace.to_string());
        return Ok(Disposition::Reply);
    }
    let dropped = call.worker.store.drop_collection(&namespace).await?;
    let indexes = dropped.ok_or_else(|| Error::new(Code::NAMESPACE_NOT_FOUND, "ns not found"))?;
    let is_clustered = info.as_ref().is_some_and(|info| clustered::of(info.options.as_doc()).is_some());
    if let Some(info) = info {
        let lost = plan_killed(format!("collection dropped. UUID {}", uuid_text(&info.uuid)));
        call.worker.server.cursors.invalidate_where(|owner| owner.namespace == namespace, &lost);
    }
    call.worker.server.forget_usage(|used| *used == namespace);
    // A profile has no indexes in MongoDB, not even that on `_id`.
    let indexes = if &*namespace.collection == profiling::COLLECTION { 0 } else { indexes };
    reply.append("nIndexesWas", indexes.saturating_sub(usize::from(is_clustered)) as i32);
    reply.append("ns", &namespace.to_string());
    Ok(Disposition::Reply)
}

/// Returns whether no command drops the collection.
fn is_permanent(namespace: &Namespace) -> bool {
    match &*namespace.collection {
        "system.users" | "system.js" => true,
        "system.roles" | "system.version" => &*namespace.database == "admin",
        _ => false,
    }
}

/// Fails with 125 for `system.views`, if it defines time-series collections.
async fn refuse_with_series(call: &Call<'_>, namespace: &Namespace) -> Result<()> {
    let all = views::all(call, &namespace.database).await?;
    if all.iter().all(|definition| Series::of(&namespace.database, definition.as_doc()).is_none()) {
        return Ok(());
    }
    let message = format!("cannot drop collection {namespace} when time-series collections are present.");
    Err(Error::new(Code(125), message))
}

/// The fields of a `listCollections`.
#[derive(Default)]
struct Listing<'a> {
    filter: Doc<'a>,
    name_only: bool,
    /// Whether only collections are listed that the user may access.
    authorized: bool,
    batch_size: Option<u64>,
}

impl<'a> Listing<'a> {
    fn read(call: &Call<'a>) -> Result<Self> {
        const WITHIN: &str = "listCollections";
        let mut listing = Listing::default();
        for field in call.fields() {
            match field.key() {
                _ if arguments::is_left_out(field, &["filter", "nameOnly", "cursor", "authorizedCollections"]) => {}
                "filter" => listing.filter = arguments::document(WITHIN, field)?,
                "nameOnly" => listing.name_only = arguments::boolean(WITHIN, field)?,
                "cursor" => listing.batch_size = options::cursor_batch_size(WITHIN, field)?,
                "authorizedCollections" => listing.authorized = arguments::boolean(WITHIN, field)?,
                "includePendingDrops" if is_absent(field) => {}
                "includePendingDrops" => drop(arguments::boolean_or_number(WITHIN, field)?),
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        Ok(listing)
    }
}

/// Parses the fields of a `listCollections`.
pub fn parse_list(call: &Call<'_>) -> Result<()> {
    Listing::read(call).map(drop)
}

pub async fn list_collections(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let Listing { filter, name_only, authorized, batch_size } = Listing::read(call)?;
    let predicate = Predicate::parse(filter, &call.context())?;
    let lists_authorized = authorized && call.worker.server.access_control.is_enabled();
    let is_listed = |name: &str| {
        let resource = Resource::Collection(call.database(), name);
        !lists_authorized || call.session.with_privileges(|privileges| privileges.allows_any(resource))
    };
    let mut entries = Vec::new();
    let collections = call.worker.store.collections(call.database()).await?;
    let views = views::all(call, call.database()).await?;
    for definition in &views {
        let Some((name, _)) = views::parts(call.database(), definition) else { continue };
        let Some(series) = Series::of(call.database(), definition.as_doc()) else { continue };
        let buckets = collections.iter().find(|collection| *collection.name == *series.buckets.collection);
        let entry = series_entry(name, buckets, name_only);
        if is_listed(name) && predicate.matches(entry.as_doc())? {
            entries.push(entry);
        }
    }
    for collection in collections {
        let entry = collection_entry(&collection, name_only);
        if is_listed(&collection.name) && predicate.matches(entry.as_doc())? {
            entries.push(entry);
        }
    }
    for definition in views.iter().filter(|view| Series::of(call.database(), view.as_doc()).is_none()) {
        let Some((name, _)) = views::parts(call.database(), definition) else { continue };
        let entry = view_entry(name, definition.as_doc(), name_only);
        if is_listed(name) && predicate.matches(entry.as_doc())? {
            entries.push(entry);
        }
    }
    let namespace = Namespace::new(call.database(), LIST_OF_COLLECTIONS);
    write_list_cursor(call, reply, namespace, entries, batch_size).await?;
    Ok(Disposition::Reply)
}

/// Returns a collection as `listCollections` shows it.
fn collection_entry(collection: &CollectionInfo, name_only: bool) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("name", &collection.name);
        writer.append("type", "collection");
        if name_only {
            return;
        }
        writer.append("options", &collection.options);
        {
            let mut info = writer.document("info");
            info.append("readOnly", false);
            info.append("uuid", Value::Binary { subtype: 4, bytes: &collection.uuid });
        }
        let options = collection.options.as_doc();
        if clustered::of(options).is_some()
            || time_series::is_of_buckets(options)
            || collection.name == profiling::COLLECTION
        {
            return;
        }
        let mut id_index = writer.document("idIndex");
        id_index.append("v", 2);
        id_index.document("key").append("_id", 1);
        id_index.append("name", "_id_");
        if let Some(collation) = collection.options.as_doc().get("collation") {
            id_index.append("collation", collation);
        }
    })
}

/// Returns a time-series collection as `listCollections` shows it.
fn series_entry(name: &str, buckets: Option<&CollectionInfo>, name_only: bool) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("name", name);
        writer.append("type", "timeseries");
        if name_only {
            return;
        }
        let options = buckets.map(|buckets| time_series::options::shown(buckets.options.as_doc()));
        writer.append("options", &options.unwrap_or_default());
        writer.document("info").append("readOnly", false);
    })
}

/// Returns a view as `listCollections` shows it.
fn view_entry(name: &str, definition: Doc<'_>, name_only: bool) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("name", name);
        writer.append("type", "view");
        if name_only {
            return;
        }
        {
            let mut options = writer.document("options");
            let shown = |element: &Element<'_>| element.key() != "_id";
            definition.elements().filter(shown).for_each(|element| options.append_element(element));
        }
        writer.document("info").append("readOnly", true);
    })
}

/// Checks the name of the collection, for commands that name it with its database.
pub fn parse_full_name(call: &Call<'_>) -> Result<()> {
    named_in_full(call.first()).map(drop)
}

pub async fn rename_collection(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    const WITHIN: &str = "renameCollection";
    let from = named_in_full(call.first())?;
    let (mut to, mut drop_target, mut expected_uuid) = (None, false, None);
    for field in call.fields() {
        match field.key() {
            "to" => to = Some(arguments::string(WITHIN, field)?),
            _ if arguments::is_left_out(field, &["stayTemp"]) => {}
            // Either a boolean, or the UUID of the collection to drop.
            "dropTarget" if field.kind == Kind::Binary => {
                let message = "uuid must be a 16-byte binary field with UUID (4) subtype";
                uuid(WITHIN, field).map_err(|_| Error::new(Code::INVALID_UUID, message))?;
                drop_target = true;
            }
            "dropTarget" => drop_target = drops_target(WITHIN, field)?,
            "stayTemp" => drop(arguments::boolean(WITHIN, field)?),
            "collectionUUID" => expected_uuid = collection_uuid::read(WITHIN, field)?,
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    let to = to.ok_or_else(|| arguments::missing_field(WITHIN, "to"))?;
    if from.collection.contains('\0') || to.contains('\0') {
        return Err(invalid("namespaces cannot have embedded null characters".to_owned()));
    }
    let to = full_name(to).ok_or_else(|| invalid(format!("Invalid target namespace: {to}")))?;
    arguments::check_writable(&from).map_err(|error| {
        Error::new(Code::ILLEGAL_OPERATION, format!("error with source namespace: {}", error.message()))
    })?;
    arguments::check_database(&to.database)?;
    arguments::check_writable(&to).map_err(|error| {
        Error::new(Code::ILLEGAL_OPERATION, format!("error with target namespace: {}", error.message()))
    })?;
    if from == to {
        return Err(Error::new(Code::ILLEGAL_OPERATION, "Can't rename a collection to itself"));
    }
    if let Some(uuid) = expected_uuid {
        collection_uuid::check(call, &from, uuid).await?;
    }
    if from.collection.starts_with(time_series::BUCKETS) {
        let message = "Renaming system.buckets collections is not allowed";
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    let store = &call.worker.store;
    if store.collection(&from).await?.is_none() {
        if views::definition(call, &from).await?.is_some() {
            let message = format!("cannot rename view: {from}");
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, message));
        }
        let message = format!("Source collection {from} does not exist");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message));
    }
    if !drop_target && store.collection(&to).await?.is_some() {
        return Err(Error::new(Code::NAMESPACE_EXISTS, "target namespace exists"));
    }
    if views::definition(call, &to).await?.is_some() {
        let message = format!("a view already exists with that name: {to}");
        return Err(Error::new(Code::NAMESPACE_EXISTS, message));
    }
    store.rename_collection(&from, &to, drop_target).await?;
    let lost = plan_killed(format!("collection renamed from '{from}' to '{to}'"));
    call.worker.server.cursors.invalidate_where(|owner| owner.namespace == from || owner.namespace == to, &lost);
    Ok(Disposition::Reply)
}

fn drops_target(within: &str, field: Element<'_>) -> Result<bool> {
    match field.value() {
        Value::Boolean(flag) => Ok(flag),
        _ => Err(arguments::wrong_types(within, field, "'[bool, binData']")),
    }
}

/// Returns the error of cursors whose collection was dropped or renamed.
pub fn plan_killed(message: String) -> Error {
    Error::new(Code::QUERY_PLAN_KILLED, message)
}

fn invalid(message: String) -> Error {
    Error::new(Code::INVALID_NAMESPACE, message)
}

/// Returns the namespace in a command's first field, which has the database in it.
pub fn named_in_full(first: Element<'_>) -> Result<Namespace> {
    let wrong_type = || Error::bad_value(format!("collection name has invalid type {}", first.kind.alias()));
    let name = first.value().as_str().ok_or_else(wrong_type)?;
    full_name(name).ok_or_else(|| invalid(format!("Invalid namespace specified '{name}'")))
}

/// Splits `database.collection` at the first dot.
pub fn full_name(name: &str) -> Option<Namespace> {
    let (database, collection) = name.split_once('.')?;
    (!database.is_empty() && !collection.is_empty()).then(|| Namespace::new(database, collection))
}
