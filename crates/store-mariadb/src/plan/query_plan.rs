//! Plans a query with the help of the server: catalog, estimates, order probes.

use crate::catalog::table::Table;
use crate::index::side_index::refresh;
use crate::plan::index_choice_cache::ChoiceFeedback;
use crate::plan::planner::{self, PlannedQuery};
use crate::plan::planner_query::IndexOrder;
use crate::plan::{MariaDbPlan, natural_order};
use crate::read::prefetch::{self, OrderCheck};
use crate::sharding::refused_in_transaction;
use crate::store::MariaDbStore;
use mariadb_client::Result;
use std::sync::Arc;
use store::{Namespace, Plan, Query, read_preference};

impl MariaDbStore {
    pub async fn make_plan(&self, namespace: &Namespace, query: Query<'_>) -> Result<Arc<dyn Plan>> {
        let table = self.known_table(namespace).await?;
        if table.is_none() && self.is_view(namespace).await? {
            return Ok(Arc::new(MariaDbPlan::view(namespace)));
        }
        if self.inside.is_some() && table.as_ref().is_some_and(|table| table.is_sharded) {
            return Err(refused_in_transaction(namespace).into());
        }
        let mut plan = self.plan_on(namespace, table, &query).await?;
        if self.inside.is_none() {
            refresh::refresh_before_read(self, &plan).await?;
        }
        if self.results.is_some() {
            plan.reads = Some(Box::new(query.predicate.clone()));
        }
        Ok(Arc::new(plan))
    }

    /// Plans a query on a collection's table, if it exists.
    pub async fn plan_on(
        &self,
        namespace: &Namespace,
        table: Option<Arc<Table>>,
        query: &Query<'_>,
    ) -> Result<MariaDbPlan> {
        // If the speculative plan hit its row limit, plan again without it.
        loop {
            let PlannedQuery { mut plan, order_probe, .. } =
                self.planned(namespace, table.clone(), query, IndexOrder::Trusted).await?;
            let Some(probe) = order_probe else { return Ok(plan) };
            let in_natural_order = natural_order::natural_order(table.as_deref(), query);
            match self.check_order(&plan, &probe, query).await {
                Ok(OrderCheck::Holds) => {
                    // The index orders strings by their bytes.
                    plan.natural_order = in_natural_order.filter(|sort| !sort.collation().is_simple());
                    return Ok(plan);
                }
                Ok(OrderCheck::GaveUp) if plan.feedback.as_ref().is_some_and(ChoiceFeedback::report_gave_up) => {}
                // If this failed, reading will report the error.
                _ => {
                    let mut plan = self.planned(namespace, table, query, IndexOrder::Untrusted).await?.plan;
                    plan.natural_order = in_natural_order;
                    return Ok(plan);
                }
            }
        }
    }

    async fn check_order(&self, plan: &MariaDbPlan, probe: &Arc<str>, query: &Query<'_>) -> Result<OrderCheck> {
        // With the result-set cache on, do not prefetch: a hit needs no read, and a miss must be
        // read inside the invalidation window.
        let caches_results = self.results.is_some() && self.inside.is_none();
        if caches_results && !plan.is_speculative() && !read_preference::is_elsewhere() {
            let odd = self.shared_connection.lookup(probe, &[]).await?;
            return Ok(if odd.is_none() { OrderCheck::Holds } else { OrderCheck::Broken });
        }
        let order = prefetch::prefetch(self, plan, probe, query.limit).await;
        if caches_results {
            plan.prefetched.take();
        }
        order
    }

    /// Plans the query, after requesting estimates from MariaDB if needed.
    async fn planned(
        &self,
        namespace: &Namespace,
        table: Option<Arc<Table>>,
        query: &Query<'_>,
        order: IndexOrder,
    ) -> Result<PlannedQuery> {
        let planned = planner::plan(namespace, table.clone(), query, order)?;
        let Some(known) = table.as_ref().filter(|_| !planned.requests.is_empty()) else { return Ok(planned) };
        let mut lease = self.lease_for_planning(namespace).await?;
        match known.plan_cache.choices.request(&mut lease, &planned.requests).await {
            Ok(()) => Ok(planner::plan(namespace, table, query, order)?),
            // If this failed, reading will report the error.
            Err(_) => Ok(planned),
        }
    }
}
