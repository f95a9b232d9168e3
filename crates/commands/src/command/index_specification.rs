//! One of the specifications that `createIndexes` is given: which options there are, and of what types.
//!
//! What an index's kind makes of them is for [`store::index_kind`].

use crate::arguments;
use crate::command::options::{self, display};
use crate::dispatch::Call;
use document::{Collation, Doc, DocBuf, Element, Value};
use error::{Code, Error, Result};
use query::{Context, Predicate};
use store::index_kind::wildcard::check_projection;
use store::{IndexSpec, index_rules};

/// Reads a specification, of an index on a collection with this collation.
pub fn read(spec: Doc<'_>, default: &Collation, call: &Call<'_>) -> Result<IndexSpec> {
    let context = Context { collation: index_collation(spec, default)?, ..call.context() };
    let index = index_spec(spec, &context).map_err(|error| in_specification(spec, error))?;
    // Judged with the specification as it was sent, which messages show.
    index_rules::check_key(&IndexSpec { spec: spec.to_owned(), ..index.clone() })?;
    check_kind_options(spec, index.key.as_doc()).map_err(|error| in_specification(spec, error))?;
    check_expiry(spec)?;
    Ok(index)
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

fn in_specification(spec: Doc<'_>, error: Error) -> Error {
    error.context(&format!("Error in specification {} :: caused by :: ", display(spec)))
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
            "weights" if field.value().as_str().is_none() => drop(document_option(field)?),
            "default_language" | "language_override" => drop(string_option(field)?),
            "textIndexVersion" | "2dsphereIndexVersion" | "bits" | "min" | "max" => check_number(field)?,
            "coarsestIndexedLevel" | "finestIndexedLevel" => drop(boolean_option(field)?),
            "ns" | "weights" | "wildcardProjection" => {}
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
            let version = spec.get("v").and_then(arguments::number_to_i64).unwrap_or(2);
            writer.append("v", version as i32);
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

/// Options that only one kind of index has.
fn check_kind_options(spec: Doc<'_>, key: Doc<'_>) -> Result<()> {
    if let Some(projection) = spec.get("wildcardProjection") {
        check_projection(key, projection)?;
    }
    if spec.get("weights").is_some() && !key.values().any(|value| value == Value::String("text")) {
        let spec = display(spec);
        let message =
            format!("Invalid index specification {spec}; the field 'weights' can only be specified with text indexes");
        return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
    }
    Ok(())
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
