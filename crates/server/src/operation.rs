//! Operations under way: their time limits, and the means to list and kill them from other
//! connections.
//!
//! Most commands finish within their first poll and are never registered. A command that has to
//! wait is registered with its worker, where `currentOp` lists it and `killOp` reaches it; the
//! operation itself checks between documents ([`OperationContext::check_interrupt`]).

mod active;
mod context;
mod kind;
mod registry;
mod stats;

pub use active::{Operation, next_operation_id};
pub use context::{NestedPipeline, OperationContext};
pub use kind::{OperationKind, namespace_of};
pub use registry::OperationRegistry;
pub use stats::OperationStats;
