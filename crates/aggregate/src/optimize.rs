//! Reorders stages if another order has the same result with less work, and splits off the part
//! that a store can execute.
//!
//! MongoDB reorders in the same way, which shows in the error that is found first.

mod before_redact;

use super::joins::CrossCollectionStage;
use super::second_engine::is_absorbed;
use super::stage::{Pipeline, PipelineSource, Stage};
use hashbrown::HashMap;
use query::Predicate;
use query::changes::{Changes, is_within};
use query::metadata::{Meta, Needs};
use query::predicate::{Node, Test, is_conjunction};
use std::sync::Arc;

/// Reorders a pipeline without changing its results:
///
/// - the parts of a `$match` move in front of stages that do not write the fields they read, each
///   as far as it can;
/// - adjacent `$match` stages become one, of adjacent `$sort` stages the last remains;
/// - `$skip` and `$limit` move in front of stages that map one document to one, including
///   `$lookup`;
/// - `$sort` moves in front of `$unwind` and `$lookup` if it is by other fields;
/// - `$sort` is limited by a `$limit` after it, and retains no more documents than that.
pub(super) fn reorder(stages: &mut Vec<Stage>) {
    let mut arranged = Vec::with_capacity(stages.len());
    stages.drain(..).for_each(|stage| append(&mut arranged, stage));
    *stages = arranged;
    for index in 0..stages.len() {
        let bound = following_limit(&stages[index + 1..]);
        if let Stage::Sort { limit, .. } = &mut stages[index] {
            *limit = bound;
        }
    }
}

fn append(arranged: &mut Vec<Stage>, stage: Stage) {
    match stage {
        // It passes all documents.
        Stage::Match(predicate) if predicate.matches_everything() && !arranged.is_empty() => {}
        Stage::Match(predicate) => append_match(arranged, predicate.root().clone()),
        Stage::Skip(0) => {}
        Stage::Skip(_) | Stage::Limit(_) => {
            let transformations = arranged.iter().rev().take_while(|stage| preserves_count(stage)).count();
            let mut at = arranged.len() - transformations;
            let behind_limit = at > 0 && matches!(arranged[at - 1], Stage::Limit(_));
            if behind_limit && matches!(stage, Stage::Skip(_)) && !is_executed_by_store(arranged) {
                // In MongoDB the limit does not move here, so the skipped documents are computed.
                at = arranged.len();
            }
            arranged.insert(at, stage);
        }
        stage if discards_order(&stage) => {
            let mut at = position_of_sort(arranged, &stage);
            if at > 0 && matches!(arranged[at - 1], Stage::Sort { .. }) {
                at -= 1;
                arranged.remove(at);
            }
            arranged.insert(at, stage);
        }
        stage => arranged.push(stage),
    }
}

/// Returns whether a limit after these stages applies to the documents read from a collection.
fn is_executed_by_store(stages: &[Stage]) -> bool {
    let rest = if let [Stage::Match(_), rest @ ..] = stages { rest } else { stages };
    let rest = if let [Stage::Sort { .. }, rest @ ..] = rest { rest } else { rest };
    rest.iter().all(|stage| matches!(stage, Stage::Skip(_) | Stage::Limit(_)) || preserves_count(stage))
}

/// Returns whether a stage discards the order of its input.
fn discards_order(stage: &Stage) -> bool {
    match stage {
        Stage::Sort { .. } | Stage::Densify(_) => true,
        Stage::SetWindowFields(windows) => windows.sorts_input(),
        _ => false,
    }
}

/// Returns the position before which documents can be sorted as well: in front of unwinds and joins
/// that write other fields.
fn position_of_sort(stages: &[Stage], sort: &Stage) -> usize {
    let Stage::Sort { sort, .. } = sort else { return stages.len() };
    let mut at = stages.len();
    while let [before @ .., last] = &stages[..at] {
        let written = match last {
            // A join and the unwind that it absorbs stay together.
            Stage::Unwind(unwind) if before.last().is_some_and(|join| is_absorbed(join, unwind)) => break,
            Stage::Unwind(unwind) => unwind.written_paths(),
            Stage::CrossCollection(joining) => match &**joining {
                CrossCollectionStage::Lookup(lookup) => vec![lookup.target()],
                _ => break,
            },
            _ => break,
        };
        let is_other = |path: &str| !written.iter().any(|field| is_within(path, field) || is_within(field, path));
        if !sort.parts().iter().all(|part| part.meta.is_some() || is_other(part.path.as_str())) {
            break;
        }
        at -= 1;
    }
    at
}

