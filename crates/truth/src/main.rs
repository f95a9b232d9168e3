//! A checker for stale reads: many connections read and write at random, and every answer is held against what may be true.
//!
//! Documents are functions of their number and version ([`layout`]), so that the model is no more than two numbers per document: the
//! version that has been acknowledged and the one that has been started ([`model`]). [`check`] judges answers by them, [`read`] and
//! [`write`](mod@write) make the operations, a [`lane`] is a connection, [`crowd`] a thread with many of them, [`sql`] writes beside them.

mod args;
mod check;
mod checker;
mod driver;
mod kind;
mod lane;
mod layout;
mod model;
mod observe;
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
