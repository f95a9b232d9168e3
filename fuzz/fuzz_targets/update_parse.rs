//! Applies an arbitrary update statement, `{q: filter, u: update, arrayFilters: […], d: document}`,
//! to `d`, and upserts it.
//!
//! Checks that the result is a valid document with the same `_id`.

#![no_main]

use document::object_id::ObjectId;
use document::{Doc, Value};
use libfuzzer_sys::fuzz_target;
use update::UpdateOutcome;
use query::{Context, MatchDetails, Predicate};
use update::Update;

fuzz_target!(|bytes: &[u8]| {
    let Ok(statement) = document::validate::check(bytes) else { return };
    let context = Context::at(1_600_000_000_000);
    let array_filters = match statement.get("arrayFilters") {
        Some(Value::Array(filters)) => Some(filters),
        _ => None,
    };
    let Some(Ok(update)) = statement.get("u").map(|update| Update::parse(update, array_filters, &context)) else { return };
    let filter = match statement.get("q") {
        Some(Value::Document(filter)) => Predicate::parse(filter, &context).ok(),
        _ => None,
    };
    let filter = filter.unwrap_or_else(Predicate::everything);
    let subject = match statement.get("d") {
        Some(Value::Document(subject)) => subject,
        _ => statement,
    };
    let mut details = MatchDetails::default();
    let _ = filter.matches_with(subject, &mut details);
    let mut out = Vec::new();
    if let Ok(UpdateOutcome::Changed) = update.apply(subject, &details, &mut out) {
        let updated = Doc::from_bytes(&out).expect("an update gives a document");
        assert!(document::validate::check(&out).is_ok());
        if let Some(id) = subject.get("_id") {
            assert_eq!(updated.get("_id").map(|id| format!("{id:?}")), Some(format!("{id:?}")));
        }
    }
    out.clear();
    if update.upsert(&filter, ObjectId([7; 12]), &mut out).is_ok() {
        assert!(document::validate::check(&out).is_ok(), "an upsert gives a document");
    }
});
