//! The embedded document store: BSON in one SQLite file.
//!
//! Plans to scan and batches to write come in. Documents go out as borrowed blobs, straight from
//! SQLite's page to the sink, and outcomes of statements. Nothing is transcoded.
//!
//! In reading order: [`engine`] (the half of the process, and how it starts), [`worker`] (the half
//! of a worker thread) and [`store`] (the contract). Then the two paths:
//!
//! - reading: [`planner`] turns a query into a [`plan`], and [`read`] scans it in slices on the
//!   worker's own connections;
//! - writing: [`write`] is one thread that commits the batches of all workers in groups.
//!   [`files::sync`] makes commits durable and limits the size of the write-ahead log. [`oplog`] is
//!   the log of changes, written in the same commits.
//!
//! A [`transaction`] reads and writes on a connection of its own, until the writer commits it.
//!
//! Below both: [`catalog`] (collections and indexes, shared as snapshots), [`index_keys`]
//! (documents and conditions to index keys), [`connection`] (opening the file), [`files`]
//! (checksums below SQLite), [`failure`] (SQLite's errors in MongoDB's terms). [`check`] looks for
//! damage.
//!
//! This crate never decides whether a document matches, which is up to `query`. It never holds a
//! statement open across an `await`, which would pin a snapshot of the log. Work on a document may
//! be suspended, so each read has a connection of its own ([`read::connections`]).

mod catalog;
mod check;
mod connection;
mod engine;
mod failure;
mod files;
mod oplog;
mod plan;
mod planner;
mod read;
mod shared;
mod store;
mod transaction;
mod worker;
mod write;

pub use check::verify::{Report, add_checksums, verify};
pub use engine::{SqliteEngine, open};
pub use oplog::OplogOptions;
pub use shared::Options;
