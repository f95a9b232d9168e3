//! The plan cache and its index filters. Plans are made anew for each query, and no filter stands between a query and the
//! indexes: there is nothing to list and nothing to clear.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/nav-plan-cache/>

use crate::arguments::is_absent;
use crate::command::options::strict_namespace;
use crate::command::views;
use crate::dispatch::{Call, Disposition};
use document::{Doc, DocWriter, Value};
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
    let namespace = strict_namespace(call.database(), call.first())?;
    views::refuse(call, &namespace).await
}

/// `planCacheListFilters`
pub async fn list_filters(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    check_name(call).await?;
    drop(reply.array("filters"));
    Ok(Disposition::Reply)
}

/// The query shape that is meant, if one is, has to be one. Error 2, and those of its parts.
fn check_shape(call: &Call<'_>) -> Result<()> {
    let (mut query, mut has_more) = (None, false);
    let (mut sort, mut projection) = (Doc::EMPTY, Doc::EMPTY);
    for field in call.fields().filter(|field| !is_absent(*field)) {
        let part = || {
            let message = format!("required field {} must be an object", field.key());
            field.value().as_document().ok_or_else(|| Error::bad_value(message))
        };
        match field.key() {
            "query" => query = Some(part()?),
            "sort" => (sort, has_more) = (part()?, true),
            "projection" => (projection, has_more) = (part()?, true),
            "collation" => (_, has_more) = (part()?, true),
            _ => {}
        }
    }
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
