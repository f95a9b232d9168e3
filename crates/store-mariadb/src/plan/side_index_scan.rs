//! Plans rows by a side index, whose keys gateways compute.

use crate::catalog::table::Table;
use crate::index::Index;
use crate::index::side_index::side_table::{ARRAYS, KEY, KEY_BYTES_MAX, SideTable, UNKNOWN, stored_key};
use crate::plan::access::{DistanceSearch, RowKeyLookup, RowSource, SideIndexScan};
use crate::plan::parameters::padded;
use crate::plan::pushdown::{Condition, Operand};
use access::bounded_keys::{BoundedKeys, bound_fields};
use access::conditions::PlannerQuery;
use access::geo_bounds::{self, GeoPrefix};
use access::keys::{keys_of, usable_keys};
use access::{FieldBounds, Interval, partial, search};
use fulltext::TextSearch;
use geo::{EARTH_RADIUS_METERS, Near};
use index_keys::IndexShape;
use index_keys::keys::end_of_prefix;
use query::Predicate;
use query::predicate::Node;
use std::f64::consts::PI;
use std::sync::Arc;
use store::{Query, near};

/// The most intervals of one statement; more are merged with their neighbours.
const INTERVALS_MAX: usize = 512;

/// The most path components with arrays whose combinations are distinguished.
const ARRAY_PARTS_MAX: u32 = 4;

/// Returns the rows by a side index: the text index of a text search, the hinted one, or else the
/// most selective one. `None` if none serves.
pub(crate) fn of_query(
    table: &Table,
    query: &Query<'_>,
    wanted: &PlannerQuery<'_>,
    hinted: Option<&Index>,
) -> Option<RowSource> {
    let shown = table.indexes.iter().filter(|index| index.serves_by_side_table() && !index.is_hidden());
    let chosen = shown.filter(|index| hinted.is_none_or(|hinted| hinted.spec.name == index.spec.name));
    let lookup = chosen.filter_map(|index| Some((index, lookup(index, query, wanted, hinted.is_some())?)));
    let (index, lookup) = lookup.max_by(|(_, one), (_, other)| one.selectivity.total_cmp(&other.selectivity))?;
    Some(rows(table, index, lookup, hinted.is_some()))
}

/// Returns the rows of a text search.
pub(crate) fn of_search(table: &Table, query: &Query<'_>, wanted: &PlannerQuery<'_>) -> Option<RowSource> {
    wanted.text.and_then(|_| of_query(table, query, wanted, None))
}

/// Returns the rows by a side index for a branch of an `$or`.
pub(crate) fn of_branch(table: &Table, branch: &Node) -> Option<RowSource> {
    let predicate = Predicate::of(branch.clone());
    of_query(table, &Query::of(&predicate), &PlannerQuery::of_node(branch), None)
}

/// A lookup in a side index.
struct KeyLookup {
    /// Disjoint, ascending.
    intervals: Vec<Interval>,
    bounds: Vec<(String, FieldBounds)>,
    /// The intervals include the rows of documents with arrays.
    with_arrays: bool,
    search: Option<Arc<TextSearch>>,
    /// For the nearest documents first.
    near: Option<RingSearch>,
    /// A measure of selectivity; the greatest is the best.
    selectivity: f64,
}

/// A distance search, and the prefix of its keys.
type RingSearch = (Arc<Near>, GeoPrefix);

fn lookup(index: &Index, query: &Query<'_>, wanted: &PlannerQuery<'_>, hinted: bool) -> Option<KeyLookup> {
    let (shape, table) = (&*index.side_index()?.shape, index.side_table()?);
    let arrays = if table.arrays.count_ones() <= ARRAY_PARTS_MAX { table.arrays } else { u64::MAX };
    let by_keys = |BoundedKeys { intervals, bounds, .. }| KeyLookup {
        with_arrays: shape.kind.is_ordered() && arrays != u64::MAX,
        search: None,
        near: None,
        selectivity: bound_fields(&bounds),
        intervals,
        bounds,
    };
    if let Some(text) = wanted.text {
        return Some(KeyLookup { search: Some(text.clone()), ..by_keys(search::keys(shape, wanted)?) });
    }
    let found = if hinted { keys_of(shape, arrays, wanted) } else { usable_keys(shape, arrays, wanted) };
    let by_distance = || {
        let (keys, near) = ring(shape, query, wanted).filter(|_| hinted || partial::covers_query(shape, wanted))?;
        Some(KeyLookup { near, ..by_keys(keys) })
    };
    let everything = || hinted.then(|| by_keys(BoundedKeys::everything()));
    found.map(by_keys).or_else(by_distance).or_else(everything)
}

/// Returns the keys of documents around a point. With the distance search, if they are read ring by
/// ring: everything within the maximum distance is read at once, unless only the nearest are
/// requested.
fn ring(shape: &IndexShape, query: &Query<'_>, wanted: &PlannerQuery<'_>) -> Option<(BoundedKeys, Option<RingSearch>)> {
    let near = query.predicate.near().filter(|near| near::serves(&shape.spec, &shape.kind, near, |_| true))?;
    let is_bounded = near.max < PI * EARTH_RADIUS_METERS;
    let in_order = query.sort.is_none_or(query::Sort::is_empty);
    if !in_order && !is_bounded {
        return None;
    }
    let front = GeoPrefix::new(shape, near.path.as_str(), wanted).filter(GeoPrefix::is_known)?;
    let intervals = geo_bounds::ring(shape, near, &front, near.min, near.max);
    let keys = BoundedKeys { bounds: front.all_bounds(shape), ..BoundedKeys::new(intervals) };
    let one_by_one = in_order && (query.limit.is_some() || !is_bounded);
    Some((keys, one_by_one.then(|| (near.clone(), front))))
}

