//! What a read returns.

use aggregate::Execution;
use document::Value;
use query::{Needs, Predicate, Projection, ReadFields, Sort};
use values::spill::Budget;

/// What a read returns; by default everything, unchanged.
#[derive(Default)]
pub struct ReadSpec<'a> {
    pub predicate: Option<Predicate>,
    pub sort: Option<Sort>,
    pub skip: u64,
    /// The limit; with a pipeline, the number of documents that enter it.
    pub limit: Option<u64>,
    pub projection: Option<Projection>,
    pub pipeline: Option<Execution>,
    pub hint: Option<Value<'a>>,
    /// The budget of a blocking sort.
    pub budget: Option<Budget>,
    /// The metadata that the projection or the pipeline reads.
    pub needs: Needs,
    /// The only fields of the documents that are read, including those of predicate and sort;
    /// `None` for all.
    pub fields: Option<ReadFields>,
    /// The only fields that predicate and sort read; `None` if unknown.
    pub compared: Option<ReadFields>,
    /// Whether the store must not answer from its own cache.
    pub bypass_row_cache: bool,
}
