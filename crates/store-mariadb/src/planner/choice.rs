//! Which of several indexes to take: the one by which the fewest documents are looked at.
//!
//! One that reads a part of what another reads goes before it, and so does one that finds a document at the most. Among the others MariaDB
//! is asked how many rows each finds, as its optimizer would ask: by a descent to either end of each range. What it says is
//! remembered ([`crate::choices`]), so that most queries are planned without asking. As long as nothing has been said, the shape of the
//! bounds decides.

use super::Wanted;
use super::candidate::Candidate;
use super::shown;
use crate::choices::{Chosen, Known, Question, Way};
use crate::index::Index;
use crate::plan::Written;
use crate::table::Table;
use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

/// What has to be asked before a plan is as good as it can be; and by what has been asked it is made.
#[derive(Default)]
pub(crate) struct Asking {
    pub questions: RefCell<Vec<Question>>,
    pub chosen: RefCell<Option<Chosen>>,
    pub decision: Cell<Option<Decision>>,
    pub written: RefCell<Option<Arc<Written>>>,
}

/// Which of the rivals it was, by what was known of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    shape: u64,
    values: u64,
    way: usize,
}

impl Decision {
    /// Whether the same is known still.
    pub fn is_made_again(self, table: &Table, asking: &Asking) -> bool {
        match table.choices.known(self.shape, self.values) {
            Known::Choice { way, chosen } if way == self.way => {
                *asking.chosen.borrow_mut() = chosen;
                true
            }
            _ => false,
        }
    }
}

/// The best of the indexes that serve the query; `limit`: how many documents are wanted.
pub(super) fn best<'t>(
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
    candidates.sort_by_key(|candidate| candidate.score);
    candidates.reverse();
    let rivals = rivals(&candidates);
    let position = match rivals.as_slice() {
        [] => 0,
        [only] => *only,
        several => several[chosen(several, &candidates, table, wanted, limit, asking)],
    };
    (position < candidates.len()).then(|| candidates.swap_remove(position))
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

/// Which of the rivals it is, by what is known of them.
fn chosen(
    rivals: &[usize],
    candidates: &[Candidate<'_>],
    table: &Table,
    wanted: &Wanted<'_>,
    limit: Option<u64>,
    asking: &Asking,
) -> usize {
    let (mut shape, mut values) = (table.choices.hasher().build_hasher(), table.choices.hasher().build_hasher());
    (limit.map(u64::checked_ilog2), wanted.sort.is_some(), wanted.conditions.len()).hash(&mut shape);
    for candidate in rivals.iter().map(|at| &candidates[*at]) {
        (candidate.name(), candidate.is_sorted(), candidate.exact).hash(&mut shape);
        for (path, bounds) in candidate.leading() {
            // Lists of about as many values are alike.
            (path, bounds.is_points(), bounds.plain.len().checked_ilog2()).hash(&mut shape);
            for range in bounds.plain.iter().chain(&bounds.odd) {
                (&range.low, &range.high).hash(&mut values);
            }
        }
    }
    let (shape, values) = (shape.finish(), values.finish());
    match table.choices.known(shape, values) {
        Known::Choice { way, chosen } => {
            *asking.chosen.borrow_mut() = chosen;
            asking.decision.set(Some(Decision { shape, values, way }));
            way.min(rivals.len() - 1)
        }
        Known::Nothing => {
            let way = |at: &usize| {
                let candidate = &candidates[*at];
                Way {
                    stretches: candidate.stretches(wanted),
                    leading: candidate.leading().map(|(path, _)| path.to_owned()).collect(),
                    sorted: candidate.is_sorted(),
                    exact: candidate.exact,
                }
            };
            let ways = rivals.iter().map(way).collect();
            asking.questions.borrow_mut().push(Question { shape, values, limit, table: table.quoted.clone(), ways });
            0
        }
    }
}
