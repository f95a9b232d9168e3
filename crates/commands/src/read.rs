//! Reading: a store's scan, refined here (residual filter, sort, pipeline, skip, limit, projection), in batches.

/// A read under way.
#[derive(Debug)]
pub struct Reader {}
