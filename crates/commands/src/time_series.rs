//! Time-series collections, stored as in MongoDB: a view over a collection of buckets.
//!
//! The collection `system.buckets.NAME` holds a bucket per measurement, and the view `NAME` unpacks
//! them. So reads are reads of a view ([`views`](super::views)), and writes are translated into
//! statements on buckets.
//!
//! Source: <https://www.mongodb.com/docs/v6.0/core/timeseries-collections/>

pub mod bucket;
pub mod indexes;
pub mod options;
pub mod reading;
pub mod writing;

use crate::call::Call;
use crate::views;
use crate::views::definitions;
use aggregate::UNPACK_BUCKET;
use document::{Doc, Value};
use error::{Code, Error, Result};
use options::{Granularity, Options, Others};
use store::Namespace;

/// The prefix of the names of collections of buckets.
pub const BUCKETS: &str = "system.buckets.";

/// The option of a collection of buckets, as `create` takes it.
pub const OPTION: &str = "timeseries";

/// The definition of a time-series collection.
#[derive(Debug)]
pub struct Series {
    pub time_field: Box<str>,
    pub meta_field: Option<Box<str>>,
    pub buckets: Namespace,
}

impl Series {
    /// Returns the collection that a view definition stands for; `None` for other views.
    pub fn of(database: &str, definition: Doc<'_>) -> Option<Series> {
        let buckets = definition.get("viewOn")?.as_str().filter(|name| name.starts_with(BUCKETS))?;
        let stage = definition.get("pipeline")?.as_array()?.values().next()?.as_document()?.first()?;
        let spec = stage.value().as_document().filter(|_| stage.key() == UNPACK_BUCKET)?;
        let field = |name: &str| Some(spec.get(name)?.as_str()?.into());
        Some(Series {
            time_field: field("timeField")?,
            meta_field: field("metaField"),
            buckets: Namespace::new(database, buckets),
        })
    }

    /// Returns the path within a bucket for a path within a measurement, if it begins with the meta
    /// field.
    pub fn meta_path(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(self.meta_field.as_deref()?)?;
        (rest.is_empty() || rest.starts_with('.')).then(|| format!("meta{rest}"))
    }

    /// Returns the metadata of the collection of buckets.
    pub async fn options(&self, call: &Call<'_>) -> Result<Option<store::CollectionInfo>> {
        call.worker.store.collection(&self.buckets).await
    }
}

/// Returns the time-series collection of that name, if it is one.
pub async fn find(call: &Call<'_>, namespace: &Namespace) -> Result<Option<Series>> {
    let definition = views::definition(call, namespace).await?;
    Ok(definition.and_then(|definition| Series::of(&namespace.database, definition.as_doc())))
}

/// Replaces "view" in an error by "time-series collection", if the namespace in it is one.
pub async fn name_in_error(call: &Call<'_>, error: Error) -> Error {
    const IS_VIEW: &str = " is a view, not a collection";
    let Some((before, name)) =
        error.message().strip_suffix(IS_VIEW).and_then(|message| message.rsplit_once("Namespace "))
    else {
        return error;
    };
    let Some((database, collection)) = name.split_once('.') else { return error };
    match find(call, &Namespace::new(database, collection)).await {
        Ok(Some(_)) => Error::new(error.code(), format!("{before}Namespace {name} is a timeseries collection")),
        _ => error,
    }
}

/// `create` with `timeseries`.
pub async fn create(call: &Call<'_>, namespace: &Namespace, options: &Options<'_>, others: Others<'_>) -> Result<()> {
    let store = &call.worker.store;
    if store.collection(namespace).await?.is_some() {
        let message = format!("Collection {namespace} already exists.");
        return Err(Error::new(Code::NAMESPACE_EXISTS, message));
    }
    if let Some(definition) = views::definition(call, namespace).await? {
        let what = match Series::of(&namespace.database, definition.as_doc()) {
            Some(_) => "timeseries collection",
            None => "view",
        };
        return Err(Error::new(Code::NAMESPACE_EXISTS, format!("A {what} already exists. NS: {namespace}")));
    }
    let name = format!("{BUCKETS}{}", namespace.collection);
    let buckets = Namespace::new(&namespace.database, &name);
    let bucket_options = options.of_buckets(others);
    store.create_collection(&buckets, bucket_options.as_doc()).await?;
    let stages = options.stages();
    let created = definitions::create(call, namespace, &name, stages.as_doc(), others.collation).await;
    if created.is_err() {
        // The first error is the one to report.
        drop(store.drop_collection(&buckets).await);
    }
    created
}

/// Updates the view for another granularity.
pub async fn widen(call: &Call<'_>, namespace: &Namespace, series: &Series, granularity: Granularity) -> Result<()> {
    let options = Options::new(&series.time_field, series.meta_field.as_deref(), granularity);
    definitions::modify(call, namespace, &series.buckets.collection, options.stages().as_doc()).await
}

/// Returns the name of the time-series collection of a collection of buckets.
pub fn owner(buckets: &Namespace) -> Option<Namespace> {
    let name = buckets.collection.strip_prefix(BUCKETS).filter(|name| !name.is_empty())?;
    Some(Namespace::new(&buckets.database, name))
}

/// Returns whether a collection holds buckets.
pub fn is_of_buckets(options: Doc<'_>) -> bool {
    options.get(OPTION).and_then(Value::as_document).is_some()
}
