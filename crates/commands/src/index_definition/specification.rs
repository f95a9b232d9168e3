//! The specifications of `createIndexes`: the options and their types.
//!
//! How an index's kind interprets them is in [`store::index_kind`].

use crate::arguments::options;
use crate::arguments::options::display;
use crate::call::Call;
use crate::command::catalog::create;
use document::{Collation, Doc, DocBuf, Element, Kind, Value};
use error::{Code, Error, Result};
use query::{Context, Predicate};
use store::index_kind::wildcard::check_projection;
use store::{IndexSpec, index_rules};
use values::integer::as_i64_exact;

/// The options of an index on `_id`.
const OF_ID_INDEX: [&str; 6] = ["_id", "v", "key", "name", "ns", "collation"];

/// The options of a clustered index, as `createIndexes` names them.
const OF_CLUSTERED_INDEX: [&str; 5] = ["v", "key", "name", "unique", "clustered"];

/// Returns whether an option of this name exists.
pub fn is_known(option: &str) -> bool {
    matches!(
        option,
        "_id"
            | "key"
            | "name"
            | "unique"
            | "sparse"
            | "hidden"
            | "background"
            | "dropDups"
            | "prepareUnique"
            | "v"
            | "expireAfterSeconds"
            | "partialFilterExpression"
            | "collation"
            | "storageEngine"
            | "weights"
            | "default_language"
            | "language_override"
            | "textIndexVersion"
            | "2dsphereIndexVersion"
            | "bits"
            | "min"
            | "max"
            | "coarsestIndexedLevel"
            | "finestIndexedLevel"
            | "ns"
            | "wildcardProjection"
            | "clustered"
            | "originalSpec"
    )
}

/// Checks a specification, whatever the collection.
pub fn check(spec: Doc<'_>, call: &Call<'_>) -> Result<()> {
    check_options(spec, &call.context()).map_err(|error| in_specification(spec, error))?;
    let key = key(spec);
    if index_rules::is_id_key(key) {
        return check_id_index(spec);
    }
    if spec.get("name").and_then(Value::as_str) == Some("_id_") {
        return Err(Error::bad_value(format!(
            "The index name '_id_' is reserved for the _id index, which must have key pattern {{_id: 1}}, found key: {}",
            display(key)
        )));
    }
    Ok(())
}

/// Checks the options of the index on `_id` in a `create`, before their values.
pub fn check_names_and_types(spec: Doc<'_>) -> Result<()> {
    check_options(spec, &Context::at(0))
}

