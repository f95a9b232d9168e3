//! The branches of a disjunction, each with the index that serves it best.

use super::candidate::{IndexCandidate, useful_candidates};
use super::simple::{KEYS_COUNTED_MAX, Measure};
use super::sort_order::SortOrder;
use super::unordered::unordered_scans;
use crate::catalog::Collection;
use crate::plan::IndexScan;
use access::conditions::PlannerQuery;

/// A branch, with the index that serves it.
pub struct UnionBranch {
    pub scan: IndexScan,
    /// Every document that it gives matches the branch, and the conditions outside of the
    /// disjunction.
    pub exact: bool,
    pub order: Option<SortOrder>,
    /// The number of leading fields bound to points.
    pub points: usize,
}

impl UnionBranch {
    pub fn of(candidate: IndexCandidate<'_>) -> UnionBranch {
        let (scan, exact, points) = (candidate.scan(), candidate.exact, candidate.points);
        UnionBranch { scan, exact, order: candidate.order, points }
    }

    /// Returns a branch by an index that is not ordered by values.
    pub fn of_unordered(scan: IndexScan) -> UnionBranch {
        UnionBranch { scan, exact: false, order: None, points: 0 }
    }

    /// Returns whether the scan alone gives the requested order.
    pub fn is_sorted(&self) -> bool {
        self.order.as_ref().is_some_and(|order| order.leading == 0)
    }
}

/// Returns the best of the indexes that narrow the search, for a branch of a disjunction.
pub fn best_branch(collection: &Collection, wanted: &PlannerQuery<'_>, measure: Measure<'_>) -> Option<UnionBranch> {
    let candidates = useful_candidates(collection, wanted);
    let mut branches: Vec<UnionBranch> =
        candidates.into_iter().filter(|it| it.narrows()).map(UnionBranch::of).collect();
    if wanted.sort.is_some() && branches.iter().any(UnionBranch::is_sorted) {
        // Branches that give the order can be merged.
        branches.retain(UnionBranch::is_sorted);
    } else {
        branches.extend(unordered_scans(collection, wanted).map(UnionBranch::of_unordered));
    }
    let counted = branches.len() > 1;
    let keys = |branch: &UnionBranch| match counted {
        true => measure(collection, &branch.scan, KEYS_COUNTED_MAX),
        false => 0,
    };
    let measured = branches.into_iter().map(|branch| (keys(&branch), branch));
    measured.min_by_key(|(keys, branch)| (*keys, usize::MAX - branch.points)).map(|(_, branch)| branch)
}
