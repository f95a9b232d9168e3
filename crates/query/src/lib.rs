//! The query language over raw BSON: pure functions, no I/O, no async, no clock.
//!
//! What comes in are specifications as clients send them (a filter, a sort, a projection, an update, a pipeline) and
//! documents as borrowed bytes; what goes out are answers and documents written at the end of a buffer. Parsing happens once per
//! command, evaluation once per document, and a document that a predicate rejects costs no allocation.
//!
//! Stores read the parsed [`predicate::Predicate`] to decide what they can do themselves (pushdown, indexes). Whatever they
//! do, the documents they hand back must be a superset of the matching ones; the evaluator here has the last word.
//!
//! Time and randomness arrive in the [`Context`].

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
