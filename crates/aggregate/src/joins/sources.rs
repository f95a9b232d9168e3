//! The input of stages that read other collections: their names, or documents of their own.

use document::{ArrayWriter, Doc, DocBuf, Value};
use error::{Code, Error, Result};
use query::metadata::Needs;
use query::{Context, Expression};
use steps::Counted;

/// Parses the name of the collection in `from`.
pub(crate) fn parse_source<'v>(stage: &str, from: Value<'v>) -> Result<&'v str> {
    match from {
        Value::String(collection) => Ok(collection),
        Value::Document(spec) => {
            let [mut database, mut collection] = [""; 2];
            for (name, value) in spec.iter() {
                let wrong = || {
                    let kind = value.kind().alias();
                    let message =
                        format!("BSON field 'from.{name}' is the wrong type '{kind}', expected type 'string'");
                    Error::type_mismatch(message)
                };
                match name {
                    "db" => database = value.as_str().ok_or_else(wrong)?,
                    "coll" => collection = value.as_str().ok_or_else(wrong)?,
                    _ => {
                        let message = format!("BSON field 'from.{name}' is an unknown field.");
                        return Err(Error::new(Code(40415), message));
                    }
                }
            }
            Err(Error::failed_to_parse(format!(
                "{stage} with syntax {{from: {{db:<>, coll:<>}},..}} is not supported for db: {database} and coll: \
                 {collection}"
            )))
        }
        other => {
            let kind = other.kind().alias();
            Err(Error::failed_to_parse(format!("{stage} 'from' field must be a string, but found {kind}")))
        }
    }
}

/// Returns the operand of a leading `$documents`, and the stages after it.
pub(super) fn split_documents<'v>(stages: Doc<'v>) -> (Option<Value<'v>>, DocBuf) {
    let first = stages.values().next().and_then(Value::as_document).and_then(Doc::first);
    let documents = first.filter(|first| first.key() == "$documents").map(|first| first.value());
    let mut bytes = Vec::new();
    let mut rest = ArrayWriter::begin(&mut bytes);
    stages.values().counted().skip(usize::from(documents.is_some())).for_each(|stage| rest.push(stage));
    drop(rest);
    (documents, DocBuf::from_vec(bytes).unwrap_or_default())
}

/// Evaluates the operand of `$documents`. Fails with 5858203 if the result is no array, and with
/// 40228 for elements that are no documents.
pub fn documents_of(operand: Value<'_>, context: &Context) -> Result<Vec<DocBuf>> {
    let expression = Expression::parse(operand, context)?;
    let evaluated = expression.evaluate(Doc::EMPTY)?;
    let Some(Value::Array(array)) = evaluated.value() else {
        return Err(Error::new(Code(5858203), "an array is expected"));
    };
    array
        .values()
        .counted()
        .map(|element| match element {
            Value::Document(document) => Ok(document.to_owned()),
            other => {
                let (found, kind) = (values::text::display(other), other.kind().alias());
                let message = format!(
                    "elements within the array passed to $documents must evaluate to an object, but resulting value was: \
                     {found}. Type of resulting value: '{kind}'."
                );
                Err(Error::new(Code(40228), message))
            }
        })
        .collect()
}

/// Returns the metadata that the first stage adds to documents: those of a text search, or of a
/// search by distance.
pub(crate) fn source_metadata(stages: Doc<'_>) -> Needs {
    let first = stages.values().next().and_then(Value::as_document).and_then(Doc::first);
    match first.map(|stage| (stage.key(), stage.value())) {
        Some(("$match", Value::Document(filter))) => Needs::given_by(filter),
        Some(("$geoNear", _)) => Needs::given_by_near(),
        _ => Needs::NONE,
    }
}

/// Returns the error for a stage that names no collection and whose pipeline has no `$documents`.
pub(crate) fn missing_source(stage: &str) -> Error {
    let message =
        format!("{stage} stage without explicit collection must have a pipeline with $documents as first stage");
    Error::failed_to_parse(message)
}

pub(crate) fn wrong_type(stage: &str, name: &str, found: Value<'_>, expected: &str) -> Error {
    let kind = found.kind().alias();
    Error::type_mismatch(format!("BSON field '{stage}.{name}' is the wrong type '{kind}', expected type '{expected}'"))
}

pub(crate) fn unknown_field(stage: &str, name: &str) -> Error {
    Error::new(Code(40415), format!("BSON field '{stage}.{name}' is an unknown field."))
}
