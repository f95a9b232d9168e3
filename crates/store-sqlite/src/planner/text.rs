//! Text searches.

use crate::catalog::{Collection, Index};
use crate::plan::{Access, IndexScan, SqlitePlan};
use access::conditions::PlannerQuery;
use access::partial;
use access::search::{TermIntervals, term_intervals};
use fulltext::TextSearch;
use std::sync::Arc;
use store::{ExaminedCounter, PlanFacts};

/// Returns the plan for a text search that must match; `None` if there is none, or it is inside an
/// `$or`.
pub fn plan(collection: &Arc<Collection>, wanted: &PlannerQuery<'_>) -> Option<SqlitePlan> {
    let search = wanted.text?;
    let index = index_of(collection, search)?;
    let TermIntervals { intervals, exact } = term_intervals(index, search, wanted)?;
    let facts = PlanFacts { exact, sorted: wanted.sort.is_none(), view: false };
    let search = wanted.text.cloned();
    let scan = IndexScan { forward: false, search, ..IndexScan::new(Some(index.clone()), intervals) };
    Some(SqlitePlan {
        facts,
        collection: Some(collection.clone()),
        access: Access::Index(scan),
        tailable: false,
        counter: ExaminedCounter::default(),
    })
}

/// Returns the scan for a text search in a branch of a disjunction; it produces no scores.
pub fn scan(collection: &Collection, wanted: &PlannerQuery<'_>) -> Option<IndexScan> {
    let search = wanted.text?;
    let index = index_of(collection, search).filter(|index| partial::covers_query(index, wanted))?;
    Some(IndexScan::new(Some(index.clone()), term_intervals(index, search, wanted)?.intervals))
}

fn index_of<'c>(collection: &'c Collection, search: &TextSearch) -> Option<&'c Arc<Index>> {
    collection.indexes.iter().find(|index| index.spec.name == *search.index.name && index.text.is_some())
}
