//! Tests of the document store's contract, for every store, and a store in memory for tests of
//! other crates.
//!
//! A store's own test opens an engine and calls [`contract`], which checks one session after the
//! other, and [`races`], which runs many sessions at once. Each check works in a database of its
//! own, which it drops first.
//!
//! [`suite`] has the helpers that checks are written with, [`random`] the documents and filters
//! they draw, [`checks`] the checks, and [`memory_store`] the store in memory.

// These are tests: a failed expectation ends them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod checks;
mod memory_store;
mod random;
mod suite;

pub use memory_store::{MemoryEngine, MemoryStore};
pub use suite::{Decode, as_bson};

use std::sync::Arc;
use store::Engine;
use suite::Suite;

/// Runs every check that needs one session.
pub fn contract(engine: Arc<dyn Engine>, decode: Decode) {
    for (name, check) in checks::all() {
        let suite = Suite::open(engine.clone(), decode, name);
        suite.run(suite.store.drop_database(&suite.namespace.database)).unwrap();
        check(&suite);
        suite.run(suite.store.drop_database(&suite.namespace.database)).unwrap();
    }
}

/// Runs the checks that need many sessions at once.
pub fn races(engine: Arc<dyn Engine>, decode: Decode) {
    checks::race::run(engine, decode);
}
