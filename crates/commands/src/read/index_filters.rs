//! Applies index filters to reads and writes: which indexes a query of a given shape may use.

use crate::arguments::options::given_collation;
use crate::call::Call;
use crate::read::ReadSpec;
use aggregate::Pipeline;
use document::{Collation, Doc, DocBuf, Value, ValueBuf};
use error::Result;
use query::ReadFields;
use query::{Predicate, Projection, Sort};
use server::index_filters::{IndexFilter, QueryShape};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{DeleteStatement, Hint, Namespace, UpdateStatement};

/// Returns the index filter for a read. `collation`: the command's own, if it has one.
pub async fn of_read(
    call: &Call<'_>,
    namespace: &Namespace,
    spec: &ReadSpec<'_>,
    collation: Option<Doc<'_>>,
) -> Result<Option<Arc<IndexFilter>>> {
    let paths = || spec.projection.as_ref().and_then(Projection::paths_read);
    find(call, namespace, spec.predicate.as_ref(), spec.sort.as_ref(), paths, collation).await
}

/// Returns the index filter for a pipeline. `stages`: as they were sent.
pub async fn of_pipeline(
    call: &Call<'_>,
    namespace: &Namespace,
    stages: Doc<'_>,
    pipeline: &Pipeline,
    collation: Option<Doc<'_>>,
) -> Result<Option<Arc<IndexFilter>>> {
    if !call.worker.server.index_filters.are_any() {
        return Ok(None);
    }
    let (source, _) = pipeline.clone().into_source();
    let is_source = |stage: &Value<'_>| {
        let stage = stage.as_document().and_then(Doc::first);
        stage.is_some_and(|stage| matches!(stage.key(), "$match" | "$sort" | "$limit" | "$skip"))
    };
    let rest = DocBuf::build(|writer| {
        let mut rest = writer.array("rest");
        stages.values().skip_while(is_source).for_each(|stage| rest.push(stage));
    });
    let paths = || ReadFields::paths_of_pipeline(rest.as_doc().get("rest")?.as_array()?);
    find(call, namespace, Some(&source.predicate), source.sort.as_ref(), paths, collation).await
}

/// Returns the hint for the store: the index filter, or else the command's own hint. A hint at
/// natural order takes precedence.
pub fn hint<'a>(filter: &'a Option<Arc<IndexFilter>>, hint: Option<Value<'a>>) -> Option<Value<'a>> {
    if Hint::of(hint).is_some_and(|hint| hint.natural().is_some()) {
        return hint;
    }
    filter.as_deref().map(|filter| Value::Array(filter.indexes.as_doc())).or(hint)
}

/// Returns the index filter for queries with a filter and an order, whose documents are read at
/// these paths.
pub async fn find(
    call: &Call<'_>,
    namespace: &Namespace,
    predicate: Option<&Predicate>,
    sort: Option<&Sort>,
    paths: impl FnOnce() -> Option<BTreeSet<String>>,
    collation: Option<Doc<'_>>,
) -> Result<Option<Arc<IndexFilter>>> {
    let filters = &call.worker.server.index_filters;
    if !filters.are_any() {
        return Ok(None);
    }
    let Some(collection) = call.worker.store.collection(namespace).await? else { return Ok(None) };
    let filters = filters.of(collection.uuid);
    if filters.is_empty() {
        return Ok(None);
    }
    let everything = Predicate::everything();
    let collation = given_collation(collation)?.unwrap_or(Collation::SIMPLE);
    let shape = QueryShape::new(predicate.unwrap_or(&everything), sort, paths(), collation);
    Ok(filters.into_iter().find(|filter| filter.shape() == &shape))
}

/// The parts of a write statement that index filters need: the hint, the filter, the order.
pub trait Filtered {
    fn parts(&mut self) -> (&mut Option<ValueBuf>, &Predicate, Option<&Sort>);
}

impl Filtered for UpdateStatement {
    fn parts(&mut self) -> (&mut Option<ValueBuf>, &Predicate, Option<&Sort>) {
        (&mut self.hint, &self.predicate, self.sort.as_ref())
    }
}

impl Filtered for DeleteStatement {
    fn parts(&mut self) -> (&mut Option<ValueBuf>, &Predicate, Option<&Sort>) {
        (&mut self.hint, &self.predicate, self.sort.as_ref())
    }
}

/// Replaces the hints of statements by index filters. `collations`: the statements' own.
pub async fn apply(
    call: &Call<'_>,
    namespace: &Namespace,
    statements: &mut [Result<impl Filtered>],
    collations: &[Option<Doc<'_>>],
) -> Result<()> {
    for (statement, collation) in statements.iter_mut().zip(collations) {
        let Ok(statement) = statement else { continue };
        let (hint, predicate, sort) = statement.parts();
        let filter = find(call, namespace, Some(predicate), sort, || None, *collation).await?;
        if filter.is_some() {
            *hint = self::hint(&filter, hint.as_ref().map(ValueBuf::as_value)).map(Value::to_owned);
        }
    }
    Ok(())
}
