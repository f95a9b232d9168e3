//! The stages that MongoDB 6.0 runs in its second engine ([`query::expression::second_engine`]):
//! `$group` and joins at the front of a pipeline, after the part that a collection executes, up to
//! the first stage that the engine does not support.

use super::joins::CrossCollectionStage;
use super::stage::{Pipeline, Stage};
use query::predicate::{Node, Test};
use std::sync::Arc;

impl Pipeline {
    /// Marks the stages that the second engine would execute in a pipeline over a collection.
    #[must_use]
    pub fn with_second_engine(mut self) -> Pipeline {
        let Some(source) = store_stage_count(&self.stages) else { return self };
        let supported = self.stages[source..].iter().enumerate().take_while(|(at, stage)| {
            let unwound = || matches!(self.stages.get(source + at + 1), Some(Stage::Unwind(unwind)) if is_absorbed(stage, unwind));
            is_known(stage) && !unwound()
        });
        let end = source + supported.count();
        if end == source || needs_count_only(&self.stages[..end]) {
            return self;
        }
        for stage in &mut self.stages[..end] {
            match stage {
                Stage::Group(group) => change_unshared(group, super::group::Group::use_second_engine),
                Stage::Project(project) => change_unshared(project, super::reshape::Project::use_second_engine),
                Stage::CrossCollection(joining) => change_unshared(joining, |joining| {
                    if let CrossCollectionStage::Lookup(lookup) = joining {
                        lookup.use_second_engine();
                    }
                }),
                _ => {}
            }
        }
        self
    }
}

/// Changes a value that was just parsed, so that the pipeline's stages have its only reference.
fn change_unshared<T>(shared: &mut Arc<T>, change: fn(&mut T)) {
    if let Some(only) = Arc::get_mut(shared) {
        change(only);
    }
}

/// Returns the number of stages that the collection executes; `None` if the engine does not support
/// them.
fn store_stage_count(stages: &[Stage]) -> Option<usize> {
    let mut at = 0;
    if let Some(Stage::Match(predicate)) = stages.first() {
        if !is_known_condition(predicate.root()) {
            return None;
        }
        at += 1;
    }
    if let Some(Stage::Sort { sort, .. }) = stages.get(at) {
        if sort.parts().iter().any(|part| part.meta.is_some() || part.path.has_position()) {
            return None;
        }
        at += 1;
    }
    at += stages[at..].iter().take_while(|stage| matches!(stage, Stage::Skip(_) | Stage::Limit(_))).count();
    if matches!(stages.get(at), Some(Stage::Project(project)) if project.is_supported_by_second_engine()) {
        at += 1;
    }
    Some(at)
}

/// Returns whether only the number of documents matters: MongoDB then reads empty ones, with its
/// first engine.
fn needs_count_only(stages: &[Stage]) -> bool {
    let reads = |stage: &Stage| match stage {
        Stage::Group(group) => Some(group.reads_documents()),
        Stage::CrossCollection(_) | Stage::Project(_) => Some(true),
        _ => None,
    };
    stages.iter().find_map(reads) == Some(false)
}

fn is_known(stage: &Stage) -> bool {
    match stage {
        Stage::Group(group) => group.is_supported_by_second_engine(),
        Stage::CrossCollection(joining) => {
            matches!(&**joining, CrossCollectionStage::Lookup(lookup) if lookup.is_supported_by_second_engine())
        }
        _ => false,
    }
}

/// Returns whether a join and the `$unwind` after it are one stage.
pub(super) fn is_absorbed(join: &Stage, unwind: &super::unwind::Unwind) -> bool {
    let Stage::CrossCollection(joining) = join else { return false };
    matches!(&**joining, CrossCollectionStage::Lookup(lookup) if unwind.written_paths().first() == Some(&lookup.target()))
}

fn is_known_condition(node: &Node) -> bool {
    steps::step();
    match node {
        Node::And(parts) | Node::Or(parts) | Node::Nor(parts) => parts.iter().all(is_known_condition),
        Node::Path { path, test } => !path.has_position() && is_known_test(test),
        Node::Expression(expression) => expression.is_supported_by_second_engine(),
        Node::Schema(_) | Node::Near(_) | Node::KeyRange(_) | Node::Text { .. } => false,
        Node::Never => true,
    }
}

fn is_known_test(test: &Test) -> bool {
    steps::step();
    match test {
        Test::Geometry(_) | Test::ElementSatisfies(_) => false,
        Test::ElementMatches(node) => is_known_condition(node),
        Test::Not(test) | Test::Collated(test, _) => is_known_test(test),
        Test::And(tests) => tests.iter().all(is_known_test),
        _ => true,
    }
}
