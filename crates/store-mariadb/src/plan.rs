//! A plan: which rows are read, in which order, by which statement. [`crate::plan::planner`] makes them.

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

use crate::plan::access::{Access, Rows};
use crate::plan::plan_texts::Written;

use crate::catalog::table::Table;
use crate::plan::index_choice_cache::Chosen;
use crate::plan::prefetched_rows::Ahead;
use query::{Predicate, Sort};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use store::{Examined, Namespace, PlanFacts};

#[derive(Debug)]
pub(crate) struct MariaDbPlan {
    pub namespace: Namespace,
    /// `None`: there is no such collection.
    pub table: Option<Arc<Table>>,
    pub access: Access,
    pub facts: PlanFacts,
    /// A scan stops behind the last row, to go on from there.
    pub tailable: bool,
    /// MariaDB is asked what its statements have read.
    pub counts_closely: AtomicBool,
    pub reads_afresh: AtomicBool,
    /// What is known of its rows already.
    pub ahead: Ahead,
    /// See [`Plan::natural_order`].
    pub natural_order: Option<Sort>,
    /// What is looked for, where rows that are kept will do.
    pub reads: Option<Box<Predicate>>,
    /// What its index was chosen by.
    pub chosen: Option<Chosen>,
    /// What has been written of it, shared with the plans of the same query that come after it.
    pub written: Option<Arc<Written>>,
}

/// What it has looked at tells whether the choice was right.
impl Drop for MariaDbPlan {
    fn drop(&mut self) {
        if let Some(chosen) = &self.chosen {
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
            counts_closely: AtomicBool::default(),
            reads_afresh: AtomicBool::default(),
            ahead: Ahead::default(),
            natural_order: None,
            reads: None,
            chosen: None,
            written: None,
        }
    }

    pub fn of_nothing(namespace: &Namespace, table: Option<Arc<Table>>) -> MariaDbPlan {
        let facts = PlanFacts { exact: true, sorted: true, view: false };
        MariaDbPlan::new(namespace, table, Access::Nothing, facts)
    }

    /// The plan for a name that is a view's: it gives nothing but that.
    pub fn view(namespace: &Namespace) -> MariaDbPlan {
        let facts = PlanFacts { exact: false, sorted: false, view: true };
        MariaDbPlan::new(namespace, None, Access::Nothing, facts)
    }

    /// The plan that follows a capped collection.
    pub fn tail(namespace: &Namespace, table: Arc<Table>) -> MariaDbPlan {
        let facts = PlanFacts { exact: false, sorted: true, view: false };
        let access = Access::Rows(Rows::all(true));
        let mut plan = MariaDbPlan::new(namespace, Some(table), access, facts);
        plan.tailable = true;
        plan
    }

    /// Returns what all its rows have examined.
    pub fn total_examined(&self) -> Examined {
        self.all_rows().fold(Examined::default(), |sum, rows| sum + rows.tally.get())
    }

    /// All rows that are read.
    pub fn all_rows(&self) -> impl Iterator<Item = &Rows> {
        let (one, several) = match &self.access {
            Access::Nothing => (None, [].as_slice()),
            Access::Rows(rows) => (Some(rows), [].as_slice()),
            Access::Union(branches) => (None, branches.as_slice()),
        };
        one.into_iter().chain(several.iter().map(|(_, rows)| rows))
    }

    /// Whether it may turn out to look at more rows than another one would.
    pub fn hopes(&self) -> bool {
        self.all_rows().any(|rows| rows.index.as_ref().is_some_and(|index| index.hope.is_some()))
    }

    /// The one id asked for, where nothing else narrows the rows.
    pub fn single_id(&self) -> Option<&[u8]> {
        match &self.access {
            Access::Rows(Rows { ids: Some(ids), condition: None, .. }) => match ids.as_slice() {
                [id] => Some(id),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the rows come by row key, so that changing one does not move it.
    pub fn is_by_row_key(&self) -> bool {
        match &self.access {
            Access::Nothing => true,
            Access::Rows(rows) => rows.index.is_none(),
            Access::Union(_) => false,
        }
    }
}
