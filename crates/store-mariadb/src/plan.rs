//! A plan: the access path of a query, with its table. [`planner`] makes plans.

pub(crate) mod access;
pub(crate) mod candidate;
pub(crate) mod covered;
pub(crate) mod covered_fields;
pub(crate) mod element_bounds;
pub(crate) mod element_condition;
pub(crate) mod index_bounds;
pub(crate) mod index_choice;
pub(crate) mod index_choice_cache;
pub(crate) mod key_condition;
pub(crate) mod key_sort;
mod merged;
pub(crate) mod natural_order;
mod ordered_merge;
pub(crate) mod parameters;
pub(crate) mod plan_cache;
pub(crate) mod plan_texts;
pub(crate) mod planner;
pub(crate) mod planner_query;
pub(crate) mod prefetched_rows;
pub(crate) mod pushdown;
pub(crate) mod query_plan;
pub(crate) mod row_position;
pub(crate) mod sibling_index_filter;
pub(crate) mod side_index_scan;
pub(crate) mod statement;
pub(crate) mod usable_indexes;

use crate::plan::access::{Access, RowSource};
use crate::plan::plan_texts::PlanTexts;

use crate::catalog::table::Table;
use crate::plan::index_choice_cache::ChoiceFeedback;
use crate::plan::prefetched_rows::Prefetch;
use query::{Predicate, Sort};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use store::{Examined, Namespace, PlanFacts};

/// The plan of a query on one collection.
#[derive(Debug)]
pub(crate) struct MariaDbPlan {
    pub namespace: Namespace,
    /// `None` if there is no such collection.
    pub table: Option<Arc<Table>>,
    pub access: Access,
    pub facts: PlanFacts,
    /// A scan stops after the last row, and can be resumed from there.
    pub tailable: bool,
    /// MariaDB's handler counters are read, for exact counts.
    pub exact_counts: AtomicBool,
    pub bypasses_caches: AtomicBool,
    /// Its first rows, if they were prefetched.
    pub prefetched: Prefetch,
    /// See [`Plan::natural_order`].
    pub natural_order: Option<Sort>,
    /// The predicate, if cached result sets may be used.
    pub reads: Option<Box<Predicate>>,
    /// The index choice that the plan is based on, for feedback.
    pub feedback: Option<ChoiceFeedback>,
    /// Its statements, shared with later plans of the same query.
    pub texts: Option<Arc<PlanTexts>>,
}

/// Reports to the index choice cache how many documents the plan has examined.
impl Drop for MariaDbPlan {
    fn drop(&mut self) {
        if let Some(chosen) = &self.feedback {
            chosen.note(self.total_examined().documents);
        }
    }
}

impl MariaDbPlan {
    pub fn new(namespace: &Namespace, table: Option<Arc<Table>>, access: Access, facts: PlanFacts) -> MariaDbPlan {
        MariaDbPlan {
            namespace: namespace.clone(),
            table,
            access,
            facts,
            tailable: false,
            exact_counts: AtomicBool::default(),
            bypasses_caches: AtomicBool::default(),
            prefetched: Prefetch::default(),
            natural_order: None,
            reads: None,
            feedback: None,
            texts: None,
        }
    }

    /// Returns the plan without rows.
    pub fn of_nothing(namespace: &Namespace, table: Option<Arc<Table>>) -> MariaDbPlan {
        let facts = PlanFacts { exact: true, sorted: true, view: false };
        MariaDbPlan::new(namespace, table, Access::Nothing, facts)
    }

    /// Returns the plan for a view: it has no rows.
    pub fn view(namespace: &Namespace) -> MariaDbPlan {
        let facts = PlanFacts { exact: false, sorted: false, view: true };
        MariaDbPlan::new(namespace, None, Access::Nothing, facts)
    }

    /// Returns the plan that tails a capped collection.
    pub fn tail(namespace: &Namespace, table: Arc<Table>) -> MariaDbPlan {
        let facts = PlanFacts { exact: false, sorted: true, view: false };
        let access = Access::Rows(RowSource::all(true));
        let mut plan = MariaDbPlan::new(namespace, Some(table), access, facts);
        plan.tailable = true;
        plan
    }

    /// Returns what all its rows have examined.
    pub fn total_examined(&self) -> Examined {
        self.all_rows().fold(Examined::default(), |sum, rows| sum + rows.tally.get())
    }

    /// Returns all row sources.
    pub fn all_rows(&self) -> impl Iterator<Item = &RowSource> {
        let (one, several) = match &self.access {
            Access::Nothing => (None, [].as_slice()),
            Access::Rows(rows) => (Some(rows), [].as_slice()),
            Access::Union(branches) => (None, branches.as_slice()),
        };
        one.into_iter().chain(several.iter().map(|(_, rows)| rows))
    }

    /// Returns whether the plan is speculative: it may examine more rows than another plan.
    pub fn is_speculative(&self) -> bool {
        self.all_rows().any(|rows| rows.index.as_ref().is_some_and(|index| index.speculative_rows.is_some()))
    }

    /// Returns the id text, if the plan reads the document of one id and has no other condition.
    pub fn single_id(&self) -> Option<&[u8]> {
        match &self.access {
            Access::Rows(RowSource { ids: Some(ids), condition: None, .. }) => match ids.as_slice() {
                [id] => Some(id),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns whether rows are read in the order of row keys, so that changing one does not move
    /// it.
    pub fn is_by_row_key(&self) -> bool {
        match &self.access {
            Access::Nothing => true,
            Access::Rows(rows) => rows.index.is_none(),
            Access::Union(_) => false,
        }
    }
}
