//! Reading: executes plans; counts, samples, explains and caches results.

pub(crate) mod content_version;
pub(crate) mod count;
pub(crate) mod elsewhere;
pub(crate) mod explain;
pub(crate) mod handler_counters;
pub(crate) mod pages;
pub(crate) mod plan_contract;
pub(crate) mod prefetch;
pub(crate) mod result_cache;
pub(crate) mod result_set;
pub(crate) mod rings;
pub(crate) mod row_sink;
pub(crate) mod sample;
pub(crate) mod scan;
pub(crate) mod validate;
