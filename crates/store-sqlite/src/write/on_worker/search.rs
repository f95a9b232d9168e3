//! Finding the documents of a statement that runs on the worker.

use super::{Statement, Step};
use crate::catalog::Collection;
use crate::plan::SqlitePlan;
use crate::write::batch::{MatchedRow, UpdateTarget, check, query_of};
use document::Doc;
use error::{Error, Result};
use query::{MatchDetails, Sort};
use std::sync::Arc;
use store::{AccessStats, DocumentStore, Flow, Progress, Sink, StoredDoc};

impl Statement<'_> {
    /// Returns the document that a statement about one must change. `candidate`: one that was found
    /// before, and has changed since.
    pub(super) async fn find_one(
        &self,
        target: UpdateTarget<'_>,
        candidate: Option<i64>,
        access: &mut AccessStats,
    ) -> Step<Option<(Arc<Collection>, MatchedRow)>> {
        if let Some(seq) = candidate.filter(|_| target.sort.is_none())
            && let Some(collection) = self.collection()
            && let Some(found) = self.reread(&collection, seq, target).await?
        {
            return Ok(Some((collection, found)));
        }
        let found = self.search(target, true, access).await?;
        Ok(found.and_then(|(collection, search)| Some((collection, search.found?))))
    }

    /// Reads a document that was found before, if it still matches.
    pub(super) async fn reread(
        &self,
        collection: &Collection,
        seq: i64,
        target: UpdateTarget<'_>,
    ) -> Step<Option<MatchedRow>> {
        let Some(document) = self.store.document(collection, seq).await? else { return Ok(None) };
        let details = check(target, false, document.as_doc())?;
        Ok(details.map(|details| MatchedRow { seq, document, details }))
    }

    /// Searches documents. Returns `None` if the collection does not exist.
    pub(super) async fn search<'s>(
        &'s self,
        target: UpdateTarget<'s>,
        one: bool,
        access: &mut AccessStats,
    ) -> Step<Option<(Arc<Collection>, Search<'s>)>> {
        let namespace = &self.batch.namespace;
        let plan = self.store.plan(namespace, query_of(target, one.then_some(1))).await?;
        let facts = *plan.facts();
        if facts.view {
            return Err(store::views::not_a_collection(namespace).into());
        }
        let collection = plan.as_any().downcast_ref::<SqlitePlan>().and_then(|plan| plan.collection.clone());
        let Some(collection) = collection else { return Ok(None) };
        let sort = target.sort.filter(|_| one && !facts.sorted);
        let details = target.details || sort.is_some_and(|sort| !sort.needs().is_empty());
        let mut search = Search {
            target: UpdateTarget { details, ..target },
            exact: facts.exact,
            one,
            sort,
            progress: self.progress,
            seq: 0,
            found: None,
            key: Vec::new(),
            least_key: Vec::new(),
            all: Vec::new(),
        };
        let scanned = self.store.scan(&*plan, None, 1, &mut search).await;
        access.examined = access.examined + plan.examined();
        access.summary = plan.summary();
        self.check()?;
        scanned?;
        Ok(Some((collection, search)))
    }
}

/// A sink that takes the first matching document, or the least, or the numbers of all.
pub struct Search<'s> {
    target: UpdateTarget<'s>,
    /// Every document matches.
    exact: bool,
    one: bool,
    sort: Option<&'s Sort>,
    progress: &'s Progress,
    /// The number of the next document.
    seq: i64,
    pub found: Option<MatchedRow>,
    key: Vec<u8>,
    least_key: Vec<u8>,
    pub all: Vec<i64>,
}

impl Search<'_> {
    fn take(&mut self, document: Doc<'_>, details: MatchDetails) -> Result<Flow> {
        let seq = self.seq;
        if !self.one {
            self.all.push(seq);
            return Ok(Flow::Continue);
        }
        let Some(sort) = self.sort else {
            self.found = Some(MatchedRow { seq, document: document.to_owned(), details });
            return Ok(Flow::StopAfter);
        };
        self.key.clear();
        sort.key_of_match(document, &details, &mut self.key)?;
        if self.found.is_none() || self.key < self.least_key {
            self.found = Some(MatchedRow { seq, document: document.to_owned(), details });
            std::mem::swap(&mut self.key, &mut self.least_key);
        }
        Ok(Flow::Continue)
    }
}

impl Sink for Search<'_> {
    fn wants_records(&self) -> bool {
        true
    }

    fn record(&mut self, number: i64) {
        self.seq = number;
    }

    fn accept(&mut self, document: StoredDoc<'_>) -> Result<Flow> {
        self.progress.check()?;
        let StoredDoc::Bson(document) = document else { return Err(Error::internal("a document of another store")) };
        match check(self.target, self.exact, document)? {
            Some(details) => self.take(document, details),
            None => Ok(Flow::Continue),
        }
    }
}
