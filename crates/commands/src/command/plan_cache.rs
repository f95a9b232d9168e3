//! The plan cache and its index filters. Plans are made anew for each query, and no filter stands between a query and the
//! indexes: there is nothing to list and nothing to clear.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/nav-plan-cache/>

use crate::command::options::strict_name;
use crate::command::views;
use crate::dispatch::{Call, Disposition};
use document::{Doc, DocWriter, Element, Value};
use error::{Code, Error, Result};
use query::{Predicate, Projection, Sort};
use store::Namespace;

/// `planCacheClear`, `planCacheClearFilters`
pub async fn clear(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    check_name(call).await?;
    check_shape(call)?;
    Ok(Disposition::Reply)
}

/// The name has to be a collection's, if it is anything's.
async fn check_name(call: &Call<'_>) -> Result<()> {
    let namespace = strict_name(call.database(), call.first())?;
    views::refuse(call, &namespace).await
}

/// `planCacheListFilters`
pub async fn list_filters(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    check_name(call).await?;
    drop(reply.array("filters"));
    Ok(Disposition::Reply)
}

/// A part of a query shape. Lists are objects to it.
fn part<'a>(field: Element<'a>, kind: &str) -> Result<Doc<'a>> {
    match field.value() {
        Value::Document(part) | Value::Array(part) => Ok(part),
        _ => Err(Error::bad_value(format!("{kind} field {} must be an object", field.key()))),
    }
}

/// The query shape that is meant, if one is, has to be one. Error 2, and those of its parts.
fn check_shape(call: &Call<'_>) -> Result<()> {
    let (mut query, mut has_more) = (None, false);
    let (mut sort, mut projection) = (Doc::EMPTY, Doc::EMPTY);
    let fields = || call.fields().filter(|field| ["sort", "projection", "collation"].contains(&field.key()));
    if let Some(field) = call.fields().find(|field| *field.key() == *"query") {
        query = Some(part(field, "required")?);
        for field in fields() {
            match field.key() {
                "sort" => sort = part(field, "optional")?,
                "projection" => projection = part(field, "optional")?,
                _ => drop(part(field, "optional")?),
            }
        }
    }
    has_more |= fields().next().is_some();
    let Some(query) = query else {
        return match has_more {
            true => Err(Error::bad_value("sort, projection, or collation provided without query")),
            false => Ok(()),
        };
    };
    let context = call.context();
    let predicate = Predicate::parse(query, &context)?;
    Sort::parse(sort, &context)?;
    Projection::parse(projection, &predicate, &context).map(drop)
}

/// Error 50933 where `$planCacheStats` is asked of no collection.
pub async fn check_collection(call: &Call<'_>, namespace: &Namespace) -> Result<()> {
    let exists = call.worker.store.collection(namespace).await?.is_some();
    if exists || views::definition(call, namespace).await?.is_some() {
        return Ok(());
    }
    let message = "PlanExecutor error during aggregation :: caused by :: collection";
    Err(Error::new(Code(50933), format!("{message} '{namespace}' does not exist")))
}

/// The operand of `$planCacheStats`, which gives no documents. Error 9 for one that is no empty document.
pub fn check_stage(operand: Value<'_>) -> Result<()> {
    let Some(options) = operand.as_document() else {
        let kind = operand.kind().alias();
        let message = format!("$planCacheStats value must be an object. Found: {kind}");
        return Err(Error::failed_to_parse(message));
    };
    match options.is_empty() {
        true => Ok(()),
        false => Err(Error::failed_to_parse("$planCacheStats parameters object must be empty. Found: object")),
    }
}
