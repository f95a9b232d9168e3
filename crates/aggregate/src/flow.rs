//! How documents pass between stages: demand, pauses, and the traits of stages that hold documents.

use document::DocBuf;
use error::{Code, Error, Result};
use query::metadata::{Item, ItemBuf};
use query::sort::{Sorted, Sorter};

/// Maximal number of levels of documents and arrays.
pub(super) const LEVELS_MAX: usize = 200;

/// Whether a pipeline accepts more documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    More,
    /// No further document can change the result (`$limit` reached).
    Enough,
}

/// Whether a run that returns documents continues or pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    Continue,
    /// Yield to other tasks; the caller resumes the run later.
    Pause,
}

/// Called between documents; an error ends the run.
pub type Pacer<'p> = dyn FnMut() -> Result<Pace> + 'p;

/// A stage that holds its input until the end.
pub(super) trait BlockingStage: Send {
    fn push(&mut self, item: Item<'_>) -> Result<Demand>;

    /// Returns whether only the number of documents matters.
    fn needs_count_only(&self) -> bool {
        false
    }

    /// Pushes this many documents to a stage that counts.
    fn push_count(&mut self, _: u64) -> Result<()> {
        Ok(())
    }

    /// Returns how many documents the stage draws at random.
    fn sample_size(&self) -> Option<usize> {
        None
    }

    /// Ends the input.
    fn finish(self: Box<Self>) -> Result<Box<dyn DocumentSource>>;
}

/// Consumer of a stage's documents.
pub(super) type Consumer<'t> = dyn FnMut(Item<'_>) -> Result<Demand> + 't;

/// A source of documents, one by one.
pub(super) trait DocumentSource: Send {
    /// Passes the next document to `take` and returns its demand; `None` if none is left. Calls
    /// `pace` along the way if one document is computed from many.
    fn emit_next(&mut self, take: &mut Consumer<'_>, pace: &mut Pacer<'_>) -> Result<Option<Demand>>;
}

impl BlockingStage for Sorter {
    fn push(&mut self, item: Item<'_>) -> Result<Demand> {
        Sorter::push(self, item).map(|()| Demand::More)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(Sorter::finish(*self)?))
    }
}

impl DocumentSource for Sorted {
    fn emit_next(&mut self, take: &mut Consumer<'_>, _pace: &mut Pacer<'_>) -> Result<Option<Demand>> {
        self.next_with(take)?.transpose()
    }
}

impl DocumentSource for std::vec::IntoIter<DocBuf> {
    fn emit_next(&mut self, take: &mut Consumer<'_>, _pace: &mut Pacer<'_>) -> Result<Option<Demand>> {
        self.next().map(|document| take(document.as_doc().into())).transpose()
    }
}

impl DocumentSource for std::vec::IntoIter<ItemBuf> {
    fn emit_next(&mut self, take: &mut Consumer<'_>, _pace: &mut Pacer<'_>) -> Result<Option<Demand>> {
        self.next().map(|item| take(item.as_item())).transpose()
    }
}

pub(super) fn too_deep() -> Error {
    let message =
        format!("cannot convert document to BSON because it exceeds the limit of {LEVELS_MAX} levels of nesting");
    Error::new(Code(15), message)
}
