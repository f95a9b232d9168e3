//! The commands about MongoDB's plan cache, which does not exist here, and about index filters
//! ([`crate::read::index_filters`]).
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/nav-plan-cache/>

use crate::arguments::options::{given_collation, strict_name};
use crate::call::{Call, Disposition};
use crate::views;
use document::{Collation, Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use query::{Predicate, Projection, Sort};
use server::index_filters::{IndexFilter, QueryShape};
use std::collections::BTreeSet;
use store::{CollectionInfo, InFlightWrite, Namespace};

/// `planCacheClear`: succeeds without effect.
pub async fn clear(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    find_collection(call).await?;
    Parts::of(call)?.map(|parts| parts.shape(call)).transpose()?;
    Ok(Disposition::Reply)
}

/// `planCacheClearFilters`: removes index filters.
pub async fn clear_filters(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let collection = find_collection(call).await?;
    let shape = Parts::of(call)?.map(|parts| parts.shape(call)).transpose()?;
    if let Some(collection) = collection {
        let _invalidated = invalidate_replies(call, &collection);
        call.worker.server.index_filters.clear(collection.uuid, shape.as_ref());
    }
    Ok(Disposition::Reply)
}

/// `planCacheListFilters`: lists the index filters of a collection.
pub async fn list_filters(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let collection = find_collection(call).await?;
    let filters = collection.map(|collection| call.worker.server.index_filters.of(collection.uuid));
    let mut array = reply.array("filters");
    for filter in filters.into_iter().flatten() {
        let mut writer = array.document();
        writer.append("query", &filter.query);
        writer.append("sort", &filter.sort);
        writer.append("projection", &filter.projection);
        if let Some(collation) = &filter.collation {
            writer.append("collation", collation);
        }
        writer.append("indexes", Value::Array(filter.indexes.as_doc()));
    }
    drop(array);
    Ok(Disposition::Reply)
}

/// `planCacheSetFilter`: sets an index filter.
pub async fn set_filter(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let collection = find_collection(call).await?.ok_or_else(|| Error::bad_value("no such collection"))?;
    let indexes = indexes(call)?;
    let missing = || Error::bad_value("required field query missing");
    call.fields().find(|field| field.key() == "query").ok_or_else(missing)?;
    let parts = Parts::of(call)?.ok_or_else(missing)?;
    let filter = IndexFilter::new(parts.shape(call)?, [parts.query, parts.sort, parts.projection], indexes);
    let _invalidated = invalidate_replies(call, &collection);
    call.worker.server.index_filters.set(collection.uuid, filter);
    Ok(Disposition::Reply)
}

/// Invalidates the cached replies of a collection: their order depends on the index that they were
/// read by.
fn invalidate_replies(call: &Call<'_>, collection: &CollectionInfo) -> Option<Box<dyn InFlightWrite>> {
    let cache = call.worker.server.document_cache.as_ref()?;
    Some(cache.invalidate(&Namespace::new(call.database(), &collection.name)))
}

/// Returns the collection of the command. Fails for a view.
async fn find_collection(call: &Call<'_>) -> Result<Option<CollectionInfo>> {
    let namespace = strict_name(call.database(), call.first())?;
    views::refuse(call, &namespace).await?;
    call.worker.store.collection(&namespace).await
}

/// Returns the distinct names and key patterns of a filter, patterns first. Fails with 2.
fn indexes(call: &Call<'_>) -> Result<DocBuf> {
    let refuse = |reason: &str| Err(Error::bad_value(reason));
    let Some(field) = call.fields().find(|field| field.key() == "indexes") else {
        return refuse("required field indexes missing");
    };
    let Some(array) = field.value().as_array() else { return refuse("required field indexes must be an array") };
    if array.is_empty() {
        return refuse("required field indexes must contain at least one index");
    }
    let (mut patterns, mut names) = (Vec::<Doc<'_>>::new(), BTreeSet::new());
    for value in array.values() {
        match value {
            Value::Document(pattern) if pattern.is_empty() => return refuse("index specification cannot be empty"),
            Value::Document(pattern) => patterns.push(pattern),
            Value::String(name) => drop(names.insert(name)),
            _ => return refuse("each item in indexes must be an object or string"),
        }
    }
    let order = |a: &Doc<'_>, b: &Doc<'_>| document::compare(Value::Document(*a), Value::Document(*b));
    patterns.sort_by(order);
    patterns.dedup_by(|a, b| order(a, b).is_eq());
    let values = patterns.into_iter().map(Value::Document).chain(names.into_iter().map(Value::String));
    Ok(DocBuf::build(|writer| values.enumerate().for_each(|(at, value)| writer.append(&at.to_string(), value))))
}

/// Reads a part of a query shape. Arrays count as objects.
fn part<'a>(field: Element<'a>, kind: &str) -> Result<Doc<'a>> {
    match field.value() {
        Value::Document(part) | Value::Array(part) => Ok(part),
        _ => Err(Error::bad_value(format!("{kind} field {} must be an object", field.key()))),
    }
}

/// The parts of a query shape.
struct Parts<'a> {
    query: Doc<'a>,
    sort: Doc<'a>,
    projection: Doc<'a>,
    collation: Option<Doc<'a>>,
}

impl<'a> Parts<'a> {
    /// Returns `None` if no shape is given. Fails with 2.
    fn of(call: &'a Call<'_>) -> Result<Option<Parts<'a>>> {
        let fields = || call.fields().filter(|field| ["sort", "projection", "collation"].contains(&field.key()));
        let Some(query) = call.fields().find(|field| field.key() == "query") else {
            return match fields().next() {
                Some(_) => Err(Error::bad_value("sort, projection, or collation provided without query")),
                None => Ok(None),
            };
        };
        let query = part(query, "required")?;
        let mut parts = Parts { query, sort: Doc::EMPTY, projection: Doc::EMPTY, collation: None };
        for field in fields() {
            let part = part(field, "optional")?;
            match field.key() {
                "sort" => parts.sort = part,
                "projection" => parts.projection = part,
                _ => parts.collation = Some(part),
            }
        }
        Ok(Some(parts))
    }

    /// Parses the parts. Fails with their errors.
    fn shape(&self, call: &Call<'_>) -> Result<QueryShape> {
        let collation = given_collation(self.collation)?.unwrap_or(Collation::SIMPLE);
        let context = call.context();
        let predicate = Predicate::parse(self.query, &context)?;
        let sort = Sort::parse(self.sort, &context)?;
        let projection = Projection::parse(self.projection, self.query, &context)?;
        let paths = if self.projection.is_empty() { None } else { projection.paths_read() };
        Ok(QueryShape::new(&predicate, Some(&sort), paths, collation))
    }
}

/// Fails with 50933 if the collection of a `$planCacheStats` does not exist.
pub async fn check_collection(call: &Call<'_>, namespace: &Namespace) -> Result<()> {
    let exists = call.worker.store.collection(namespace).await?.is_some();
    if exists || views::definition(call, namespace).await?.is_some() {
        return Ok(());
    }
    let message = "PlanExecutor error during aggregation :: caused by :: collection";
    Err(Error::new(Code(50933), format!("{message} '{namespace}' does not exist")))
}

/// Checks the operand of `$planCacheStats`, which returns no documents. Fails with 9 unless it is
/// an empty document.
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
