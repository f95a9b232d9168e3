//! Answers test cases from standard input, for comparison with a MongoDB server (`tests/compat/language.py`).
//!
//! Each case is a BSON document. `{op: "update", document, update, filter?, arrayFilters?, upsert?}` is answered with
//! `{document?, changed}`; `{op: "aggregate", pipeline, documents}` with `{documents}`; what fails with `{code, message}`.

use document::{ArrayWriter, Doc, DocBuf, DocWriter, ObjectId, Value};
use error::{Error, Result};
use query::aggregate::Pipeline;
use query::update::Applied;
use query::{Context, MatchDetails, Predicate, Update};
use std::io::{Read, Write};

const NOW_MS: i64 = 1_600_000_000_123;
const MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;

fn main() -> std::io::Result<()> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    let mut output = Vec::new();
    let mut rest = &input[..];
    while let Some(case) = Doc::from_prefix(rest) {
        rest = &rest[case.size()..];
        let answer = answer(case).unwrap_or_else(|error| {
            DocBuf::build(|writer| {
                writer.append("code", error.code().0);
                writer.append("message", error.message());
            })
        });
        output.extend_from_slice(answer.as_bytes());
    }
    std::io::stdout().write_all(&output)
}

fn answer(case: Doc<'_>) -> Result<DocBuf> {
    match case.get("op").and_then(Value::as_str) {
        Some("update") => update(case),
        Some("aggregate") => aggregate(case),
        other => Err(Error::bad_value(format!("unknown op {other:?}"))),
    }
}

fn nested<'a>(case: Doc<'a>, key: &str) -> Option<Doc<'a>> {
    case.get(key).and_then(|value| value.as_document().or_else(|| value.as_array()))
}

fn update(case: Doc<'_>) -> Result<DocBuf> {
    let context = Context::at(NOW_MS);
    let filter = nested(case, "filter").unwrap_or(Doc::EMPTY);
    let predicate = if filter.is_empty() { Predicate::everything() } else { Predicate::parse(filter, &context)? };
    let update = Update::parse(
        case.get("update").unwrap_or(Value::Null),
        case.get("arrayFilters").and_then(Value::as_array),
        &context,
    )?;
    let mut out = Vec::new();
    let mut changed = true;
    if case.get("upsert").is_some_and(Value::is_truthy) {
        update.upsert(&predicate, ObjectId([0; 12]), &mut out)?;
    } else {
        let document = nested(case, "document").unwrap_or(Doc::EMPTY);
        let mut details = MatchDetails::default();
        let matched = filter.is_empty() || predicate.matches_with(document, &mut details)?;
        changed = matched && update.apply(document, &details, &mut out)? == Applied::Changed;
        if !changed {
            out.extend_from_slice(document.as_bytes());
        }
    }
    document::validate::check(&out).map_err(|invalid| Error::internal(invalid.to_string()))?;
    Ok(DocBuf::build(|writer: &mut DocWriter<'_>| {
        writer.append("changed", changed);
        writer.append("document", Doc::from_bytes(&out).unwrap_or(Doc::EMPTY));
    }))
}

fn aggregate(case: Doc<'_>) -> Result<DocBuf> {
    let context = Context::at(NOW_MS);
    let pipeline = Pipeline::parse(nested(case, "pipeline").unwrap_or(Doc::EMPTY), &context)?;
    let mut execution = pipeline.start(MEMORY_BYTES_MAX);
    let mut results = Vec::new();
    for document in nested(case, "documents").unwrap_or(Doc::EMPTY).values().filter_map(Value::as_document) {
        let demand = execution.push(document)?;
        results.extend(std::iter::from_fn(|| execution.pop()));
        if demand == query::aggregate::Demand::Enough {
            break;
        }
    }
    execution.finish()?;
    results.extend(std::iter::from_fn(|| execution.pop()));
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    results.iter().for_each(|document| writer.push(document));
    drop(writer);
    Ok(DocBuf::build(|writer| writer.append("documents", Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)))))
}
