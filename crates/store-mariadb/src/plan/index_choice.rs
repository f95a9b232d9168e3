//! Which of several indexes to take: the one by which the fewest documents are looked at.
//!
//! One that reads a part of what another reads goes before it, and so does one that finds a document at the most. Among the others MariaDB
//! is asked how many rows each finds, as its optimizer would ask: by a descent to either end of each range. What it says is
//! remembered ([`crate::plan::index_choice_cache`]), so that most queries are planned without asking. As long as nothing has been said, the shape of the
//! bounds decides.
//!
//! Where an index that most documents may be in is all there is, reading all of them is its rival.
//!
//! A sort with a limit has one more rival: an index that gives its order and says nothing of the filter. If many documents match, enough of those that
//! come first in the order do. That is hoped, not known: such a plan looks at so many rows at the most, and is made again if they are not enough
//! ([`crate::read::prefetch`]).

use crate::catalog::table::Table;
use crate::index::Index;
use crate::plan::candidate::Candidate;
use crate::plan::index_choice_cache::{Chosen, Decision, Decisions, Known, Question, Way, WayKind};
use crate::plan::plan_texts::Written;
use crate::plan::planner_query::Wanted;
use crate::plan::usable_indexes::shown;
use std::cell::RefCell;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

/// Who wants more documents than this has all that match sorted: most orders are not gone along so far.
const HOPED_ROWS_MAX: u64 = 1_000;

/// What has to be asked before a plan is as good as it can be; and by what has been asked it is made.
#[derive(Default)]
pub(crate) struct Asking {
    pub questions: RefCell<Vec<Question>>,
    pub chosen: RefCell<Option<Chosen>>,
    pub decisions: RefCell<Decisions>,
    pub written: RefCell<Option<Arc<Written>>>,
}

/// Whether the same decision would be made again, by what is known now.
pub(crate) fn is_made_again(decision: Decision, table: &Table, asking: &Asking) -> bool {
    match table.choices.known(decision.shape, decision.values) {
        Known::Choice { way, chosen } if way == decision.way => {
            *asking.chosen.borrow_mut() = chosen;
            true
        }
        _ => false,
    }
}

/// The best of the indexes that serve the query; `limit`: how many documents are wanted.
pub(crate) fn best<'t>(
    table: &'t Arc<Table>,
    wanted: &Wanted<'_>,
    limit: Option<u64>,
    asking: &Asking,
) -> Option<Candidate<'t>> {
    let leads_anywhere = |index: &Option<&Index>| {
        let first = index.map_or(Some("_id"), |index| index.fields().next());
        first.is_some_and(|first| wanted.is_about(first))
    };
    let mut candidates: Vec<Candidate<'t>> = shown(table)
        .filter(leads_anywhere)
        .map(|index: Option<&Index>| Candidate::new(index, table, wanted, false))
        .filter(|candidate| candidate.score > 0)
        .collect();
    // The first of the best, as it stands behind.
    let covers = table.has_long_documents();
    candidates.sort_by_key(|candidate| (candidate.score, covers && candidate.covers(wanted)));
    candidates.reverse();
    let mut rivals = rivals(&candidates);
    let hope = hope(&candidates, wanted, limit);
    if let Some(hope) = hope {
        // Where there are no rivals it is the first.
        rivals = if rivals.is_empty() { vec![0, hope] } else { [&rivals[..], &[hope]].concat() };
    }
    if rivals.is_empty() && !candidates.is_empty() {
        rivals.push(0);
    }
    let in_order = |at: &usize| wanted.sort.is_some() && candidates[*at].is_sorted();
    let or_all = hope.is_none() && rivals.iter().all(|at| candidates[*at].is_wide()) && !rivals.iter().any(in_order);
    let position = match rivals.as_slice() {
        [] => return None,
        [only] if !or_all => *only,
        several => several[chosen(several, or_all, &candidates, table, wanted, limit, asking)?],
    };
    let mut best = candidates.swap_remove(position);
    if hope == Some(position) {
        best.hope = asking.chosen.borrow().as_ref().map(Chosen::hope);
    }
    Some(best)
}

