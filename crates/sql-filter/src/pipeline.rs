//! The filters of a service, in their order.

use crate::counters::Counters;
use crate::filter::Filter;
use std::sync::Arc;

/// The filters of a service.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    pub filters: Vec<Arc<dyn Filter>>,
    pub counters: Arc<Counters>,
}

impl Pipeline {
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }
}
