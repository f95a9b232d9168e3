//! The keys of indexes, for both stores: from a document to its keys.
//!
//! Keys are byte strings whose memcmp order is the index's order. This crate does not store them:
//! the embedded store has an SQLite table per index, and MariaDB a side table for those kinds whose
//! keys SQL cannot compute. Crate `access` turns conditions into ranges of keys.
//!
//! In reading order: [`shape`] (an index's specification) and [`keys`] (a document's keys, a module
//! per kind of index).

pub mod keys;
pub mod shape;

pub use shape::{IndexField, IndexShape};