/// Returns the key pattern of a specification.
pub fn key(spec: Doc<'_>) -> Doc<'_> {
    spec.get("key").and_then(Value::as_document).unwrap_or(Doc::EMPTY)
}

/// Checks the options of an index on `_id`. Fails with 2 for another key, and 197 for an option
/// that such an index cannot have.
pub fn check_id_index(spec: Doc<'_>) -> Result<()> {
    let key = key(spec);
    if !index_rules::same_key(key, document::doc! { "_id": 1 }.as_doc()) {
        let message = format!("The field 'key' for an _id index must be {{_id: 1}}, but got {}", display(key));
        return Err(Error::bad_value(message));
    }
    let clustered = options::is_set(spec, "clustered");
    match spec.elements().find(|option| !clustered && !OF_ID_INDEX.contains(&option.key())) {
        Some(option) => Err(Error::new(
            Code::INVALID_INDEX_SPECIFICATION_OPTION,
            format!(
                "The field '{}' is not valid for an _id index specification. Specification: {}",
                option.key(),
                display(with_version(spec).as_doc())
            ),
        )),
        None => Ok(()),
    }
}

/// Reads a checked specification of an index on a collection with this collation.
pub fn read(spec: Doc<'_>, default: &Collation, call: &Call<'_>) -> Result<IndexSpec> {
    let context = Context { collation: index_collation(spec, default)?, ..call.context() };
    let flag = |option: &str| spec.get(option).is_some_and(Value::is_truthy);
    let (key, name) = (key(spec), spec.get("name").and_then(Value::as_str).unwrap_or_default());
    let in_completed = |error: Error| match error.code() {
        Code::CANNOT_CREATE_INDEX | Code::INVALID_OPTIONS => in_specification(with_version(spec).as_doc(), error),
        _ => error,
    };
    index_rules::check_name(name).map_err(in_completed)?;
    let (unique, sparse) = (flag("unique"), flag("sparse"));
    if let Some(Value::Document(filter)) = spec.get("partialFilterExpression") {
        if sparse {
            let message = "cannot mix \"partialFilterExpression\" and \"sparse\" options";
            return Err(in_completed(Error::new(Code::CANNOT_CREATE_INDEX, message)));
        }
        check_partial(filter).map_err(in_completed)?;
    }
    if let Some(engine) = spec.get("storageEngine") {
        check_storage_engine(engine).map_err(|error| in_specification(with_version(spec).as_doc(), error))?;
    }
    let index = IndexSpec { name: name.to_owned(), key: key.to_owned(), unique, sparse, spec: spec.to_owned() };
    Ok(IndexSpec {
        spec: DocBuf::build(|writer| {
            let version = spec.get("v").and_then(Value::to_i64).unwrap_or(2);
            writer.append("v", version as i32);
            writer.append("key", key);
            writer.append("name", name);
            // False is stored as absent.
            let shown = |field: &Element<'_>| match field.key() {
                "v" | "key" | "name" | "ns" | "dropDups" | "collation" | "_id" | "originalSpec" => false,
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

/// Returns the collation of an index: its own, or the collection's.
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

fn in_specification(spec: Doc<'_>, error: Error) -> Error {
    error.context(&format!("Error in specification {} :: caused by :: ", display(spec)))
}

/// Returns a specification as later messages show it: with the default version.
pub fn with_version(spec: Doc<'_>) -> DocBuf {
    let mut shown = spec.to_owned();
    if spec.get("v").is_none() {
        shown.append("v", 2);
    }
    shown
}

/// Checks the names and types of the options, in their order.
fn check_options(spec: Doc<'_>, context: &Context) -> Result<()> {
    if let Some(unknown) = spec.elements().find(|field| !is_known(field.key())) {
        return Err(Error::new(
            Code::INVALID_INDEX_SPECIFICATION_OPTION,
            format!(
                "The field '{}' is not valid for an index specification. Specification: {}",
                unknown.key(),
                display(spec)
            ),
        ));
    }
    for field in spec.elements() {
        match field.key() {
            "key" => index_rules::check_pattern(document_option(field)?)?,
            "name" | "default_language" | "language_override" => drop(string_option(field)?),
            "unique" | "sparse" | "background" | "dropDups" | "prepareUnique" => drop(boolean_option(field)?),
            "clustered" if !boolean_option(field)? => {
                return Err(Error::new(Code(6492800), "Value 'false' for field 'clustered' is invalid"));
            }
            "hidden" => check_hidden(field)?,
            "v" => check_version(spec, field)?,
            "partialFilterExpression" => partial_filter(document_option(field)?, context)?,
            "collation" | "originalSpec" if document_option(field)?.is_empty() => {
                return Err(Error::bad_value(format!("The field '{}' cannot be an empty object.", field.key())));
            }
            "originalSpec" => check_options(document_option(field)?, context)?,
            "weights" => check_weights(spec, field)?,
            "wildcardProjection" => check_projection(key(spec), field.value())?,
            "textIndexVersion" | "2dsphereIndexVersion" | "bits" | "min" | "max" => check_number(field)?,
            "coarsestIndexedLevel" | "finestIndexedLevel" => drop(boolean_option(field)?),
            _ => {}
        }
    }
    if options::is_set(spec, "clustered") {
        check_clustered(spec)?;
    }
    for field in ["key", "name"] {
        if spec.get(field).is_none() {
            let message = format!("The '{field}' field is a required property of an index specification");
            return Err(Error::failed_to_parse(message));
        }
    }
    if spec.get("collation").is_some() && spec.get("v").and_then(Value::to_i64) == Some(1) {
        let message = format!(
            "Invalid index specification {}; cannot create an index with the 'collation' option and v=1",
            display(spec)
        );
        return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
    }
    Ok(())
}

fn check_clustered(spec: Doc<'_>) -> Result<()> {
    if !options::is_set(spec, "unique") {
        let message = "The 'unique' field is required when 'clustered' is specified";
        return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
    }
    match spec.elements().find(|option| !OF_CLUSTERED_INDEX.contains(&option.key())) {
        Some(option) => Err(Error::new(
            Code::INVALID_INDEX_SPECIFICATION_OPTION,
            format!(
                "The field '{}' is not valid for a clustered index specification. Specification: {}",
                option.key(),
                display(spec)
            ),
        )),
        None => Ok(()),
    }
}

/// Checks the options of MongoDB's storage engine, which have no effect here.
fn check_storage_engine(engine: Value<'_>) -> Result<()> {
    let refuse = |message: &str| Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
    let Value::Document(engines) = engine else {
        return refuse("\"storageEngine\" options must be a document if present");
    };
    if engines.is_empty() {
        return refuse(
            "Empty \"storageEngine\" options are invalid. Please remove the field or include valid options.",
        );
    }
    create::check_engines(engines)
}

fn check_weights(spec: Doc<'_>, field: Element<'_>) -> Result<()> {
    if key(spec).values().any(|value| value == Value::String("text")) {
        return match field.value() {
            Value::String(_) | Value::Array(_) => Ok(()),
            _ => document_option(field).map(drop),
        };
    }
    if !matches!(field.value(), Value::String(_) | Value::Array(_)) {
        document_option(field)?;
    }
    let spec = display(spec);
    let message =
        format!("Invalid index specification {spec}; the field 'weights' can only be specified with text indexes");
    Err(Error::new(Code::CANNOT_CREATE_INDEX, message))
}

/// Checks that a filter can decide which documents are in an index.
/// Source: <https://www.mongodb.com/docs/manual/core/index-partial/>
fn partial_filter(filter: Doc<'_>, context: &Context) -> Result<()> {
    if filter.get("$expr").is_some() {
        return Err(Error::new(Code::QUERY_FEATURE_NOT_ALLOWED, "$expr is not allowed in this context"));
    }
    Predicate::parse(filter, context).map(drop)
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
            (path, Value::Regex { .. } | Value::IllFormed { kind: Kind::Regex, .. }) => {
                return refused(&format!("{path} regex"));
            }
            (path, Value::Document(condition)) if condition.first().is_some_and(|it| it.key().starts_with('$')) => {
                for (operator, argument) in condition.iter() {
                    match operator {
                        "$eq" | "$in" | "$gt" | "$gte" | "$lt" | "$lte" | "$type" | "$geoWithin" | "$within" => {}
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

fn check_number(field: Element<'_>) -> Result<()> {
    match field.value().kind().is_number() {
        true => Ok(()),
        false => Err(wrong_option(field, "number")),
    }
}

fn check_hidden(field: Element<'_>) -> Result<()> {
    match field.value() {
        Value::Boolean(_) => Ok(()),
        // The wrong field name is MongoDB's.
        value => {
            let message = format!("The field 'name' must be a bool, but got {}", value.kind().alias());
            Err(Error::type_mismatch(message))
        }
    }
}

fn check_version(spec: Doc<'_>, field: Element<'_>) -> Result<()> {
    if !field.value().kind().is_number() {
        return Err(wrong_option(field, "number"));
    }
    let Some(version) = exact_i32(field.value()) else {
        let mut found = String::new();
        store::duplicate::write_value(field.value(), &mut found);
        let message = format!("Index version must be representable as a 32-bit integer, but got {found}");
        return Err(Error::bad_value(message));
    };
    match version {
        1 | 2 => Ok(()),
        version => Err(Error::new(
            Code::CANNOT_CREATE_INDEX,
            format!("Invalid index specification {}; cannot create an index with v={version}", display(spec)),
        )),
    }
}

fn exact_i32(value: Value<'_>) -> Option<i32> {
    as_i64_exact(value).and_then(|integer| i32::try_from(integer).ok())
}

/// Checks when an index's documents expire.
pub fn check_expiry(spec: Doc<'_>) -> Result<()> {
    let Some(value) = spec.get("expireAfterSeconds") else { return Ok(()) };
    let refuse =
        |reason: String| Err(Error::new(Code::CANNOT_CREATE_INDEX, format!("{reason}. Index spec: {}", display(spec))));
    let Some(seconds) = value.to_i64() else {
        let kind = value.kind().alias();
        return refuse(format!(
            "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{kind}'"
        ));
    };
    if seconds < 0 {
        return refuse("TTL index 'expireAfterSeconds' option cannot be less than 0".to_owned());
    }
    if seconds > i64::from(i32::MAX) {
        return refuse(
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number".to_owned(),
        );
    }
    if key(spec).iter().count() > 1 {
        return refuse("TTL indexes are single-field indexes, compound indexes do not support TTL".to_owned());
    }
    Ok(())
}
