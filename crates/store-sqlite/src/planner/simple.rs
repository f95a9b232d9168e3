//! The simplest plans, and the parts that all planning modules use.

use crate::catalog::Collection;
use crate::plan::{Access, IndexScan, RowRange, SqlitePlan};
use std::sync::Arc;
use store::{ExaminedCounter, PlanFacts};

/// Counts the keys of a scan, up to a limit: how indexes are compared where their bounds do not
/// decide.
pub type Measure<'m> = &'m dyn Fn(&Collection, &IndexScan, u64) -> u64;

/// The limit for counting the keys of one access path.
pub const KEYS_COUNTED_MAX: u64 = 500;

/// Returns the plan for a view's name, which only says so.
pub fn view() -> SqlitePlan {
    let facts = PlanFacts { exact: false, sorted: false, view: true };
    SqlitePlan {
        facts,
        collection: None,
        access: Access::all(true),
        tailable: false,
        counter: ExaminedCounter::default(),
    }
}

/// Returns the plan that follows the documents in `rows` of a capped collection.
pub fn tail(collection: &Arc<Collection>, rows: RowRange) -> SqlitePlan {
    let plan = with_access(collection, false, true, Access::Natural { forward: true, rows });
    SqlitePlan { tailable: true, ..plan }
}

/// Returns the plan for all documents in natural order, for the writer's own scans.
pub fn everything(collection: &Arc<Collection>) -> SqlitePlan {
    with_access(collection, true, true, Access::all(true))
}

pub fn with_access(collection: &Arc<Collection>, exact: bool, sorted: bool, access: Access) -> SqlitePlan {
    let facts = PlanFacts { exact, sorted, view: false };
    SqlitePlan {
        facts,
        collection: Some(collection.clone()),
        access,
        tailable: false,
        counter: ExaminedCounter::default(),
    }
}
