//! Definitions of indexes: what `createIndexes` accepts, and what `collMod` can change.

pub mod modification;
pub mod specification;
