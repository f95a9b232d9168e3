//! The contract of plans, implemented for the store's plans.

use super::{Access, IndexScan, SqlitePlan, explain};
use document::DocBuf;
use std::any::Any;
use store::{Examined, ExplainContext, Plan, PlanFacts, PlanSummary, VisitIndex};

impl Plan for SqlitePlan {
    fn facts(&self) -> &PlanFacts {
        &self.facts
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_by_distance(&self) -> bool {
        self.collection.is_none() || matches!(self.access, Access::Near(_))
    }

    fn visit_indexes(&self, visit: &mut VisitIndex<'_>) {
        let indexes = self.collection.iter().flat_map(|collection| &collection.indexes);
        let usable = indexes.filter(|index| index.is_usable());
        for index in usable {
            let arrays = index.multikey.parts();
            let has_arrays =
                |path: &str| index.fields.iter().any(|field| field.path == path && arrays & field.all_parts() != 0);
            visit(&index.spec, &has_arrays);
        }
    }

    fn stages(&self, about: &ExplainContext<'_>) -> DocBuf {
        explain::stages(self, about)
    }

    fn summary(&self) -> PlanSummary {
        match &self.access {
            _ if self.collection.is_none() => PlanSummary::Name("EOF"),
            Access::Natural { .. } => PlanSummary::Name("COLLSCAN"),
            Access::Points(_) => PlanSummary::Name("IDHACK"),
            Access::Index(scan) if scan.distinct_field.is_none() => scan.summary(),
            Access::Union(union) => PlanSummary::joined(union.branches.iter().map(IndexScan::summary)),
            _ => PlanSummary::of(self.winning_plan().as_doc()),
        }
    }

    fn examined(&self) -> Examined {
        let scans = match &self.access {
            Access::Index(scan) => scan.counter.get(),
            Access::Union(union) => {
                union.branches.iter().fold(Examined::default(), |sum, scan| sum + scan.counter.get())
            }
            Access::Natural { .. } | Access::Points(_) | Access::Near(_) => Examined::default(),
        };
        scans + self.counter.get()
    }
}
