//! `mapReduce`: JavaScript, which does not run here. The answers are those of a server that was told so (`--noscripting`).
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/mapReduce/>

use crate::arguments::{self, is_absent, missing_field, unknown_field};
use crate::command::options::{self, strict_name};
use crate::dispatch::{Call, Disposition};
use document::{DocWriter, Element, Kind};
use error::{Code, Error, Result};

const WITHIN: &str = "mapReduce";

pub async fn map_reduce(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let (mut map, mut reduce, mut out) = (false, false, None);
    for field in call.fields() {
        match field.key() {
            "map" => map = check_code(field)?,
            "reduce" => reduce = check_code(field)?,
            "out" => out = Some(field),
            "finalize"
            | "query"
            | "sort"
            | "limit"
            | "scope"
            | "verbose"
            | "bypassDocumentValidation"
            | "collation"
            | "jsMode"
            | "let"
                if is_absent(field) => {}
            "finalize" => drop(check_code(field)?),
            "collation" => drop(options::given_collation(options::collation(WITHIN, field)?)?),
            "query" | "let" => drop(arguments::document(WITHIN, field)?),
            "sort" => {
                if arguments::document(WITHIN, field)?.is_empty() {
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
    if out.is_some_and(|out| !matches!(out.kind, Kind::String | Kind::Document)) {
        return Err(Error::bad_value("'out' must be either a string or an object"));
    }
    let namespace = strict_name(call.database(), call.first())?;
    if call.worker.store.collection(&namespace).await?.is_some() {
        let message = "MapReduce internal error :: caused by :: Cannot run server-side javascript without the javascript \
                       engine enabled";
        return Err(Error::new(Code(31264), message));
    }
    drop(reply.array("results"));
    Ok(Disposition::Reply)
}

fn check_code(field: Element<'_>) -> Result<bool> {
    match field.kind {
        Kind::String | Kind::Code | Kind::CodeWithScope => Ok(true),
        _ => Err(Error::bad_value(format!("'{}' must be of string or code type", field.key()))),
    }
}
