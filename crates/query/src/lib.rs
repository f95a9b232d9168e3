//! The query language over raw BSON: pure functions, no I/O, no async, no clock.
//!
//! Input is specifications as clients send them (a filter, a sort, a projection, an update, a
//! pipeline) and documents as borrowed bytes. Output is values, and documents appended to a buffer.
//! Parsing happens once per command, evaluation once per document, and a document that a predicate
//! rejects costs no allocation.
//!
//! Stores read the parsed [`predicate::Predicate`] to decide which parts they can execute
//! themselves (pushdown, indexes). The documents they return must be a superset of the matching
//! ones; the evaluator here makes the final decision.
//!
//! Time and randomness are passed in the [`Context`].

pub mod aggregate;
pub mod context;
pub mod expression;
pub mod fulltext;
pub mod geo;
pub mod hashed;
pub mod metadata;
mod name_index;
pub mod predicate;
pub mod projection;
#[cfg(test)]
pub(crate) mod shorthand;
pub mod sort;
pub mod spill;
pub mod text;
mod unique;
pub mod update;
mod variables;

pub use context::{Context, Folding, Views};
pub use expression::{Evaluated, Expression, check_field_path, check_variable_name};
pub use metadata::{Item, ItemBuf, Meta, Metadata, MetadataBuf, Needs};
pub use predicate::number::exact as exact_integer;
pub use predicate::{MatchDetails, Predicate};
pub use projection::Projection;
pub use sort::Sort;
pub use update::Update;
pub use variables::Variables;
