//! Index filters: the only indexes that queries of a given shape may use. They live in memory until
//! the process ends.
//!
//! Queries have the same shape if they differ in their values only. A shape consists of the
//! filter's operators and paths, the order, the paths that the projection reads, and the collation
//! that the command itself names. A filter overrides the query's hint.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/command/planCacheSetFilter/>

use document::{Collation, Doc, DocBuf};
use query::{Predicate, Sort};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most collections with filters; beyond that, the oldest are evicted.
const COLLECTIONS_MAX: usize = 4096;
/// The most filters of one collection; beyond that, the oldest are evicted.
const FILTERS_MAX: usize = 4096;

/// A query without its values.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryShape {
    predicate: String,
    sort: Vec<(String, bool)>,
    projection: Option<BTreeSet<String>>,
    collation: Collation,
}

impl QueryShape {
    pub fn new(
        predicate: &Predicate,
        sort: Option<&Sort>,
        projection: Option<BTreeSet<String>>,
        collation: Collation,
    ) -> QueryShape {
        let parts = sort.filter(|sort| sort.natural().is_none()).map_or(&[][..], Sort::parts);
        let sort = parts.iter().map(|part| (part.path.as_str().to_owned(), part.ascending)).collect();
        // A pipeline that reads no field counts as one that reads all.
        let projection = projection.filter(|paths| !paths.is_empty());
        QueryShape { predicate: predicate.shape(), sort, projection, collation }
    }
}

/// An index filter as it was set.
#[derive(Debug)]
pub struct IndexFilter {
    shape: QueryShape,
    pub query: DocBuf,
    pub sort: DocBuf,
    pub projection: DocBuf,
    pub collation: Option<DocBuf>,
    /// An array of names and key patterns.
    pub indexes: DocBuf,
}

impl IndexFilter {
    pub fn new(shape: QueryShape, [query, sort, projection]: [Doc<'_>; 3], indexes: DocBuf) -> IndexFilter {
        let collation = shape.collation.specification().cloned();
        let [query, sort, projection] = [query, sort, projection].map(Doc::to_owned);
        IndexFilter { shape, query, sort, projection, collation, indexes }
    }

    pub fn shape(&self) -> &QueryShape {
        &self.shape
    }
}

/// The filters of a collection, by its UUID, the oldest first.
type CollectionFilters = ([u8; 16], VecDeque<Arc<IndexFilter>>);

/// The index filters of the process.
#[derive(Debug, Default)]
pub struct IndexFilters {
    /// Whether there may be any: queries check this first.
    any: AtomicBool,
    entries: Mutex<VecDeque<CollectionFilters>>,
}

impl IndexFilters {
    /// Returns whether there may be any.
    pub fn are_any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub fn set(&self, collection: [u8; 16], filter: IndexFilter) {
        let mut entries = self.lock();
        let at = entries.iter().position(|(of, _)| *of == collection).unwrap_or_else(|| {
            make_room(&mut entries, COLLECTIONS_MAX);
            entries.push_back((collection, VecDeque::new()));
            entries.len() - 1
        });
        if let Some((_, filters)) = entries.get_mut(at) {
            filters.retain(|other| other.shape != filter.shape);
            make_room(filters, FILTERS_MAX);
            filters.push_back(Arc::new(filter));
        }
        self.any.store(true, Ordering::Release);
    }

    /// Removes the filter for a shape, or all of the collection.
    pub fn clear(&self, collection: [u8; 16], shape: Option<&QueryShape>) {
        let mut entries = self.lock();
        for (_, filters) in entries.iter_mut().filter(|(of, _)| *of == collection) {
            filters.retain(|filter| shape.is_some_and(|shape| filter.shape != *shape));
        }
        entries.retain(|(_, filters)| !filters.is_empty());
        self.any.store(!entries.is_empty(), Ordering::Release);
    }

    pub fn of(&self, collection: [u8; 16]) -> Vec<Arc<IndexFilter>> {
        let entries = self.lock();
        let filters = entries.iter().find(|(of, _)| *of == collection);
        filters.map_or_else(Vec::new, |(_, filters)| filters.iter().cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<CollectionFilters>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the oldest entries until there is room for one more.
fn make_room<T>(queue: &mut VecDeque<T>, count_max: usize) {
    while queue.len() >= count_max {
        queue.pop_front();
    }
}
