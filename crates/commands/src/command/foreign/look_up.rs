//! `$lookup` and `$graphLookup`: documents of another collection beside those of the input.
//!
//! A join by equality reads the other collection once and finds partners by hash, if the collection is small beside the input or has
//! no index for the field; else it asks the index for each document. A pipeline that does not depend on the document runs once.

use super::{collect, open_pipeline, read, through};
use crate::dispatch::Call;
use crate::read::{BLOCKING_BYTES_MAX, Reader};
use document::{Doc, DocBuf};
use error::Result;
use query::aggregate::Pipeline;
use query::aggregate::foreign::{Foreign, GraphLookup, JoinTable, Lookup, MATCHES_BYTES_MAX, Search};
use query::spill::Budget;
use query::{Item, ItemBuf};
use std::collections::VecDeque;
use store::Namespace;

/// How many documents of the other collection may be read for one of the input before an index is preferred.
const READ_PER_DOCUMENT: u64 = 50;

/// How large a collection is read whole for a join.
const HASHED_BYTES_MAX: usize = BLOCKING_BYTES_MAX / 2;

/// How the partners of documents are found, once that is known.
#[derive(Debug, Default)]
pub(super) enum Partners {
    #[default]
    Undecided,
    /// The whole of the other collection, by the field it is joined on.
    Hashed(JoinTable),
    /// The same for every document.
    Same(Vec<DocBuf>),
    /// The store is asked for each document.
    Asked,
    /// As `Asked`, for so many more documents; then reading all of the other collection comes cheaper.
    AskedFor(u64),
}

/// A document of the input with what was found for it.
pub(super) async fn join(
    call: &Call<'_>,
    foreign: &Foreign,
    partners: &mut Partners,
    item: Item<'_>,
    budget: &Budget,
) -> Result<ItemBuf> {
    let joined = match foreign {
        Foreign::Lookup(lookup) => look_up(call, lookup, partners, item, budget).await?,
        Foreign::GraphLookup(lookup) => search(call, lookup, item, budget).await?,
        _ => return Ok(item.to_owned()),
    };
    Ok(ItemBuf::new(joined, item.metadata))
}

/// What was found, or the stage's own error where that was too much.
fn found(collected: Option<Vec<DocBuf>>, lookup: &Lookup) -> Result<Vec<DocBuf>> {
    collected.ok_or_else(|| lookup.too_many())
}

async fn look_up(
    call: &Call<'_>,
    lookup: &Lookup,
    partners: &mut Partners,
    item: Item<'_>,
    budget: &Budget,
) -> Result<DocBuf> {
    match partners {
        Partners::Undecided => *partners = decide(call, lookup, budget).await?,
        Partners::AskedFor(0) => *partners = hash(call, lookup, budget).await?,
        Partners::AskedFor(left) => *left -= 1,
        _ => {}
    }
    match partners {
        Partners::Same(found) => lookup.join(item.document, found.iter().map(DocBuf::as_doc)),
        Partners::Hashed(table) => find_in_table(call, lookup, table, item, budget).await,
        _ => {
            let found = ask(call, lookup, item, budget).await?;
            lookup.join(item.document, found.iter().map(DocBuf::as_doc))
        }
    }
}

async fn find_in_table(
    call: &Call<'_>,
    lookup: &Lookup,
    table: &JoinTable,
    item: Item<'_>,
    budget: &Budget,
) -> Result<DocBuf> {
    let (predicate, pipeline) = lookup.query(item)?;
    let mut matches = Vec::new();
    for candidate in table.candidates(lookup, item.document) {
        call.running.tick()?;
        if predicate.matches(candidate)? {
            matches.push(candidate);
        }
    }
    if pipeline.is_identity() {
        return lookup.join(item.document, matches.into_iter());
    }
    let matches = matches.into_iter().map(Doc::to_owned).collect();
    let found = found(send_through(call, matches, &pipeline, budget).await?, lookup)?;
    lookup.join(item.document, found.iter().map(DocBuf::as_doc))
}

/// Sends documents at hand through a pipeline.
async fn send_through(
    call: &Call<'_>,
    documents: VecDeque<DocBuf>,
    pipeline: &Pipeline,
    budget: &Budget,
) -> Result<Option<Vec<DocBuf>>> {
    if pipeline.has_foreign() {
        return collect(call, through(Reader::over(documents, None), pipeline, budget), MATCHES_BYTES_MAX).await;
    }
    let execution = pipeline.start(budget.clone());
    collect(call, Reader::over(documents, Some(execution)), MATCHES_BYTES_MAX).await
}

/// Asks for one document's partners.
async fn ask(call: &Call<'_>, lookup: &Lookup, item: Item<'_>, budget: &Budget) -> Result<Vec<DocBuf>> {
    let (predicate, pipeline) = lookup.query(item)?;
    if let Some(given) = lookup.given(item)? {
        let mut matching = VecDeque::new();
        for document in given {
            if predicate.matches(document.as_doc())? {
                matching.push_back(document);
            }
        }
        return found(send_through(call, matching, &pipeline, budget).await?, lookup);
    }
    found(read(call, &namespace(call, lookup.collection()), Some(predicate), &pipeline, budget).await?, lookup)
}

fn namespace(call: &Call<'_>, collection: &str) -> Namespace {
    Namespace::new(call.database(), collection)
}

async fn decide(call: &Call<'_>, lookup: &Lookup, budget: &Budget) -> Result<Partners> {
    let Some(field) = lookup.foreign_field() else {
        if lookup.is_correlated() {
            return Ok(Partners::Asked);
        }
        return Ok(Partners::Same(ask(call, lookup, Doc::EMPTY.into(), budget).await?));
    };
    if lookup.gives_documents() {
        return Ok(Partners::Asked);
    }
    let namespace = namespace(call, lookup.collection());
    let stats = call.worker.store.collection_stats(&namespace).await?;
    let (count, bytes) = stats.map_or((0, 0), |stats| (stats.documents, stats.data_bytes));
    if bytes > HASHED_BYTES_MAX as u64 {
        return Ok(Partners::Asked);
    }
    let indexes = call.worker.store.indexes(&namespace).await?.unwrap_or_default();
    let indexed = indexes.iter().any(|index| index.key.as_doc().first().is_some_and(|first| first.key() == field));
    if indexed {
        return Ok(Partners::AskedFor(count / READ_PER_DOCUMENT));
    }
    hash(call, lookup, budget).await
}

/// Reads all of the other collection, unless it turns out to be too large for that.
async fn hash(call: &Call<'_>, lookup: &Lookup, budget: &Budget) -> Result<Partners> {
    let namespace = namespace(call, lookup.collection());
    let _nested = call.running.nest()?;
    let reader = open_pipeline(call, &namespace, None, &Pipeline::empty(), budget).await?;
    let all = collect(call, reader, HASHED_BYTES_MAX).await?;
    Ok(all.map_or(Partners::Asked, |all| Partners::Hashed(JoinTable::build(lookup, all))))
}

async fn search(call: &Call<'_>, lookup: &GraphLookup, item: Item<'_>, budget: &Budget) -> Result<DocBuf> {
    let namespace = namespace(call, lookup.collection());
    let mut search = lookup.start(item)?;
    while let Some(predicate) = search.next_predicate()? {
        call.running.breathe().await;
        let found = read(call, &namespace, Some(predicate), &Pipeline::empty(), budget).await?;
        let found = found.ok_or_else(Search::too_much)?;
        search.reach(found.iter().map(DocBuf::as_doc), BLOCKING_BYTES_MAX)?;
    }
    Ok(lookup.join(item.document, &search.finish()))
}
