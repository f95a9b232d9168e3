//! A checker for stale reads: many connections read and write at random, and every reply is
//! compared with the versions that may be visible.
//!
//! Documents are functions of their id and version ([`layout`]), so the [`model`] needs only two
//! numbers per document: the version that was acknowledged and the one that was started. [`check`]
//! compares replies with it, once [`decode`] has decoded them. [`read`] and [`write`](mod@write)
//! generate the operations of a [`connection`], [`driver`] runs threads with many of those, and
//! [`sql`] writes by SQL beside them.

mod args;
mod check;
mod checker;
mod connection;
mod decode;
mod driver;
mod kind;
mod layout;
mod model;
mod read;
mod sql;
mod stop_signal;
mod tally;
mod write;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    harness::exit_code("truth", checker::run(&args::TruthArgs::parse()))
}
