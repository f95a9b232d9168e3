//! Evaluates an arbitrary document as filter, projection, sort and expression, over itself and over
//! a document with arrays.
#![no_main]

use document::{Doc, Value};
use libfuzzer_sys::fuzz_target;
use query::{Context, Expression, MatchDetails, Predicate, Projection, Sort};

fuzz_target!(|bytes: &[u8]| {
    let Ok(spec) = document::validate::check(bytes) else { return };
    let context = Context::at(1_600_000_000_000);
    let subject = document::doc! { "a": &document::array![1, "x", &document::doc! { "b": 2.5 }], "b": 1_i64 };
    let subjects = [spec, subject.as_doc()];
    let filter = Predicate::parse(spec, &context);
    let projection = Projection::parse(spec, Doc::EMPTY, &context);
    let sort = Sort::parse(spec, &context);
    let expression = Expression::parse(Value::Document(spec), &context);
    for subject in subjects {
        evaluate(subject, filter.as_ref().ok(), projection.as_ref().ok(), sort.as_ref().ok(), expression.as_ref().ok());
    }
});

fn evaluate(
    subject: Doc<'_>,
    filter: Option<&Predicate>,
    projection: Option<&Projection>,
    sort: Option<&Sort>,
    expression: Option<&Expression>,
) {
    let mut details = MatchDetails::default();
    if let Some(filter) = filter {
        let with_details = filter.matches_with(subject, &mut details);
        assert_eq!(filter.matches(subject).ok(), with_details.ok());
    }
    let mut out = Vec::new();
    if let Some(projection) = projection
        && projection.apply(subject, &mut out).is_ok()
    {
        assert!(Doc::from_bytes(&out).is_some(), "a projection gives a document");
    }
    out.clear();
    let _ = sort.map(|sort| sort.key(subject, &mut out));
    let _ = expression.map(|expression| expression.evaluate(subject).map(|value| value.into_owned()));
}
