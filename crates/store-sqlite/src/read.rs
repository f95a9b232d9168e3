//! Reading: plans are scanned in slices on the worker's own connections.
//!
//! [`scan`] runs a plan, [`id_lookup`] finds one document by its `_id` without a plan, and
//! [`sample`] draws rows at random. [`connections`] are a worker's connections, and [`mapped`]
//! those that read large documents.

pub mod connections;
pub mod id_lookup;
pub mod mapped;
pub mod sample;
pub mod scan;
