//! What to read.

use aggregate::Execution;
use document::Value;
use query::{Needs, Predicate, Projection, ReadFields, Sort};
use values::spill::Budget;

/// What to read; the defaults read everything as it is.
#[derive(Default)]
pub struct ReadSpec<'a> {
    pub predicate: Option<Predicate>,
    pub sort: Option<Sort>,
    pub skip: u64,
    /// Where there is a pipeline: how many documents go into it.
    pub limit: Option<u64>,
    pub projection: Option<Projection>,
    pub pipeline: Option<Execution>,
    pub hint: Option<Value<'a>>,
    /// What a blocking sort may use.
    pub budget: Option<Budget>,
    /// Which metadata of the documents is read, by the projection or the pipeline.
    pub needs: Needs,
    /// The only fields of the documents that anything reads, the predicate and the sort included; `None` for all.
    pub fields: Option<ReadFields>,
    /// The only fields that the predicate and the sort read; `None` for any.
    pub compared: Option<ReadFields>,
    /// What the store keeps of earlier reads is not to be used.
    pub bypass_row_cache: bool,
}
