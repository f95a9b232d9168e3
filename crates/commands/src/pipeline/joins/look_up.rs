//! `$lookup` and `$graphLookup`: documents of another collection beside those of the input.
//!
//! A join by equality reads the other collection once and finds partners by hash, if the collection is small beside the input or has
//! no index for the field; else it asks the index, for many documents at a time where they are joined by nothing but the fields. A
//! pipeline that does not depend on the document runs once.

use super::{collect, open_pipeline, read, through};
use crate::call::Call;
use crate::read::{BLOCKING_BYTES_MAX, Reader};
use aggregate::Pipeline;
use aggregate::foreign::{Foreign, GraphLookup, GraphSearch, JoinTable, Lookup, MATCHES_BYTES_MAX};
use document::{Doc, DocBuf};
use error::Result;
use query::{Item, ItemBuf, Predicate};
use std::collections::VecDeque;
use store::Namespace;
use values::spill::Budget;

/// How many documents of the other collection may be read for one of the input before an index is preferred.
const READ_PER_DOCUMENT: u64 = 50;

/// For so many documents an index is asked before the size of the collection is; most joins have no more.
const ASKED_AT_FIRST: u64 = 8;

/// For how many documents an index is asked at a time, where that can be.
const TOGETHER_MAX: usize = 100;

/// How much may be found for them. Where it is more, fewer are asked for.
const TOGETHER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How large a collection is read whole for a join.
const HASHED_BYTES_MAX: usize = BLOCKING_BYTES_MAX / 2;

/// How the partners of documents are found, once that is known.
#[derive(Debug, Default)]
enum Partners {
    #[default]
    Undecided,
    /// The store is asked for so many more documents; then it goes by the other collection's size.
    AskedAtFirst(u64),
    /// The store is asked for so many more documents; then reading all of the other collection comes cheaper.
    AskedFor(u64),
    /// The whole of the other collection, by the field it is joined on.
    Hashed(JoinTable),
    /// The same for every document.
    Same(Vec<DocBuf>),
}

impl Partners {
    /// The store is asked for all documents.
    const ASKED: Partners = Partners::AskedFor(u64::MAX);
}

/// A join at work.
#[derive(Debug)]
pub(super) struct Joining {
    partners: Partners,
    together: Together,
    /// How many documents are asked for at a time.
    together_max: usize,
}

/// Documents that the index was asked for at once, from the next one on, and what it gave.
#[derive(Debug, Default)]
struct Together {
    left: usize,
    /// `None`: it is asked for each of them.
    found: Option<JoinTable>,
}

impl Default for Joining {
    fn default() -> Joining {
        Joining { partners: Partners::default(), together: Together::default(), together_max: TOGETHER_MAX }
    }
}

/// A document of the input with what was found for it. `following`: those that are joined next.
pub(super) async fn join(
    call: &Call<'_>,
    foreign: &Foreign,
    joining: &mut Joining,
    item: Item<'_>,
    following: impl ExactSizeIterator<Item = &ItemBuf>,
    budget: &Budget,
) -> Result<ItemBuf> {
    let joined = match foreign {
        Foreign::Lookup(lookup) => {
            if joining.together.left == 0 {
                look_ahead(call, lookup, joining, item, following, budget).await?;
            }
            look_up(call, lookup, joining, item, budget).await?
        }
        Foreign::GraphLookup(lookup) => search(call, lookup, item, budget).await?,
        _ => return Ok(item.to_owned()),
    };
    Ok(ItemBuf::new(joined, item.metadata))
}

/// What was found, or the stage's own error where that was too much.
fn found(collected: Option<Vec<DocBuf>>, lookup: &Lookup) -> Result<Vec<DocBuf>> {
    collected.ok_or_else(|| lookup.matches_too_large())
}

