//! The query language over raw BSON: filters, expressions, sorts and projections. Pure functions,
//! no I/O, no async, no clock.
//!
//! Input is specifications as clients send them and documents as borrowed bytes. Output is values,
//! and documents appended to a buffer. Parsing happens once per command, evaluation once per
//! document, and a document that a predicate rejects costs no allocation.
//!
//! Stores read the parsed [`predicate::Predicate`] to decide which parts they can execute
//! themselves (pushdown, indexes). The documents they return must be a superset of the matching
//! ones; the evaluator here makes the final decision.
//!
//! Time and `let` variables are passed in the [`Context`]. Below this crate are `values`, `geo` and
//! `fulltext`, above it `aggregate` (pipelines) and `update`.

pub mod changes;
pub mod context;
pub mod expression;
mod limits;
pub mod metadata;
pub mod predicate;
pub mod projection;
mod read_fields;
pub mod sort;

pub use changes::Changes;
pub use context::{Context, Folding, Views};
pub use expression::{Evaluated, Expression, check_field_path, check_variable_name};
pub use limits::check_size_between_stages;
pub use metadata::{Item, ItemBuf, Meta, Metadata, MetadataBuf, Needs};
pub use predicate::{MatchDetails, Predicate};
pub use projection::Projection;
pub use read_fields::ReadFields;
pub use sort::Sort;