/// The position of an index that only gives the order, if many documents may be found and sorted otherwise.
fn hope(candidates: &[Candidate<'_>], wanted: &Wanted<'_>, limit: Option<u64>) -> Option<usize> {
    limit.filter(|limit| (1..=HOPED_ROWS_MAX).contains(limit))?;
    let mut bounded = candidates.iter().filter(|candidate| candidate.leading().next().is_some()).peekable();
    bounded.peek()?;
    if bounded.any(|candidate| candidate.is_sorted() || candidate.is_one_document()) {
        return None;
    }
    candidates.iter().position(|candidate| candidate.may_hope(wanted))
}

/// The positions of those between which the shape of their bounds does not decide.
fn rivals(candidates: &[Candidate<'_>]) -> Vec<usize> {
    let bounded = |candidate: &Candidate<'_>| candidate.leading().next().is_some();
    let few: Vec<usize> = (0..candidates.len()).filter(|at| bounded(&candidates[*at])).collect();
    if few.len() < 2 {
        return Vec::new();
    }
    if let Some(one) = candidates.iter().position(Candidate::is_one_document) {
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

/// Which of the rivals it is, by what is known of them; `None`, if that may be (`or_all`), where reading everything is better.
fn chosen(
    rivals: &[usize],
    or_all: bool,
    candidates: &[Candidate<'_>],
    table: &Table,
    wanted: &Wanted<'_>,
    limit: Option<u64>,
    asking: &Asking,
) -> Option<usize> {
    let mut query = Hashes::new(table, wanted, limit);
    or_all.hash(&mut query.shape);
    rivals.iter().for_each(|at| query.note(&candidates[*at]));
    let ways = || {
        let all = or_all.then(|| Way::all(wanted.sort.is_some()));
        rivals.iter().map(|at| way(&candidates[*at], wanted)).chain(all).collect()
    };
    match decide(table, query, limit, asking, ways) {
        None => (!or_all).then_some(0),
        Some(way) if or_all => Some(way).filter(|way| *way < rivals.len()),
        Some(way) => Some(way.min(rivals.len() - 1)),
    }
}

/// Whether the branches of a disjunction, each by its own index, find fewer documents than an index on what stands beside it.
pub(crate) fn is_better_by_branches(
    best: &Candidate<'_>,
    branches: &[(Candidate<'_>, &Wanted<'_>)],
    table: &Table,
    wanted: &Wanted<'_>,
    limit: Option<u64>,
    asking: &Asking,
) -> bool {
    let mut query = Hashes::new(table, wanted, limit);
    "$or".hash(&mut query.shape);
    std::iter::once(best).chain(branches.iter().map(|(branch, _)| branch)).for_each(|candidate| query.note(candidate));
    let ways = || {
        let stretches = branches.iter().flat_map(|(branch, wanted)| branch.stretches(wanted)).collect();
        let (leading, sorted) = (Vec::new(), wanted.sort.is_none());
        vec![way(best, wanted), Way { stretches, leading, sorted, exact: false, kind: WayKind::Index }]
    };
    decide(table, query, limit, asking, ways) == Some(1)
}

fn way(candidate: &Candidate<'_>, wanted: &Wanted<'_>) -> Way {
    Way {
        stretches: candidate.stretches(wanted),
        leading: candidate.leading().map(|(path, _)| path.to_owned()).collect(),
        sorted: candidate.is_sorted(),
        exact: candidate.exact,
        kind: if candidate.leading().next().is_none() { WayKind::Hope } else { WayKind::Index },
    }
}

/// What tells queries apart whose ways are to be compared: by what the ways can do, and by the values besides.
struct Hashes {
    shape: ahash::AHasher,
    values: ahash::AHasher,
}

impl Hashes {
    fn new(table: &Table, wanted: &Wanted<'_>, limit: Option<u64>) -> Hashes {
        let hasher = || table.choices.hasher().build_hasher();
        let mut hashes = Hashes { shape: hasher(), values: hasher() };
        (limit.map(u64::checked_ilog2), wanted.sort.is_some(), wanted.conditions.len()).hash(&mut hashes.shape);
        hashes
    }

    fn note(&mut self, candidate: &Candidate<'_>) {
        (candidate.name(), candidate.is_sorted(), candidate.exact).hash(&mut self.shape);
        for (path, bounds) in candidate.leading() {
            // Lists of about as many values are alike.
            (path, bounds.is_points(), bounds.plain.len().checked_ilog2()).hash(&mut self.shape);
            for range in bounds.plain.iter().chain(&bounds.odd) {
                (&range.low, &range.high).hash(&mut self.values);
            }
        }
    }
}

/// The number of the best of some ways; `None` where MariaDB has to be asked first.
fn decide(
    table: &Table,
    query: Hashes,
    limit: Option<u64>,
    asking: &Asking,
    ways: impl FnOnce() -> Vec<Way>,
) -> Option<usize> {
    let (shape, values) = (query.shape.finish(), query.values.finish());
    match table.choices.known(shape, values) {
        Known::Choice { way, chosen } => {
            *asking.chosen.borrow_mut() = chosen;
            asking.decisions.borrow_mut().push(Decision { shape, values, way });
            Some(way)
        }
        Known::Nothing => {
            let (table, ways) = (table.quoted.clone(), ways());
            asking.questions.borrow_mut().push(Question { shape, values, limit, table, ways });
            None
        }
    }
}
