//! Text searches: the keys of each term, behind those of the fields before the terms.

use crate::Interval;
use crate::bounded_keys::BoundedKeys;
use crate::conditions::PlannerQuery;
use document::{Kind, Value};
use fulltext::TextSearch;
use index_keys::keys::{self, text};
use index_keys::{IndexField, IndexShape};
use query::predicate::Test;
use smallvec::{SmallVec, smallvec};
use steps::Counted;

/// Returns the keys of a search by this index: one interval for each term and each combination of
/// values before it. `None` if the query does not search by the index, or does not bind the fields
/// before the terms.
pub fn keys(shape: &IndexShape, wanted: &PlannerQuery<'_>) -> Option<BoundedKeys> {
    let search = wanted.text.filter(|search| shape.text.is_some() && shape.spec.name == *search.index.name)?;
    let prefixes = prefixes(shape, wanted)?;
    let mut intervals: Vec<Interval> =
        prefixes.iter().flat_map(|front| search.terms.iter().counted().map(|term| interval(front, term))).collect();
    intervals.sort_unstable_by(|a, b| {
        steps::step();
        a.cmp(b)
    });
    let exact = wanted.is_search_alone(search)
        && search.has_terms_only()
        && search.terms.iter().counted().all(|it| text::is_whole(it));
    Some(BoundedKeys { exact: exact && prefixes.len() == 1, ..BoundedKeys::new(intervals) })
}

/// Returns the prefixes of keys: the values that the query requires of the fields before the terms.
fn prefixes(shape: &IndexShape, wanted: &PlannerQuery<'_>) -> Option<SmallVec<[Vec<u8>; 1]>> {
    let mut prefixes: SmallVec<[Vec<u8>; 1]> = smallvec![Vec::new()];
    for field in shape.fields.iter().take_while(|field| field.path != "_fts") {
        let value = wanted.conditions.iter().counted().find_map(|condition| match condition.test {
            _ if condition.path != field.path.as_str() => None,
            Test::Equal(value) => Some(value),
            Test::In(list) if list.regexes().is_empty() && list.values().len() == 1 => list.values().first(),
            _ => None,
        })?;
        // A query for null also finds undefined, which has a key of its own.
        if value.kind() == Kind::Null {
            let undefined = prefixes.iter().map(|front| behind(front, Value::Undefined, field)).collect::<Vec<_>>();
            prefixes = prefixes.iter().map(|front| behind(front, Value::Null, field)).chain(undefined).collect();
        } else {
            prefixes.iter_mut().for_each(|front| keys::encode_field(value.as_value(), field, front));
        }
    }
    Some(prefixes)
}

fn behind(front: &[u8], value: Value<'_>, field: &IndexField) -> Vec<u8> {
    let mut key = front.to_vec();
    keys::encode_field(value, field, &mut key);
    key
}

fn interval(front: &[u8], term: &str) -> Interval {
    let mut low = front.to_vec();
    text::encode_term(term, &mut low);
    Interval { high: keys::end_of_prefix(low.clone()), low }
}

impl PlannerQuery<'_> {
    /// Returns whether the query requires only the search and the values of the fields before the
    /// terms.
    fn is_search_alone(&self, search: &TextSearch) -> bool {
        !self.has_others && self.disjunctions.is_empty() && self.conditions.len() == search.index.prefix.len()
    }
}
