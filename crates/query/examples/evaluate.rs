//! Answers queries without a server, for comparing the evaluator with a MongoDB server (`tests/compat/query_language.py`).
//!
//! Reads BSON documents from standard input and writes one BSON document to standard output for each:
//!
//! - `{load: [documents]}` replaces the collection; the answer is `{}`.
//! - `{filter: …, sort: …, projection: …}` is a find; the answer is `{documents: […]}` or `{code: …, message: …}`.

use document::{Doc, DocBuf, DocWriter};
use error::{Error, Result};
use query::sort::Sorter;
use query::{Context, MatchDetails, Predicate, Projection, Sort};
use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut collection: Vec<DocBuf> = Vec::new();
    while let Some(request) = read_document(&mut input)? {
        let request = request.as_doc();
        let mut answer = DocBuf::new();
        if let Some(documents) = request.get("load").and_then(|value| value.as_array()) {
            collection = documents.values().filter_map(|value| value.as_document()).map(Doc::to_owned).collect();
        } else {
            answer = find(request, &collection).unwrap_or_else(|error| refusal(&error));
        }
        output.write_all(answer.as_bytes())?;
        output.flush()?;
    }
    Ok(())
}

fn read_document(input: &mut impl Read) -> std::io::Result<Option<DocBuf>> {
    let mut bytes = vec![0; 4];
    if input.read_exact(&mut bytes).is_err() {
        return Ok(None);
    }
    let length = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
    bytes.resize(length.max(4), 0);
    input.read_exact(&mut bytes[4..])?;
    Ok(DocBuf::from_vec(bytes))
}

fn refusal(error: &Error) -> DocBuf {
    let mut answer = DocBuf::new();
    answer.append("code", error.code().0);
    answer.append("message", error.message());
    answer
}

fn find(request: Doc<'_>, collection: &[DocBuf]) -> Result<DocBuf> {
    let part = |name: &str| request.get(name).and_then(|value| value.as_document()).unwrap_or(Doc::EMPTY);
    let context = Context::at(0);
    let predicate = Predicate::parse(part("filter"), &context)?;
    let projection = Projection::parse(part("projection"), &predicate, &context)?;
    let sort = Sort::parse(part("sort"), &context)?;
    let mut sorter = Sorter::new(sort, None, usize::MAX);
    for document in collection {
        if predicate.matches(document.as_doc())? {
            sorter.push(document.as_doc())?;
        }
    }
    let mut bytes = Vec::new();
    let mut answer = DocWriter::begin(&mut bytes);
    let mut documents = answer.array("documents");
    let mut projected = Vec::new();
    for document in sorter.finish() {
        let mut details = MatchDetails::default();
        predicate.matches_with(document.as_doc(), &mut details)?;
        projected.clear();
        projection.apply(document.as_doc(), &details, &mut projected)?;
        documents.push(Doc::from_bytes(&projected).unwrap_or(Doc::EMPTY));
    }
    drop(documents);
    drop(answer);
    Ok(DocBuf::from_vec(bytes).unwrap_or_default())
}
