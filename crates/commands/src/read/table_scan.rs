//! `notablescan`: refuses queries without an index.

use error::{Code, Error, Result};
use query::Predicate;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use store::{DocumentStore, Namespace, Plan, Query};

/// The parameter. A global, because the plans of all workers depend on it.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

pub fn are_forbidden() -> bool {
    FORBIDDEN.load(Relaxed)
}

pub fn forbid(forbidden: bool) {
    FORBIDDEN.store(forbidden, Relaxed);
}

/// Fails with 291 if the plan is a collection scan with a filter, and those are forbidden.
pub fn check(namespace: &Namespace, predicate: &Predicate, plan: &dyn Plan) -> Result<()> {
    if !are_forbidden() || predicate.matches_everything() || is_internal(namespace) {
        return Ok(());
    }
    if plan.summary().as_str() != Some("COLLSCAN") {
        return Ok(());
    }
    let message = "error processing query: planner returned error :: caused by :: No indexed plans available, and operation \
                   with 'notablescan'";
    Err(Error::new(Code::NO_QUERY_EXECUTION_PLANS, message))
}

/// Checks a query that the store plans again when it writes.
pub async fn check_query(store: &dyn DocumentStore, namespace: &Namespace, query: Query<'_>) -> Result<()> {
    if !are_forbidden() {
        return Ok(());
    }
    let plan = store.plan(namespace, query).await?;
    check(namespace, query.predicate, &*plan)
}

fn is_internal(namespace: &Namespace) -> bool {
    matches!(&*namespace.database, "admin" | "config" | "local") || namespace.collection.starts_with("system.")
}
