//! `createIndexes`, `listIndexes`, `dropIndexes`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/createIndexes/>

use crate::arguments::{self, is_absent, namespace_to_write, unknown_field};
use crate::command::options::{self, display};
use crate::command::{index_specification, views};
use crate::dispatch::{Call, Disposition};
use crate::reply::write_list_cursor;
use crate::server::Topology;
use document::{Collation, Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use store::{IndexSelection, IndexSpec, index_kind};

pub async fn create_indexes(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    const WITHIN: &str = "createIndexes";
    let namespace = namespace_to_write(call.database(), call.first())?;
    let mut indexes = None;
    for field in call.fields() {
        match field.key() {
            "indexes" => indexes = Some(arguments::array(WITHIN, field)?),
            _ if is_absent(field) => {}
            "commitQuorum" if call.worker.server.settings.topology == Topology::Standalone => {
                return Err(Error::bad_value("Standalones can't specify commitQuorum"));
            }
            // One server builds, so every quorum is met.
            "commitQuorum" | "ignoreUnknownIndexOptions" => {}
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    let indexes = indexes.ok_or_else(|| arguments::missing_field(WITHIN, "indexes"))?;
    if indexes.is_empty() {
        return Err(Error::bad_value("Must specify at least one index to create"));
    }
    let default = call.worker.store.default_collation(&namespace).await?;
    let mut specs = Vec::new();
    for element in indexes.elements() {
        let wrong_type = || arguments::wrong_type("createIndexes.indexes", element, "object");
        let spec = element.value().as_document().ok_or_else(wrong_type)?;
        specs.push((index_specification::read(spec, &default, call)?, spec));
    }
    let complete = |(index, sent)| index_kind::complete(index, sent);
    let mut specs = specs.into_iter().map(complete).collect::<Result<Vec<_>>>()?;
    for spec in specs.iter().filter(|spec| is_id_key(spec.key.as_doc())) {
        check_id_collation(spec, &default)?;
    }
    // The index on `_id` is always there.
    for spec in specs.iter().filter(|spec| is_id_key(spec.key.as_doc())) {
        let plain = ["v", "key", "name", "ns", "background", "collation"];
        let mut options = spec.spec.as_doc().iter().map(|(option, _)| option);
        if let Some(option) = options.find(|option| !plain.contains(option)) {
            let shown = options::without(spec.spec.as_doc(), |key| key == "v");
            let mut shown = shown;
            shown.append("v", 2);
            let message = format!(
                "The field '{option}' is not valid for an _id index specification. Specification: {}",
                display(shown.as_doc())
            );
            return Err(Error::new(Code::INVALID_INDEX_SPECIFICATION_OPTION, message));
        }
    }
    specs.retain(|spec| !is_id_key(spec.key.as_doc()));
    if specs.iter().any(|spec| spec.spec.as_doc().get("expireAfterSeconds").is_some()) {
        let info = call.worker.store.collection(&namespace).await?;
        if info.is_some_and(|info| options::is_set(info.options.as_doc(), "capped")) {
            return Err(Error::new(Code::CANNOT_CREATE_INDEX, "Cannot create TTL index on a capped collection"));
        }
    }
    let outcome = call.worker.store.create_indexes(&namespace, specs).await?;
    reply.append("numIndexesBefore", outcome.indexes_before as i32);
    reply.append("numIndexesAfter", outcome.indexes_after as i32);
    if outcome.indexes_before == outcome.indexes_after && !outcome.created_collection {
        reply.append("note", "all indexes already exist");
    } else {
        reply.append("createdCollectionAutomatically", outcome.created_collection);
    }
    Ok(Disposition::Reply)
}

/// The index on `_id` goes by the collection's collation.
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

fn is_id_key(key: Doc<'_>) -> bool {
    let mut elements = key.elements();
    let only = elements.next().filter(|_| elements.next().is_none());
    only.is_some_and(|element| {
        element.key() == "_id" && arguments::number_to_i64(element.value()).is_some_and(|direction| direction > 0)
    })
}

pub async fn list_indexes(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    const WITHIN: &str = "listIndexes";
    let namespace = arguments::namespace(call.database(), call.first())?;
    let mut batch_size = None;
    for field in call.fields() {
        match field.key() {
            _ if is_absent(field) => {}
            "cursor" => batch_size = options::cursor_batch_size(WITHIN, field)?,
            "includeBuildUUIDs" | "includeIndexBuildInfo" => drop(arguments::boolean_or_number(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    let indexes = call.worker.store.indexes(&namespace).await?;
    if indexes.is_none() {
        views::refuse(call, &namespace).await?;
    }
    let indexes =
        indexes.ok_or_else(|| Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns does not exist: {namespace}")))?;
    let collation = call.worker.store.default_collation(&namespace).await?;
    let entries = indexes
        .into_iter()
        .map(|mut index| {
            if let (Some(collation), true) = (collation.specification(), index.name == "_id_") {
                index.spec.append("collation", collation);
            }
            in_order_of_fields(index.spec.as_doc())
        })
        .collect();
    write_list_cursor(call, reply, namespace, entries, batch_size).await?;
    Ok(Disposition::Reply)
}

/// An index's specification with its fields in the order that MongoDB lists them in.
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
            // However it was spelled.
            "unique" => writer.append("unique", true),
            _ => writer.append_element(*field),
        });
    })
}

pub async fn drop_indexes(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    const WITHIN: &str = "dropIndexes";
    let namespace = arguments::namespace(call.database(), call.first())?;
    let mut index = None;
    for field in call.fields() {
        match field.key() {
            "index" => index = Some(field),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    let index = index.ok_or_else(|| arguments::missing_field(WITHIN, "index"))?;
    let which = match index.value() {
        Value::String("*") => IndexSelection::All,
        Value::String(name) => IndexSelection::Names(vec![name.to_owned()]),
        Value::Array(names) if names.values().eq([Value::String("*")]) => IndexSelection::All,
        Value::Array(names) => IndexSelection::Names(
            names
                .elements()
                .map(|name| arguments::string("dropIndexes.index", name).map(str::to_owned))
                .collect::<Result<_>>()?,
        ),
        Value::Document(key) => IndexSelection::Key(key.to_owned()),
        _ => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'dropIndexes.index' is the wrong type '{}', expected types '[string, object']",
                index.kind.alias()
            )));
        }
    };
    let names_id_index = match &which {
        IndexSelection::Names(names) => names.iter().any(|name| name == "_id_"),
        IndexSelection::Key(key) => is_id_key(key.as_doc()),
        IndexSelection::All => false,
    };
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
    reply.append("nIndexesWas", before as i32);
    if all {
        reply.append("msg", "non-_id indexes dropped for collection");
    }
    Ok(Disposition::Reply)
}
