//! `$listCatalog`: the stored metadata of one collection or all, in the form of MongoDB's catalog.
//!
//! Source: <https://www.mongodb.com/docs/v6.0/reference/operator/aggregation/listCatalog/>

use crate::call::Call;
use crate::collection_options::clustered;
use crate::time_series;
use crate::time_series::Series;
use crate::views;
use document::{Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use query::Predicate;
use server::logical_session::uuid_text;
use std::collections::VecDeque;
use store::{CollectionInfo, IndexSpec, Namespace, Query};

/// The collection name of a pipeline for all databases.
const COLLECTIONLESS: &str = "$cmd.aggregate";

/// Fails with 6200600 unless the operand is empty.
pub fn check(operand: Value<'_>) -> Result<()> {
    match operand {
        Value::Document(options) if options.is_empty() => Ok(()),
        _ => Err(Error::new(Code(6200600), "The $listCatalog stage specification must be an empty object")),
    }
}

/// Returns the entries of one collection or all. Fails with 73 if all are requested in another
/// database than `admin`, and 40602 for a view, behind whose stages it would not be first.
pub async fn documents(call: &Call<'_>, namespace: &Namespace) -> Result<VecDeque<DocBuf>> {
    if &*namespace.collection != COLLECTIONLESS {
        let found = call.worker.store.collection(namespace).await?;
        if found.is_none() && views::definition(call, namespace).await?.is_some() {
            let view = views::resolve(call, namespace).await?;
            if !view.stages.as_doc().is_empty() {
                return Err(Error::new(Code(40602), "$listCatalog is only valid as the first stage in a pipeline"));
            }
            let found = call.worker.store.collection(&view.base).await?;
            return of_collections(call, &view.base.database, found).await;
        }
        return of_collections(call, &namespace.database, found).await;
    }
    if &*namespace.database != "admin" {
        let message = "Collectionless $listCatalog must be run against the 'admin' database with {aggregate: 1}";
        return Err(Error::new(Code::INVALID_NAMESPACE, message));
    }
    let (mut collections, mut definitions) = (VecDeque::new(), VecDeque::new());
    for database in call.worker.store.databases().await? {
        let all = call.worker.store.collections(&database.name).await?;
        collections.extend(of_collections(call, &database.name, all).await?);
        let views = views::all(call, &database.name).await?;
        definitions.extend(views.iter().filter_map(|definition| of_view(&database.name, definition)));
    }
    collections.extend(definitions);
    Ok(collections)
}

async fn of_collections(
    call: &Call<'_>,
    database: &str,
    collections: impl IntoIterator<Item = CollectionInfo>,
) -> Result<VecDeque<DocBuf>> {
    let mut entries = VecDeque::new();
    for collection in collections {
        let namespace = Namespace::new(database, &collection.name);
        let is_clustered = clustered::of(collection.options.as_doc()).is_some()
            || time_series::is_of_buckets(collection.options.as_doc());
        let mut indexes = call.worker.store.indexes(&namespace).await?.unwrap_or_default();
        indexes.retain(|index| !is_clustered || index.name != "_id_");
        // The index on `_id` has the collection's collation.
        if let (Some(collation), Some(id)) =
            (collection.options.as_doc().get("collation"), indexes.iter_mut().find(|index| index.name == "_id_"))
        {
            id.spec.append("collation", collation);
        }
        let mut of_indexes = Vec::with_capacity(indexes.len());
        for index in &indexes {
            of_indexes.push(of_index(index, is_multikey(call, &namespace, index).await?));
        }
        entries.push_back(of_collection(&namespace, &collection, &indexes, &of_indexes));
    }
    Ok(entries)
}

fn of_collection(namespace: &Namespace, info: &CollectionInfo, indexes: &[IndexSpec], written: &[DocBuf]) -> DocBuf {
    let ident = uuid_text(&info.uuid);
    let metadata = |writer: &mut DocWriter<'_>| {
        let mut metadata = writer.document("md");
        metadata.append("ns", &namespace.to_string());
        {
            let mut options = metadata.document("options");
            options.append("uuid", Value::Binary { subtype: 4, bytes: &info.uuid });
            info.options.as_doc().elements().for_each(|option| options.append_element(option));
        }
        let mut array = metadata.array("indexes");
        written.iter().for_each(|index| array.push(index));
        drop(array);
        if time_series::is_of_buckets(info.options.as_doc()) {
            metadata.append("timeseriesBucketsMayHaveMixedSchemaData", false);
        }
    };
    DocBuf::build(|writer| {
        writer.append("db", &*namespace.database);
        writer.append("name", &*namespace.collection);
        writer.append("type", "collection");
        if !indexes.is_empty() {
            metadata(writer);
            let mut idents = writer.document("idxIdent");
            indexes.iter().for_each(|index| idents.append(&index.name, &format!("index-{}-{ident}", index.name)));
        }
        writer.append("ns", &namespace.to_string());
        writer.append("ident", &format!("collection-{ident}"));
        if indexes.is_empty() {
            metadata(writer);
        }
    })
}

/// Returns the entry of an index. The paths with arrays are reported as far as they follow from
/// `multikey`.
fn of_index(index: &IndexSpec, multikey: bool) -> DocBuf {
    let key = index.key.as_doc();
    let is_ordered = |field: Element<'_>| field.kind.is_number() || field.value().as_str() == Some("2dsphere");
    let has_paths = key.elements().all(|field| is_ordered(field) && !field.key().contains("$**"));
    let mut paths = key.iter().map(|(path, _)| path);
    let is_told = !multikey || matches!((paths.next(), paths.next()), (Some(only), None) if !only.contains('.'));
    DocBuf::build(|writer| {
        writer.append("spec", &index.spec);
        writer.append("ready", true);
        writer.append("multikey", multikey);
        if has_paths && is_told {
            let mut writer = writer.document("multikeyPaths");
            for (path, _) in key.iter() {
                let bytes = vec![u8::from(multikey); path.split('.').count()];
                writer.append(path, Value::Binary { subtype: 0, bytes: &bytes });
            }
        }
        writer.append("head", 0_i64);
        writer.append("backgroundSecondary", false);
    })
}

/// Returns whether documents have arrays in the index's fields, according to a plan that uses the
/// index.
async fn is_multikey(call: &Call<'_>, namespace: &Namespace, index: &IndexSpec) -> Result<bool> {
    let everything = Predicate::everything();
    let hint = Some(Value::String(&index.name));
    let query = Query { hint, ..Query::of(&everything) };
    let plan = match call.worker.store.plan(namespace, query).await {
        Ok(plan) => plan.winning_plan(),
        // A hidden index cannot be hinted.
        Err(error) if error.code() == Code::BAD_VALUE => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(says_multikey(plan.as_doc()))
}

fn says_multikey(stage: Doc<'_>) -> bool {
    stage.iter().any(|(key, value)| match value {
        Value::Boolean(flag) => flag && key == "isMultiKey",
        Value::Document(inner) => says_multikey(inner),
        _ => false,
    })
}

fn of_view(database: &str, definition: &DocBuf) -> Option<DocBuf> {
    let (name, _) = views::parts(database, definition)?;
    let is_series = Series::of(database, definition.as_doc()).is_some();
    Some(DocBuf::build(|writer| {
        writer.append("db", database);
        writer.append("name", name);
        writer.append("type", if is_series { "timeseries" } else { "view" });
        writer.append("ns", &Namespace::new(database, name).to_string());
        definition.as_doc().elements().for_each(|field| writer.append_element(field));
    }))
}
