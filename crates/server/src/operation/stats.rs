//! What an operation did, for the profiler, the slow log and the usage statistics.

use error::Result;
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;
use std::time::Duration;
use store::{AccessStats, Examined, Plan, PlanSummary, StatementOutcome};

/// The plans and counts of one operation, collected while it runs.
#[derive(Debug, Default)]
pub struct OperationStats {
    examined: Cell<Examined>,
    /// The plan it began with.
    plan: OnceCell<Arc<dyn Plan>>,
    counted: Cell<bool>,
    sorted: Cell<bool>,
    /// The time in which it waited for an event.
    waited: Cell<Duration>,
    /// The plans of its updates and deletes, and the number of statements by each.
    write_plans: RefCell<Vec<(PlanSummary, u64)>>,
    /// The outcome of each update or delete, collected only if the profiler reports them.
    pub(crate) statements: RefCell<Vec<(Result<StatementOutcome>, AccessStats)>>,
}

impl OperationStats {
    /// Records what a scan of a plan examined.
    pub fn record_scan(&self, plan: &Arc<dyn Plan>, examined: Examined) {
        self.examined.set(self.examined.get() + examined);
        if self.plan.get().is_none() {
            let _ = self.plan.set(plan.clone());
        }
    }

    /// Records that the store counted by a plan.
    pub fn record_count(&self, plan: &Arc<dyn Plan>) {
        self.record_scan(plan, plan.examined());
        self.counted.set(true);
    }

    pub fn record_sort(&self) {
        self.sorted.set(true);
    }

    pub fn add_wait(&self, time: Duration) {
        self.waited.set(self.waited.get() + time);
    }

    /// Records what an update or delete examined.
    pub fn record_write(&self, access: &AccessStats) {
        self.examined.set(self.examined.get() + access.examined);
        let mut plans = self.write_plans.borrow_mut();
        match plans.iter_mut().find(|(plan, _)| *plan == access.summary) {
            Some((_, times)) => *times += 1,
            None if access.summary == PlanSummary::None => {}
            None => plans.push((access.summary.clone(), 1)),
        }
    }

    /// Records the outcome of each statement.
    pub fn record_statements(&self, statements: impl Iterator<Item = (Result<StatementOutcome>, AccessStats)>) {
        self.statements.borrow_mut().extend(statements);
    }

    /// Returns the plans that were executed, and how often. A count that examined neither documents
    /// nor keys has none.
    pub fn plans(&self) -> Vec<(PlanSummary, u64)> {
        match self.plan.get() {
            Some(plan) if self.counted.get() && plan.facts().exact => {
                let summary = plan.summary();
                if summary.as_str() == Some("COLLSCAN") { Vec::new() } else { vec![(summary, 1)] }
            }
            Some(plan) => vec![(plan.summary(), 1)],
            None => self.write_plans.borrow().clone(),
        }
    }

    /// Returns the summary of the first plan.
    pub(crate) fn summary(&self) -> PlanSummary {
        match (self.plan.get(), self.counted.get()) {
            (Some(plan), false) => plan.summary(),
            (Some(plan), true) => {
                let about = store::ExplainContext { counted: true, ..Default::default() };
                PlanSummary::of(plan.stages(&about).as_doc())
            }
            (None, _) => self.write_plans.borrow().first().map(|(plan, _)| plan.clone()).unwrap_or_default(),
        }
    }

    pub(crate) fn plan(&self) -> Option<&Arc<dyn Plan>> {
        self.plan.get()
    }

    pub(crate) fn examined(&self) -> Examined {
        self.examined.get()
    }

    pub(crate) fn counted(&self) -> bool {
        self.counted.get()
    }

    pub(crate) fn sorted(&self) -> bool {
        self.sorted.get()
    }

    pub(crate) fn waited(&self) -> Duration {
        self.waited.get()
    }
}
