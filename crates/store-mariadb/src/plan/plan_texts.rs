//! Statements of a plan that were written before, shared by the plans of one query.

use std::sync::{Arc, OnceLock};
use store::PlanSummary;

/// Texts of a plan that reads rows in one place, each made when it is asked for first.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The statement of the first page, without joined documents and with them; and the one that asks something besides.
    pub first: [OnceLock<Arc<str>>; 2],
    pub asking: [OnceLock<Arc<str>>; 2],
    pub summary: OnceLock<PlanSummary>,
}
