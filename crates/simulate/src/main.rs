//! A simulator of schemas: users arrive at a rate that does not depend on how fast they are served,
//! and do what a scenario says.
//!
//! The idea is that of the schema simulator with which the array slice cache was published: several
//! processes with a pool of connections each, users spread evenly over each second, and times in
//! milliseconds at the end. A user's time runs from its scheduled start.
//!
//! In reading order: [`scenario`] with its [`template`]s of documents, which are made of
//! [`generator`]s that [`expression`]s name; [`stage`] (before and after the run); [`processes`],
//! in each of which a [`worker`] takes the [`user`]s that its [`schedule`] gives; [`measurements`],
//! the [`outcome`] and its [`mod@plot`]; the scenarios that are [`shipped`]; [`simulation`], which
//! runs them.

mod args;
mod expression;
mod generator;
mod measurements;
mod outcome;
mod plot;
mod processes;
mod scenario;
mod schedule;
mod shipped;
mod simulation;
mod stage;
mod template;
mod user;
mod worker;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    harness::exit_code("simulate", simulation::run(&args::SimulateArgs::parse()))
}
