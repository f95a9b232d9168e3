//! Decides whether an index gives the order of a sort.

use crate::plan::SortField;
use access::ValueRange;
use access::conditions::PlannerQuery;
use access::index_bounds::CompoundBounds;

/// The limit of scans into which one scan is exploded, to be merged in order.
const SCANS_MAX: usize = 200;

pub struct SortOrder {
    pub forward: bool,
    /// The number of leading fields with several points: the scans of each combination, merged,
    /// give the order. 0: the scan alone does.
    pub leading: usize,
    /// The fields that give the order.
    pub fields: Vec<SortField>,
}

/// Returns the order, if the index gives it.
pub fn of(index: &CompoundBounds<'_>, wanted: &PlannerQuery<'_>) -> Option<SortOrder> {
    let sort = wanted.sort.filter(|_| wanted.natural.is_none() && index.is_ordered())?;
    if index.fields.iter().any(|field| field.collation != *sort.collation()) {
        return None;
    }
    let mut parts = sort.parts().iter();
    let mut part = parts.next();
    let mut forward = None;
    let mut order = SortOrder { forward: true, leading: 0, fields: Vec::new() };
    for (at, (field, ranges)) in index.fields.iter().zip(&index.bounds).enumerate() {
        let Some(wanted) = part else { break };
        let fixed = ranges.len() == 1 && ranges[0].is_point();
        if wanted.path.as_str() == field.path {
            if !first_key_is_least(index, at) {
                return None;
            }
            let same = wanted.ascending == field.ascending;
            if !fixed && *forward.get_or_insert(same) != same {
                return None;
            }
            order.fields.push(SortField { at, inverted: !same });
            part = parts.next();
            // No two documents share an `_id`, so the fields behind it do not matter.
            if field.path == "_id" && index.shape.is_none() {
                part = None;
            }
        } else if fixed {
        } else if order.fields.is_empty() && ranges.iter().all(ValueRange::is_point) {
            order.leading = at + 1;
        } else {
            return None;
        }
    }
    let scans: usize = index.bounds[..order.leading].iter().map(Vec::len).fold(1, usize::saturating_mul);
    if part.is_some() || scans > SCANS_MAX {
        return None;
    }
    order.forward = forward.unwrap_or(true);
    Some(order)
}

/// Returns whether the first key of a document in the scan is the least of all its keys by this
/// field. With several keys per document, bounds may exclude that one.
fn first_key_is_least(index: &CompoundBounds<'_>, at: usize) -> bool {
    if index.arrays_of(at) == 0 {
        return true;
    }
    let field = &index.fields[at];
    let in_the_same_array = |other: usize| {
        let other = &index.fields[other];
        let shared = field.path.split('.').zip(other.path.split('.')).take_while(|(a, b)| a == b).count() as u32;
        index.arrays & field.parts_between(0, shared) != 0
    };
    !(0..index.fields.len()).any(|other| index.is_bound(other) && in_the_same_array(other))
}
