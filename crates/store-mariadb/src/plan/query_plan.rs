//! From a query to a plan: planning, with what the server has to be asked for it.

use crate::catalog::table::Table;
use crate::index::side_index::refresh;
use crate::plan::index_choice_cache::Chosen;
use crate::plan::planner::{self, Planned};
use crate::plan::planner_query::Order;
use crate::plan::{MariaDbPlan, natural_order};
use crate::read::prefetch::{self, May};
use crate::store::MariaDbStore;
use mariadb_client::Result;
use std::sync::Arc;
use store::{Namespace, Plan, Query};

impl MariaDbStore {
    pub async fn make_plan(&self, namespace: &Namespace, query: Query<'_>) -> Result<Arc<dyn Plan>> {
        let table = self.known_table(namespace).await?;
        if table.is_none() && self.is_view(namespace).await? {
            return Ok(Arc::new(MariaDbPlan::view(namespace)));
        }
        let mut plan = self.plan_on(namespace, table, &query).await?;
        refresh::bring_up(self, &plan).await?;
        if self.results.is_some() {
            plan.reads = Some(Box::new(query.predicate.clone()));
        }
        Ok(Arc::new(plan))
    }

    /// The plan for a query on a collection's table, if there is one.
    pub async fn plan_on(
        &self,
        namespace: &Namespace,
        table: Option<Arc<Table>>,
        query: &Query<'_>,
    ) -> Result<MariaDbPlan> {
        // Where a hope turns out to be in vain, the next plan has none.
        loop {
            let Planned { mut plan, probe, .. } = self.planned(namespace, table.clone(), query, Order::ByIndex).await?;
            let Some(probe) = probe else { return Ok(plan) };
            let in_natural_order = natural_order::natural_order(table.as_deref(), query);
            match self.may_be_in_order(&plan, &probe, query).await {
                Ok(May::Yes) => {
                    // The index goes by the bytes of strings.
                    plan.natural_order = in_natural_order.filter(|sort| !sort.collation().is_simple());
                    return Ok(plan);
                }
                Ok(May::InVain) if plan.chosen.as_ref().is_some_and(Chosen::fail) => {}
                // Reading tells what the matter is.
                _ => {
                    let mut plan = self.planned(namespace, table, query, Order::ByNone).await?.plan;
                    plan.natural_order = in_natural_order;
                    return Ok(plan);
                }
            }
        }
    }

    async fn may_be_in_order(&self, plan: &MariaDbPlan, probe: &Arc<str>, query: &Query<'_>) -> Result<May> {
        // Rows that are kept are in vain to read, and those to keep have to be read while changes are being watched for.
        let keeps = self.results.is_some();
        if keeps && !plan.hopes() {
            let odd = self.shared_connection.lookup(probe, &[]).await?;
            return Ok(if odd.is_none() { May::Yes } else { May::No });
        }
        let may = prefetch::ask(self, plan, probe, query.limit).await;
        if keeps {
            plan.ahead.take();
        }
        may
    }

    /// The plan by the index that MariaDB says is best, where it has to be asked.
    async fn planned(
        &self,
        namespace: &Namespace,
        table: Option<Arc<Table>>,
        query: &Query<'_>,
        order: Order,
    ) -> Result<Planned> {
        let planned = planner::plan(namespace, table.clone(), query, order)?;
        let Some(known) = table.as_ref().filter(|_| !planned.questions.is_empty()) else { return Ok(planned) };
        let mut lease = self.pool.lease_for(namespace).await?;
        match known.choices.ask(&mut lease, &planned.questions).await {
            Ok(()) => Ok(planner::plan(namespace, table, query, order)?),
            // Reading tells what the matter is.
            Err(_) => Ok(planned),
        }
    }
}
