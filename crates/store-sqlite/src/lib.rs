//! The embedded document store: BSON in one SQLite file.
//!
//! What comes in are plans to scan and batches to write; what goes out are documents as borrowed blobs, straight from
//! SQLite's page to the sink, and outcomes. There is no transcoding anywhere.
//!
//! In reading order: [`engine`] (the half that belongs to the process, and how it starts), [`store`] (the half of a
//! worker), then the two paths through it:
//!
//! - reading: [`planner`] turns a query into a [`plan`], [`scan`] runs it in slices on the worker's own connection (with [`index_keys::key_filter`]
//!   where keys tell which documents are worth fetching), or on another one where documents are large ([`mapped`]); [`lookup`]
//!   finds one document by `_id` without either;
//! - writing: [`writer`] is one thread that commits what all workers send in groups, [`sync`] makes it durable and keeps the
//!   write-ahead log short.
//!
//! Beneath both: [`catalog`] (collections and indexes, shared as snapshots), [`index_keys`]
//! (documents and conditions to index keys), [`multikey`] (where arrays are), [`connection`] (how
//! files are opened), [`files`] (what is looked at beneath SQLite), [`failure`] (SQLite's errors in
//! MongoDB's terms).
//!
//! What this crate never does: decide whether a document matches (that is `query`'s), or hold a
//! statement open across an `await`, which would pin a snapshot of the log. Work on a document may
//! be suspended in the middle, so a read has its connection for itself ([`readers`]).

mod catalog;
mod check;
mod connection;
mod engine;
mod failure;
mod files;
mod plan;
mod planner;
mod read;
mod store;
mod worker;
mod write;

pub use check::verify::{Report, add_checksums, verify};
pub use engine::{Options, SqliteEngine, open};
