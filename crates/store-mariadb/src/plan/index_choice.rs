//! Chooses among several indexes: the one with which the fewest documents are examined.
//!
//! An index whose key ranges are within those of another wins, and so does one that finds at most
//! one document. For the others MariaDB estimates the rows in their key ranges, as its optimizer
//! would: by a descent to either end of each range. The choice is cached
//! ([`crate::plan::index_choice_cache`]), so that most queries are planned without a request. Until
//! then the shape of the bounds decides.
//!
//! Predicates of low selectivity compete with a full scan.
//!
//! A sort with a limit has one more rival: an index that has its order, without bounds from the
//! filter. If many documents match, enough of those first in the order do. Such a plan is
//! speculative: it examines a limited number of rows, and the query is planned again if they are
//! not enough ([`crate::read::prefetch`]).

use crate::catalog::table::Table;
use crate::index::Index;
use crate::plan::candidate::IndexCandidate;
use crate::plan::index_choice_cache::{
    AccessPath, AccessPathKind, CachedChoice, ChoiceFeedback, Decision, Decisions, EstimateRequest,
};
use crate::plan::plan_texts::PlanTexts;
use crate::plan::planner_query::is_about;
use crate::plan::usable_indexes::usable_indexes;
use access::conditions::PlannerQuery;
use std::cell::RefCell;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

/// Queries for more documents never use a speculative plan, but sort all matches.
const SPECULATIVE_LIMIT_MAX: u64 = 1_000;

/// The estimates that planning still needs, and the cached choices that it has used.
#[derive(Default)]
pub(crate) struct ChoiceContext {
    pub requests: RefCell<Vec<EstimateRequest>>,
    pub feedback: RefCell<Option<ChoiceFeedback>>,
    pub decisions: RefCell<Decisions>,
    pub written: RefCell<Option<Arc<PlanTexts>>>,
}

/// Returns whether the cached choice is still the same.
pub(crate) fn is_still_valid(decision: Decision, table: &Table, context: &ChoiceContext) -> bool {
    match table.plan_cache.choices.known(decision.shape, decision.values) {
        CachedChoice::Choice { path: way, feedback: chosen } if way == decision.path => {
            *context.feedback.borrow_mut() = chosen;
            true
        }
        _ => false,
    }
}

/// Returns the best of the indexes that serve the query.
pub(crate) fn best<'t>(
    table: &'t Arc<Table>,
    wanted: &PlannerQuery<'_>,
    context: &ChoiceContext,
) -> Option<IndexCandidate<'t>> {
    let leads_anywhere = |index: &Option<&Index>| {
        let first = index.map_or(Some("_id"), |index| index.fields().next());
        first.is_some_and(|first| is_about(wanted, first))
    };
    let mut candidates: Vec<IndexCandidate<'t>> = usable_indexes(table)
        .filter(leads_anywhere)
        .map(|index: Option<&Index>| IndexCandidate::new(index, table, wanted, false))
        .filter(|candidate| candidate.score > 0)
        .collect();
    // Of equals, the first one comes first after reversing.
    let covers = table.has_long_documents();
    candidates.sort_by_key(|candidate| (candidate.score, covers && candidate.covers(wanted)));
    candidates.reverse();
    let mut rivals = rivals(&candidates);
    let speculative = speculative(&candidates, wanted);
    if let Some(position) = speculative {
        // Without rivals it competes with the first candidate.
        rivals = if rivals.is_empty() { vec![0, position] } else { [&rivals[..], &[position]].concat() };
    }
    if rivals.is_empty() && !candidates.is_empty() {
        rivals.push(0);
    }
    let in_order = |at: &usize| wanted.sort.is_some() && candidates[*at].is_sorted();
    let or_all = speculative.is_none()
        && rivals.iter().all(|at| candidates[*at].has_low_selectivity())
        && !rivals.iter().any(in_order);
    let position = match rivals.as_slice() {
        [] => return None,
        [only] if !or_all => *only,
        several => several[choose(several, or_all, &candidates, table, wanted, context)?],
    };
    let mut best = candidates.swap_remove(position);
    if speculative == Some(position) {
        best.speculative_rows = context.feedback.borrow().as_ref().map(ChoiceFeedback::row_limit);
    }
    Some(best)
}

