//! Text searches.

use super::simple::with_access;
use super::unordered::scan_of;
use crate::catalog::Collection;
use crate::plan::{Access, IndexScan, SqlitePlan};
use access::conditions::PlannerQuery;
use access::search;
use std::sync::Arc;

/// Returns the plan for a text search that must match; `None` if there is none, or it is inside an
/// `$or`.
pub fn plan(collection: &Arc<Collection>, wanted: &PlannerQuery<'_>) -> Option<SqlitePlan> {
    let search = wanted.text.cloned()?;
    let (index, keys) = collection.indexes.iter().find_map(|index| Some((index, search::keys(index, wanted)?)))?;
    let exact = keys.exact;
    let scan = IndexScan { forward: false, search: Some(search), ..scan_of(index, keys) };
    Some(with_access(collection, exact, wanted.sort.is_none(), Access::Index(scan)))
}
