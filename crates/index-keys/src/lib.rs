//! What the keys of an index are, for both stores: from a document to its keys, and from conditions to the keys of all documents that
//! may meet them.
//!
//! Keys are byte strings whose memcmp order is the index's order. Nothing here knows where they are kept: the embedded store has a table
//! of SQLite's per index, and MariaDB a table beside the collection's for those kinds whose keys SQL cannot compute.
//!
//! In reading order: [`shape`] (an index as its specification has it), [`keys`] (a document's keys, a module per kind of index); [`wanted`]
//! takes a query apart into conditions; [`bounds`] makes ranges of values of a condition (with [`ranges`]), [`binding`] of all those on an
//! index's fields, and [`intervals`] ranges of keys of these (with [`key_filter`] for what they leave open); [`implies`] has
//! partial indexes, [`covered`] queries that keys answer, and [`places`], [`search`] and [`wildcard`] what indexes of other kinds tell.

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
