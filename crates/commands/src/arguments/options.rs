//! Options that several commands share.

use crate::arguments;
use crate::call::Call;
use crate::read::blocking_bytes_max;
use document::{Collation, Doc, DocBuf, Element, Kind, Value};
use error::{Code, Error, Result};
use query::{Context, Expression};
use std::borrow::Cow;
use store::Namespace;
use values::spill::Budget;

/// Reads `hint`: an index name or key pattern. An empty pattern counts as absent.
pub fn hint<'a>(field: Element<'a>) -> Result<Option<Value<'a>>> {
    match field.value() {
        Value::Document(pattern) if pattern.is_empty() => Ok(None),
        value if matches!(value.kind(), Kind::String | Kind::Document) => Ok(Some(value)),
        _ => Err(Error::failed_to_parse("Hint must be a string or an object")),
    }
}

/// Reads `collation` without parsing it; an empty document counts as absent.
pub fn collation<'a>(within: &str, field: Element<'a>) -> Result<Option<Doc<'a>>> {
    Ok(Some(arguments::document(within, field)?).filter(|collation| !collation.is_empty()))
}

pub fn given_collation(specification: Option<Doc<'_>>) -> Result<Option<Collation>> {
    let specification = specification.filter(|specification| !specification.is_empty());
    specification.map(|specification| Collation::parse(specification, "")).transpose()
}

/// Returns the collation of a command: its own, or the collection's.
pub async fn effective_collation(call: &Call<'_>, namespace: &Namespace, given: Option<Doc<'_>>) -> Result<Collation> {
    match given_collation(given)? {
        Some(given) => Ok(given),
        None => call.worker.store.default_collation(namespace).await,
    }
}

/// Formats a document as MongoDB does in messages.
pub fn display(document: Doc<'_>) -> String {
    let mut text = String::new();
    store::duplicate::write_document(document, &mut text);
    text
}

/// Returns the context of parsers: the command's time, its `let` variables and its collation.
pub fn context(call: &Call<'_>, variables: Option<Doc<'_>>, collation: Collation) -> Result<Context> {
    let mut context = Context { collation, ..call.context() };
    if let Some(variables) = variables {
        context.variables = constants(variables, &context)?.into();
    }
    Ok(context)
}

/// Returns the context of a statement, which may have a collation of its own.
pub fn with_collation(context: &Context, collation: Option<Collation>) -> Cow<'_, Context> {
    match collation {
        Some(collation) if collation != context.collation => Cow::Owned(Context { collation, ..context.clone() }),
        _ => Cow::Borrowed(context),
    }
}

/// Checks the name of a variable in a command's `let`.
fn check_constant_name(name: &str) -> Result<()> {
    if matches!(name, "NOW" | "CLUSTER_TIME" | "JS_SCOPE" | "IS_MR") {
        return Err(Error::new(Code(4738901), format!("Attempt to set internal constant: {name}")));
    }
    query::check_variable_name(name).map_err(|error| {
        Error::new(error.code(), format!("Invalid 'let' parameter :: caused by :: {}", error.message()))
    })
}

/// Evaluates the expressions of variables to constants.
pub fn constants(variables: Doc<'_>, context: &Context) -> Result<DocBuf> {
    let mut known = context.clone();
    let mut constants = DocBuf::new();
    for (name, value) in variables.iter() {
        check_constant_name(name)?;
        let expression = Expression::parse(value, &known)?;
        if expression.reads_document() {
            let message = "Command let Expression tried to access a field, but this is not allowed because Command let \
                           Expressions run before the query examines any documents.";
            return Err(Error::new(Code(4890500), message));
        }
        let evaluated = expression.evaluate(Doc::EMPTY)?;
        // Later variables may use earlier ones.
        known.variables.append(name, evaluated.value_or_null());
        constants.append(name, evaluated.value_or_null());
    }
    Ok(constants)
}

/// Returns the namespace for commands that refuse every invalid name with the same code.
pub fn strict_namespace(database: &str, first: Element<'_>) -> Result<Namespace> {
    arguments::namespace_to_read(database, first).map_err(|error| Error::new(Code::INVALID_NAMESPACE, error.message()))
}

/// Returns a namespace as [`strict_namespace`] does, but accepts a `$`: these commands look such a
/// name up and do not find it.
pub fn strict_name(database: &str, first: Element<'_>) -> Result<Namespace> {
    let refused = |message: &str| Error::new(Code::INVALID_NAMESPACE, message);
    let namespace = arguments::namespace(database, first).map_err(|error| refused(error.message()))?;
    match namespace.collection.starts_with('.') {
        true => Err(refused(&format!("Collection names cannot start with '.': {}", namespace.collection))),
        false => Ok(namespace),
    }
}

/// Returns an error of what MongoDB calls its planner.
pub fn planning_error(namespace: &Namespace, code: Code, reason: &str) -> Error {
    Error::new(code, format!("error processing query: ns={namespace}Tree: $and\nSort: {{}}\nProj: {{}}\n {reason}"))
}

/// Returns the memory and disk budget of a blocking stage. `allowDiskUse: false` forbids the disk.
pub fn budget(call: &Call<'_>, allow_disk_use: Option<bool>) -> Budget {
    let disk = call.worker.server.settings.disk.clone().filter(|_| allow_disk_use.unwrap_or(true));
    Budget { memory_bytes_max: blocking_bytes_max(), disk }
}

pub fn as_count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Reads the batch size in `cursor: {batchSize: n}`.
pub fn cursor_batch_size(within: &str, field: Element<'_>) -> Result<Option<u64>> {
    let cursor = arguments::document(within, field)?;
    // `aggregate` names the option without the command.
    let path = if within == "cursor" { "cursor".to_owned() } else { format!("{within}.cursor") };
    let mut batch_size = None;
    for field in cursor.elements() {
        match field.key() {
            "batchSize" if arguments::is_left_out(field, &["batchSize"]) => {}
            "batchSize" => batch_size = Some(arguments::non_negative("cursor", field)?),
            other => return Err(arguments::unknown_field(&path, other)),
        }
    }
    Ok(batch_size)
}

/// Returns whether an option is on; MongoDB's older options accept any value that counts as true.
pub fn is_set(document: Doc<'_>, key: &str) -> bool {
    document.get(key).is_some_and(Value::is_truthy)
}

/// Returns the document without some of its fields.
pub fn without(document: Doc<'_>, leave_out: impl Fn(&str) -> bool) -> DocBuf {
    DocBuf::build(|writer| {
        document
            .elements()
            .filter(|element| !leave_out(element.key()))
            .for_each(|element| writer.append_element(element));
    })
}
