//! MariaDB inside of the process: libmariadbd behind an API without unsafe parts.
//!
//! What comes in are a data directory and statements with parameters; what goes out are rows, as the client/server protocol has them, so
//! that who reads rows need not know where they come from. All calls block, and none of them knows of async.
//!
//! In reading order: [`directory`] (whose a data directory is, before MariaDB touches it), [`database`] (start and stop), [`session`]
//! (statements), and `ffi` with `structs.c`, the library's functions. Without the feature `libmariadbd` the crate is empty.
//!
//! A process has one database at the most, and cannot open another one when it is closed: the library has its state in global variables.
//! Statements must not run on the process's first thread: there the library reads `/proc/self/maps` for each of them.
#![cfg(feature = "libmariadbd")]

mod captured;
pub mod database;
pub mod directory;
mod ffi;
pub mod session;
mod thread;

pub use database::{Closed, Database};
pub use session::{Refused, Rows, Session, StatementId};