/// Returns the position of an index for a speculative plan, if other plans may find and sort many
/// documents.
fn speculative(candidates: &[IndexCandidate<'_>], wanted: &PlannerQuery<'_>) -> Option<usize> {
    wanted.limit.filter(|limit| (1..=SPECULATIVE_LIMIT_MAX).contains(limit))?;
    let mut bounded = candidates.iter().filter(|candidate| candidate.leading().next().is_some()).peekable();
    bounded.peek()?;
    if bounded.any(|candidate| candidate.is_sorted() || candidate.is_one_document()) {
        return None;
    }
    candidates.iter().position(|candidate| candidate.may_speculate(wanted))
}

/// Returns the positions of the candidates among which the shape of their bounds does not decide.
fn rivals(candidates: &[IndexCandidate<'_>]) -> Vec<usize> {
    let bounded = |candidate: &IndexCandidate<'_>| candidate.leading().next().is_some();
    let few: Vec<usize> = (0..candidates.len()).filter(|at| bounded(&candidates[*at])).collect();
    if few.len() < 2 {
        return Vec::new();
    }
    if let Some(one) = candidates.iter().position(IndexCandidate::is_one_document) {
        return vec![one];
    }
    let loses = |at: &usize| {
        let beats = |other: &usize| {
            let (one, other_one) = (&candidates[*at], &candidates[*other]);
            other != at && other_one.is_within(one) && (other < at || !one.is_within(other_one))
        };
        few.iter().any(beats)
    };
    few.iter().copied().filter(|at| !loses(at)).collect()
}

/// Returns the chosen rival; `None` if a full scan is better, which `or_all` allows.
fn choose(
    rivals: &[usize],
    or_all: bool,
    candidates: &[IndexCandidate<'_>],
    table: &Table,
    wanted: &PlannerQuery<'_>,
    context: &ChoiceContext,
) -> Option<usize> {
    let mut query = QueryHashes::new(table, wanted);
    or_all.hash(&mut query.shape);
    rivals.iter().for_each(|at| query.note(&candidates[*at]));
    let paths = || {
        let all = or_all.then(|| AccessPath::full_scan(wanted.sort.is_some()));
        rivals.iter().map(|at| path_of(&candidates[*at], wanted)).chain(all).collect()
    };
    match decide(table, query, wanted.limit, context, paths) {
        None => (!or_all).then_some(0),
        Some(way) if or_all => Some(way).filter(|way| *way < rivals.len()),
        Some(way) => Some(way.min(rivals.len() - 1)),
    }
}

/// Returns whether the branches of a disjunction, each with its own index, find fewer documents
/// than an index on the other conditions.
pub(crate) fn is_better_by_branches(
    best: &IndexCandidate<'_>,
    branches: &[(IndexCandidate<'_>, &PlannerQuery<'_>)],
    table: &Table,
    wanted: &PlannerQuery<'_>,
    context: &ChoiceContext,
) -> bool {
    let mut query = QueryHashes::new(table, wanted);
    "$or".hash(&mut query.shape);
    std::iter::once(best).chain(branches.iter().map(|(branch, _)| branch)).for_each(|candidate| query.note(candidate));
    let paths = || {
        let key_ranges = branches.iter().flat_map(|(branch, wanted)| branch.key_ranges(wanted)).collect();
        let (leading, sorted) = (Vec::new(), wanted.sort.is_none());
        vec![
            path_of(best, wanted),
            AccessPath { key_ranges, leading, sorted, exact: false, kind: AccessPathKind::IndexScan },
        ]
    };
    decide(table, query, wanted.limit, context, paths) == Some(1)
}

/// Returns a candidate as an access path to estimate.
fn path_of(candidate: &IndexCandidate<'_>, wanted: &PlannerQuery<'_>) -> AccessPath {
    AccessPath {
        key_ranges: candidate.key_ranges(wanted),
        leading: candidate.leading().map(|(path, _)| path.to_owned()).collect(),
        sorted: candidate.is_sorted(),
        exact: candidate.exact,
        kind: if candidate.leading().next().is_none() {
            AccessPathKind::SpeculativeOrder
        } else {
            AccessPathKind::IndexScan
        },
    }
}

/// The hashes that identify a query in the index choice cache: of its shape, and of its values.
struct QueryHashes {
    shape: ahash::AHasher,
    values: ahash::AHasher,
}

impl QueryHashes {
    fn new(table: &Table, wanted: &PlannerQuery<'_>) -> QueryHashes {
        let hasher = || table.plan_cache.choices.hasher().build_hasher();
        let mut hashes = QueryHashes { shape: hasher(), values: hasher() };
        (wanted.limit.map(u64::checked_ilog2), wanted.sort.is_some(), wanted.conditions.len()).hash(&mut hashes.shape);
        hashes
    }

    fn note(&mut self, candidate: &IndexCandidate<'_>) {
        (candidate.name(), candidate.is_sorted(), candidate.exact).hash(&mut self.shape);
        for (path, bounds) in candidate.leading() {
            // Lists of similar length have the same shape.
            (path, bounds.is_points(), bounds.ordered.len().checked_ilog2()).hash(&mut self.shape);
            for range in bounds.ordered.iter().chain(&bounds.unordered) {
                (&range.low, &range.high).hash(&mut self.values);
            }
        }
    }
}

/// Returns the number of the best access path; `None` if estimates must be requested first.
fn decide(
    table: &Table,
    query: QueryHashes,
    limit: Option<u64>,
    context: &ChoiceContext,
    paths: impl FnOnce() -> Vec<AccessPath>,
) -> Option<usize> {
    let (shape, values) = (query.shape.finish(), query.values.finish());
    match table.plan_cache.choices.known(shape, values) {
        CachedChoice::Choice { path: way, feedback: chosen } => {
            *context.feedback.borrow_mut() = chosen;
            context.decisions.borrow_mut().push(Decision { shape, values, path: way });
            Some(way)
        }
        CachedChoice::Unknown => {
            let (table, paths) = (table.quoted.clone(), paths());
            context.requests.borrow_mut().push(EstimateRequest { shape, values, limit, table, paths });
            None
        }
    }
}