/// Returns whether the stage returns one document for each input document.
fn preserves_count(stage: &Stage) -> bool {
    match stage {
        Stage::CrossCollection(joining) => matches!(**joining, CrossCollectionStage::Lookup(_)),
        stage => stage.is_one_to_one(),
    }
}

/// Appends a `$match`; splits it if only a part of it can move on.
fn append_match(arranged: &mut Vec<Stage>, root: Node) {
    let mut moving = conditions(root);
    let mut at = arranged.len();
    while at > 0 {
        steps::steps(1 + moving.len());
        if let Stage::Match(before) = &arranged[at - 1] {
            // In the order of the stages, unlike a conjunction within a conjunction.
            moving = grouped_by_field(conditions(before.root().clone()))
                .into_iter()
                .chain(grouped_by_field(moving))
                .collect();
            arranged.remove(at - 1);
            at -= 1;
            continue;
        }
        if let Some(united) = match_within_union(&arranged[at - 1], &moving) {
            arranged[at - 1] = united;
            at -= 1;
            continue;
        }
        if let Stage::Redact(_) = arranged[at - 1] {
            let safe: Vec<Node> = moving.iter().filter_map(before_redact::part_before_redact).collect();
            arranged.insert(at, match_stage(moving));
            if !safe.is_empty() {
                let following = arranged.split_off(at - 1);
                append_match(arranged, Node::And(safe));
                arranged.extend(following);
            }
            return;
        }
        let Some(mut changes) = changes_of(&arranged[at - 1]) else { break };
        // Like every stage, a sort stays behind some conditions in MongoDB. It shows if an
        // expression fails for a document.
        changes.unchanged &= !moving.iter().any(Node::has_expression);
        if matches!(arranged[at - 1], Stage::Group(_)) && moving.iter().any(tests_existence_of_id) {
            break;
        }
        let (free, bound) = split_by_changes(&moving, &changes);
        if free.is_empty() {
            break;
        }
        if !bound.is_empty() {
            arranged.insert(at, match_stage(bound));
        }
        moving = free;
        at -= 1;
    }
    arranged.insert(at, match_stage(moving));
}

fn conditions(root: Node) -> Vec<Node> {
    match root {
        Node::And(parts) => parts,
        // Its conditions on required fields can be tested separately.
        Node::Schema(schema) => schema.conditions(),
        other => vec![other],
    }
}

/// Combines the conditions of a `$match` on one field into a conjunction of their own, like the one
/// that they are joined with.
fn grouped_by_field(parts: Vec<Node>) -> Vec<Node> {
    let mut conditions: Vec<Node> = Vec::with_capacity(parts.len());
    // The index of the first condition on each path.
    let mut first_indices: HashMap<Box<str>, usize> = HashMap::new();
    for part in parts {
        steps::step();
        let index = match &part {
            Node::Path { path, .. } => first_indices.get(path.as_str()).copied(),
            _ => None,
        };
        match index.and_then(|index| conditions.get_mut(index)) {
            None => {
                let first = if let Node::And(all) = &part { all.first() } else { Some(&part) };
                if let Some(Node::Path { path, .. }) = first {
                    first_indices.entry(path.as_str().into()).or_insert(conditions.len());
                }
                conditions.push(part);
            }
            Some(Node::And(all)) => all.push(part),
            Some(first) => *first = Node::And(vec![std::mem::replace(first, Node::Never), part]),
        }
    }
    conditions
}

/// Returns whether a condition tests for the existence of the group's key, which MongoDB tests
/// after the grouping.
fn tests_existence_of_id(condition: &Node) -> bool {
    fn is_about_existence(test: &Test) -> bool {
        match test {
            Test::Exists => true,
            Test::Not(test) | Test::Collated(test, _) => is_about_existence(test),
            Test::And(tests) => tests.iter().any(is_about_existence),
            _ => false,
        }
    }
    match condition {
        Node::And(parts) | Node::Or(parts) | Node::Nor(parts) => parts.iter().any(tests_existence_of_id),
        Node::Path { path, test } => path.as_str() == "_id" && is_about_existence(test),
        _ => false,
    }
}

