//! The order of stages, where another order gives the same result for less work, and what a store can do of a pipeline.

use super::{Pipeline, Source, Stage};
use crate::Predicate;
use crate::metadata::{Meta, Needs};
use crate::predicate::Node;
use std::sync::Arc;

/// Rearranges a pipeline without changing what it gives:
///
/// - `$match` moves in front of `$sort`, and of stages that do not write what it reads;
/// - neighboring `$match` stages become one;
/// - `$sort` learns of a `$limit` behind it, and keeps no more documents than that.
pub(super) fn rearrange(stages: &mut Vec<Stage>) {
    for index in 1..stages.len() {
        let mut at = index;
        while at > 0 && may_swap(&stages[at - 1], &stages[at]) {
            stages.swap(at - 1, at);
            at -= 1;
        }
    }
    stages.dedup_by(|second, first| match (first, second) {
        (Stage::Match(first), Stage::Match(second)) => {
            *first = Arc::new(first.as_ref().clone().and(second.as_ref().clone()));
            true
        }
        _ => false,
    });
    for index in 0..stages.len() {
        let bound = limit_behind(&stages[index + 1..]);
        if let Stage::Sort { limit, .. } = &mut stages[index] {
            *limit = bound;
        }
    }
}

/// Whether `second`, a `$match`, gives the same in front of `first`.
fn may_swap(first: &Stage, second: &Stage) -> bool {
    let Stage::Match(predicate) = second else { return false };
    match first {
        Stage::Sort { .. } => true,
        Stage::AddFields(fields) => fields.written().all(|name| !reads(predicate.root(), name)),
        Stage::Unwind(unwind) => unwind.written().all(|name| !reads(predicate.root(), name)),
        _ => false,
    }
}

/// Whether a predicate looks at a top-level field; an expression may look at any.
fn reads(node: &Node, name: &str) -> bool {
    match node {
        Node::And(branches) | Node::Or(branches) | Node::Nor(branches) => {
            branches.iter().any(|branch| reads(branch, name))
        }
        Node::Path { path, .. } => path.as_str().split('.').next() == Some(name),
        Node::Never => false,
        _ => true,
    }
}

/// How many documents the stages can use at the most: a `$limit`, perhaps behind `$skip`s.
fn limit_behind(stages: &[Stage]) -> Option<u64> {
    let mut skipped = 0u64;
    for stage in stages {
        match stage {
            Stage::Skip(count) => skipped = skipped.checked_add(*count)?,
            Stage::Limit(count) => return skipped.checked_add(*count),
            _ => return None,
        }
    }
    None
}

/// Takes off the front what a store can be asked for.
pub(super) fn split_source(Pipeline { mut stages, needs }: Pipeline) -> (Source, Pipeline) {
    // Records are known by their numbers only to a projection that stands in front of everything.
    let numbered = leading_inclusion(&stages).is_some_and(|needs| needs.contains(Meta::RecordId));
    let needs = if numbered { needs } else { needs.without(Needs::of(Meta::RecordId)) };
    let mut predicate = Predicate::everything();
    let mut sort = None;
    match stages.first() {
        Some(Stage::GeoNear(source)) => {
            predicate = source.predicate();
            stages.remove(0);
        }
        Some(Stage::Match(first)) => {
            predicate = first.as_ref().clone();
            stages.remove(0);
        }
        _ => {}
    }
    if let Some(Stage::Sort { sort: first, .. }) = stages.first() {
        sort = Some(first.clone());
        stages.remove(0);
    }
    let limit = limit_behind(&stages);
    // Skips stay: the limit in front of them already counts what they drop.
    if let (Some(_), Some(index)) = (limit, stages.iter().position(|stage| matches!(stage, Stage::Limit(_)))) {
        stages.remove(index);
    }
    (Source { predicate, sort, limit, needs }, Pipeline { stages, needs })
}

/// What a projection reads that comes first, behind a `$match` at the most, and keeps only what it names.
pub(super) fn leading_inclusion(stages: &[Stage]) -> Option<Needs> {
    match stages {
        [Stage::Match(_), Stage::Project(project), ..] | [Stage::Project(project), ..] => project.inclusion_needs(),
        _ => None,
    }
}

/// Lets the stages that make metadata write down what is asked for.
pub(super) fn show_metadata(stages: &mut [Stage], needs: Needs) {
    for stage in stages {
        match stage {
            Stage::Sort { sort, .. } if needs.contains(Meta::SortKey) => sort.show_keys(),
            Stage::Sample(sample) => sample.shows_numbers |= needs.contains(Meta::RandVal),
            _ => {}
        }
    }
}
