//! `mapReduce`: refused, because JavaScript does not run here. The replies are those of a MongoDB
//! server with `--noscripting`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/mapReduce/>

use crate::arguments;
use crate::arguments::options;
use crate::arguments::options::strict_name;
use crate::arguments::{is_absent, missing_field, unknown_field};
use crate::call::{Call, Disposition};
use crate::views;
use document::{Doc, DocWriter, Element, Kind, Value};
use error::{Code, Error, Result};
use query::{Predicate, Sort};

const WITHIN: &str = "mapReduce";
const INTERNAL: &str = "MapReduce internal error :: caused by :: ";

pub async fn map_reduce(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let (mut map, mut reduce, mut out) = (false, false, None);
    let (mut query, mut sort) = (Doc::EMPTY, Doc::EMPTY);
    for field in call.fields() {
        match field.key() {
            "map" => map = check_code(field)?,
            "reduce" => reduce = check_code(field)?,
            "out" => out = Some(Target::read(call.database(), field)?),
            "finalize"
            | "query"
            | "sort"
            | "limit"
            | "scope"
            | "verbose"
            | "bypassDocumentValidation"
            | "collation"
            | "jsMode"
                if is_absent(field) => {}
            "finalize" => drop(check_code(field)?),
            "collation" => drop(options::given_collation(options::collation(WITHIN, field)?)?),
            "query" => query = arguments::document(WITHIN, field)?,
            "sort" => {
                sort = arguments::document(WITHIN, field)?;
                if sort.is_empty() {
                    let message = "The mapReduce sort option must have at least one sort key";
                    return Err(Error::new(Code(15976), message));
                }
            }
            "limit" => {
                if arguments::integer(WITHIN, field)? <= 0 {
                    let message = "The limit specified to mapReduce must be positive";
                    return Err(Error::new(Code(15958), message));
                }
            }
            "scope" if field.kind != Kind::Document => return Err(Error::bad_value("'scope' must be an object")),
            "scope" => {}
            "verbose" | "bypassDocumentValidation" | "jsMode" => drop(arguments::boolean(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    let given = [("map", map), ("reduce", reduce), ("out", out.is_some())];
    if let Some((name, _)) = given.into_iter().find(|(_, given)| !given) {
        return Err(missing_field(WITHIN, name));
    }
    if call.first().kind != Kind::String {
        return Err(Error::bad_value(format!("collection name has invalid type {}", call.first().kind.alias())));
    }
    let namespace = strict_name(call.database(), call.first())?;
    if views::definition(call, &namespace).await?.is_some() {
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, "mapReduce on a view is not supported"));
    }
    let target = out.unwrap_or_default();
    let checked = target.check_sharded().and_then(|()| {
        let context = call.context();
        Sort::parse(sort, &context)?;
        Predicate::parse(query, &context)?;
        target.check_name()
    });
    checked.map_err(|error| error.context(INTERNAL))?;
    if call.worker.store.collection(&namespace).await?.is_some() {
        let message = "Cannot run server-side javascript without the javascript engine enabled";
        return Err(Error::new(Code(31264), message).context(INTERNAL));
    }
    target.write(reply);
    Ok(Disposition::Reply)
}

/// The target of the results: `out`.
#[derive(Default)]
struct Target<'a> {
    /// The collection; `None` for results in the reply.
    collection: Option<&'a str>,
    /// The database, if it differs from the command's.
    database: Option<&'a str>,
    /// The treatment of existing documents.
    mode: &'static str,
    sharded: bool,
}

impl<'a> Target<'a> {
    /// Reads `out`. Fails with 2, 72 or 73.
    fn read(database: &str, field: Element<'a>) -> Result<Target<'a>> {
        let refuse = |reason: &str| Err(Error::bad_value(reason));
        let target = match field.value() {
            Value::String(name) => Target { collection: Some(name), mode: "replace", ..Target::default() },
            Value::Document(out) if out.get("inline").is_some() => {
                let is_one = |value: Value<'_>| value.kind().is_number() && arguments::number_to_i64(value) == Some(1);
                return match out.get("inline") {
                    _ if out.elements().count() > 1 => {
                        Err(Error::new(Code::INVALID_OPTIONS, "'inline' must be specified alone"))
                    }
                    Some(value) if is_one(value) => Ok(Target::default()),
                    _ => refuse("'inline' takes only numeric '1'"),
                };
            }
            Value::Document(out) => Self::read_document(out)?,
            _ => return refuse("'out' must be either a string or an object"),
        };
        match target.collection {
            Some("") => {
                let database = target.database.unwrap_or(database);
                let message = format!("Invalid output namespace {database}. for MapReduce");
                Err(Error::new(Code::INVALID_NAMESPACE, message))
            }
            _ => Ok(target),
        }
    }

    fn read_document(out: Doc<'a>) -> Result<Target<'a>> {
        let refuse = |reason: &str| Err(Error::bad_value(reason));
        let Some(mode) = ["replace", "merge", "reduce"].into_iter().find(|mode| out.get(mode).is_some()) else {
            return refuse("'out' requires 'replace', 'merge' or 'reduce'");
        };
        for flag in ["sharded", "nonAtomic"] {
            match out.get(flag) {
                None | Some(Value::Boolean(true)) => {}
                Some(Value::Boolean(false)) => return refuse(&format!("{flag} field value must be true")),
                Some(_) => return refuse(&format!("{flag} field value must be boolean")),
            }
        }
        let Some(collection) = out.get(mode).and_then(Value::as_str) else {
            return refuse(&format!("'{mode}' supports only string consisting of output collection name"));
        };
        let other = match out.get("db") {
            None => None,
            Some(Value::String(other)) => Some(other),
            Some(_) => return refuse("db field value must be string"),
        };
        let known = |name: &str| name == mode || matches!(name, "db" | "sharded" | "nonAtomic");
        if out.elements().any(|field| !known(field.key())) {
            return refuse(
                "'out' supports only output type with collection name, optional 'sharded' and optional 'db'",
            );
        }
        other.map_or(Ok(()), arguments::check_database)?;
        let sharded = out.get("sharded").is_some();
        Ok(Target { collection: Some(collection), database: other, mode, sharded })
    }

    /// Writes the reply for no documents.
    fn write(&self, reply: &mut DocWriter<'_>) {
        match (self.collection, self.database) {
            (None, _) => drop(reply.array("results")),
            (Some(collection), None) => reply.append("result", collection),
            (Some(collection), Some(database)) => {
                let mut result = reply.document("result");
                result.append("db", database);
                result.append("collection", collection);
            }
        }
    }

    /// Fails with 72: there are no sharded collections.
    fn check_sharded(&self) -> Result<()> {
        let message = match self.mode {
            _ if !self.sharded => return Ok(()),
            "replace" => {
                "Combination of 'out.sharded' and 'replace' output mode is not supported. Cannot replace an existing \
                 sharded collection or create a new sharded collection. Please create the sharded collection first and use \
                 a different output mode or consider using an unsharded collection."
            }
            _ => {
                "Cannot use mapReduce to create a new sharded collection. Please create and shard the target collection \
                 before proceeding."
            }
        };
        Err(Error::new(Code::INVALID_OPTIONS, message))
    }

    /// Fails with 20 for a name that no collection can have.
    fn check_name(&self) -> Result<()> {
        match self.collection {
            Some(name) if self.mode == "replace" && name.contains('$') => {
                let message = format!("error with target namespace: Invalid collection name: {name}");
                Err(Error::new(Code::ILLEGAL_OPERATION, message))
            }
            _ => Ok(()),
        }
    }
}

fn check_code(field: Element<'_>) -> Result<bool> {
    match field.kind {
        Kind::String | Kind::Code | Kind::CodeWithScope => Ok(true),
        _ => Err(Error::bad_value(format!("'{}' must be of string or code type", field.key()))),
    }
}
