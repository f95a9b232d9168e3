//! A plan as the contract of crate `store` sees it.

use crate::plan::MariaDbPlan;
use crate::plan::access::Access;
use crate::read::explain;
use document::DocBuf;
use query::Sort;
use std::any::Any;
use std::sync::atomic::Ordering;
use store::{Examined, ExplainContext, Plan, PlanFacts, PlanSummary, VisitIndex};

impl Plan for MariaDbPlan {
    fn facts(&self) -> &PlanFacts {
        &self.facts
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn natural_order(&self) -> Option<Sort> {
        self.natural_order.clone()
    }

    fn visit_indexes(&self, visit: &mut VisitIndex<'_>) {
        for index in self.table.iter().flat_map(|table| &table.indexes) {
            let met = index.element_table().map_or(0, |values| values.fields);
            let has_arrays = |path: &str| {
                index.fields().enumerate().any(|(position, field)| field == path && met & 1 << position != 0)
            };
            visit(&index.spec, &has_arrays);
        }
    }

    fn is_by_distance(&self) -> bool {
        matches!(&self.access, Access::Rows(rows) if rows.rings().is_some())
    }

    fn stages(&self, about: &ExplainContext<'_>) -> DocBuf {
        explain::stages(self, about)
    }

    fn summary(&self) -> PlanSummary {
        match &self.texts {
            Some(written) => written.summary.get_or_init(|| explain::summary(self)).clone(),
            None => explain::summary(self),
        }
    }

    fn examined(&self) -> Examined {
        self.total_examined()
    }

    fn enable_exact_counts(&self) {
        self.exact_counts.store(true, Ordering::Relaxed);
        self.bypass_caches();
    }

    fn bypass_caches(&self) {
        self.bypasses_caches.store(true, Ordering::Relaxed);
    }
}
