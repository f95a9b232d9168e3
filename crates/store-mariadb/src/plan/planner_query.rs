//! A query, as far as planning reads it.

use access::conditions::PlannerQuery;
use store::{Hint, Query};

/// Whether a plan may rely on the order of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexOrder {
    Trusted,
    Untrusted,
}

/// Returns the query for the planner: natural order, whether by a sort or by a hint, is no sort.
pub(crate) fn planner_query<'q>(query: &Query<'q>, order: IndexOrder) -> PlannerQuery<'q> {
    let mut wanted = PlannerQuery::of(query);
    // A sort by distance has no parts.
    wanted.sort = query.sort.filter(|sort| !sort.is_empty() && sort.natural().is_none());
    wanted.natural = wanted.natural.or_else(|| Hint::of(query.hint)?.natural());
    wanted.trusts_order = order == IndexOrder::Trusted;
    wanted
}

/// Returns whether an index whose first field is this may serve the query.
pub(crate) fn is_about(wanted: &PlannerQuery<'_>, first: &str) -> bool {
    wanted.conditions.iter().any(|condition| condition.path == first)
        || wanted.sort.and_then(|sort| sort.parts().first()).is_some_and(|part| part.path == first)
}
