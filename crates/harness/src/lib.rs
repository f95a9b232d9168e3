//! Client, servers and measurements that the programs `bench`, `simulate` and `truth` share.
//!
//! The client sends prebuilt messages with a few system calls, because a driver's own cost would
//! hide the server's. Replies are read whole, and decoded only as far as a check needs.
//!
//! In reading order: [`address`], [`message`] and [`connection`] (the MongoDB protocol),
//! [`sql_connection`] (MariaDB's), [`target`] (the server to measure), [`process`] (CPU time and
//! memory of its process), [`servers`] (starts servers of its own), [`report`] (samples and
//! tables), [`cache_statistics`], [`random`].

pub mod address;
pub mod cache_statistics;
pub mod connection;
pub mod message;
pub mod process;
pub mod random;
pub mod report;
pub mod servers;
pub mod sql_connection;
pub mod target;

use std::process::ExitCode;

/// Returns the exit code of a program; prints `outcome`'s error, if there is one, with the
/// program's name before it.
pub fn exit_code(program: &str, outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
