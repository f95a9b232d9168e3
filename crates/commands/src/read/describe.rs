//! The metadata of documents.
//!
//! This is the only place that assembles the metadata of documents that are read: results of the
//! match ([`MatchDetails`]) and of the sort. Reads without requested metadata have no
//! [`Describer`].

use document::{Collation, Doc, Value};
use error::Result;
use geo::Near;
use query::predicate::Node;
use query::{Item, MatchDetails, Meta, MetadataBuf, Needs, Predicate, Projection, Sort};
use std::sync::Arc;
use store::Plan;

#[derive(Debug)]
pub(super) struct Describer {
    needs: Needs,
    /// The order in which the source returns the documents.
    sort: Option<Sort>,
    /// The point from which distances are measured.
    near: Option<Arc<Near>>,
    /// The order of the index in use.
    index: Option<Sort>,
    /// The id of the current record.
    pub record: Option<i64>,
    metadata: MetadataBuf,
}

impl Describer {
    /// Returns `None` if no metadata is requested.
    pub fn new(
        needs: Needs,
        sort: Option<&Sort>,
        near: Option<&Arc<Near>>,
        index: Option<Sort>,
    ) -> Option<Box<Describer>> {
        if needs.is_empty() {
            return None;
        }
        let sort = sort.filter(|_| needs.contains(Meta::SortKey)).cloned();
        let by_distance = needs.contains(Meta::GeoNearDistance) || needs.contains(Meta::GeoNearPoint);
        let near = near.filter(|_| by_distance).cloned();
        Some(Box::new(Describer { needs, sort, near, index, record: None, metadata: MetadataBuf::default() }))
    }

    /// Returns the document with its metadata.
    pub fn describe<'d>(&'d mut self, document: Doc<'d>, details: &MatchDetails) -> Result<Item<'d>> {
        self.metadata.begin(query::Metadata::NONE);
        if let Some(score) = details.text_score.filter(|_| self.needs.contains(Meta::TextScore)) {
            self.metadata.set_text_score(score);
        }
        if let Some(number) = self.record.filter(|_| self.needs.contains(Meta::RecordId)) {
            self.metadata.set(Meta::RecordId, number);
        }
        if let Some(index) = &self.index {
            self.metadata.set(Meta::IndexKey, &index.index_key(document)?);
        }
        if let Some((near, nearest)) = self.near.as_ref().and_then(|near| Some((near, near.nearest(document)?))) {
            self.metadata.set_near(near.to_result_unit(nearest.distance), nearest.location);
        }
        match &self.sort {
            Some(sort) => sort.record_key(document, &mut self.metadata)?,
            None if self.needs.contains(Meta::SortKey) => self.metadata.set(Meta::SortKey, Value::Array(Doc::EMPTY)),
            None => {}
        }
        Ok(Item { document, metadata: self.metadata.as_metadata() })
    }
}

/// Returns the order in which a plan scans an index, if it does.
///
/// A lookup by `_id` does not count, unless only the key is requested (`returnKey`).
pub(super) fn index_order(plan: &dyn Plan, needs: Needs, projection: Option<&Projection>) -> Option<Sort> {
    if !needs.contains(Meta::IndexKey) {
        return None;
    }
    let tree = plan.winning_plan();
    let Some(stage) = stage_of(tree.as_doc(), "IXSCAN") else {
        let by_id =
            projection.is_some_and(Projection::returns_index_key) && stage_of(tree.as_doc(), "IDHACK").is_some();
        let order = by_id.then(|| document::doc! { "_id": 1 })?;
        return Sort::of_index(order.as_doc(), Collation::SIMPLE, true);
    };
    let forward = stage.get("direction").and_then(Value::as_str) != Some("backward");
    Sort::of_index(stage.get("keyPattern")?.as_document()?, Collation::SIMPLE, forward)
}

/// Returns the first stage of this name, from the top of a plan down.
fn stage_of<'p>(plan: Doc<'p>, name: &str) -> Option<Doc<'p>> {
    let mut stage = plan;
    while stage.get("stage").and_then(Value::as_str) != Some(name) {
        stage = stage.get("inputStage")?.as_document()?;
    }
    Some(stage)
}

/// Returns the predicate with its conditions in the order in which MongoDB evaluates them with such
/// a plan, if that differs. The order decides which error is reported.
pub(super) fn in_turn(plan: &dyn Plan, predicate: &Predicate) -> Option<Predicate> {
    if !predicate.root().may_fail() {
        return None;
    }
    let tree = plan.winning_plan();
    let indexed: Vec<&str> = match stage_of(tree.as_doc(), "IXSCAN") {
        Some(scan) => scan.get("keyPattern")?.as_document()?.iter().map(|(path, _)| path).collect(),
        None => stage_of(tree.as_doc(), "IDHACK").map(|_| vec!["_id"])?,
    };
    // An index that is used for its order only does not change the evaluation.
    let bounds = |node: &Node| matches!(node, Node::Path { path, .. } if indexed.first() == Some(&path.as_str()));
    let bounded = match predicate.root() {
        Node::And(parts) => parts.iter().any(bounds),
        other => bounds(other),
    };
    bounded.then(|| predicate.clone().arranged_beside(&indexed))
}

/// Returns the document, with metadata if it is requested.
pub(super) fn describe<'d>(
    describer: Option<&'d mut Describer>,
    document: Doc<'d>,
    details: &MatchDetails,
) -> Result<Item<'d>> {
    describer.map_or_else(|| Ok(document.into()), |describer| describer.describe(document, details))
}