fn rows(table: &Table, index: &Index, lookup: KeyLookup, hinted: bool) -> RowSource {
    let shape = index.side_index().map(|form| form.shape.clone());
    let keys = index.side_table().cloned().unwrap_or_else(SideTable::new);
    let condition = key_condition(&lookup.intervals, if lookup.with_arrays { keys.arrays } else { u64::MAX });
    let rings =
        lookup.near.zip(shape.clone()).map(|((near, front), shape)| DistanceSearch { near, shape, prefix: front });
    let pending = keys.pending(&table.schema);
    let only = shape.filter(|_| hinted);
    let side = SideIndexScan { pending, bounds: lookup.bounds, search: lookup.search, rings, only, table: keys };
    let found = RowKeyLookup {
        table: side.table.keys(&table.schema),
        key: "seq",
        group_by: None,
        row_condition: None,
        spec: Some(index.spec.clone()),
        side: Some(Box::new(side)),
    };
    RowSource::looked_up(found, condition)
}

/// Returns the condition for keys within these intervals, and for the markers of documents with
/// arrays in other path components.
pub(crate) fn key_condition(intervals: &[Interval], arrays: u64) -> Condition {
    let mut ranges: Vec<(Vec<u8>, Vec<u8>)> = intervals.iter().map(range).collect();
    ranges.sort_unstable();
    join(&mut ranges);
    ranges.extend(markers_except(arrays));
    condition(&ranges)
}

/// Returns the range of stored keys of an interval, whose ends may be longer than stored keys.
fn range(interval: &Interval) -> (Vec<u8>, Vec<u8>) {
    let high = match interval.high.len() > KEY_BYTES_MAX {
        true => end_of_prefix(stored_key(&interval.high)),
        false => [&[KEY][..], &interval.high].concat(),
    };
    (stored_key(&interval.low), high)
}

/// Merges neighbours until there are few enough.
fn join(ranges: &mut Vec<(Vec<u8>, Vec<u8>)>) {
    while ranges.len() > INTERVALS_MAX {
        *ranges = ranges.chunks(2).map(|pair| (pair[0].0.clone(), pair[pair.len() - 1].1.clone())).collect();
    }
}

/// Returns the markers of documents with arrays in other path components than these, and of
/// documents with unknown keys.
fn markers_except(arrays: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut low = match arrays {
        u64::MAX => UNKNOWN.to_vec(),
        _ => vec![ARRAYS],
    };
    let mut ranges = Vec::new();
    if arrays != u64::MAX {
        // The bounds already cover documents whose arrays are a subset of `arrays`: skip each
        // subset's marker, in ascending order.
        let mut subset = 0_u64;
        loop {
            let marker = [&[ARRAYS][..], &subset.to_be_bytes()].concat();
            if low < marker {
                ranges.push((low, marker.clone()));
            }
            low = end_of_prefix(marker);
            if subset == arrays {
                break;
            }
            subset = (subset | !arrays).wrapping_add(1) & arrays;
        }
    }
    ranges.push((low, vec![KEY]));
    ranges
}

fn condition(ranges: &[(Vec<u8>, Vec<u8>)]) -> Condition {
    // Lists are padded to a few lengths, so that few statements are prepared.
    let length = padded(ranges.len());
    let sql = vec!["key_bytes >= ? AND key_bytes < ?"; length].join(" OR ");
    let last = ranges.last().cloned().unwrap_or_default();
    let all = ranges.iter().cloned().chain(std::iter::repeat(last)).take(length);
    let params = all.flat_map(|(low, high)| [Operand::Bytes(low), Operand::Bytes(high)]).collect();
    Condition::new(format!("({sql})"), params)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(ranges: &[(Vec<u8>, Vec<u8>)], arrays: u64) -> bool {
        let marker = [&[ARRAYS][..], &arrays.to_be_bytes()].concat();
        ranges.iter().any(|(low, high)| *low <= marker && marker < *high)
    }

    #[test]
    fn documents_with_other_arrays_are_included() {
        for known in [0, 1, 0b101, u64::MAX] {
            let ranges = markers_except(known);
            for arrays in [1, 2, 4, 5, 7, 1 << 40] {
                assert_eq!(holds(&ranges, arrays), arrays & !known != 0, "{arrays:b} beside {known:b}");
            }
            assert!(holds(&ranges, u64::MAX), "whose keys are not known");
        }
    }

    #[test]
    fn long_keys_are_found_by_prefix() {
        let key = |last: u8| [vec![7; KEY_BYTES_MAX + 9], vec![last]].concat();
        let (low, high) = range(&Interval { low: key(3), high: key(4) });
        assert!(low <= stored_key(&key(3)) && stored_key(&key(3)) < high);
        let (low, high) = range(&Interval { low: vec![7], high: vec![8] });
        assert!(low <= stored_key(&key(3)) && stored_key(&key(3)) < high && stored_key(&[8]) >= high);
    }

    #[test]
    fn many_intervals_become_fewer() {
        let mut ranges: Vec<_> =
            (0..2000u32).map(|at| (at.to_be_bytes().to_vec(), (at + 1).to_be_bytes().to_vec())).collect();
        join(&mut ranges);
        assert!(ranges.len() <= INTERVALS_MAX);
        assert_eq!(
            (&ranges[0].0, &ranges[ranges.len() - 1].1),
            (&0u32.to_be_bytes().to_vec(), &2000u32.to_be_bytes().to_vec())
        );
    }
}