/// Returns a `$unionWith` whose own documents are filtered like the input.
fn match_within_union(stage: &Stage, conditions: &[Node]) -> Option<Stage> {
    let Stage::CrossCollection(joining) = stage else { return None };
    let CrossCollectionStage::UnionWith(union) = &**joining else { return None };
    let mut union = union.clone();
    append_match(&mut union.pipeline.stages, Node::And(conditions.to_vec()));
    Some(Stage::CrossCollection(Arc::new(CrossCollectionStage::UnionWith(union))))
}

fn match_stage(mut all: Vec<Node>) -> Stage {
    all.sort_by_key(is_conjunction);
    Stage::Match(Arc::new(Predicate::all_of(all)))
}

/// Returns what a stage does to paths; `None` for a stage before which no condition can be tested.
fn changes_of(stage: &Stage) -> Option<Changes> {
    Some(match stage {
        Stage::Sort { .. } => Changes { unchanged: true, ..Changes::default() },
        Stage::AddFields(fields) => fields.changes(),
        // MongoDB does so as well. Null and missing are one key; it then sees only the one that
        // the condition selects.
        Stage::Group(group) => {
            Changes { retained: Some(Vec::new()), renamed: group.renames().to_vec(), ..Changes::default() }
        }
        Stage::Project(project) => project.changes(),
        Stage::Unwind(unwind) => Changes { written: unwind.written_paths(), ..Changes::default() },
        Stage::CrossCollection(joining) => match &**joining {
            CrossCollectionStage::Lookup(lookup) => Changes { written: vec![lookup.target()], ..Changes::default() },
            CrossCollectionStage::GraphLookup(lookup) => {
                Changes { written: vec![lookup.target()], ..Changes::default() }
            }
            _ => return None,
        },
        _ => return None,
    })
}

/// Splits conditions into those that can be tested before a stage, in their form there, and the
/// rest.
fn split_by_changes(conditions: &[Node], changes: &Changes) -> (Vec<Node>, Vec<Node>) {
    let (mut free, mut bound) = (Vec::new(), Vec::new());
    for condition in conditions {
        steps::step();
        match condition {
            Node::And(parts) if !parts.is_empty() => {
                let (inner_free, inner_bound) = split_by_changes(parts, changes);
                free.extend(inner_free);
                bound.extend(inner_bound);
            }
            Node::Nor(parts) if parts.len() > 1 => {
                let (mut free_parts, mut bound_parts) = (Vec::new(), Vec::new());
                for part in parts {
                    match changes.before_stage(part) {
                        Some(part) => free_parts.push(part),
                        None => bound_parts.push(part.clone()),
                    }
                }
                free.extend(Some(free_parts).filter(|parts| !parts.is_empty()).map(Node::Nor));
                bound.extend(Some(bound_parts).filter(|parts| !parts.is_empty()).map(Node::Nor));
            }
            condition => match changes.before_stage(condition) {
                Some(condition) => free.push(condition),
                None => bound.push(condition.clone()),
            },
        }
    }
    (free, bound)
}

/// Returns the maximal number of documents that the stages use: that of a `$limit`, perhaps after
/// `$skip`s.
fn following_limit(stages: &[Stage]) -> Option<u64> {
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

/// Splits off the front that a store can execute.
pub(super) fn split_source(Pipeline { mut stages, needs, fields }: Pipeline) -> (PipelineSource, Pipeline) {
    // Record numbers are visible only to a projection that is the first stage.
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
            predicate = first.as_ref().clone().arranged();
            stages.remove(0);
        }
        _ => {}
    }
    if let Some(Stage::Sort { sort: first, .. }) = stages.first() {
        sort = Some(first.clone());
        stages.remove(0);
    }
    let limit = following_limit(&stages);
    // Skips stay: the limit in front of them already includes the documents that they drop.
    if let (Some(_), Some(index)) = (limit, stages.iter().position(|stage| matches!(stage, Stage::Limit(_)))) {
        stages.remove(index);
    }
    (PipelineSource { predicate, sort, limit, needs, fields }, Pipeline { stages, needs, fields: None })
}

/// Returns the metadata read by an inclusion that is the first stage, or the first after a
/// `$match`.
pub(super) fn leading_inclusion(stages: &[Stage]) -> Option<Needs> {
    match stages {
        [Stage::Match(_), Stage::Project(project), ..] | [Stage::Project(project), ..] => project.inclusion_needs(),
        _ => None,
    }
}
