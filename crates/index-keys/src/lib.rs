//! The keys of indexes, for both stores: from a document to its keys, and from conditions to the
//! keys of all documents that may meet them.
//!
//! Keys are byte strings whose memcmp order is the index's order. This crate does not store them:
//! the embedded store has an SQLite table per index, and MariaDB a side table for those kinds whose
//! keys SQL cannot compute.
//!
//! In reading order: [`shape`] (an index's specification) and [`keys`] (a document's keys, a module
//! per kind of index). [`conditions`] splits a query into conditions. [`bounds`] turns a condition
//! into ranges of values (with [`ranges`]), [`index_bounds`] those on all of an index's fields, and
//! [`intervals`] turns these into ranges of keys, with a [`key_filter`] for the rest. [`partial`]
//! covers partial indexes, [`covered`] queries that need no documents, and [`geo_bounds`],
//! [`search`] and [`wildcard`] the other kinds of index.

pub mod bounds;
pub mod conditions;
pub mod covered;
pub mod geo_bounds;
pub mod index_bounds;
pub mod intervals;
pub mod key_filter;
pub mod keys;
pub mod partial;
mod range;
pub mod ranges;
pub mod search;
pub mod shape;
pub mod wildcard;

pub use range::{Cut, FieldBounds, Interval, ValueRange, is_everything};
pub use shape::{IndexField, IndexShape};
