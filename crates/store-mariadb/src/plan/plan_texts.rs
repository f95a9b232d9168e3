//! Statements of a plan that were written before, shared by the plans of one query.

use std::sync::{Arc, OnceLock};
use store::PlanSummary;

/// Statements of a plan with one row source, each formatted on first use.
#[derive(Debug, Default)]
pub(crate) struct PlanTexts {
    /// The statement of the first page, without and with joined documents; and the one with a
    /// probe.
    pub first: [OnceLock<Arc<str>>; 2],
    pub context: [OnceLock<Arc<str>>; 2],
    pub summary: OnceLock<PlanSummary>,
}
