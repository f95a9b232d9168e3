//! `createIndexes`, `listIndexes`, `dropIndexes`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/createIndexes/>

use crate::arguments::{self, is_absent, namespace_to_write, unknown_field};
use crate::command::options::{self, display};
use crate::command::views;
use crate::dispatch::{Call, Disposition};
use crate::reply::write_list_cursor;
use crate::server::Topology;
use document::{Collation, Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use query::{Context, Predicate};
use store::{IndexSelection, IndexSpec, index_rules};

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
        let context = query::Context { collation: index_collation(spec, &default)?, ..call.context() };
        let index = index_spec(spec, &context).map_err(|error| in_specification(spec, error))?;
        // Judged with the specification as it was sent, which messages show.
        index_rules::check_key(&IndexSpec { spec: spec.to_owned(), ..index.clone() })?;
        specs.push(index);
        check_expiry(spec)?;
    }
    for spec in specs.iter().filter(|spec| is_id_key(spec.key.as_doc())) {
        check_id_collation(spec, &default)?;
    }
    // The index on `_id` is always there.
    for spec in specs.iter().filter(|spec| is_id_key(spec.key.as_doc())) {
        let option =
            ["hidden", "partialFilterExpression"].into_iter().find(|key| spec.spec.as_doc().get(key).is_some());
        if let Some(option) = option {
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

/// The collation of an index: its own, or the collection's.
fn index_collation(spec: Doc<'_>, default: &Collation) -> Result<Collation> {
    let Some(Value::Document(collation)) = spec.get("collation") else { return Ok(default.clone()) };
    Collation::parse(collation, "").map_err(|error| {
        let mut shown = options::without(spec, |name| name == "v");
        shown.append("v", 2);
        let shown = display(shown.as_doc());
        error.context(&format!(
            "failed to add collation information to index spec for index creation: {shown} :: caused by :: "
        ))
    })
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

fn in_specification(spec: Doc<'_>, error: Error) -> Error {
    error.context(&format!("Error in specification {} :: caused by :: ", display(spec)))
}

fn is_id_key(key: Doc<'_>) -> bool {
    let mut elements = key.elements();
    let only = elements.next().filter(|_| elements.next().is_none());
    only.is_some_and(|element| {
        element.key() == "_id" && arguments::number_to_i64(element.value()).is_some_and(|direction| direction > 0)
    })
}

/// Reads one specification. Its key pattern is judged by the stores' common rules.
fn index_spec(spec: Doc<'_>, context: &Context) -> Result<IndexSpec> {
    let (mut key, mut name) = (None, None);
    let (mut unique, mut sparse) = (false, false);
    for field in spec.elements() {
        match field.key() {
            "key" => key = Some(document_option(field)?),
            "name" => name = Some(string_option(field)?),
            "unique" => unique = boolean_option(field)?,
            "sparse" => sparse = boolean_option(field)?,
            "hidden" => check_hidden(field)?,
            "background" | "dropDups" | "prepareUnique" => drop(boolean_option(field)?),
            "v" => check_version(spec, field)?,
            "expireAfterSeconds" => {}
            "partialFilterExpression" => partial_filter(document_option(field)?, context)?,
            "collation" => drop(document_option(field)?),
            "storageEngine" => drop(document_option(field)?),
            "ns"
            | "weights"
            | "default_language"
            | "language_override"
            | "textIndexVersion"
            | "2dsphereIndexVersion"
            | "bits"
            | "min"
            | "max"
            | "bucketSize"
            | "wildcardProjection" => {}
            other => {
                return Err(Error::new(
                    Code::INVALID_INDEX_SPECIFICATION_OPTION,
                    format!(
                        "The field '{other}' is not valid for an index specification. Specification: {}",
                        display(spec)
                    ),
                ));
            }
        }
    }
    if sparse && spec.get("partialFilterExpression").is_some() {
        let message = "cannot mix \"partialFilterExpression\" and \"sparse\" options";
        return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
    }
    let required = |field: &str| {
        Error::failed_to_parse(format!("The '{field}' field is a required property of an index specification"))
    };
    let key = key.ok_or_else(|| required("key"))?;
    let name = name.ok_or_else(|| required("name"))?;
    let index = IndexSpec { name: name.to_owned(), key: key.to_owned(), unique, sparse, spec: spec.to_owned() };
    Ok(IndexSpec {
        spec: DocBuf::build(|writer| {
            writer.append("v", 2);
            writer.append("key", key);
            writer.append("name", name);
            // What is spelled out as false is as good as left out.
            let shown = |field: &Element<'_>| match field.key() {
                "v" | "key" | "name" | "ns" | "dropDups" | "collation" => false,
                "hidden" | "prepareUnique" => field.value().is_truthy(),
                _ => true,
            };
            spec.elements().filter(shown).for_each(|field| writer.append_element(field));
            if let Some(collation) = context.collation.specification() {
                writer.append("collation", collation);
            }
        }),
        ..index
    })
}

/// Which filters can decide what is in an index.
/// Source: <https://www.mongodb.com/docs/manual/core/index-partial/>
fn partial_filter(filter: Doc<'_>, context: &Context) -> Result<()> {
    if filter.get("$expr").is_some() {
        return Err(Error::new(Code::QUERY_FEATURE_NOT_ALLOWED, "$expr is not allowed in this context"));
    }
    Predicate::parse(filter, context)?;
    check_partial(filter)
}

fn check_partial(filter: Doc<'_>) -> Result<()> {
    let refused = |what: &str| {
        let message = format!("Expression not supported in partial index: {what}");
        Err(Error::new(Code::CANNOT_CREATE_INDEX, message))
    };
    for (key, value) in filter.iter() {
        match (key, value) {
            ("$and" | "$or", Value::Array(all)) => {
                all.values().filter_map(Value::as_document).try_for_each(check_partial)?;
            }
            (operator, _) if operator.starts_with('$') => return refused(operator),
            (path, Value::Regex { .. }) => return refused(&format!("{path} regex")),
            (path, Value::Document(condition)) if condition.first().is_some_and(|it| it.key().starts_with('$')) => {
                for (operator, argument) in condition.iter() {
                    match operator {
                        "$eq" | "$in" | "$gt" | "$gte" | "$lt" | "$lte" | "$type" => {}
                        "$exists" if argument.is_truthy() => {}
                        other => return refused(&format!("{path} {other}")),
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn document_option<'a>(field: Element<'a>) -> Result<Doc<'a>> {
    field.value().as_document().ok_or_else(|| wrong_option(field, "object"))
}

fn string_option<'a>(field: Element<'a>) -> Result<&'a str> {
    field.value().as_str().ok_or_else(|| wrong_option(field, "string"))
}

fn wrong_option(field: Element<'_>, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "The field '{}' must be {} {expected}, but got {}",
        field.key(),
        if expected == "object" { "an" } else { "a" },
        field.kind.alias()
    ))
}

fn boolean_option(field: Element<'_>) -> Result<bool> {
    match field.value() {
        Value::Boolean(flag) => Ok(flag),
        value if value.kind().is_number() => Ok(value.is_truthy()),
        value => {
            let mut text = String::new();
            store::duplicate::write_value(value, &mut text);
            Err(Error::type_mismatch(format!(
                "The field '{0} has value {0}: {text}, which is not convertible to bool",
                field.key()
            )))
        }
    }
}

fn check_hidden(field: Element<'_>) -> Result<()> {
    match field.value() {
        Value::Boolean(_) => Ok(()),
        value if value.kind().is_number() => Ok(()),
        // The field's name is MongoDB's slip.
        value => {
            let message = format!("The field 'name' must be a bool, but got {}", value.kind().alias());
            Err(Error::type_mismatch(message))
        }
    }
}

fn check_version(spec: Doc<'_>, field: Element<'_>) -> Result<()> {
    match arguments::number_to_i64(field.value()) {
        None => Err(wrong_option(field, "number")),
        Some(1 | 2) => Ok(()),
        Some(version) => Err(Error::new(
            Code::CANNOT_CREATE_INDEX,
            format!("Invalid index specification {}; cannot create an index with v={version}", display(spec)),
        )),
    }
}

fn check_expiry(spec: Doc<'_>) -> Result<()> {
    let Some(value) = spec.get("expireAfterSeconds") else { return Ok(()) };
    let reason = match arguments::number_to_i64(value) {
        None => {
            let kind = value.kind().alias();
            format!("TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{kind}'")
        }
        Some(seconds) if (0..=i64::from(i32::MAX)).contains(&seconds) => return Ok(()),
        Some(_) => "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different number \
                    than the one given"
            .to_owned(),
    };
    Err(Error::new(Code::CANNOT_CREATE_INDEX, format!("{reason}. Index spec: {}", display(spec))))
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
    DocBuf::build(|writer| fields.iter().for_each(|field| writer.append_element(*field)))
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