/// Decides how partners are found, and asks for those of the next documents together where that can be.
async fn look_ahead(
    call: &Call<'_>,
    lookup: &Lookup,
    joining: &mut Joining,
    item: Item<'_>,
    following: impl ExactSizeIterator<Item = &ItemBuf>,
    budget: &Budget,
) -> Result<()> {
    joining.together = Together::default();
    let asked_max = loop {
        joining.partners = match &mut joining.partners {
            Partners::Undecided => decide(call, lookup, budget).await?,
            Partners::AskedAtFirst(0) => by_size(call, lookup).await?,
            Partners::AskedFor(0) => hash(call, lookup, budget).await?,
            Partners::AskedAtFirst(left) | Partners::AskedFor(left) => break left,
            Partners::Hashed(_) | Partners::Same(_) => return Ok(()),
        };
    };
    let count = (1 + following.len()).min(joining.together_max).min(usize::try_from(*asked_max).unwrap_or(usize::MAX));
    *asked_max -= count as u64;
    joining.together.left = count;
    if count > 1 {
        let documents =
            std::iter::once(item.document).chain(following.take(count - 1).map(|item| item.as_item().document));
        let Some(condition) = lookup.query_for_batch(documents)? else { return Ok(()) };
        joining.together.found = read_table(call, lookup, Some(condition), TOGETHER_BYTES_MAX, budget).await?;
        if joining.together.found.is_none() {
            joining.together_max = (joining.together_max / 8).max(1);
        }
    }
    Ok(())
}

async fn look_up(
    call: &Call<'_>,
    lookup: &Lookup,
    joining: &mut Joining,
    item: Item<'_>,
    budget: &Budget,
) -> Result<DocBuf> {
    joining.together.left = joining.together.left.saturating_sub(1);
    match (&joining.partners, &joining.together.found) {
        (Partners::Same(found), _) => lookup.join(item.document, found.iter().map(DocBuf::as_doc)),
        (Partners::Hashed(table), _) | (_, Some(table)) => find_in_table(call, lookup, table, item, budget).await,
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
        call.operation.tick()?;
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
    if let Some(given) = lookup.inline_documents(item)? {
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
            return Ok(Partners::ASKED);
        }
        return Ok(Partners::Same(ask(call, lookup, Doc::EMPTY.into(), budget).await?));
    };
    if lookup.has_inline_documents() {
        return Ok(Partners::ASKED);
    }
    let namespace = namespace(call, lookup.collection());
    let indexes = call.worker.store.cached_indexes(&namespace).await?.unwrap_or_default();
    let indexed = indexes.iter().any(|index| index.key.as_doc().first().is_some_and(|first| first.key() == field));
    if indexed {
        let at_first = if lookup.joins_on_fields_only() { TOGETHER_MAX as u64 } else { ASKED_AT_FIRST };
        return Ok(Partners::AskedAtFirst(at_first));
    }
    match call.worker.store.estimated_size(&namespace).await?.data_bytes > HASHED_BYTES_MAX as u64 {
        true => Ok(Partners::ASKED),
        false => hash(call, lookup, budget).await,
    }
}

/// Up to when an index is asked, going by the other collection's size.
async fn by_size(call: &Call<'_>, lookup: &Lookup) -> Result<Partners> {
    let size = call.worker.store.estimated_size(&namespace(call, lookup.collection())).await?;
    Ok(match size.data_bytes > HASHED_BYTES_MAX as u64 {
        true => Partners::ASKED,
        false => Partners::AskedFor(size.documents / READ_PER_DOCUMENT),
    })
}

/// Reads all of the other collection, unless it turns out to be too large for that.
async fn hash(call: &Call<'_>, lookup: &Lookup, budget: &Budget) -> Result<Partners> {
    let all = read_table(call, lookup, None, HASHED_BYTES_MAX, budget).await?;
    Ok(all.map_or(Partners::ASKED, Partners::Hashed))
}

/// Reads what meets a condition, or everything; `None` where that is more than `bytes_max`.
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
