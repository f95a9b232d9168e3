//! `$lookup` and `$graphLookup`: documents of another collection beside those of the input.
//!
//! A join by equality reads the other collection once and finds partners by hash, if the collection is small beside the input or has
//! no index for the field; else it asks the index for each document. A pipeline that does not depend on the document runs once.

use super::{check_held, read, run};
use crate::dispatch::Call;
use crate::read::{BLOCKING_BYTES_MAX, Reader};
use document::{Doc, DocBuf};
use error::Result;
use query::Predicate;
use query::aggregate::Pipeline;
use query::aggregate::foreign::{GraphLookup, JoinTable, Lookup};
use query::spill::Budget;
use store::Namespace;

/// How many documents of the other collection may be read for one of the input before an index is preferred.
const READ_PER_DOCUMENT: u64 = 50;

/// How the partners of documents are found, once that is known.
#[derive(Default)]
pub(super) enum Partners {
    #[default]
    Undecided,
    /// The whole of the other collection, by the field it is joined on.
    Hashed(JoinTable),
    /// The same for every document.
    Same(Vec<DocBuf>),
    Asked,
}

pub(super) async fn look_up(
    call: &Call<'_>,
    lookup: &Lookup,
    partners: &mut Partners,
    documents: Vec<DocBuf>,
    budget: &Budget,
) -> Result<Vec<DocBuf>> {
    if let Partners::Undecided = partners
        && !documents.is_empty()
    {
        *partners = decide(call, lookup, documents.len() as u64, budget).await?;
    }
    let mut joined = Vec::with_capacity(documents.len());
    let mut held_bytes = 0;
    for document in documents {
        call.running.tick()?;
        let document = document.as_doc();
        let document = match partners {
            Partners::Same(found) => lookup.join(document, found.iter().map(DocBuf::as_doc))?,
            Partners::Hashed(table) => {
                let (predicate, pipeline) = lookup.query(document)?;
                let mut matches = Vec::new();
                for candidate in table.candidates(lookup, document) {
                    if predicate.matches(candidate)? {
                        matches.push(candidate);
                    }
                }
                if pipeline.is_identity() {
                    lookup.join(document, matches.into_iter())?
                } else {
                    let matches = matches.into_iter().map(Doc::to_owned).collect();
                    let found = run(call, Reader::over(matches, None), pipeline, budget).await?;
                    lookup.join(document, found.iter().map(DocBuf::as_doc))?
                }
            }
            _ => {
                let found = ask(call, lookup, document, budget).await?;
                lookup.join(document, found.iter().map(DocBuf::as_doc))?
            }
        };
        held_bytes += document.as_bytes().len();
        check_held(held_bytes)?;
        joined.push(document);
    }
    Ok(joined)
}

/// Asks for one document's partners.
async fn ask(call: &Call<'_>, lookup: &Lookup, document: Doc<'_>, budget: &Budget) -> Result<Vec<DocBuf>> {
    let (predicate, pipeline) = lookup.query(document)?;
    if let Some(given) = lookup.given(document)? {
        let mut matching = std::collections::VecDeque::new();
        for document in given {
            if predicate.matches(document.as_doc())? {
                matching.push_back(document);
            }
        }
        return run(call, Reader::over(matching, None), pipeline, budget).await;
    }
    read(call, &namespace(call, lookup.collection()), predicate, pipeline, budget).await
}

fn namespace(call: &Call<'_>, collection: &str) -> Namespace {
    Namespace::new(call.database(), collection)
}

async fn decide(call: &Call<'_>, lookup: &Lookup, documents: u64, budget: &Budget) -> Result<Partners> {
    let Some(field) = lookup.foreign_field() else {
        if lookup.is_correlated() {
            return Ok(Partners::Asked);
        }
        return Ok(Partners::Same(ask(call, lookup, Doc::EMPTY, budget).await?));
    };
    if lookup.gives_documents() {
        return Ok(Partners::Asked);
    }
    let namespace = namespace(call, lookup.collection());
    let stats = call.worker.store.collection_stats(&namespace).await?;
    let (count, bytes) = stats.map_or((0, 0), |stats| (stats.documents, stats.data_bytes));
    if bytes > BLOCKING_BYTES_MAX as u64 / 2 {
        return Ok(Partners::Asked);
    }
    let indexes = call.worker.store.indexes(&namespace).await?.unwrap_or_default();
    let indexed = indexes.iter().any(|index| index.key.as_doc().first().is_some_and(|first| first.key() == field));
    if indexed && count > documents.saturating_mul(READ_PER_DOCUMENT) {
        return Ok(Partners::Asked);
    }
    let all = read(call, &namespace, Predicate::everything(), Pipeline::empty(), budget).await?;
    Ok(Partners::Hashed(JoinTable::build(lookup, all)))
}

pub(super) async fn search(
    call: &Call<'_>,
    lookup: &GraphLookup,
    documents: Vec<DocBuf>,
    budget: &Budget,
) -> Result<Vec<DocBuf>> {
    let namespace = namespace(call, lookup.collection());
    let mut joined = Vec::with_capacity(documents.len());
    let mut held_bytes = 0;
    for document in documents {
        call.running.tick()?;
        let mut search = lookup.start(document.as_doc())?;
        while let Some(predicate) = search.next_predicate()? {
            let found = read(call, &namespace, predicate, Pipeline::empty(), budget).await?;
            search.reach(found.iter().map(DocBuf::as_doc), BLOCKING_BYTES_MAX)?;
        }
        let document = lookup.join(document.as_doc(), &search.finish());
        held_bytes += document.as_bytes().len();
        check_held(held_bytes)?;
        joined.push(document);
    }
    Ok(joined)
}
