//! The context that parsing and evaluation depend on besides their arguments.

use crate::metadata::MetadataRequests;
use document::{ArrayWriter, Collation, Doc, DocBuf};
use error::{Error, Result};
use fulltext::TextIndexes;
use hashbrown::HashSet;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use values::variables::Variables;

/// The context of one command: its start time, its `let` variables, its collation.
#[derive(Clone, Debug)]
pub struct Context {
    /// The start of the command in milliseconds since 1970-01-01 UTC (`$$NOW`, `$currentDate`).
    pub now_ms: i64,
    /// Whether `$$NOW` is defined. In MongoDB's `count` and `distinct`, evaluating it for a
    /// document fails with 51144.
    pub has_clock: bool,
    /// The command's `let` document: names and constant values.
    pub variables: Variables,
    /// The number of enclosing stages with pipelines of their own (`$lookup`).
    pub enclosing_pipelines: usize,
    /// Names of variables without a value.
    pub missing_variables: Arc<HashSet<Box<str>>>,
    /// The command's `collation`, or the collection's.
    pub collation: Collation,
    /// The indexes that execute `$text`.
    pub text_indexes: TextIndexes,
    /// The views that stages with other collections may read.
    pub views: Views,
    /// When constant expressions are computed.
    pub folding: Folding,
    /// Collects the metadata (`$meta`) that the parsed parts read.
    pub metadata_requests: MetadataRequests,
}

/// The definitions of views by name: a collection, and the stages that compute the view from it (an
/// array).
#[derive(Clone, Debug, Default)]
pub struct Views(Arc<BTreeMap<Box<str>, View>>);

#[derive(Clone, Debug)]
struct View {
    base: Box<str>,
    stages: DocBuf,
}

impl Views {
    pub fn insert(&mut self, name: &str, base: &str, stages: DocBuf) {
        Arc::make_mut(&mut self.0).insert(name.into(), View { base: base.into(), stages });
    }

    /// Returns whether a name is that of a view.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the collection to read under a name, and the pipeline over its documents: the view's
    /// stages, then `stages`.
    pub fn resolve<'n>(&'n self, name: &'n str, stages: Doc<'_>) -> (&'n str, DocBuf) {
        let Some(View { base, stages: made_by }) = self.0.get(name) else { return (name, stages.to_owned()) };
        let mut bytes = Vec::new();
        let mut all = ArrayWriter::begin(&mut bytes);
        made_by.as_doc().values().chain(stages.values()).for_each(|stage| all.push(stage));
        drop(all);
        (base, DocBuf::from_vec(bytes).unwrap_or_default())
    }
}

/// When constant expressions are computed, and how their failures are reported.
#[derive(Clone, Debug, Default)]
pub enum Folding {
    /// While the expression is parsed.
    #[default]
    AtOnce,
    /// After everything around it has been parsed, so that other errors are reported first.
    Later(Arc<Mutex<Option<Error>>>),
    /// Not before there is a document.
    Never,
}

impl Folding {
    pub fn is_enabled(&self) -> bool {
        !matches!(self, Folding::Never)
    }

    /// Reports the failure of a constant, now or later.
    pub fn report(&self, failure: Option<Error>) -> Result<()> {
        match (self, failure) {
            (_, None) => Ok(()),
            (Folding::Later(first), Some(failure)) => {
                first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                Ok(())
            }
            (_, Some(failure)) => Err(failure),
        }
    }
}

impl Context {
    pub fn at(now_ms: i64) -> Self {
        Context {
            now_ms,
            has_clock: true,
            variables: Variables::default(),
            missing_variables: Arc::default(),
            enclosing_pipelines: 0,
            collation: Collation::SIMPLE,
            text_indexes: TextIndexes::default(),
            views: Views::default(),
            folding: Folding::AtOnce,
            metadata_requests: MetadataRequests::default(),
        }
    }

    /// Parses a pipeline with `parse`; failures of constants are reported when that has finished.
    pub fn folding_later<T>(&self, parse: impl FnOnce(&Context) -> Result<T>) -> Result<T> {
        const NOT_OPTIMIZED: &str = "Failed to optimize pipeline :: caused by :: ";
        if let Folding::Later(first) = &self.folding {
            let lock = || first.lock().unwrap_or_else(PoisonError::into_inner);
            let is_first = lock().is_none();
            let parsed = parse(self)?;
            // The failure is from this pipeline, inside another one.
            if let Some(failure) = lock().as_mut().filter(|_| is_first) {
                *failure = failure.clone().context(NOT_OPTIMIZED);
            }
            return Ok(parsed);
        }
        if !matches!(self.folding, Folding::AtOnce) {
            return parse(self);
        }
        let first = Arc::new(Mutex::new(None));
        let context = Context { folding: Folding::Later(first.clone()), ..self.clone() };
        let parsed = parse(&context)?;
        let failure = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(parsed), |failure| Err(failure.context(NOT_OPTIMIZED)))
    }
}
