//! Reads that never end: they tail a capped collection, or follow the changes of a store.

use super::{Batch, Reader, Source};
use crate::call::Call;
use document::DocWriter;
use error::Result;
use futures_util::future::LocalBoxFuture;
use server::cursor::CursorState;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Instant;
use store::{DocumentStore, PlanSummary};

/// A source of documents to which more will be added.
pub trait FollowedSource: Debug + Send {
    /// Adds documents to the batch until it is full or none is left. Returns whether the source has
    /// ended after all.
    fn fill<'a>(&'a mut self, call: &'a Call<'_>, batch: &'a mut Batch<'_>) -> LocalBoxFuture<'a, Result<bool>>;

    /// Waits until there may be more documents than at the last call of `fill`, or until `until`.
    /// Fails if the operation is killed meanwhile.
    fn wait<'a>(&'a mut self, call: &'a Call<'_>, until: Instant) -> LocalBoxFuture<'a, Result<()>>;

    /// Appends fields of the reply behind a batch.
    fn append_state(&self, cursor: &mut DocWriter<'_>);
}

impl Reader {
    /// Follows a source.
    pub fn following(source: Box<dyn FollowedSource>) -> Reader {
        Reader { source: Source::Followed(source), tail: Some(true), ..Reader::over(VecDeque::new(), None) }
    }

    /// Waits until there may be more documents in the tailed collection, if the read waits for
    /// some.
    pub fn additions(&self, store: &dyn DocumentStore) -> Option<LocalBoxFuture<'static, ()>> {
        self.plan().filter(|_| self.awaits()).map(|plan| store.additions(&**plan))
    }

    /// Waits until there may be more changes, or until `until`.
    pub async fn wait_for_changes(&mut self, call: &Call<'_>, until: Instant) -> Result<()> {
        match &mut self.source {
            Source::Followed(source) => source.wait(call, until).await,
            _ => Ok(()),
        }
    }

    /// Returns whether the read follows changes, rather than the documents of a collection.
    pub fn follows_changes(&self) -> bool {
        matches!(self.source, Source::Followed(_))
    }

    /// Appends fields of the reply behind a batch.
    pub fn append_state(&self, cursor: &mut DocWriter<'_>) {
        if let Source::Followed(source) = &self.source {
            source.append_state(cursor);
        }
    }
}

impl CursorState for Reader {
    fn plan_summary(&self) -> PlanSummary {
        self.plan().map(|plan| plan.summary()).unwrap_or_default()
    }

    fn returned(&self) -> u64 {
        self.returned
    }

    fn is_tailable(&self) -> bool {
        self.is_tail()
    }

    fn awaits_data(&self) -> bool {
        self.awaits()
    }
}
