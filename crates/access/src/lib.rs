//! The half of planning that both stores share: from a query to the keys of indexes that may have
//! its documents, and the choice among access paths by their cost.
//!
//! This crate does not measure or execute an access path, and does not know where keys are stored:
//! that is up to the stores' planners.
//!
//! In reading order: [`conditions`] splits a query into conditions. [`bounds`] turns a condition
//! into ranges of values (with [`ranges`]), [`index_bounds`] those on all of an index's fields, and
//! [`intervals`] turns these into ranges of keys, with a [`key_filter`] for the rest. [`keys`] does
//! so for every kind of index, with [`geo_bounds`], [`hashed`], [`search`] and [`wildcard`].
//! [`partial`] covers partial indexes, [`covered`] queries that need no documents, and [`cost`]
//! compares access paths. [`explain`] writes bounds as MongoDB does.

pub mod bounded_keys;
pub mod bounds;
pub mod conditions;
pub mod cost;
pub mod covered;
pub mod explain;
pub mod geo_bounds;
pub mod hashed;
pub mod index_bounds;
pub mod intervals;
pub mod key_filter;
pub mod keys;
pub mod partial;
mod range;
pub mod ranges;
pub mod search;
pub mod wildcard;

pub use range::{Cut, FieldBounds, Interval, ValueRange, is_everything};
