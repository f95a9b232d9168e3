//! Index filters: for queries of a shape, the only indexes that may be used. Kept as long as the process lives, in its memory alone.
//!
//! A shape is what queries have in common that differ in their values: the filter's operators and paths, the order, the
//! paths that the projection reads, and the collation that the command itself names. A filter goes before the query's hint.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/planCacheSetFilter/>

use crate::command::options::given_collation;
use crate::dispatch::Call;
use crate::read::Request;
use aggregate::Pipeline;
use document::{Collation, Doc, DocBuf, Value, ValueBuf};
use error::Result;
use query::ReadFields;
use query::{Predicate, Projection, Sort};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{DeleteStatement, Namespace, UpdateStatement};

/// Collections that have filters at the most; past them, those are forgotten that got theirs first.
const COLLECTIONS_MAX: usize = 4096;
/// Filters of one collection at the most, in the same way.
const FILTERS_MAX: usize = 4096;

/// What tells queries apart, the values in them aside.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    predicate: String,
    sort: Vec<(String, bool)>,
    projection: Option<BTreeSet<String>>,
    collation: Collation,
}

impl Shape {
    pub fn new(
        predicate: &Predicate,
        sort: Option<&Sort>,
        projection: Option<BTreeSet<String>>,
        collation: Collation,
    ) -> Shape {
        let parts = sort.filter(|sort| sort.natural().is_none()).map_or(&[][..], Sort::parts);
        let sort = parts.iter().map(|part| (part.path.as_str().to_owned(), part.ascending)).collect();
        // A pipeline that reads no field counts as one that reads all.
        let projection = projection.filter(|paths| !paths.is_empty());
        Shape { predicate: predicate.shape(), sort, projection, collation }
    }
}

/// An index filter, as it was set.
#[derive(Debug)]
pub struct IndexFilter {
    shape: Shape,
    pub query: DocBuf,
    pub sort: DocBuf,
    pub projection: DocBuf,
    pub collation: Option<DocBuf>,
    /// An array of names and key patterns.
    pub indexes: DocBuf,
}

impl IndexFilter {
    pub fn new(shape: Shape, [query, sort, projection]: [Doc<'_>; 3], indexes: DocBuf) -> IndexFilter {
        let collation = shape.collation.specification().cloned();
        let [query, sort, projection] = [query, sort, projection].map(Doc::to_owned);
        IndexFilter { shape, query, sort, projection, collation, indexes }
    }
}

/// The filters of a collection, by its UUID, the oldest first.
type OfCollection = ([u8; 16], VecDeque<Arc<IndexFilter>>);

/// All of the process.
#[derive(Debug, Default)]
pub struct IndexFilters {
    /// There may be some: queries need not look as long as there are none.
    any: AtomicBool,
    held: Mutex<VecDeque<OfCollection>>,
}

impl IndexFilters {
    /// Whether there may be any.
    pub fn are_any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub fn set(&self, collection: [u8; 16], filter: IndexFilter) {
        let mut held = self.lock();
        let at = held.iter().position(|(of, _)| *of == collection).unwrap_or_else(|| {
            make_room(&mut held, COLLECTIONS_MAX);
            held.push_back((collection, VecDeque::new()));
            held.len() - 1
        });
        if let Some((_, filters)) = held.get_mut(at) {
            filters.retain(|other| other.shape != filter.shape);
            make_room(filters, FILTERS_MAX);
            filters.push_back(Arc::new(filter));
        }
        self.any.store(true, Ordering::Release);
    }

    /// Forgets the filter for a shape, or all of the collection.
    pub fn clear(&self, collection: [u8; 16], shape: Option<&Shape>) {
        let mut held = self.lock();
        for (_, filters) in held.iter_mut().filter(|(of, _)| *of == collection) {
            filters.retain(|filter| shape.is_some_and(|shape| filter.shape != *shape));
        }
        held.retain(|(_, filters)| !filters.is_empty());
        self.any.store(!held.is_empty(), Ordering::Release);
    }

    pub fn of(&self, collection: [u8; 16]) -> Vec<Arc<IndexFilter>> {
        let held = self.lock();
        let filters = held.iter().find(|(of, _)| *of == collection);
        filters.map_or_else(Vec::new, |(_, filters)| filters.iter().cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<OfCollection>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the first of what there are as many of as there may be.
fn make_room<T>(queue: &mut VecDeque<T>, count_max: usize) {
    while queue.len() >= count_max {
        queue.pop_front();
    }
}

/// The filter for what is to be read. `collation`: the command's own, if it has one.
pub async fn of_request(
    call: &Call<'_>,
    namespace: &Namespace,
    request: &Request<'_>,
    collation: Option<Doc<'_>>,
) -> Result<Option<Arc<IndexFilter>>> {
    let paths = || request.projection.as_ref().and_then(Projection::paths_read);
    find(call, namespace, request.predicate.as_ref(), request.sort.as_ref(), paths, collation).await
}

/// The filter for what a pipeline asks of its collection. `stages`: as they were sent.
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

/// What a store is told in the place of the command's hint. Who asks for natural order reads by no index.
pub fn hint<'a>(filter: &'a Option<Arc<IndexFilter>>, hint: Option<Value<'a>>) -> Option<Value<'a>> {
    if hint.and_then(Value::as_document).is_some_and(|hint| hint.get("$natural").is_some()) {
        return hint;
    }
    filter.as_deref().map(|filter| Value::Array(filter.indexes.as_doc())).or(hint)
}

/// The filter for queries of a filter and an order, of whose documents these paths are read.
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
    let shape = Shape::new(predicate.unwrap_or(&everything), sort, paths(), collation);
    Ok(filters.into_iter().find(|filter| filter.shape == shape))
}

/// What statements that write are filtered by: the place of the hint, the filter, the order.
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

/// Puts index filters in the place of statements' hints. `collations`: their own.
pub async fn settle(
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
