//! An index that may serve a query, and how well.

use super::sort_order;
use crate::catalog::{Collection, Index};
use crate::plan::{IndexScan, SortField, Union};
use access::conditions::PlannerQuery;
use access::index_bounds::CompoundBounds;
use access::{FieldBounds, intervals};
use std::ops::Deref;
use std::sync::Arc;

pub struct IndexCandidate<'c> {
    pub index: Option<&'c Arc<Index>>,
    binding: CompoundBounds<'c>,
    pub order: Option<sort_order::SortOrder>,
}

impl<'c> Deref for IndexCandidate<'c> {
    type Target = CompoundBounds<'c>;

    fn deref(&self) -> &CompoundBounds<'c> {
        &self.binding
    }
}

impl<'c> IndexCandidate<'c> {
    pub fn new(
        collection: &'c Collection,
        index: Option<&'c Arc<Index>>,
        wanted: &PlannerQuery<'_>,
    ) -> IndexCandidate<'c> {
        let fields = index.map_or(std::slice::from_ref(&collection.id_field), |index| &index.fields);
        let arrays = index.map_or(0, |index| index.multikey.parts());
        let binding = CompoundBounds::new(index.map(|index| &index.shape), fields, arrays, wanted);
        let mut candidate = IndexCandidate { index, binding, order: None };
        candidate.order = sort_order::of(&candidate.binding, wanted);
        candidate
    }

    /// Returns whether the index narrows the search, gives the order, or lacks documents without
    /// the field.
    pub fn is_useful(&self) -> bool {
        let sparse = self.index.is_some_and(|index| index.spec.sparse);
        self.complete && (self.narrows() || self.order.is_some() || sparse)
    }

    /// Returns the number of a field that has one value in each document, if each document has one
    /// key; for distinct values.
    pub fn single_valued_field(&self, path: &str) -> Option<usize> {
        let at = self.fields.iter().position(|field| field.path == path)?;
        (self.arrays == 0 && self.exact).then_some(at)
    }

    /// Returns whether the bounds are points of all fields of a unique index: at most one document
    /// for each.
    pub fn is_unique_lookup(&self) -> bool {
        let unique = self.index.is_none_or(|index| index.spec.unique);
        unique && self.points == self.fields.len()
    }

    pub fn is_sorted(&self, wanted: &PlannerQuery<'_>) -> bool {
        wanted.sort.is_none() || self.order.is_some()
    }

    pub fn scan(&self) -> IndexScan {
        self.scan_of(self.bounds.clone())
    }

    fn scan_of(&self, bounds: Vec<FieldBounds>) -> IndexScan {
        let (intervals, filter) = intervals::build(self.fields, &bounds);
        let paths = self.fields.iter().map(|field| field.path.clone());
        IndexScan {
            filter,
            forward: self.order.as_ref().is_none_or(|order| order.forward),
            bounds: paths.zip(bounds).collect(),
            ..IndexScan::new(self.index.cloned(), intervals)
        }
    }

    /// Returns the scan exploded into several that each give the order, if the order needs it.
    pub fn exploded(&self) -> Option<Union> {
        let order = self.order.as_ref().filter(|order| order.leading > 0)?;
        let parts = intervals::explode(&self.bounds, order.leading);
        let branches: Vec<IndexScan> = parts.into_iter().map(|bounds| self.scan_of(bounds)).collect();
        let fields: Vec<SortField> = order.fields.clone();
        Some(Union { merged: Some(vec![fields; branches.len()]), branches, exploded: true })
    }
}

/// Returns the ordered indexes that may serve.
pub fn useful_candidates<'c>(collection: &'c Collection, wanted: &PlannerQuery<'_>) -> Vec<IndexCandidate<'c>> {
    let id = IndexCandidate::new(collection, None, wanted);
    let indexes = collection.indexes.iter().filter(|index| index.is_usable() && index.kind.is_ordered());
    let secondary = indexes.map(|index| IndexCandidate::new(collection, Some(index), wanted));
    (!wanted.without_id).then_some(id).into_iter().chain(secondary).filter(IndexCandidate::is_useful).collect()
}
