//! `$lookup` and `$graphLookup`: add documents of another collection to those of the input.
//!
//! An equality join reads the other collection once into a hash table, if that collection is small
//! compared with the input or has no index for the field. Otherwise it queries the index, for many
//! documents at a time if only the fields are compared. A pipeline that does not depend on the
//! document runs once.

use super::{collect, open_pipeline, read, through};
use crate::call::Call;
use crate::read::{BLOCKING_BYTES_MAX, Reader};
use aggregate::Pipeline;
use aggregate::joins::{CrossCollectionStage, GraphLookup, GraphSearch, JoinTable, Lookup, MATCHES_BYTES_MAX};
use document::{Doc, DocBuf};
use error::Result;
use query::{Item, ItemBuf, Predicate};
use std::collections::VecDeque;
use store::Namespace;
use values::spill::Budget;

/// The most documents of the other collection to read per input document, before an index is
/// preferred.
const READ_PER_DOCUMENT: u64 = 50;

/// The number of documents for which the index is queried before the collection's size is
/// considered; most joins have no more.
const QUERIES_AT_FIRST: u64 = 8;

/// The most documents per query of the index.
const DOCUMENTS_PER_QUERY_MAX: usize = 100;

/// The most bytes that such a query may return. Beyond that, later queries are for fewer documents.
const BYTES_PER_QUERY_MAX: usize = 16 * 1024 * 1024;

/// The largest collection that is read into a hash table.
const HASHED_BYTES_MAX: usize = BLOCKING_BYTES_MAX / 2;

/// How the matches of documents are found.
#[derive(Debug, Default)]
enum Strategy {
    #[default]
    Undecided,
    /// Query the store for this many more documents, then decide by the other collection's size.
    QueriesAtFirst(u64),
    /// Query the store for this many more documents; after that, reading the other collection is
    /// cheaper.
    Queries(u64),
    /// A hash table of the other collection, by the joined field.
    HashTable(JoinTable),
    /// The same matches for every document.
    Same(Vec<DocBuf>),
}

impl Strategy {
    /// Query the store for all documents.
    const QUERIES: Strategy = Strategy::Queries(u64::MAX);
}

/// The state of a join.
#[derive(Debug)]
pub(super) struct LookupState {
    strategy: Strategy,
    shared_query: SharedQuery,
    /// The number of documents per query.
    documents_per_query: usize,
}

/// The documents of the last query that are still to be joined, and its result.
#[derive(Debug, Default)]
struct SharedQuery {
    left: usize,
    /// `None`: each of them is queried separately.
    found: Option<JoinTable>,
}

impl Default for LookupState {
    fn default() -> LookupState {
        LookupState {
            strategy: Strategy::default(),
            shared_query: SharedQuery::default(),
            documents_per_query: DOCUMENTS_PER_QUERY_MAX,
        }
    }
}

/// Returns an input document with its matches. `following`: the documents to be joined next.
pub(super) async fn join(
    call: &Call<'_>,
    foreign: &CrossCollectionStage,
    state: &mut LookupState,
    item: Item<'_>,
    following: impl ExactSizeIterator<Item = &ItemBuf>,
    budget: &Budget,
) -> Result<ItemBuf> {
    let joined = match foreign {
        CrossCollectionStage::Lookup(lookup) => {
            if state.shared_query.left == 0 {
                look_ahead(call, lookup, state, item, following, budget).await?;
            }
            look_up(call, lookup, state, item, budget).await?
        }
        CrossCollectionStage::GraphLookup(lookup) => search(call, lookup, item, budget).await?,
        _ => return Ok(item.to_owned()),
    };
    Ok(ItemBuf::new(joined, item.metadata))
}

/// Returns the result, or the stage's own error if it was too large.
fn found(collected: Option<Vec<DocBuf>>, lookup: &Lookup) -> Result<Vec<DocBuf>> {
    collected.ok_or_else(|| lookup.matches_too_large())
}

/// Decides how matches are found, and queries those of the next documents together if possible.
async fn look_ahead(
    call: &Call<'_>,
    lookup: &Lookup,
    state: &mut LookupState,
    item: Item<'_>,
    following: impl ExactSizeIterator<Item = &ItemBuf>,
    budget: &Budget,
) -> Result<()> {
    state.shared_query = SharedQuery::default();
    let queries_max = loop {
        state.strategy = match &mut state.strategy {
            Strategy::Undecided => decide(call, lookup, budget).await?,
            Strategy::QueriesAtFirst(0) => by_size(call, lookup).await?,
            Strategy::Queries(0) => hash(call, lookup, budget).await?,
            Strategy::QueriesAtFirst(left) | Strategy::Queries(left) => break left,
            Strategy::HashTable(_) | Strategy::Same(_) => return Ok(()),
        };
    };
    let count =
        (1 + following.len()).min(state.documents_per_query).min(usize::try_from(*queries_max).unwrap_or(usize::MAX));
    *queries_max -= count as u64;
    state.shared_query.left = count;
    if count > 1 {
        let documents =
            std::iter::once(item.document).chain(following.take(count - 1).map(|item| item.as_item().document));
        let Some(condition) = lookup.query_for_batch(documents)? else { return Ok(()) };
        state.shared_query.found = read_table(call, lookup, Some(condition), BYTES_PER_QUERY_MAX, budget).await?;
        if state.shared_query.found.is_none() {
            state.documents_per_query = (state.documents_per_query / 8).max(1);
        }
    }
    Ok(())
}

