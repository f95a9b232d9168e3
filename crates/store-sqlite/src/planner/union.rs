//! A disjunction as a union of scans, one for each branch.

use super::branch::{UnionBranch, best_branch};
use super::simple::Measure;
use crate::catalog::Collection;
use crate::plan::{Access, IndexScan, Union};
use access::conditions::PlannerQuery;
use access::{Interval, ranges};
use query::predicate::Node;

/// The limit of branches in a union: each document of one branch is looked up in the earlier ones.
const BRANCHES_MAX: usize = 64;

/// The limit of branches that are planned; unions on one index have no other limit.
const BRANCHES_PLANNED_MAX: usize = 1000;

pub struct UnionPlanner<'u, 'q> {
    pub collection: &'u Collection,
    pub wanted: &'u PlannerQuery<'q>,
    pub measure: Measure<'u>,
}

pub struct UnionPath {
    pub access: Access,
    pub exact: bool,
    pub sorted: bool,
}

impl<'q> UnionPlanner<'_, 'q> {
    /// Returns a union for each disjunction of which every branch has an index.
    pub fn all(&self) -> Vec<UnionPath> {
        self.wanted.disjunctions.iter().filter_map(|branches| self.of(branches)).collect()
    }

    fn of(&self, branches: &'q [Node]) -> Option<UnionPath> {
        if branches.len() > BRANCHES_PLANNED_MAX {
            return None;
        }
        let find = |branch| {
            let wanted = self.wanted.branch(branch);
            best_branch(self.collection, &wanted, self.measure)
        };
        let found: Vec<UnionBranch> = branches.iter().map(find).collect::<Option<_>>()?;
        let exact = found.iter().all(|branch| branch.exact);
        if let Some(scan) = on_one_index(&found) {
            return Some(UnionPath { access: Access::Index(scan), exact, sorted: self.wanted.sort.is_none() });
        }
        if found.len() > BRANCHES_MAX {
            return None;
        }
        let order =
            |branch: &UnionBranch| branch.order.as_ref().filter(|_| branch.is_sorted()).map(|it| it.fields.clone());
        let merged: Option<Vec<_>> = found.iter().map(order).collect();
        let sorted = self.wanted.sort.is_none() || merged.is_some();
        let merged = merged.filter(|_| self.wanted.sort.is_some());
        let branches = found.into_iter().map(|branch| branch.scan).collect();
        Some(UnionPath { access: Access::Union(Union { branches, merged, exploded: false }), exact, sorted })
    }
}

/// Branches on the first field of one index are ranges of it, and become a single scan. (With a
/// sort, merging them may be better.)
fn on_one_index(branches: &[UnionBranch]) -> Option<IndexScan> {
    let (first, others) = branches.split_first()?;
    let same = |other: &UnionBranch| match (&first.scan.index, &other.scan.index) {
        (None, None) => true,
        (Some(one), Some(other)) => one.id == other.id,
        _ => false,
    };
    let mergeable = |branch: &UnionBranch| {
        let bounds = branch.scan.bounds.iter().skip(1);
        branch.order.is_none()
            && branch.scan.filter.is_none()
            && bounds.into_iter().all(|(_, ranges)| access::is_everything(ranges))
    };
    if !others.iter().all(same) || !branches.iter().all(mergeable) {
        return None;
    }
    let scans = || branches.iter().map(|branch| &branch.scan);
    let intervals = joined(scans().flat_map(|scan| scan.intervals.iter().cloned()).collect());
    let leading = scans().filter_map(|scan| scan.bounds.first()).flat_map(|(_, ranges)| ranges.iter().cloned());
    let mut bounds = first.scan.bounds.clone();
    if let Some((_, ranges)) = bounds.first_mut() {
        *ranges = ranges::union(leading.collect());
    }
    Some(IndexScan { bounds, ..IndexScan::new(first.scan.index.clone(), intervals) })
}

fn joined(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable();
    let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
    for interval in intervals {
        match joined.last_mut() {
            Some(last) if interval.low <= last.high => {
                if last.high < interval.high {
                    last.high = interval.high;
                }
            }
            _ => joined.push(interval),
        }
    }
    joined
}
