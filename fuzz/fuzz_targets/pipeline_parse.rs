//! Runs an arbitrary pipeline, `{pipeline: […], documents: […]}`, over `documents`, unless it needs
//! other collections.
//!
//! Checks that the results are valid documents.

#![no_main]

use document::{Doc, Value};
use libfuzzer_sys::fuzz_target;
use query::Context;
use aggregate::{Demand, Pipeline};

/// Small, so that the fuzzer reaches it.
const MEMORY_BYTES_MAX: usize = 1 << 20;
/// The largest number of results to check: a few stages can multiply a small input.
const RESULTS_MAX: usize = 10_000;

fuzz_target!(|bytes: &[u8]| {
    let Ok(command) = document::validate::check(bytes) else { return };
    let Some(Value::Array(stages)) = command.get("pipeline") else { return };
    let Ok(pipeline) = Pipeline::parse(stages, &Context::at(1_600_000_000_000)) else { return };
    if pipeline.has_cross_collection_stages() {
        return;
    }
    let mut run = pipeline.start(MEMORY_BYTES_MAX);
    if let Some(Value::Array(documents)) = command.get("documents") {
        for value in documents.values() {
            let Value::Document(document) = value else { continue };
            match run.push(document) {
                Ok(Demand::More) if run.ready_count() < RESULTS_MAX => {}
                Ok(_) => break,
                Err(_) => return,
            }
        }
    }
    if run.finish().is_ok() {
        while let Some(result) = run.pop() {
            assert!(Doc::from_bytes(result.as_bytes()).is_some(), "a pipeline gives documents");
        }
    }
});