async fn look_up(
    call: &Call<'_>,
    lookup: &Lookup,
    state: &mut LookupState,
    item: Item<'_>,
    budget: &Budget,
) -> Result<DocBuf> {
    state.shared_query.left = state.shared_query.left.saturating_sub(1);
    match (&state.strategy, &state.shared_query.found) {
        (Strategy::Same(found), _) => lookup.join(item.document, found.iter().map(DocBuf::as_doc)),
        (Strategy::HashTable(table), _) | (_, Some(table)) => find_in_table(call, lookup, table, item, budget).await,
        _ => {
            let found = query_matches(call, lookup, item, budget).await?;
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
        call.operation.tick()?;
        if predicate.matches(candidate)? {
            matches.push(candidate);
        }
    }
    if pipeline.is_identity() {
        return lookup.join(item.document, matches.into_iter());
    }
    let matches = matches.into_iter().map(Doc::to_owned).collect();
    let found = found(pass_through(call, matches, &pipeline, budget).await?, lookup)?;
    lookup.join(item.document, found.iter().map(DocBuf::as_doc))
}

/// Passes documents in memory through a pipeline.
async fn pass_through(
    call: &Call<'_>,
    documents: VecDeque<DocBuf>,
    pipeline: &Pipeline,
    budget: &Budget,
) -> Result<Option<Vec<DocBuf>>> {
    if pipeline.has_cross_collection_stages() {
        return collect(call, through(Reader::over(documents, None), pipeline, budget), MATCHES_BYTES_MAX).await;
    }
    let execution = pipeline.start(budget.clone());
    collect(call, Reader::over(documents, Some(execution)), MATCHES_BYTES_MAX).await
}

/// Queries the matches of one document.
async fn query_matches(call: &Call<'_>, lookup: &Lookup, item: Item<'_>, budget: &Budget) -> Result<Vec<DocBuf>> {
    let (predicate, pipeline) = lookup.query(item)?;
    if let Some(given) = lookup.inline_documents(item)? {
        let mut matching = VecDeque::new();
        for document in given {
            if predicate.matches(document.as_doc())? {
                matching.push_back(document);
            }
        }
        return found(pass_through(call, matching, &pipeline, budget).await?, lookup);
    }
    found(read(call, &namespace(call, lookup.collection()), Some(predicate), &pipeline, budget).await?, lookup)
}

fn namespace(call: &Call<'_>, collection: &str) -> Namespace {
    Namespace::new(call.database(), collection)
}

async fn decide(call: &Call<'_>, lookup: &Lookup, budget: &Budget) -> Result<Strategy> {
    let Some(field) = lookup.foreign_field() else {
        if lookup.is_correlated() {
            return Ok(Strategy::QUERIES);
        }
        return Ok(Strategy::Same(query_matches(call, lookup, Doc::EMPTY.into(), budget).await?));
    };
    if lookup.has_inline_documents() {
        return Ok(Strategy::QUERIES);
    }
    let namespace = namespace(call, lookup.collection());
    let indexes = call.worker.store.cached_indexes(&namespace).await?.unwrap_or_default();
    let indexed = indexes.iter().any(|index| index.key.as_doc().first().is_some_and(|first| first.key() == field));
    if indexed {
        let at_first = if lookup.joins_on_fields_only() { DOCUMENTS_PER_QUERY_MAX as u64 } else { QUERIES_AT_FIRST };
        return Ok(Strategy::QueriesAtFirst(at_first));
    }
    match call.worker.store.estimated_size(&namespace).await?.data_bytes > HASHED_BYTES_MAX as u64 {
        true => Ok(Strategy::QUERIES),
        false => hash(call, lookup, budget).await,
    }
}

/// Returns how long to query the index, by the other collection's size.
async fn by_size(call: &Call<'_>, lookup: &Lookup) -> Result<Strategy> {
    let size = call.worker.store.estimated_size(&namespace(call, lookup.collection())).await?;
    Ok(match size.data_bytes > HASHED_BYTES_MAX as u64 {
        true => Strategy::QUERIES,
        false => Strategy::Queries(size.documents / READ_PER_DOCUMENT),
    })
}

/// Reads the other collection into a hash table, unless it is too large.
async fn hash(call: &Call<'_>, lookup: &Lookup, budget: &Budget) -> Result<Strategy> {
    let all = read_table(call, lookup, None, HASHED_BYTES_MAX, budget).await?;
    Ok(all.map_or(Strategy::QUERIES, Strategy::HashTable))
}

/// Reads the documents that satisfy a condition, or all; returns `None` if they exceed `bytes_max`.
async fn read_table(
    call: &Call<'_>,
    lookup: &Lookup,
    condition: Option<Predicate>,
    bytes_max: usize,
    budget: &Budget,
) -> Result<Option<JoinTable>> {
    let namespace = namespace(call, lookup.collection());
    let _nested = call.operation.enter_nested_pipeline()?;
    let reader = open_pipeline(call, &namespace, condition, &Pipeline::empty(), budget).await?;
    let read = collect(call, reader, bytes_max).await?;
    Ok(read.map(|documents| JoinTable::build(lookup, documents)))
}

async fn search(call: &Call<'_>, lookup: &GraphLookup, item: Item<'_>, budget: &Budget) -> Result<DocBuf> {
    let namespace = namespace(call, lookup.collection());
    let mut search = lookup.start(item)?;
    while let Some(predicate) = search.next_predicate()? {
        call.operation.yield_if_due().await;
        let found = read(call, &namespace, Some(predicate), &Pipeline::empty(), budget).await?;
        let found = found.ok_or_else(GraphSearch::memory_exceeded)?;
        search.add_found(found.iter().map(DocBuf::as_doc), BLOCKING_BYTES_MAX)?;
    }
    Ok(lookup.join(item.document, &search.finish()))
}
