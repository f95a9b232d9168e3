//! MariaDB in this process: libmariadbd behind a safe API.
//!
//! It takes a data directory and statements with parameters, and returns rows encoded as in the
//! client/server protocol, so that their reader need not know the transport. All calls block.
//!
//! In reading order: [`directory`] (claiming a data directory before MariaDB touches it),
//! [`database`] (start and stop), [`session`] (statements), and `ffi` with `structs.c`, the
//! library's functions. Without the feature `libmariadbd` the crate is empty.
//!
//! A process has at most one database, and cannot open another one after closing it: the library
//! has its state in global variables. Statements must not run on the process's first thread: there
//! the library reads `/proc/self/maps` for each of them.
#![cfg(feature = "libmariadbd")]

mod captured;
pub mod database;
pub mod directory;
mod ffi;
pub mod session;
mod thread;

pub use database::{Closed, Database};
pub use session::{Refused, Rows, Session, StatementId};
